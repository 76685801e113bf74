#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"
#include "core/cpu/attention/single.h"
#include "core/rules/entmax.h"

/// The forward pass of entmax. The weight of a key is max(0, score / 2 - threshold)^2. The halved
/// scores of a panel of queries with all keys are stored in an array [key][query], the strip.
/// Newton's method then finds the threshold of each row, at which its weights sum to 1. The first
/// estimate is the row's largest halved score minus 1, and no estimate exceeds the threshold. A key
/// whose halved score is below the current estimate therefore has weight 0, and later Newton steps
/// skip this key. If no key of a block has a weight, the block is skipped when values are summed.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// The scratch memory of the entmax kernel, for one panel of queries.
template <class Product>
struct StripSpace {
  float *keys, *values;  // one block of keys and values, packed for products (pack.h)
  float *p, *w;          // p: packed weights of one block of keys. w: square roots of the weights
  // queries: the packed queries, [depth][panel]. outputs: for each query, the sum of the values
  // weighted by p. means: for each query, the sum of the values weighted by w.
  float *queries, *outputs, *means;
  float* counts;  // [panel]: for each query, the number of keys with a nonzero weight
  // One number per query. times: factor of its scores. maxima: maximum of its halved scores, later
  // its threshold. sums: sum of the square roots of its weights.
  float *times, *maxima, *sums;
  // Scores::decay of the panel's queries (shifts) and of one block of keys (key_shifts)
  float *shifts, *key_shifts;
  float* strip;  // halved scores of the panel's queries with all keys, [keys][panel]
  // indices of the keys that may have a weight for at least one query of a SIMD vector
  std::int32_t* rows;
  std::int64_t depth, key_stride, value_stride, floats;

  StripSpace(std::int64_t width, std::int64_t value_width, std::int64_t key_count, float* at) {
    depth = words<Product>(width);
    key_stride = packed_width(depth);
    value_stride = packed_width(value_width);
    ScratchParts take{at};
    keys = take(block * key_stride);
    values = take(block / Product::depth * value_stride);
    p = take(block / Product::depth * panel);
    w = take(block / Product::depth * panel);
    queries = take(panel * depth);
    outputs = take(panel * value_stride);
    means = take(panel * value_stride);
    times = take(panel);
    maxima = take(panel);
    sums = take(panel);
    shifts = take(panel);
    key_shifts = take(block);
    counts = take(panel);
    strip = take(round_up(key_count, block) * panel);
    rows = reinterpret_cast<std::int32_t*>(take(round_up(key_count, block)));
    floats = take.floats;
  }
};

template <class T, class Product>
class EntmaxRows {
 public:
  EntmaxRows(const AttentionRows<T>& task, std::int64_t begin, std::int64_t end, float* scratch)
      : task_(task),
        shape_(task.shape),
        begin_(begin),
        end_(end),
        space_(shape_.width, shape_.value_width, shape_.keys, scratch) {}

  void run() {
    for (std::int64_t row = begin_; row < end_; row += panel) {
      row_ = row;
      n_ = least(panel, end_ - row);
      first_key_ = most(0, shape_.offset + row - shape_.window + 1) / block * block;
      last_key_ = shape_.offset + row + n_;
      start();
      for (std::int64_t j = first_key_; j < last_key_; j += block) score(j);
      for (std::int64_t t = 0; t < n_; t += lanes) find_threshold(t);
      for (std::int64_t j = first_key_; j < last_key_; j += block) mix(j);
      finish();
    }
  }

