#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/isa.h"

/// Softmax attention and ChaCAL, forward, for a chunk of one head's rows: the chunk's panels of
/// queries go together along the blocks of keys, each with its running maximum m and sum l,
///   m' = max(m, max_j s_ij);  y = 2^(m - m') y + sum_j 2^(s_ij - m') v_j
/// ChaCAL attends to U_j = (1 - g) v_j + g y_j instead of v_j: keys before the chunk have their y,
/// those in it get it panel by panel, and on the diagonal row by row.
namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

constexpr std::int64_t block = panel;
constexpr float lowest = -1e38f;  // finite: nothing seen yet must not make inf - inf

/// The scratch of one call.
struct Space {
  float *keys, *values;            // a block of them, or the chunk's own
  float *scores, *times, *shrink;  // [block][panel], [panel], [panel]
  float *queries, *outputs;        // of each panel: [width][panel], [panel][stride]
  float *maxima, *sums;            // [panels][panel]
  std::int64_t key_stride, value_stride, floats;

  Space(std::int64_t width, std::int64_t value_width, std::int64_t chunk, float* at) {
    key_stride = packed_width(width);
    value_stride = packed_width(value_width);
    const std::int64_t rows = round_up(chunk, panel);
    float* const start = at;
    const auto take = [&](std::int64_t n) {
      float* const here = at;
      at += round_up(n, 16);
      return here;
    };
    keys = take(rows * key_stride);
    values = take(rows * value_stride);
    scores = take(block * panel);
    times = take(panel);
    shrink = take(panel);
    queries = take(rows * width);
    outputs = take(rows * value_stride);
    maxima = take(rows);
    sums = take(rows);
    floats = at - start;
  }
};

/// Scores become 2^(s - m) where seen; m and l move on; shrink is what the sums so far shrink by.
/// False if nothing shrinks.
bool exponentials(const Sight& sight, float* s, float* maxima, float* sums, float* shrink) {
  bool shrinks = false;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range seen = sight.keys_of(unit, Sight::unit);
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    float* const column = s + t;
    const Vec before = load(maxima + t);
    Vec m = before;
    const auto hide = [&](int begin, int end) {
      for (int r = begin; r < end; ++r) {
        const Vec x = select(sight.sees(r, t), load(column + r * panel), Vec(-__builtin_inff()));
        store(column + r * panel, x);
      }
    };
    if (by_all.empty()) {
      hide(seen.begin, seen.end);
    } else {
      hide(seen.begin, by_all.begin);
      hide(by_all.end, seen.end);
    }
    Vec other = m;
    int r = seen.begin;
    for (; r + 2 <= seen.end; r += 2) {
      m = max(m, load(column + r * panel));
      other = max(other, load(column + (r + 1) * panel));
    }
    if (r < seen.end) m = max(m, load(column + r * panel));
    m = max(m, other);
    Vec sum(0.0f);
    for (r = seen.begin; r < seen.end; ++r) {
      const Vec p = exp2(load(column + r * panel) - m);
      store(column + r * panel, p);
      sum += p;
    }
    shrinks = shrinks || any(before != m);
    const Vec factor = exp2(before - m);
    store(shrink + t, factor);
    store(sums + t, fma(load(sums + t), factor, sum));
    store(maxima + t, m);
  }
  return shrinks;
}

void scale_rows(float* rows, std::int64_t count, std::int64_t stride, std::int64_t width,
                const float* factors) {
  for (std::int64_t t = 0; t < count; ++t) {
    const Vec factor(factors[t]);
    for (std::int64_t c = 0; c < width; c += lanes) {
      store(rows + t * stride + c, factor * load(rows + t * stride + c));
    }
  }
}

template <class T>
class Rows {
 public:
  Rows(const AttentionRows<T>& task, std::int64_t begin, std::int64_t end, float* scratch)
      : task_(task),
        shape_(task.shape),
        begin_(begin),
        end_(end),
        space_(shape_.width, shape_.value_width, end - begin, scratch) {}

  void begin() {
    for (std::int64_t row = begin_; row < end_; row += panel) start(row);
  }

