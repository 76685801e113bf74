#include "core/cpu/delta/kernels.h"
#include "core/cpu/delta/products.h"
#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/math.h"

/// The delta rule (core/contract/delta.h) in chunks of n tokens. Q, K and V are the queries, keys
/// and values of a chunk. S is the memory before the chunk, c_i is the sum of the chunk's decays up
/// to token i, E_ij = e^(c_i - c_j), beta_i is the strength with which token i writes
/// (Delta::beta), and * is the elementwise product. Row i of W is the error of token i (w_i in the
/// contract). W is the solution of
///   (I + A diag(beta)) W = V - diag(e^c) K S;  A = strictly lower part of E * K K^T.
/// The tokens write U = diag(beta) W to the memory. The outputs Y and the memory S' after the chunk
/// are
///   Y = diag(e^c) Q S + O U;  O = lower part of E * Q K^T;
///   S' = e^(c_n) S + K^T diag(e^(c_n - c)) U.
namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

using delta::Left;
using delta::Matrix;
using delta::padded;
using Entries = delta::Part;

constexpr std::int64_t chunk = delta_chunk;

/// Allocates matrices in the scratch memory `at`. If `at` is null, only counts the floats that the
/// matrices need.
class DeltaSpace {
 public:
  explicit DeltaSpace(float* at = nullptr) : at_(at) {}
  float* floats(std::int64_t n) {
    float* const here = at_ ? at_ + used_ : nullptr;
    used_ += padded(n);
    return here;
  }
  Matrix matrix(std::int64_t rows, std::int64_t columns) {
    return {floats(rows * columns), columns};
  }
  std::int64_t used() const { return used_; }

 private:
  float* at_;
  std::int64_t used_ = 0;
};

/// The matrices and vectors of one chunk of tokens. Both the forward and the backward pass need
/// them.
struct DeltaChunk {
  // `first` is the first token of the chunk. `rows` is the number of its tokens, rounded up to a
  // multiple of delta::unit.
  std::int64_t first = 0, tokens = 0, rows = 0;
  // Entry (i, j) of `between` is the decay factor from token j to token i, or 0 if j > i. With the
  // keys K, the queries Q and the elementwise product *, `keys` is the part of -between * K K^T
  // below the diagonal, and `reads` is between * Q K^T.
  Matrix k, k_transposed, between, keys, reads;
  // since[i] is the decay factor from the start of the chunk to token i. until[i] is the decay
  // factor from token i to the end of the chunk.
  float *beta, *since, *until;
  float *high, *low;  // high[i] + low[i] is the sum of the chunk's decays up to token i
  float decay = 1;    // the decay factor of the whole chunk

  DeltaChunk(DeltaSpace& space, std::int64_t w)
      : k(space.matrix(chunk, w)),
        k_transposed(space.matrix(w, chunk)),
        between(space.matrix(chunk, chunk)),
        keys(space.matrix(chunk, chunk)),
        reads(space.matrix(chunk, chunk)),
        beta(space.floats(chunk)),
        since(space.floats(chunk)),
        until(space.floats(chunk)),
        high(space.floats(chunk)),
        low(space.floats(chunk)) {}
};

/// Copies rows of a head to `to`, multiplied by `factor`. Entries of `to` beyond the tokens and the
/// width of the head are set to 0.
template <class T>
void read_rows(const HeadRows<const T>& x, std::int64_t first, std::int64_t tokens,
               std::int64_t rows, std::int64_t width, float factor, const Matrix& to) {
  const Vec times(factor);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < to.stride; c += lanes) {
      Vec part(0.0f);
      if (i < tokens && c < width) {
        const std::int64_t rest = width - c;
        const T* const at = x.row(first + i) + c;
        part = rest >= lanes ? load(at) : load_first(at, static_cast<int>(rest));
      }
      store(to.row(i) + c, times * part);
    }
  }
}

