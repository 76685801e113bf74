#include <cstdint>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// Number of sequences of one head that are processed together. It is a multiple of 8 because
/// delta::product computes 8 rows at a time.
inline constexpr int lstm_together = 8;

/// One sequence of one LSTM head. `before` and `after` are the initial and the final state: the
/// hidden vector h and then the cell vector c, with n entries each. `before` or `after` may be
/// null.
template <class T>
struct LstmSequence {
  std::int64_t tokens = 0;
  HeadRows<const T> x = {}, dy = {};
  HeadRows<T> y = {}, dx = {};
  // The gates and the cell states c of all tokens. The forward pass saves them, unless these
  // pointers are null. The backward pass reads them.
  HeadRows<float> gates = {}, cells = {};
  // Used only in the backward pass. Row t of `da` receives dx of token t in f32, and row t of
  // `earlier` receives the state h before token t.
  HeadRows<float> da = {}, earlier = {};
  const float* before = nullptr;
  float* after = nullptr;
};

template <class T>
struct LstmRows {
  LstmSequence<T> each[lstm_together];
  std::int64_t n;
  const float* u;  // the head's recurrent matrix U, packed by LstmKernels::pack
  bool add;        // true if gradients are added to dx instead of overwriting it
};

template <class T>
struct LstmKernels {
  std::int64_t (*scratch)(std::int64_t n);
  /// pack() packs the recurrent matrix U of a head, [4 n, n]. `transposed` is true for the forward
  /// pass and false for the backward pass. packed() returns the size of the packed matrix in
  /// floats.
  std::int64_t (*packed)(std::int64_t n);
  void (*pack)(const float* u, std::int64_t n, bool transposed, float* to);
  void (*forward)(const LstmRows<T>& rows, float* scratch);
  void (*backward)(const LstmRows<T>& rows, float* scratch);
};

}  // namespace longhand::cpu

#ifdef LONGHAND_ISA
#include "core/cpu/delta/products.h"
#include "core/cpu/loop.h"
#include "core/cpu/math.h"
#include "core/formulas.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

using delta::Matrix;
using delta::padded;

/// The state of an LSTM head. Each matrix has one row per sequence. Rows of `h` and `c` contain the
/// state vectors h and c. Rows of `a` contain U h, where U is the recurrent matrix. A row of `a`
/// has one part for each of the gates i, f, o and g, and each part is padded to the stride of h.
struct LstmSpace {
  Matrix h, c, a;
  explicit LstmSpace(float* at, std::int64_t p)
      : h{at, p}, c{at + lstm_together * p, p}, a{at + 2 * lstm_together * p, 4 * p} {}
  static std::int64_t floats(std::int64_t p) { return 6 * lstm_together * p; }
};

std::int64_t lstm_scratch(std::int64_t n) { return LstmSpace::floats(padded(n)); }
std::int64_t lstm_packed(std::int64_t n) { return 4 * padded(n) * padded(n); }

void lstm_pack(const float* u, std::int64_t n, bool transposed, float* to) {
  const std::int64_t p = padded(n);
  for (std::int64_t i = 0; i < 4 * p * p; ++i) to[i] = 0;
  for (std::int64_t part = 0; part < 4; ++part) {
    for (std::int64_t e = 0; e < n; ++e) {
      for (std::int64_t j = 0; j < n; ++j) {
        const float x = u[(part * n + e) * n + j];
        to[transposed ? j * 4 * p + part * p + e : (part * p + e) * p + j] = x;
      }
    }
  }
}

template <class T>
std::int64_t longest_of(const LstmRows<T>& rows) {
  std::int64_t longest = 0;
  for (const LstmSequence<T>& s : rows.each) longest = s.tokens > longest ? s.tokens : longest;
  return longest;
}