 private:
  template <class U>
  static Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                               std::int64_t width) {
    return {{x.row(row), x.stride}, rows, width};
  }
  Sight sight(std::int64_t j) const {
    return {least(block, last_key_ - j), n_, shape_.offset + row_ - j, shape_.window};
  }
  float* strip_of(std::int64_t j) const { return space_.strip + (j - first_key_) * panel; }

  void start() {
    gather(task_.tau, row_, n_, 1.0f, space_.times);
    gather(task_.shift, shape_.offset + row_, n_, 0.0f, space_.shifts);
    for (int t = 0; t < panel; t += lanes) {
      store(space_.times + t, Vec(rules::Entmax::unit * task_.scale) * load(space_.times + t));
      store(space_.maxima + t, Vec(-__builtin_inff()));
      store(space_.sums + t, Vec(0.0f));
    }
    pack_transposed<Product>(source(task_.q, row_, n_, shape_.width), n_, shape_.width,
                             space_.times, space_.queries);
    clear(space_.outputs, round_up(n_, tile_rows) * space_.value_stride);
    if (task_.mean) clear(space_.means, round_up(n_, tile_rows) * space_.value_stride);
  }

  /// Computes the scores of a block of keys and stores half of each, or minus infinity if the query
  /// does not see the key. Updates each query's maximum of the stored numbers.
  void score(std::int64_t j) {
    const Sight there = sight(j);
    pack_left<Product>(source(task_.k, j, there.keys, shape_.width), there.keys, shape_.width,
                       space_.keys, space_.key_stride);
    float* const s = strip_of(j);
    score_tiles<Product>(space_.keys, space_.key_stride, space_.queries, space_.depth, there, s);
    if (!task_.shift) return look<false>(there, s);
    for (std::int64_t r = 0; r < there.keys; ++r) space_.key_shifts[r] = *task_.shift.row(j + r);
    look<true>(there, s);
  }
  template <bool shifted>
  void look(const Sight& there, float* s) {
    for (std::int64_t t = 0; t < n_; t += lanes) {
      const Range all = there.keys_of_all(t, lanes);
      const Vec times = load(space_.times + t), shift = load(space_.shifts + t);
      Vec top = load(space_.maxima + t);
      for (int r = 0; r < there.keys; ++r) {
        float* const at = s + r * panel + t;
        Vec x = score_of<Product, rules::Entmax, shifted>(load(at), times, shift,
                                                          space_.key_shifts + r);
        const bool seen = r >= all.begin && r < all.end;
        if (!seen) x = select(there.sees(r, t), x, Vec(-__builtin_inff()));
        if (Product::rounds || shifted || !seen) store(at, x);
        top = max(top, x);
      }
      store(space_.maxima + t, top);
    }
  }

  /// Finds the thresholds of the queries t to t + lanes - 1. The threshold of a query is the number
  /// at which its weights sum to 1.
  void find_threshold(std::int64_t t) {
    const std::int64_t count = last_key_ - first_key_;
    const float* const s = space_.strip + t;
    Vec threshold = load(space_.maxima + t) - Vec(1.0f);
    std::int32_t* const rows = space_.rows;
    Vec sum(0.0f), squares(0.0f);
    const auto add = [&](Vec x) {
      const Vec w = rules::Entmax::weight(x, threshold);
      sum += w;
      squares = fma(w, w, squares);
    };
    std::int64_t kept = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const Vec x = load(s + r * panel);
      add(x);
      rows[kept] = static_cast<std::int32_t>(r);
      kept += any(x > threshold) ? 1 : 0;
    }
    for (int step = 0; step < rules::Entmax::most_steps; ++step) {
      const Vec before = threshold;
      threshold = rules::Entmax::step(threshold, sum, squares);
      if (!any(threshold > before)) break;
      sum = squares = Vec(0.0f);
      std::int64_t still = 0;
      for (std::int64_t i = 0; i < kept; ++i) {
        const Vec x = load(s + rows[i] * panel);
        add(x);
        rows[still] = rows[i];
        still += any(x > threshold) ? 1 : 0;
      }
      kept = still;
    }
    store(space_.maxima + t, threshold);
    Vec number(0.0f);
    for (std::int64_t i = 0; i < kept; ++i) {
      number += select(load(s + rows[i] * panel) > threshold, Vec(1.0f), Vec(0.0f));
    }
    store(space_.counts + t, number);
  }

  void mix(std::int64_t j) {
    const Sight there = sight(j);
    if (!weigh(there, strip_of(j))) return;
    const std::int64_t width = shape_.value_width;
    pack_right<Product>(source(task_.v, j, there.keys, width), there.keys, width, space_.values,
                        space_.value_stride);
    mix_keys<Product>(space_.p, space_.values, space_.value_stride, there, space_.outputs, width);
    if (!task_.mean) return;
    mix_keys<Product>(space_.w, space_.values, space_.value_stride, there, space_.means, width);
  }

  /// Computes the weights of a block of keys and the square roots of these weights, and packs both.
  /// Returns true if any weight is not 0.
  bool weigh(const Sight& there, const float* s) {
    Mask some = Vec(0.0f) > Vec(0.0f);
    for (std::int64_t t = 0; t < n_; t += lanes) {
      const Vec threshold = load(space_.maxima + t);
      Vec sum = load(space_.sums + t);
      const Mask alone = load(space_.counts + t) == Vec(1.0f);
      const auto weight = [&](std::int64_t r) {
        if (r >= there.keys) return Vec(0.0f);
        Vec w = rules::Entmax::weight(load(s + r * panel + t), threshold);
        const Mask has = w > Vec(0.0f);
        some = some | has;
        w = select(alone & has, Vec(1.0f), w);  // a row's only nonzero weight is exactly 1
        sum += w;
        return w;
      };
      if constexpr (Product::depth == 1) {
        for (std::int64_t r = 0; r < there.keys; ++r) {
          const Vec w = weight(r);
          store(space_.w + r * panel + t, Product::rounded(w));
          store(space_.p + r * panel + t, Product::rounded(w * w));
        }
      } else {
        for (std::int64_t r = 0; r < there.keys; r += 2) {
          const Vec a = weight(r), b = weight(r + 1);
          store(space_.w + r / 2 * panel + t, Product::across(a, b));
          store(space_.p + r / 2 * panel + t, Product::across(a * a, b * b));
        }
      }
      store(space_.sums + t, sum);
    }
    return any(some);
  }

  void finish() {
    const std::int64_t width = shape_.value_width;
    write_rows(space_.outputs, space_.value_stride, 1.0f, from(task_.y), false, n_, width);
    for (std::int64_t t = 0; t < n_; ++t) {
      if (task_.log_sum) *task_.log_sum.row(row_ + t) = space_.maxima[t];
      if (!task_.mean) continue;
      write_rows(space_.means + t * space_.value_stride, space_.value_stride, 1.0f / space_.sums[t],
                 HeadRows<T>{task_.mean.row(row_ + t), task_.mean.stride}, false, 1, width);
    }
  }
  HeadRows<T> from(HeadRows<T> x) const { return {x.row(row_), x.stride}; }

  const AttentionRows<T>& task_;
  const SegmentShape& shape_;
  std::int64_t begin_, end_;
  StripSpace<Product> space_;
  std::int64_t row_ = 0, n_ = 0, first_key_ = 0, last_key_ = 0;
};