template <class T>
void write_rows(const Matrix& from, std::int64_t tokens, std::int64_t width, float factor,
                const HeadRows<T>& to, std::int64_t first, Store how) {
  if (!to) return;
  const Vec times(factor);
  for (std::int64_t i = 0; i < tokens; ++i) {
    const Output<T> out(to.row(first + i), how);
    for_each_vector(width, [&](auto c, auto v) { out.put(c, v, times * v.load(from.row(i) + c)); });
  }
}

/// For query heads that read the same key head: returns the rows of query head g, given the rows x
/// of query head 0. The heads are side by side and have `width` columns each.
template <class T>
HeadRows<T> head_of(const HeadRows<T>& x, std::int64_t g, std::int64_t width) {
  return x ? HeadRows<T>{x.at + g * width, x.stride} : x;
}

/// Loads the keys, decays and beta of the chunk that begins at token `first`.
template <class T>
void begin_chunk(const DeltaInput<T>& in, std::int64_t first, DeltaChunk& c) {
  c.first = first;
  c.tokens = in.tokens - first < chunk ? in.tokens - first : chunk;
  c.rows = padded(c.tokens);
  read_rows(in.k, first, c.tokens, c.rows, in.width, in.scale, c.k);

  double sum = 0;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    const bool there = i < c.tokens;
    if (there && in.decay) sum += static_cast<double>(*in.decay.row(first + i));
    c.beta[i] = there ? *in.beta.row(first + i) : 0.0f;
    c.high[i] = static_cast<float>(sum);
    c.low[i] = static_cast<float>(sum - static_cast<double>(c.high[i]));
  }
  const Vec last_high(c.high[c.rows - 1]), last_low(c.low[c.rows - 1]);
  for (std::int64_t i = 0; i < c.rows; i += lanes) {
    const Vec high = load(c.high + i), low = load(c.low + i);
    store(c.since + i, exp(high + low));
    store(c.until + i, exp((last_high - high) + (last_low - low)));
  }
  c.decay = c.since[c.rows - 1];
}

/// Computes c.between, the decay factor from each token to each later token, and c.keys, the
/// negated products of the tokens' keys times these factors (see DeltaChunk).
void relate(DeltaChunk& c, std::int64_t width) {
  delta::transpose(c.k, c.rows, c.k.stride, c.k_transposed);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    const Vec high(c.high[i]), low(c.low[i]);
    for (std::int64_t j = 0; j < c.rows; j += lanes) {
      const Mask seen =
          lane_indices() < IntVec(static_cast<std::int32_t>(i - j < lanes ? i - j + 1 : lanes));
      const Vec factor =
          i < j ? Vec(0.0f) : exp((high - load(c.high + j)) + (low - load(c.low + j)));
      store(c.between.row(i) + j, select(seen, factor, Vec(0.0f)));
    }
  }
  delta::product(delta::plain(c.k), Entries::all, c.k_transposed, c.keys, 0, c.rows, c.rows, width,
                 false);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.rows; j += lanes) {
      store(c.keys.row(i) + j, -(load(c.between.row(i) + j) * load(c.keys.row(i) + j)));
    }
    c.keys.row(i)[i] = 0;
  }
}

/// y = c.between * (a b), where a b is a matrix product and * is the elementwise product. c.between
/// contains the decay factors between tokens and is 0 above the diagonal.
void weighed(const DeltaChunk& c, const Left& a, const Matrix& b, std::int64_t depth,
             const Matrix& y) {
  delta::product(a, Entries::all, b, y, 0, c.rows, c.rows, depth, false);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.rows; j += lanes) {
      store(y.row(i) + j, load(c.between.row(i) + j) * load(y.row(i) + j));
    }
  }
}

/// Like the other weighed(), computes y = c.between * (a b), where a b is a matrix product and * is
/// the elementwise product. In this overload, a b is the gradient of the matrix M = sign * scores.
/// Entry M_ij contains the decay factor e^D_ij, where D_ij is the sum of the decays from token j to
/// token i. The gradient of D, which is M * (a b), is added to `flow`.
void weighed(const DeltaChunk& c, const Left& a, const Matrix& b, std::int64_t depth, float sign,
             const Matrix& scores, const Matrix& flow, const Matrix& y) {
  delta::product(a, Entries::all, b, y, 0, c.rows, c.rows, depth, false);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.rows; j += lanes) {
      const Vec x = load(y.row(i) + j), score = Vec(sign) * load(scores.row(i) + j);
      store(flow.row(i) + j, fma(score, x, load(flow.row(i) + j)));
      store(y.row(i) + j, load(c.between.row(i) + j) * x);
    }
  }
}