template <class T>
void lstm_forward(const LstmRows<T>& rows, float* scratch) {
  const std::int64_t n = rows.n, p = padded(n);
  const LstmSpace space(scratch, p);
  for (std::int64_t i = 0; i < LstmSpace::floats(p); ++i) scratch[i] = 0;
  for (int r = 0; r < lstm_together; ++r) {
    for (std::int64_t j = 0; rows.each[r].before && j < n; ++j) {
      space.h.row(r)[j] = rows.each[r].before[j];
      space.c.row(r)[j] = rows.each[r].before[n + j];
    }
  }

  const Matrix u{const_cast<float*>(rows.u), 4 * p};
  const std::int64_t longest = longest_of(rows);
  for (std::int64_t t = 0; t < longest; ++t) {
    delta::product(delta::plain(space.h), delta::Part::all, u, space.a, 0, lstm_together, 4 * p, n,
                   false);
    for (int r = 0; r < lstm_together; ++r) {
      const LstmSequence<T>& s = rows.each[r];
      if (t >= s.tokens) continue;
      const T* const x = s.x.row(t);
      for_each_vector(n, [&](auto j, auto v) {
        const auto part = [&](std::int64_t k) {
          return v.load(x + k * n + j) + v.load(space.a.row(r) + k * p + j);
        };
        const Vec i = formula::Sigmoid::value(part(0)), f = formula::Sigmoid::value(part(1));
        const Vec o = formula::Sigmoid::value(part(2)), g = formula::Tanh::value(part(3));
        const Vec c = fma(f, v.load(space.c.row(r) + j), i * g);
        const Vec h = o * formula::Tanh::value(c);
        v.store(space.c.row(r) + j, c);
        v.store(space.h.row(r) + j, h);
        v.store(s.y.row(t) + j, h);
        if (!s.gates) return;
        float* const to = s.gates.row(t) + j;
        v.store(to, i);
        v.store(to + n, f);
        v.store(to + 2 * n, o);
        v.store(to + 3 * n, g);
        v.store(s.cells.row(t) + j, c);
      });
    }
  }

  for (int r = 0; r < lstm_together; ++r) {
    for (std::int64_t j = 0; rows.each[r].after && j < n; ++j) {
      rows.each[r].after[j] = space.h.row(r)[j];
      rows.each[r].after[n + j] = space.c.row(r)[j];
    }
  }
}

template <class T>
void lstm_backward(const LstmRows<T>& rows, float* scratch) {
  const std::int64_t n = rows.n, p = padded(n);
  // Here, `space` contains gradients that come from the next token: those of the state h, of the
  // cell c, and of the inputs `a` of the gates.
  const LstmSpace space(scratch, p);
  for (std::int64_t i = 0; i < LstmSpace::floats(p); ++i) scratch[i] = 0;
  const Matrix u{const_cast<float*>(rows.u), p};
  for (std::int64_t t = longest_of(rows) - 1; t >= 0; --t) {
    delta::product(delta::plain(space.a), delta::Part::all, u, space.h, 0, lstm_together, p, 4 * p,
                   false);
    for (int r = 0; r < lstm_together; ++r) {
      const LstmSequence<T>& s = rows.each[r];
      if (t >= s.tokens) continue;
      for_each_vector(n, [&](auto j, auto v) {
        const auto gate = [&](std::int64_t row, std::int64_t k) {
          return v.load(s.gates.row(row) + k * n + j);
        };
        const Vec one(1.0f), none(0.0f);
        const Vec i = gate(t, 0), f = gate(t, 1), o = gate(t, 2), g = gate(t, 3);
        const Vec tanh_c = formula::Tanh::value(v.load(s.cells.row(t) + j));
        const Vec old = t > 0 ? v.load(s.cells.row(t - 1) + j) : none;
        const Vec dh = v.load(s.dy.row(t) + j) + v.load(space.h.row(r) + j);
        const Vec dc = fma(dh * o, one - tanh_c * tanh_c, v.load(space.c.row(r) + j));
        const Vec parts[4] = {dc * g * i * (one - i), dc * old * f * (one - f),
                              dh * tanh_c * o * (one - o), dc * i * (one - g * g)};
        for (std::int64_t k = 0; k < 4; ++k) {
          v.store(space.a.row(r) + k * p + j, parts[k]);
          v.store(s.da.row(t) + k * n + j, parts[k]);
          if (!s.dx) continue;
          T* const to = s.dx.row(t) + k * n + j;
          v.store(to, rows.add ? parts[k] + v.load(to) : parts[k]);
        }
        v.store(space.c.row(r) + j, dc * f);
        v.store(s.earlier.row(t) + j, t > 0 ? gate(t - 1, 2) * formula::Tanh::value(old) : none);
      });
    }
  }
}