  void before(std::int64_t from, std::int64_t to) {
    const std::int64_t seen = shape_.offset + begin_ - shape_.window + 1;  // the first key
    for (std::int64_t j = from; j < to; j += block) {
      const std::int64_t count = least(block, to - j);
      if (j + count <= seen) continue;
      pack_rows(rows_from(task_.k, j), count, shape_.width, space_.keys, space_.key_stride);
      pack_values(j, count);
      for (std::int64_t row = begin_; row < end_; row += panel) {
        attend(row, j, count, space_.keys, space_.values);
      }
    }
  }

  void own() {
    const std::int64_t first = shape_.offset + begin_;
    pack_rows(rows_from(task_.k, first), end_ - begin_, shape_.width, space_.keys,
              space_.key_stride);
    pack_rows(rows_from(task_.v, first), end_ - begin_, shape_.value_width, space_.values,
              space_.value_stride);
    for (std::int64_t row = begin_; row < end_; row += panel) {
      for (std::int64_t other = begin_; other <= row; other += panel) {
        const std::int64_t count = least(panel, end_ - other);
        const float* keys = space_.keys + (other - begin_) * space_.key_stride;
        float* values = space_.values + (other - begin_) * space_.value_stride;
        if (task_.chain && other == row) {
          chain(row, count, keys, values);
        } else {
          attend(row, shape_.offset + other, count, keys, values);
        }
      }
      finish(row);
    }
  }

 private:
  template <class U>
  static HeadRows<U> rows_from(HeadRows<U> x, std::int64_t row) {
    return {x.row(row), x.stride};
  }
  std::int64_t queries(std::int64_t row) const { return least(panel, end_ - row); }
  float* queries_of(std::int64_t row) const {
    return space_.queries + (row - begin_) * shape_.width;
  }
  float* outputs_of(std::int64_t row) const {
    return space_.outputs + (row - begin_) * space_.value_stride;
  }

  void start(std::int64_t row) {
    logs_of_lengths(task_.temper, shape_, row, space_.times);
    const float beta = task_.temper.kind == Tempering::Kind::none ? 1.0f : task_.temper.beta;
    const Vec scale(task_.scale * beta * log2_of_e);
    for (int t = 0; t < panel; t += lanes) {
      store(space_.times + t, scale * load(space_.times + t));
      store(space_.maxima + row - begin_ + t, Vec(lowest));
      store(space_.sums + row - begin_ + t, Vec(0.0f));
    }
    pack_transposed(rows_from(task_.q, row), queries(row), shape_.width, space_.times,
                    queries_of(row));
    float* const outputs = outputs_of(row);
    const std::int64_t rows = round_up(queries(row), tile_rows);
    for (std::int64_t i = 0; i < rows * space_.value_stride; i += lanes) {
      store(outputs + i, Vec(0.0f));
    }
  }

  void pack_values(std::int64_t j, std::int64_t count) {
    const auto v = rows_from(task_.v, j);
    if (!task_.chain) {
      pack_rows(v, count, shape_.value_width, space_.values, space_.value_stride);
      return;
    }
    // Positions before the queries lie in `earlier`, the others are rows of y.
    const std::int64_t old = between(shape_.offset - j, 0, count);
    if (old > 0) {
      pack_chained(v, rows_from(task_.earlier, j), task_.gamma, old, shape_.value_width,
                   space_.values, space_.value_stride);
    }
    if (old < count) {
      const HeadRows<const T> y{task_.y.row(j + old - shape_.offset), task_.y.stride};
      pack_chained(rows_from(v, old), y, task_.gamma, count - old, shape_.value_width,
                   space_.values + old * space_.value_stride, space_.value_stride);
    }
  }

  Sight sight_of(std::int64_t row, std::int64_t j, std::int64_t count) const {
    return {count, queries(row), shape_.offset + row - j, shape_.window};
  }

  /// Scores and their exponentials; the outputs so far shrink as far as they must.
  void score(std::int64_t row, const Sight& sight, const float* keys) {
    score_tiles<Exact>(keys, space_.key_stride, queries_of(row), shape_.width, sight,
                       space_.scores);
    const std::int64_t at = row - begin_;
    if (exponentials(sight, space_.scores, space_.maxima + at, space_.sums + at, space_.shrink)) {
      scale_rows(outputs_of(row), sight.queries, space_.value_stride, shape_.value_width,
                 space_.shrink);
    }
  }