/// Computes `ddecay`, the gradients of the decays of a chunk. The memory before the chunk and each
/// token contribute to later tokens and to the memory after the chunk. Each contribution has a
/// decay factor. The arguments contain the gradients with respect to the logarithms of these
/// factors:
///   flow          contributions from token to token;
///   from_memory   from the memory before the chunk to a token;
///   to_next       from a token to the memory after the chunk;
///   held          from the memory before the chunk to the memory after it.
/// The decay of token t is part of the factor of a contribution if the source is the memory or a
/// token before t, and the target is the memory or a token from t on. ddecay_t is the sum of the
/// gradients for these contributions. This sum could also be computed as the difference of two
/// larger sums, but it would then lose digits.
void decays_of(const DeltaChunk& c, const Matrix& flow, const float* from_memory,
               const float* to_next, float held, float* ddecay) {
  // The sum of each column of `flow` over the rows >= t, where t decreases in the loop below.
  Vec columns[chunk / lanes];
  for (Vec& sum : columns) sum = Vec(0.0f);
  double asked = 0, told = static_cast<double>(held);
  for (std::int64_t i = 0; i < c.tokens; ++i) {
    ddecay[i] = static_cast<float>(told);
    told += static_cast<double>(to_next[i]);
  }
  for (std::int64_t t = c.tokens - 1; t >= 0; --t) {
    Sums sums;
    for_each_part(t + 1, [&](auto j, auto, int p) {
      Vec& column = columns[j / lanes];
      column += load(flow.row(t) + j);
      const auto before = static_cast<std::int32_t>(t - j < lanes ? t - j : lanes);
      sums.part[p] += select(lane_indices() < IntVec(before), column, Vec(0.0f));
    });
    asked += static_cast<double>(from_memory[t]);
    ddecay[t] += static_cast<float>(asked + static_cast<double>(sum(sums)));
  }
}

/// Updates the memory after a chunk: memory = c.decay memory + K^T written. The rows of K are the
/// chunk's keys. The rows of `written` are what its tokens write, decayed until the chunk's end.
void remember(const DeltaChunk& c, const Matrix& written, const Matrix& memory, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows * memory.stride; i += lanes) {
    store(memory.at + i, Vec(c.decay) * load(memory.at + i));
  }
  delta::product(delta::transposed(c.k), Entries::all, written, memory, 0, rows, memory.stride,
                 c.tokens, true);
}

constexpr std::int64_t solved = 8;  // number of rows of a triangular system solved as one block

/// Solves the triangular system for the errors of a chunk's tokens by forward substitution (see the
/// top of this file). `right` contains the right-hand side and receives the errors. `written`
/// receives each error times beta of its token, which is what the token writes.
void substitute(const DeltaChunk& c, const Matrix& right, const Matrix& written) {
  const std::int64_t columns = right.stride;
  for (std::int64_t block = 0; block < c.rows; block += solved) {
    delta::product(delta::plain(c.keys), Entries::all, written, right, block, block + solved,
                   columns, block, true);
    for (std::int64_t i = block; i < block + solved; ++i) {
      const float* const row = c.keys.row(i);
      const Vec beta(c.beta[i]);
      for (std::int64_t at = 0; at < columns; at += lanes) {
        Vec sum = load(right.row(i) + at);
        for (std::int64_t j = block; j < i; ++j) {
          sum = fma(Vec(row[j]), load(written.row(j) + at), sum);
        }
        store(right.row(i) + at, sum);
        store(written.row(i) + at, beta * sum);
      }
    }
  }
}

