#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// One sequence of the convolution's input x: `tokens` rows of `columns` entries. Rows begin
/// `stride` entries apart.
template <class T>
struct ConvolutionRows {
  std::int64_t tokens, columns, taps;
  const T* x;
  std::int64_t stride;
  const float* weight;  // [taps, columns]
  const float* before;  // inputs that precede the sequence, [taps - 1, columns]; may be null
};

template <class T>
struct ConvolutionKernels {
  /// The kernel of the forward pass. Computes the rows of y for the tokens [begin, end).
  void (*forward)(const ConvolutionRows<T>& in, std::int64_t begin, std::int64_t end, T* y);
  /// The kernel of the backward pass. Computes dx and dweight in the columns [begin, end) for all
  /// tokens. dx or dweight may be null. The gradient of the weight is added to the contents of
  /// dweight.
  void (*backward)(const ConvolutionRows<T>& in, std::int64_t begin, std::int64_t end, const T* dy,
                   T* dx, std::int64_t dx_stride, Store dx_how, float* dweight);
};

}  // namespace longhand::cpu

#ifdef LONGHAND_ISA
#include "core/cpu/loop.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

constexpr int most_taps = 8;
// The contributions to dweight, the gradient of the weight, are summed over this many tokens at a
// time. Each such sum is added to dweight.
constexpr std::int64_t together = 64;

template <class T>
void forward(const ConvolutionRows<T>& in, std::int64_t begin, std::int64_t end, T* y) {
  const std::int64_t n = in.columns;
  for (std::int64_t t = begin; t < end; ++t) {
    for_each_vector(n, [&](auto c, auto v) {
      Vec sum(0.0f);
      for (std::int64_t i = 0; i < in.taps; ++i) {
        const std::int64_t from = t - i;
        if (from < 0 && !in.before) break;
        const Vec x = from >= 0 ? v.load(in.x + from * in.stride + c)
                                : v.load(in.before + (in.taps - 1 + from) * n + c);
        sum = fma(v.load(in.weight + i * n + c), x, sum);
      }
      v.store(y + t * n + c, sum);
    });
  }
}

template <class T>
void backward(const ConvolutionRows<T>& in, std::int64_t begin, std::int64_t end, const T* dy,
              T* dx, std::int64_t dx_stride, Store dx_how, float* dweight) {
  const std::int64_t n = in.columns;
  for_each_vector(end - begin, [&](auto at, auto v) {
    const std::int64_t c = begin + at;
    Vec sums[most_taps];
    for (std::int64_t first = 0; first < in.tokens; first += together) {
      const std::int64_t last = first + together < in.tokens ? first + together : in.tokens;
      for (Vec& sum : sums) sum = Vec(0.0f);
      for (std::int64_t t = first; t < last; ++t) {
        Vec sum(0.0f);
        const Vec own = v.load(dy + t * n + c);
        for (std::int64_t i = 0; i < in.taps; ++i) {
          if (t + i < in.tokens) {
            const Vec later = i == 0 ? own : v.load(dy + (t + i) * n + c);
            sum = fma(v.load(in.weight + i * n + c), later, sum);
          }
          if (t - i >= 0) sums[i] = fma(own, v.load(in.x + (t - i) * in.stride + c), sums[i]);
        }
        if (!dx) continue;
        T* const to = dx + t * dx_stride + c;
        v.store(to, dx_how.add ? sum + v.load(to) : sum);
      }
      if (!dweight) continue;
      for (std::int64_t i = 0; i < in.taps; ++i) {
        v.store(dweight + i * n + c, v.load(dweight + i * n + c) + sums[i]);
      }
    }
  });
}

template <class T>
constexpr ConvolutionKernels<T> table{.forward = forward<T>, .backward = backward<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const ConvolutionKernels<float>& kernels<ConvolutionKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const ConvolutionKernels<bf16>& kernels<ConvolutionKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu

#else
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/contract/convolution.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

namespace longhand::cpu {
namespace {

/// Number of columns per chunk of the backward pass. 16 floats fill one cache line.
constexpr std::int64_t columns_together = 16;

template <class T, class Op>
ConvolutionRows<T> rows_of_segment(const Op& op, std::int64_t segment) {
  const std::int64_t n = op.x.heads * op.x.width;
  const HeadRows<const T> x = rows_of<const T>(op.x, 0, op.segments.begins()[segment]);
  return {.tokens = op.segments.lengths()[segment],
          .columns = n,
          .taps = op.weight.rows(),
          .x = x.at,
          .stride = x.stride,
          .weight = op.weight.template data<float>(),
          .before = nullptr};
}

/// Stores the last taps - 1 inputs of a sequence in `after`. If the sequence has fewer tokens, the
/// missing inputs are copied from in.before, or set to 0 if in.before is null.
template <class T>
void keep_tail(const ConvolutionRows<T>& in, float* after) {
  const std::int64_t tail = in.taps - 1;
  for (std::int64_t i = 0; i < tail; ++i) {
    const std::int64_t t = in.tokens - tail + i;
    float* const to = after + i * in.columns;
    for (std::int64_t c = 0; c < in.columns; ++c) {
      to[c] = t >= 0      ? static_cast<float>(in.x[t * in.stride + c])
              : in.before ? in.before[(tail + t) * in.columns + c]
                          : 0.0f;
    }
  }
}

}  // namespace

void run(CpuBackend& backend, const ShortConvolution& op) {
  visit_activation(op.x.data.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ConvolutionKernels<T> >(backend.isa());
    const std::int64_t n = op.x.heads * op.x.width, tail = (op.weight.rows() - 1) * n;
    const auto rows = [&](std::int64_t segment) {
      ConvolutionRows<T> in = rows_of_segment<T>(op, segment);
      if (op.before) in.before = op.before.data<float>() + segment * tail;
      return in;
    };
    struct Piece {
      std::int64_t segment, begin, end;
    };
    std::vector<Piece> pieces;
    const std::int64_t step = rows_per_chunk(n);
    for (std::int64_t s = 0; s < op.segments.count(); ++s) {
      const std::int64_t tokens = op.segments.lengths()[s];
      for (std::int64_t t = 0; t < tokens; t += step) {
        pieces.push_back({s, t, std::min(tokens, t + step)});
      }
    }
    backend.threads().run(std::ssize(pieces), [&](std::int64_t chunk, int) {
      const Piece& p = pieces[static_cast<std::size_t>(chunk)];
      k.forward(rows(p.segment), p.begin, p.end,
                op.y.data<T>() + op.segments.begins()[p.segment] * n);
    });
    for (std::int64_t s = 0; op.after && s < op.segments.count(); ++s) {
      keep_tail(rows(s), op.after.data<float>() + s * tail);
    }
  });
}

void run(CpuBackend& backend, const ShortConvolutionBackward& op) {
  visit_activation(op.x.data.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ConvolutionKernels<T> >(backend.isa());
    const std::int64_t n = op.x.heads * op.x.width;
    float* dweight = nullptr;
    if (op.dweight) {
      dweight = op.dweight.tensor.data<float>();
      if (!op.dweight.add) std::memset(dweight, 0, op.dweight.tensor.bytes());
    }
    parallel_for(backend.threads(), n, columns_together, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = 0; s < op.segments.count(); ++s) {
        const std::int64_t row = op.segments.begins()[s];
        const HeadRows<T> dx = rows_of<T>(op.dx.heads, 0, row);
        k.backward(rows_of_segment<T>(op, s), begin, end, op.dy.data<T>() + row * n, dx.at,
                   dx.stride, {.add = op.dx.add}, dweight);
      }
    });
  });
}

}  // namespace longhand::cpu
#endif