/// Entmax of a single query. First computes the scores of all keys. They are stored in the scratch
/// memory, behind the sums for the output y. Then sums the weighted values of each block of keys in
/// which a key has a weight.
template <class T>
class EntmaxSingle : SingleRow<T, rules::Entmax> {
  using Base = SingleRow<T, rules::Entmax>;
  using Base::block, Base::scores_, Base::outputs_, Base::value_width_;

 public:
  using Base::Base;

  void run() {
    const std::int64_t begin = Base::begin(), end = Base::end();
    float* const all = outputs_ + round_up(value_width_, lanes);
    const float threshold = threshold_of(all, begin, end);
    for (std::int64_t j = begin; j < end; j += block) {
      scores_ = all + (j - begin);
      float highest = 0;
      for (std::int64_t r = 0; r < block; r += lanes) {
        const Vec w = rules::Entmax::weight(load(scores_ + r), Vec(threshold)), p = w * w;
        store(scores_ + r, p);
        const float here = max(p);
        highest = here > highest ? here : highest;
      }
      if (highest > 0) this->mix_all(j, least(block, end - j));
    }
    this->write(1);
  }

 private:
  /// Stores half of the score of each key of [begin, end) in `all`. Returns the threshold, at which
  /// the weights of these keys sum to 1.
  float threshold_of(float* all, std::int64_t begin, std::int64_t end) {
    Vec top(-1e38f);
    for (std::int64_t j = begin; j < end; j += block) {
      scores_ = all + (j - begin);
      this->score(j, least(block, end - j));
      for (std::int64_t r = 0; r < block; r += lanes) top = max(top, load(scores_ + r));
    }
    const std::int64_t count = round_up(end - begin, block);
    float threshold = max(top) - 1;
    for (int step = 0; step < rules::Entmax::most_steps; ++step) {
      Sums sums, squares;
      for_each_part(count, [&](auto r, auto v, int p) {
        const Vec w = rules::Entmax::weight(v.load(all + r), Vec(threshold));
        sums.part[p] += w;
        squares.part[p] = fma(w, w, squares.part[p]);
      });
      const float next = rules::Entmax::step(threshold, sum(sums), sum(squares));
      if (!(next > threshold)) break;
      threshold = next;
    }
    return threshold;
  }
};

/// The kernels of entmax. The threshold of a query depends on all its scores, so the kernel `own`
/// processes all keys that a chunk of queries sees. The kernels `begin` and `before`, with which
/// softmax processes the keys before a chunk, do nothing.
template <class T, class Product>
inline constexpr AttentionKernels<T> entmax_kernels{
    [](std::int64_t width, std::int64_t value_width, std::int64_t, std::int64_t keys) {
      return most(StripSpace<Product>(width, value_width, keys, nullptr).floats,
                  single_scratch(width, value_width) + round_up(keys, single_block));
    },
    [](const AttentionRows<T>&, typename AttentionKernels<T>::Chunk, float*) {},
    [](const AttentionRows<T>&, typename AttentionKernels<T>::Chunk, std::int64_t, std::int64_t,
       float*) {},
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, float* at) {
      EntmaxRows<T, Product>(task, chunk.begin, chunk.end, at).run();
    },
    /*row_saves=*/false,
    [](const AttentionRows<T>& task, std::int64_t row, float* at) {
      EntmaxSingle<T>(task, row, at).run();
    }};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