/// The backward pass of substitute(): solves the transposed triangular system by backward
/// substitution. From the last token i of the chunk to the first, computes
///   du_i += sum over j > i of c.keys_ji dw_j;  dw_i = beta_i du_i.
/// Row i of du is the gradient of what token i writes. Row i of dw is the gradient of its error.
void substitute_back(const DeltaChunk& c, const Matrix& du, const Matrix& dw) {
  const std::int64_t columns = du.stride;
  for (std::int64_t block = c.rows - solved; block >= 0; block -= solved) {
    const std::int64_t end = block + solved;
    const Left later{c.keys.at + end * c.keys.stride, 1, c.keys.stride};
    delta::product(later, Entries::all, {dw.row(end), dw.stride}, du, block, end, columns,
                   c.rows - end, true);
    for (std::int64_t i = end - 1; i >= block; --i) {
      const Vec beta(c.beta[i]);
      for (std::int64_t at = 0; at < columns; at += lanes) {
        Vec sum = load(du.row(i) + at);
        for (std::int64_t j = i + 1; j < end; ++j) {
          sum = fma(Vec(c.keys.row(j)[i]), load(dw.row(j) + at), sum);
        }
        store(du.row(i) + at, sum);
        store(dw.row(i) + at, beta * sum);
      }
    }
  }
}

/// Copies the state of a delta head, a matrix [width, v_width], to the padded rows of `to`. If
/// `from` is null, the state is 0.
void read_memory(const float* from, std::int64_t width, std::int64_t v_width, const Matrix& to,
                 std::int64_t rows) {
  const HeadRows<const float> all{from, v_width};
  read_rows(all, 0, from ? width : 0, rows, v_width, 1.0f, to);
}

template <class T>
struct ForwardSpace {
  DeltaChunk c;
  Matrix memory, right, written, q, y;

  ForwardSpace(DeltaSpace& space, std::int64_t w, std::int64_t v)
      : c(space, w),
        memory(space.matrix(w, v)),
        right(space.matrix(chunk, v)),
        written(space.matrix(chunk, v)),
        q(space.matrix(chunk, w)),
        y(space.matrix(chunk, v)) {}
};

template <class T>
std::int64_t forward_scratch(std::int64_t width, std::int64_t v_width) {
  DeltaSpace space;
  (void)ForwardSpace<T>(space, padded(width), padded(v_width));
  return space.used();
}

template <class T>
void forward(const DeltaForward<T>& head, float* scratch) {
  const DeltaInput<T>& in = head.in;
  const std::int64_t w = padded(in.width), v = padded(in.v_width);
  DeltaSpace space(scratch);
  ForwardSpace<T> s(space, w, v);
  DeltaChunk& c = s.c;
  read_memory(head.before, in.width, in.v_width, s.memory, w);

  for (std::int64_t first = 0; first < in.tokens; first += chunk) {
    begin_chunk(in, first, c);
    relate(c, in.width);
    delta::product(delta::plain(c.k), Entries::all, s.memory, s.right, 0, c.rows, v, in.width,
                   false);
    read_rows(head.v, first, c.tokens, c.rows, in.v_width, 1.0f, s.written);
    for (std::int64_t i = 0; i < c.rows; ++i) {
      const Vec factor(-c.since[i]);
      for (std::int64_t at = 0; at < v; at += lanes) {
        store(s.right.row(i) + at,
              fma(factor, load(s.right.row(i) + at), load(s.written.row(i) + at)));
      }
    }
    substitute(c, s.right, s.written);
    write_rows(s.right, c.tokens, in.v_width, 1.0f, head.error, first, {});

    for (std::int64_t g = 0; g < in.group; ++g) {
      read_rows(head_of(in.q, g, in.width), first, c.tokens, c.rows, in.width, in.scale, s.q);
      weighed(c, delta::plain(s.q), c.k_transposed, in.width, c.reads);
      delta::product(delta::plain(s.q), Entries::all, s.memory, s.y, 0, c.rows, v, in.width, false);
      delta::scale_rows(s.y, c.since, c.rows, v, s.y);
      delta::product(delta::plain(c.reads), Entries::lower, s.written, s.y, 0, c.rows, v, c.tokens,
                     true);
      write_rows(s.y, c.tokens, in.v_width, 1.0f, head_of(head.y, g, in.v_width), first, {});
    }

    delta::scale_rows(s.written, c.until, c.rows, v, s.written);
    remember(c, s.written, s.memory, w);
  }
  if (head.after) {
    write_rows(s.memory, in.width, in.v_width, 1.0f, HeadRows<float>{head.after, in.v_width}, 0,
               {});
  }
}