  void attend(std::int64_t row, std::int64_t j, std::int64_t count, const float* keys,
              const float* values) {
    const Sight sight = sight_of(row, j, count);
    if (sight.empty()) return;
    score(row, sight, keys);
    mix_keys<Exact>(space_.scores, values, space_.value_stride, sight, outputs_of(row),
                    shape_.value_width);
  }

  /// The panel's own keys, of which `values` holds v: tile by tile it becomes U.
  void chain(std::int64_t row, std::int64_t count, const float* keys, float* values) {
    const Sight sight = sight_of(row, shape_.offset + row, count);
    score(row, sight, keys);
    float* const outputs = outputs_of(row);
    const std::int64_t stride = space_.value_stride;
    const int vectors = static_cast<int>((shape_.value_width + lanes - 1) / lanes);
    const Vec own(1.0f - task_.gamma), past(task_.gamma);
    for (std::int64_t t = 0; t < count; t += tile_rows) {
      if (t > 0) {
        row_tile<Exact>({space_.scores + t, 1, panel}, values, stride, t, outputs + t * stride,
                        stride, vectors, true);
      }
      const std::int64_t end = least(t + tile_rows, count);
      for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
        for (std::int64_t i = t; i < end; ++i) {
          const float* p = space_.scores + i;  // column i: p[j panel] is of key j
          Vec sum = load(outputs + i * stride + c);
          for (std::int64_t j = t; j < i; ++j) {
            sum = fma(Vec(p[j * panel]), load(values + j * stride + c), sum);
          }
          const Vec value = own * load(values + i * stride + c);
          sum = fma(Vec(p[i * panel]), value, sum);
          store(outputs + i * stride + c, sum);
          const Vec y = sum * Vec(1.0f / space_.sums[row - begin_ + i]);
          store(values + i * stride + c, fma(past, y, value));
        }
      }
    }
  }

  void finish(std::int64_t row) {
    const std::int64_t stride = space_.value_stride, width = shape_.value_width;
    const float *maxima = space_.maxima + row - begin_, *sums = space_.sums + row - begin_;
    const std::int64_t whole = width / lanes * lanes;
    const int rest = static_cast<int>(width - whole);
    for (std::int64_t t = 0; t < queries(row); ++t) {
      const float* from = outputs_of(row) + t * stride;
      T* const to = task_.y.row(row + t);
      const Vec factor(1.0f / sums[t]);
      for (std::int64_t c = 0; c < whole; c += lanes) store(to + c, load(from + c) * factor);
      if (rest != 0) store_first(to + whole, load(from + whole) * factor, rest);
    }
    if (!task_.log_sum) return;
    for (std::int64_t t = 0; t < panel; t += lanes) {
      store(space_.times + t, fma(load(maxima + t), Vec(ln_of_2), log(load(sums + t))));
    }
    for (std::int64_t t = 0; t < queries(row); ++t) {
      *task_.log_sum.row(row + t) = space_.times[t];
    }
  }

  const AttentionRows<T>& task_;
  const SegmentShape& shape_;
  std::int64_t begin_, end_;
  Space space_;
};

std::int64_t scratch(std::int64_t width, std::int64_t value_width, std::int64_t chunk) {
  return Space(width, value_width, chunk, nullptr).floats;
}

template <class T>
using Chunk = typename AttentionKernels<T>::Chunk;
template <class T>
void begin(const AttentionRows<T>& task, Chunk<T> chunk, float* at) {
  Rows<T>(task, chunk.begin, chunk.end, at).begin();
}
template <class T>
void before(const AttentionRows<T>& task, Chunk<T> chunk, std::int64_t from, std::int64_t to,
            float* at) {
  Rows<T>(task, chunk.begin, chunk.end, at).before(from, to);
}
template <class T>
void own(const AttentionRows<T>& task, Chunk<T> chunk, float* at) {
  Rows<T>(task, chunk.begin, chunk.end, at).own();
}

template <class T>
constexpr AttentionKernels<T> table{scratch, begin<T>, before<T>, own<T>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const AttentionKernels<float>& kernels<AttentionKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<float>;
}
template <>
const AttentionKernels<bf16>& kernels<AttentionKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<bf16>;
}

}  // namespace longhand::cpu