template <class T>
constexpr LstmKernels<T> table{.scratch = lstm_scratch,
                               .packed = lstm_packed,
                               .pack = lstm_pack,
                               .forward = lstm_forward<T>,
                               .backward = lstm_backward<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const LstmKernels<float>& kernels<LstmKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const LstmKernels<bf16>& kernels<LstmKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu

#else
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/contract/lstm.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

namespace longhand::cpu {
namespace {

/// The indices of the segments in order of descending length, so that segments that are processed
/// together have similar lengths.
std::vector<std::int64_t> lstm_order(const Segments& segments) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(segments.count()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    return segments.lengths()[a] > segments.lengths()[b];
  });
  return order;
}

/// Calls kernel(rows, scratch) for every head and every group of lstm_together segments.
/// fill(segment, head, sequence) initializes one sequence of a group.
template <class T, class Kernel, class Fill>
void lstm_walk(CpuBackend& backend, const LstmKernels<T>& kernels, const Segments& segments,
               const Tensor& u, std::int64_t heads, bool transposed, const Kernel& kernel, bool add,
               const Fill& fill) {
  const std::int64_t n = u.columns();
  const Tensor packed = floats(backend, heads * kernels.packed(n));
  for (std::int64_t h = 0; h < heads; ++h) {
    kernels.pack(u.data<float>() + h * 4 * n * n, n, transposed,
                 packed.data<float>() + h * kernels.packed(n));
  }
  const std::vector<std::int64_t> order = lstm_order(segments);
  const std::int64_t groups = (std::ssize(order) + lstm_together - 1) / lstm_together;
  const Scratch scratch(backend, backend.threads().threads(), kernels.scratch(n));
  backend.threads().run(groups * heads, [&](std::int64_t chunk, int worker) {
    const std::int64_t head = chunk % heads, first = chunk / heads * lstm_together;
    LstmRows<T> rows{
        .each = {}, .n = n, .u = packed.data<float>() + head * kernels.packed(n), .add = add};
    for (int r = 0; r < lstm_together && first + r < std::ssize(order); ++r) {
      const std::int64_t segment = order[static_cast<std::size_t>(first + r)];
      rows.each[r].tokens = segments.lengths()[segment];
      fill(segment, head, rows.each[r]);
    }
    kernel(rows, scratch.of(worker));
  });
}

}  // namespace

void run(CpuBackend& backend, const Lstm& op) {
  visit_activation(op.x.data.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<LstmKernels<T> >(backend.isa());
    const std::int64_t heads = op.y.heads, n = op.y.width;
    const auto fill = [&](std::int64_t segment, std::int64_t head, LstmSequence<T>& s) {
      const std::int64_t row = op.segments.begins()[segment], at = (segment * heads + head) * 2 * n;
      s.x = rows_of<const T>(op.x, head, row);
      s.y = rows_of<T>(op.y, head, row);
      s.gates = rows_of<float>({op.gates, 0, heads, 4 * n}, head, row);
      s.cells = rows_of<float>({op.cells, 0, heads, n}, head, row);
      if (op.before) s.before = op.before.data<float>() + at;
      if (op.after) s.after = op.after.data<float>() + at;
    };
    lstm_walk(backend, kernels, op.segments, op.u, heads, true, kernels.forward, false, fill);
  });
}

void run(CpuBackend& backend, const LstmBackward& op) {
  const std::int64_t tokens = op.dy.data.rows(), heads = op.dy.heads, n = op.dy.width;
  const Tensor da(backend, {heads, tokens, 4 * n}, DType::f32);
  const Tensor earlier(backend, {heads, tokens, n}, DType::f32);
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<LstmKernels<T> >(backend.isa());
    const auto fill = [&](std::int64_t segment, std::int64_t head, LstmSequence<T>& s) {
      const std::int64_t row = op.segments.begins()[segment];
      s.dy = rows_of<const T>(op.dy, head, row);
      s.dx = rows_of<T>(op.dx.heads, head, row);
      s.gates = rows_of<float>({op.gates, 0, heads, 4 * n}, head, row);
      s.cells = rows_of<float>({op.cells, 0, heads, n}, head, row);
      s.da = {da.data<float>() + (head * tokens + row) * 4 * n, 4 * n};
      s.earlier = {earlier.data<float>() + (head * tokens + row) * n, n};
    };
    lstm_walk(backend, kernels, op.segments, op.u, heads, false, kernels.backward, op.dx.add, fill);
  });
  if (!op.du) return;
  backend.run(Matmul{.a = da,
                     .b = earlier,
                     .transpose_a = true,
                     .c = op.du.tensor.reshape({heads, 4 * n, n}),
                     .beta = op.du.add ? 1.0 : 0.0,
                     .math = Math::exact});
}

}  // namespace longhand::cpu
#endif