struct BackwardSpace {
  std::int64_t w, v;  // w: padded width of keys; v: padded width of values
  DeltaChunk c;
  // `d` is first the gradient of the memory after the chunk, and in the end the gradient of the
  // memory before the chunk. `turned` is first the transpose of `d`, and then the transpose of the
  // memory before the chunk.
  Matrix d, turned;
  Matrix error, written, dw, du, dy, across;
  Matrix q, dq, dk_row, dk_column;  // [tokens, width]
  Matrix products, flow;            // [tokens, tokens]
  float *from_memory, *to_next, *ddecay;
  float* memories;  // one matrix per chunk: the memory before the chunk

  BackwardSpace(DeltaSpace& space, std::int64_t tokens, std::int64_t width, std::int64_t v_width)
      : w(padded(width)),
        v(padded(v_width)),
        c(space, w),
        d(space.matrix(w, v)),
        turned(space.matrix(v, w)),
        error(space.matrix(chunk, v)),
        written(space.matrix(chunk, v)),
        dw(space.matrix(chunk, v)),
        du(space.matrix(chunk, v)),
        dy(space.matrix(chunk, v)),
        across(space.matrix(v, chunk)),
        q(space.matrix(chunk, w)),
        dq(space.matrix(chunk, w)),
        dk_row(space.matrix(chunk, w)),
        dk_column(space.matrix(chunk, w)),
        products(space.matrix(chunk, chunk)),
        flow(space.matrix(chunk, chunk)),
        from_memory(space.floats(chunk)),
        to_next(space.floats(chunk)),
        ddecay(space.floats(chunk)),
        memories(space.floats((tokens + chunk - 1) / chunk * w * v)) {}
  Matrix memory(std::int64_t number) const { return {memories + number * w * v, v}; }
};

template <class T>
std::int64_t backward_scratch(std::int64_t tokens, std::int64_t width, std::int64_t v_width) {
  DeltaSpace space;
  (void)BackwardSpace(space, tokens, width, v_width);
  return space.used();
}

/// Loads a chunk's keys and the values that its tokens wrote in the forward pass.
template <class T>
void begin_backward(const DeltaGradients<T>& head, std::int64_t first, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  begin_chunk(in, first, s.c);
  read_rows(head.error, first, s.c.tokens, s.c.rows, in.v_width, 1.0f, s.error);
  delta::scale_rows(s.error, s.c.beta, s.c.rows, s.error.stride, s.written);
}

/// Computes again the memory of the delta rule before each chunk of tokens, which the forward pass
/// does not save.
template <class T>
void restore_memories(const DeltaGradients<T>& head, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  const DeltaChunk& c = s.c;
  const std::int64_t w = s.w, v = s.v;
  if (in.tokens > 0) read_memory(nullptr, in.width, in.v_width, s.memory(0), w);
  for (std::int64_t first = 0; first + chunk < in.tokens; first += chunk) {
    begin_backward(head, first, s);
    delta::scale_rows(s.written, c.until, c.rows, v, s.written);
    const Matrix now = s.memory(first / chunk), next = s.memory(first / chunk + 1);
    for (std::int64_t i = 0; i < w * v; i += lanes) store(next.at + i, load(now.at + i));
    remember(c, s.written, next, w);
  }
}

/// A chunk of tokens changes the memory of the delta rule, and later chunks read the changed
/// memory. Computes the gradients that the chunk receives through this changed memory. On entry,
/// s.d is the gradient of the changed memory. Sets the gradients of the chunk's keys and of the
/// vectors that its tokens write into the memory. Finally, multiplies s.d by c.decay. This gives a
/// part of the gradient of `held`, the memory before the chunk, because the changed memory contains
/// c.decay * held.
template <class T>
void through_next_state(const DeltaGradients<T>& head, const Matrix& held, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  const DeltaChunk& c = s.c;
  const std::int64_t w = s.w, v = s.v;
  delta::product(delta::plain(c.k), Entries::all, s.d, s.du, 0, c.rows, v, in.width, false);
  delta::scale_rows(s.du, c.until, c.rows, v, s.du);
  delta::transpose(s.d, w, v, s.turned);
  delta::product(delta::plain(s.written), Entries::all, s.turned, s.dk_column, 0, c.rows, w,
                 in.v_width, false);
  delta::scale_rows(s.dk_column, c.until, c.rows, w, s.dk_column);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    s.to_next[i] = delta::dot(c.k.row(i), s.dk_column.row(i), w);
    s.from_memory[i] = 0;
    for (std::int64_t j = 0; j < c.rows; j += lanes) store(s.flow.row(i) + j, Vec(0.0f));
  }
  delta::transpose(held, w, v, s.turned);
  delta::transpose(s.written, c.rows, v, s.across);
  for (std::int64_t i = 0; i < w * v; i += lanes) {
    store(s.d.at + i, Vec(c.decay) * load(s.d.at + i));
  }
}

/// Computes the gradients that come through the outputs of a chunk of tokens. Stores dq, and adds
/// to the gradients of what the tokens write, of the keys and of the memory before the chunk.
template <class T>
void through_outputs(const DeltaGradients<T>& head, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  const DeltaChunk& c = s.c;
  const std::int64_t w = s.w, v = s.v;
  for (std::int64_t g = 0; g < in.group; ++g) {
    read_rows(head_of(in.q, g, in.width), c.first, c.tokens, c.rows, in.width, in.scale, s.q);
    read_rows(head_of(head.dy, g, in.v_width), c.first, c.tokens, c.rows, in.v_width, 1.0f, s.dy);
    weighed(c, delta::plain(s.q), c.k_transposed, in.width, c.reads);
    delta::product(delta::transposed(c.reads), Entries::upper, s.dy, s.du, 0, c.rows, v, c.tokens,
                   true);
    weighed(c, delta::plain(s.dy), s.across, in.v_width, 1.0f, c.reads, s.flow, s.products);
    delta::product(delta::plain(s.dy), Entries::all, s.turned, s.dq, 0, c.rows, w, in.v_width,
                   false);
    delta::scale_rows(s.dq, c.since, c.rows, w, s.dq);
    for (std::int64_t i = 0; i < c.tokens; ++i) {
      s.from_memory[i] += delta::dot(s.q.row(i), s.dq.row(i), w);
    }
    delta::product(delta::plain(s.products), Entries::lower, c.k, s.dq, 0, c.rows, w, c.tokens,
                   true);
    delta::product(delta::transposed(s.products), Entries::upper, s.q, s.dk_column, 0, c.rows, w,
                   c.tokens, true);
    write_rows(s.dq, c.tokens, in.width, in.scale, head_of(head.dq, g, in.width), c.first,
               head.dq_how);
    delta::scale_rows(s.dy, c.since, c.rows, v, s.dy);
    delta::product(delta::transposed(s.q), Entries::all, s.dy, s.d, 0, w, v, c.tokens, true);
  }
}

/// Computes the gradients that come through the triangular system for the errors of a chunk's
/// tokens. Stores dv, and adds to the gradients of the keys and of the memory before the chunk.
template <class T>
void through_solution(const DeltaGradients<T>& head, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  const DeltaChunk& c = s.c;
  const std::int64_t w = s.w, v = s.v;
  substitute_back(c, s.du, s.dw);
  write_rows(s.dw, c.tokens, in.v_width, 1.0f, head.dv, c.first, head.dv_how);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t at = 0; at < v; at += lanes) {
      store(s.dw.row(i) + at, -load(s.dw.row(i) + at));
    }
  }
  weighed(c, delta::plain(s.dw), s.across, in.v_width, -1.0f, c.keys, s.flow, s.products);
  for (std::int64_t i = 0; i < c.rows; ++i) s.products.row(i)[i] = 0;
  delta::product(delta::plain(s.dw), Entries::all, s.turned, s.dk_row, 0, c.rows, w, in.v_width,
                 false);
  delta::scale_rows(s.dk_row, c.since, c.rows, w, s.dk_row);
  for (std::int64_t i = 0; i < c.tokens; ++i) {
    s.from_memory[i] += delta::dot(c.k.row(i), s.dk_row.row(i), w);
  }
  delta::product(delta::plain(s.products), Entries::lower, c.k, s.dk_row, 0, c.rows, w, c.tokens,
                 true);
  delta::product(delta::transposed(s.products), Entries::upper, c.k, s.dk_column, 0, c.rows, w,
                 c.tokens, true);
  delta::scale_rows(s.dw, c.since, c.rows, v, s.dw);
  delta::product(delta::transposed(c.k), Entries::all, s.dw, s.d, 0, w, v, c.tokens, true);
}

/// Stores the gradients of beta, of the decays and of the keys. `kept` is the dot product of the
/// memory before the chunk and the gradient of the memory after the chunk.
template <class T>
void write_gradients(const DeltaGradients<T>& head, float kept, BackwardSpace& s) {
  const DeltaInput<T>& in = head.in;
  const DeltaChunk& c = s.c;
  const std::int64_t w = s.w, v = s.v;
  if (head.dbeta) {
    for (std::int64_t i = 0; i < c.tokens; ++i) {
      const float sum = delta::dot(s.du.row(i), s.error.row(i), v);
      float* const to = head.dbeta.row(c.first + i);
      *to = head.dbeta_how.add ? *to + sum : sum;
    }
  }
  if (head.ddecay) {
    decays_of(c, s.flow, s.from_memory, s.to_next, c.decay * kept, s.ddecay);
    for (std::int64_t i = 0; i < c.tokens; ++i) {
      float* const to = head.ddecay.row(c.first + i);
      *to = head.ddecay_how.add ? *to + s.ddecay[i] : s.ddecay[i];
    }
  }
  for (std::int64_t i = 0; i < c.tokens; ++i) {
    for (std::int64_t at = 0; at < w; at += lanes) {
      store(s.dk_row.row(i) + at, load(s.dk_row.row(i) + at) + load(s.dk_column.row(i) + at));
    }
  }
  write_rows(s.dk_row, c.tokens, in.width, in.scale, head.dk, c.first, head.dk_how);
}

template <class T>
void backward(const DeltaGradients<T>& head, float* scratch) {
  const DeltaInput<T>& in = head.in;
  DeltaSpace space(scratch);
  BackwardSpace s(space, in.tokens, in.width, in.v_width);
  restore_memories(head, s);
  read_memory(nullptr, in.width, in.v_width, s.d, s.w);
  for (std::int64_t first = (in.tokens - 1) / chunk * chunk; in.tokens > 0 && first >= 0;
       first -= chunk) {
    begin_backward(head, first, s);
    relate(s.c, in.width);
    const Matrix held = s.memory(first / chunk);
    double kept = 0;
    for (std::int64_t r = 0; r < s.w; ++r) {
      kept += static_cast<double>(delta::dot(s.d.row(r), held.row(r), s.v));
    }
    through_next_state(head, held, s);
    through_outputs(head, s);
    through_solution(head, s);
    write_gradients(head, static_cast<float>(kept), s);
  }
}

template <class T>
constexpr DeltaKernels<T> table{.forward_scratch = forward_scratch<T>,
                                .backward_scratch = backward_scratch<T>,
                                .forward = forward<T>,
                                .backward = backward<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const DeltaKernels<float>& kernels<DeltaKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const DeltaKernels<bf16>& kernels<DeltaKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
