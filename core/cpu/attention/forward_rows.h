#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/single.h"
#include "core/cpu/attention/tile_products.h"

/// Softmax attention and ChaCAL, forward, for a chunk of one head's rows. The panels of queries in
/// the chunk walk together along the blocks of keys. Each query carries its running maximum m and
/// sum l:
///   m' = max(m, max_j s_ij);  y = 2^(m - m') y + sum_j 2^(s_ij - m') v_j
/// Leftward rules take the chunk's own keys first, then earlier keys from the last block to the
/// first. They stop when no row of a panel has anything left.
///
/// ChaCAL attends to U_j = (1 - g) v_j + g y_j instead of v_j. Keys before the chunk already have
/// their y. Keys in the chunk get it panel by panel, and on the diagonal row by row. DeltaFormer
/// attends to y_j, and never to a row's own key.
namespace longhand::cpu::LONGHAND_ISA::attention {

// finite, so that the difference of two initial maxima is not NaN
inline constexpr float lowest = -1e38f;

/// The scratch of one call.
template <class Product>
struct Space {
  float *keys, *values;  // packed words of a block of keys and values, or of the chunk's own
  float *scores, *p;     // [block][panel], and as words [block / depth][panel]
  float* chained;        // U of the panel's own keys in f32, [panel][stride]
  // for each panel: the packed queries, [depth][panel], and the sums over keys
  float *queries, *outputs;
  float* rows;                            // the rows of the finished panel, [panel][stride]
  float *times, *maxima, *sums, *shrink;  // for each query: the scale of its scores, m and l
  // c of each query, and of a block of keys or of the chunk's own keys
  float *query_shifts, *key_shifts;
  float *pulls, *counts, *bounds;  // for each query
  std::int64_t depth, key_stride, value_stride, value_block, floats;

  Space(std::int64_t width, std::int64_t value_width, std::int64_t chunk, float* at) {
    depth = words<Product>(width);
    key_stride = packed_width(Product::parts * depth);
    value_stride = packed_width(value_width);
    value_block = key_block<Product>(value_width);
    const std::int64_t count = round_up(chunk, panel);
    ScratchParts take{at};
    keys = take(count * key_stride);
    values = take(count / block * value_block);
    scores = take(block * panel);
    p = Product::depth == 1 ? scores : take(Product::parts * (block / Product::depth) * panel);
    chained = Product::rounds && !Product::tiled ? take(panel * value_stride) : nullptr;
    queries = take(count * Product::parts * depth);
    outputs = take(count * value_stride);
    rows = Product::tiled ? take(panel * value_stride) : nullptr;
    times = take(count);
    maxima = take(count);
    sums = take(count);
    shrink = take(panel);
    query_shifts = take(count);
    key_shifts = take(count);
    pulls = take(count);
    counts = take(count);
    bounds = take(count);
    floats = take.floats;
  }
};

/// The running state of a panel's queries.
struct Running {
  const float *times, *shifts;
  float *maxima, *sums, *shrink;
  const float* pulls;
  float* counts;
};

/// Turns scores into p = 2^(s - m), zero where unseen, as packed words. Updates m and l, and sets
/// `shrink`, the factor of earlier sums. Returns false if all factors are 1. Scores are overwritten
/// by p in f32, which ChaCAL reads. Shifted scores first get c_i - c_j, and scores of TRA become
/// its logits.
template <class Product, Rule rule, bool shifted>
bool exponentials(const Sight& sight, const float* key_shifts, float* s, float* p,
                  const Running& to) {
  bool shrinks = false;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range seen = sight.keys_of(unit, Sight::unit);
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    float* const column = s + t;
    const Vec before = load(to.maxima + t), times = load(to.times + t);
    Vec m = before, other = before;
    const Vec shift = load(to.shifts + t);
    const auto scaled = [&](int r) {
      return score_of<Product, rule, shifted>(load(column + r * panel), times, shift,
                                              key_shifts + r);
    };
    const auto edge = [&](int begin, int end) {
      for (int r = begin; r < end; ++r) {
        const Vec x = select(sight.sees(r, t), scaled(r), Vec(-__builtin_inff()));
        store(column + r * panel, x);
        m = max(m, x);
      }
    };
    const Range inner = by_all.empty() ? Range{seen.end, seen.end} : by_all;
    int r = inner.begin;
    if constexpr (rule == Rule::tra) {
      const Vec pull = load(to.pulls + t);
      Vec count = load(to.counts + t);
      for (r = seen.end - 1; r >= seen.begin; --r) {
        const bool all = r >= inner.begin && r < inner.end;
        const Vec z = all ? scaled(r) : select(sight.sees(r, t), scaled(r), Vec(0.0f));
        const Vec x = rules::Tra::logit(z, pull, count);
        store(column + r * panel, x);
        m = max(m, x);
      }
      store(to.counts + t, count);
    } else {
      edge(seen.begin, inner.begin);
      for (; r + 2 <= inner.end; r += 2) {
        const Vec x = scaled(r), y = scaled(r + 1);
        if (Product::rounds || shifted) {
          store(column + r * panel, x);
          store(column + (r + 1) * panel, y);
        }
        m = max(m, x);
        other = max(other, y);
      }
      edge(r, seen.end);
      m = max(m, other);
    }

    Vec sum(0.0f);
    const auto exponential = [&](int row) {
      if (row < seen.begin || row >= seen.end) return Vec(0.0f);
      const Vec z = load(column + row * panel) - m;
      const Vec x = rule == Rule::tra ? exp2_or_zero(z) : exp2(z);
      sum += x;
      if constexpr (!Product::tiled) store(column + row * panel, x);
      return x;
    };
    if constexpr (Product::depth == 1) {
      for (r = seen.begin; r < seen.end; ++r) {
        const Vec x = exponential(r);
        if (Product::rounds) store(p + r * panel + t, Product::rounded(x));
      }
    } else {
      for (r = seen.begin & ~1; r < seen.end; r += 2) {
        const Vec x = exponential(r), y = exponential(r + 1);
        Product::put_across(p + r / 2 * panel + t, x, y);
      }
    }
    shrinks = shrinks || any(before != m);
    const Vec factor = exp2(before - m);
    store(to.shrink + t, factor);
    store(to.sums + t, fma(load(to.sums + t), factor, sum));
    store(to.maxima + t, m);
  }
  return shrinks;
}

/// Turns scores into stick-breaking's p, zero where unseen, as packed words. `sums` becomes what is
/// left of each stick.
template <class Product, bool shifted>
void break_sticks(const Sight& sight, const float* key_shifts, const float* s, float* p,
                  const Running& to) {
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range seen = sight.keys_of(unit, Sight::unit);
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Vec times = load(to.times + t), shift = load(to.shifts + t);
    Vec left = load(to.sums + t);
    const auto weight = [&](int r) {
      const Vec x = score_of<Product, Rule::stick, shifted>(load(s + r * panel + t), times, shift,
                                                            key_shifts + r);
      left = max(left, Vec(least_left));
      if (r >= by_all.begin && r < by_all.end) return rules::Stick::weigh(x, left);
      const Mask sees = sight.sees(r, t);
      const Vec w = rules::Stick::weigh(select(sees, x, Vec(-__builtin_inff())), left);
      return select(sees, w, Vec(0.0f));
    };
    if constexpr (Product::depth == 1) {
      for (int r = seen.end - 1; r >= seen.begin; --r) {
        store(p + r * panel + t, Product::rounded(weight(r)));
      }
    } else {
      for (int r = (seen.end - 1) & ~1; r >= (seen.begin & ~1); r -= 2) {
        const Vec second = r + 1 < seen.end ? weight(r + 1) : Vec(0.0f);
        const Vec first = r >= seen.begin ? weight(r) : Vec(0.0f);
        Product::put_across(p + r / 2 * panel + t, first, second);
      }
    }
    store(to.sums + t, left);
  }
}

template <class T, class Product, Rule rule>
class Rows {
 public:
  using Chunk = typename AttentionKernels<T>::Chunk;

  Rows(const AttentionRows<T>& task, Chunk chunk, float* scratch)
      : task_(task),
        shape_(task.shape),
        begin_(chunk.begin),
        end_(chunk.end),
        space_(shape_.width, shape_.value_width, end_ - begin_, scratch) {}

  void begin() {
    for (std::int64_t row = begin_; row < end_; row += panel) start(row);
  }

  void before(std::int64_t from, std::int64_t to) {
    if constexpr (leftward(rule)) return;  // after its own keys
    const InUse<Product> in_use;
    const std::int64_t seen = shape_.offset + begin_ - shape_.window + 1;  // the first visible key
    for (std::int64_t j = from; j < to; j += block) {
      const std::int64_t count = least(block, to - j);
      if (j + count <= seen) continue;
      const HeadRows<const float> keys = keys_from(j, count);
      pack_shifts(j, count);
      if (chained()) {
        pack_chained(j, count);
      } else {
        pack_values(j, count);
      }
      for (std::int64_t row = begin_; row < end_; row += panel) {
        attend(row, j, count, keys, space_.key_shifts, space_.values);
      }
      mix();
    }
  }

  void own() {
    const InUse<Product> in_use;
    const std::int64_t first = shape_.offset + begin_, count = end_ - begin_;
    pack_left<Product>(source(task_.k, first, count, shape_.width), count, shape_.width,
                       space_.keys, space_.key_stride);
    pack_shifts(first, count);
    if (!chained()) pack_values(first, count);
    if constexpr (leftward(rule)) return leftwards();
    for (std::int64_t row = begin_; row < end_; row += panel) {
      for (std::int64_t other = begin_; other <= row; other += panel) {
        const std::int64_t keys = least(panel, end_ - other);
        if (chained() && other == row) {
          if constexpr (!Product::tiled) chain(row, keys);
        } else {
          attend(row, shape_.offset + other, keys, keys_of(other), shifts_of(other),
                 values_of(other));
        }
      }
      mix();
      finish(row);
    }
  }

 private:
  /// Processes the chunk's own keys, which are packed, then all earlier ones.
  void leftwards() {
    for (std::int64_t row = begin_; row < end_; row += panel) {
      for (std::int64_t other = row; other >= begin_; other -= panel) {
        attend(row, shape_.offset + other, least(panel, end_ - other), keys_of(other),
               shifts_of(other), values_of(other));
      }
    }
    // the first visible key
    const std::int64_t seen = most(0, shape_.offset + begin_ - shape_.window + 1);
    if constexpr (rule == Rule::tra) bound_scores(seen);
    for (std::int64_t end = shape_.offset + begin_; end > seen && !spent();) {
      const std::int64_t j = (end - 1) / block * block, count = end - j;
      const HeadRows<const float> keys = keys_from(j, count);
      pack_shifts(j, count);
      pack_values(j, count);
      for (std::int64_t row = begin_; row < end_; row += panel) {
        attend(row, j, count, keys, space_.key_shifts, space_.values);
      }
      end = j;
    }
    for (std::int64_t row = begin_; row < end_; row += panel) finish(row);
  }

  /// True if none of the panel's rows has anything left.
  bool spent(std::int64_t row) const {
    if constexpr (rule == Rule::stick) {
      const float* const left = running(row).sums;
      for (int t = 0; t < panel; t += lanes) {
        if (any(load(left + t) >= Vec(rules::Stick::spent))) return false;
      }
      return true;
    }
    if constexpr (rule == Rule::tra) {
      const Running of = running(row);
      const float* const bounds = space_.bounds + (row - begin_);
      for (int t = 0; t < panel; t += lanes) {
        const Vec most_far =
            fma(load(of.pulls + t), load(of.counts + t) + Vec(1.0f), load(bounds + t));
        if (any(~(most_far < load(of.maxima + t)))) return false;
      }
      return true;
    }
    return false;
  }
  /// Bounds the scores of the keys before the chunk's own, from the longest of these keys, the
  /// length of each query and the shifts.
  void bound_scores(std::int64_t seen) {
    const std::int64_t before = shape_.offset + begin_;
    if (before <= seen) return;
    const float keys = longest_row(task_.k, seen, before, shape_.width);
    const float least_shift = least_entry(task_.shift, seen, before);
    for (std::int64_t row = begin_; row < end_; ++row) {
      const float query = longest_row(task_.q, row, row + 1, shape_.width);
      const float times = space_.times[row - begin_];
      const float highest = query * keys * (times < 0 ? -times : times) +
                            log2_of_e * (space_.query_shifts[row - begin_] - least_shift);
      space_.bounds[row - begin_] =
          rules::Tra::bound(highest, space_.pulls[row - begin_], shape_.keys);
    }
  }
  bool spent() const {
    for (std::int64_t row = begin_; row < end_; row += panel) {
      if (!spent(row)) return false;
    }
    return true;
  }

  template <class U>
  static Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                               std::int64_t width) {
    return {{x.row(row), x.stride}, rows, width};
  }
  std::int64_t queries(std::int64_t row) const { return least(panel, end_ - row); }
  /// The chunk's own keys, from the key of a query row on.
  HeadRows<const float> keys_of(std::int64_t row) const {
    return {space_.keys + (row - begin_) * space_.key_stride, space_.key_stride};
  }
  /// Keys from j on. Wide keys are read in place, once each and in long pieces: copying them would
  /// not be faster.
  HeadRows<const float> keys_from(std::int64_t j, std::int64_t count) const {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Product, Exact>) {
      if (shape_.width >= 256 && count % tile_rows == 0) return {task_.k.row(j), task_.k.stride};
    }
    pack_left<Product>(source(task_.k, j, count, shape_.width), count, shape_.width, space_.keys,
                       space_.key_stride);
    return {space_.keys, space_.key_stride};
  }
  float* values_of(std::int64_t row) const {
    return space_.values + (row - begin_) / block * space_.value_block;
  }
  /// ChaCAL solves rows between products of vectors.
  bool chained() const { return !Product::tiled && task_.chain; }
  const float* shifts_of(std::int64_t row) const { return space_.key_shifts + (row - begin_); }
  float* queries_of(std::int64_t row) const {
    return space_.queries + (row - begin_) * Product::parts * space_.depth;
  }
  float* outputs_of(std::int64_t row) const {
    return space_.outputs + (row - begin_) * space_.value_stride;
  }
  Running running(std::int64_t row) const {
    const std::int64_t at = row - begin_;
    return {space_.times + at, space_.query_shifts + at, space_.maxima + at, space_.sums + at,
            space_.shrink,     space_.pulls + at,        space_.counts + at};
  }

  void start(std::int64_t row) {
    const Running to = running(row);
    float* const times = space_.times + (row - begin_);
    const std::int64_t n = queries(row);
    gather(task_.tau, row, n, 1.0f, times);
    gather(task_.shift, shape_.offset + row, n, 0.0f, space_.query_shifts + (row - begin_));
    const Vec scale(task_.scale * log2_of_e);
    // The sink counts before any key does.
    const Vec highest = max(Vec(lowest), Vec(task_.sink ? *task_.sink * log2_of_e : lowest));
    const Vec sum(task_.sink ? 1.0f : 0.0f);
    for (int t = 0; t < panel; t += lanes) {
      store(times + t, scale * load(times + t));
      store(to.maxima + t, highest);
      store(to.sums + t, sum);
    }
    if constexpr (rule == Rule::stick) {
      for (std::int64_t t = 0; t < panel; ++t) to.sums[t] = t < n ? 1.0f : 0.0f;
    }
    if constexpr (rule == Rule::tra) {
      gather(task_.pull, row, n, 0.0f, space_.pulls + (row - begin_));
      for (int t = 0; t < panel; t += lanes) {
        float* const pull = space_.pulls + (row - begin_) + t;
        store(pull, Vec(log2_of_e) * load(pull));
        store(to.counts + t, Vec(0.0f));
      }
      for (std::int64_t t = 0; t < panel; ++t) {
        space_.bounds[row - begin_ + t] = t < n ? __builtin_inff() : -__builtin_inff();
      }
    }
    pack_transposed<Product>(source(task_.q, row, n, shape_.width), n, shape_.width,
                             scaled_late<Product, rule> ? nullptr : times, queries_of(row));
    clear_query_sums<Product>(outputs_of(row), n, shape_.value_width);
  }

  /// Packs c of the keys from j on.
  void pack_shifts(std::int64_t j, std::int64_t count) {
    if (!task_.shift) return;
    for (std::int64_t r = 0; r < count; ++r) space_.key_shifts[r] = *task_.shift.row(j + r);
  }

  void pack_values(std::int64_t j, std::int64_t count) {
    pack_key_blocks<Product>(source(task_.v, j, count, shape_.value_width), count,
                             shape_.value_width, space_.values);
  }

  /// Packs the values of ChaCAL for keys from j on, whose y is known: in `earlier` for keys before
  /// the queries, otherwise in y.
  void pack_chained(std::int64_t j, std::int64_t count) {
    if constexpr (Product::tiled) return;
    const std::int64_t width = shape_.value_width;
    const HeadRows<const T> y{task_.y.at, task_.y.stride};
    const Source<T> past = j < shape_.offset ? source(task_.earlier, j, count, width)
                                             : source(y, j - shape_.offset, count, width);
    pack_key_blocks<Product>(ChainSource<T>{source(task_.v, j, count, width), past, task_.gamma},
                             count, width, space_.values);
  }

  Sight sight_of(std::int64_t row, std::int64_t j, std::int64_t count) const {
    const std::int64_t less = strict(rule) || task_.gain ? 1 : 0;
    return {count, queries(row), shape_.offset + row - j - less, shape_.window - less};
  }

  /// Computes scores and their exponentials, and multiplies the outputs so far by `shrink`.
  void score(std::int64_t row, const Sight& sight, const HeadRows<const float>& keys,
             const float* shifts) {
    score_tiles<Product>(keys.at, keys.stride, queries_of(row), space_.depth, sight, space_.scores);
    mix();  // the previous block
    float *const s = space_.scores, *const p = space_.p;
    clear_unseen<Product>(sight, p);
    if constexpr (rule == Rule::stick) {
      if (task_.shift) return break_sticks<Product, true>(sight, shifts, s, p, running(row));
      return break_sticks<Product, false>(sight, shifts, s, p, running(row));
    }
    const bool shrinks =
        task_.shift ? exponentials<Product, rule, true>(sight, shifts, s, p, running(row))
                    : exponentials<Product, rule, false>(sight, shifts, s, p, running(row));
    if (shrinks) {
      scale_queries<Product>(outputs_of(row), sight.queries, shape_.value_width, space_.shrink);
    }
  }

  void attend(std::int64_t row, std::int64_t j, std::int64_t count,
              const HeadRows<const float>& keys, const float* shifts, const float* values) {
    const Sight sight = sight_of(row, j, count);
    if (sight.empty() || spent(row)) return;
    score(row, sight, keys, shifts);
    waiting_ = {row, sight, values};
    if constexpr (!Product::tiled) mix();
  }

  /// The products of a block's p with its values. Tiles would wait for words that were just stored,
  /// so the scores of the next block are made first.
  void mix() {
    if (waiting_.values == nullptr) return;
    mix_keys<Product>(space_.p, waiting_.values, space_.value_stride, waiting_.sight,
                      outputs_of(waiting_.row), shape_.value_width);
    waiting_.values = nullptr;
  }

  /// Solves the panel's own keys, whose sums start from v. Tile by tile, the keys get their y, and
  /// their U for the rows that follow.
  void chain(std::int64_t row, std::int64_t count) {
    const std::int64_t stride = space_.value_stride, width = shape_.value_width;
    const Sight sight = sight_of(row, shape_.offset + row, count);
    if (!sight.empty()) score(row, sight, keys_of(row), shifts_of(row));
    float *const outputs = outputs_of(row), *const values = values_of(row);
    float* const chained = Product::rounds ? space_.chained : values;
    pack_left<Exact>(source(task_.v, shape_.offset + row, count, width), count, width, chained,
                     stride);
    const int vectors = static_cast<int>((width + lanes - 1) / lanes);
    for (std::int64_t t = 0; t < count; t += tile_rows) {
      if (t > 0) {
        row_tile<Product>({space_.p + t, 1, panel}, values, stride, t / Product::depth,
                          outputs + t * stride, stride, vectors, true);
      }
      const std::int64_t end = least(t + tile_rows, count);
      const float* const sums = space_.sums + (row - begin_) + t;
      if (task_.gain) {
        solve_gained_tile(static_cast<int>(end - t), sums, row, t, outputs, chained);
      } else if (end - t == tile_rows) {
        solve_tile(tile_rows, sums, t, outputs, chained);
      } else {
        solve_tile(static_cast<int>(end - t), sums, t, outputs, chained);
      }
      if (Product::rounds) {
        pack_right<Product>(Source<float>{{chained + t * stride, stride}, end - t, width}, end - t,
                            width, values + t / Product::depth * stride, stride);
      }
    }
  }

  /// Solves the rows from t on, whose outputs lack only the sums over this tile. It is inlined, so
  /// that the tile is unrolled and its U stay in registers: each row waits for the one before.
  [[gnu::always_inline]] void solve_tile(int count, const float* sums, std::int64_t t,
                                         float* outputs, float* chained) const {
    const std::int64_t stride = space_.value_stride;
    const Vec own(1.0f - task_.gamma), past(task_.gamma);
    float shares[tile_rows];
    for (int i = 0; i < count; ++i) shares[i] = 1.0f / sums[i];
    for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
      Vec u[tile_rows];
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const float* const p =
            space_.scores + t * panel + t + i;  // p[j panel] belongs to key t + j
        float* const output = outputs + (t + i) * stride + c;
        float* const value = chained + (t + i) * stride + c;
        Vec sum = load(output);
#pragma GCC unroll 8
        for (int j = 0; j < i; ++j) sum = fma(Vec(p[j * panel]), u[j], sum);
        const Vec first = own * load(value);
        sum = fma(Vec(p[i * panel]), first, sum);
        store(output, sum);
        u[i] = fma(past, sum * Vec(shares[i]), first);
        store(value, u[i]);
      }
    }
  }

  /// The same with gains: y_i = v_i + g_i sum_j P_ij y_j over earlier rows only.
  void solve_gained_tile(int count, const float* sums, std::int64_t row, std::int64_t t,
                         float* outputs, float* chained) const {
    const std::int64_t stride = space_.value_stride;
    float shares[tile_rows];
    for (int i = 0; i < count; ++i) {
      shares[i] = sums[i] > 0 ? *task_.gain.row(row + t + i) / sums[i] : 0.0f;
    }
    for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
      Vec y[tile_rows];
      for (int i = 0; i < count; ++i) {
        const float* const p = space_.scores + t * panel + t + i;
        float* const output = outputs + (t + i) * stride + c;
        float* const value = chained + (t + i) * stride + c;
        Vec sum = load(output);
        for (int j = 0; j < i; ++j) sum = fma(Vec(p[j * panel]), y[j], sum);
        store(output, sum);
        y[i] = fma(sum, Vec(shares[i]), load(value));
        store(value, y[i]);
      }
    }
  }

  /// Computes z and y of a row whose sum over earlier rows is `sum`; `share` normalizes the sum.
  void finish_gained(std::int64_t row, const float* sum, float share) {
    const Source<T> v = source(task_.v, shape_.offset + row, 1, shape_.value_width);
    const Vec factor(share), gain(*task_.gain.row(row));
    T* const y = task_.y.row(row);
    T* const read = task_.read ? task_.read.row(row) : nullptr;
    for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
      const int count = static_cast<int>(least(lanes, shape_.value_width - c));
      const Vec z = load(sum + c) * factor, x = fma(gain, z, v.at(0, c));
      if (count == lanes) {
        store(y + c, x);
        if (read) store(read + c, z);
      } else {
        store_first(y + c, x, count);
        if (read) store_first(read + c, z, count);
      }
    }
  }

  void finish(std::int64_t row) {
    const std::int64_t width = shape_.value_width;
    const Running of = running(row);
    const HeadRows<const float> rows =
        query_rows<Product>(outputs_of(row), queries(row), width, space_.rows);
    const std::int64_t whole = width / lanes * lanes;
    const int rest = static_cast<int>(width - whole);
    for (std::int64_t t = 0; t < queries(row); ++t) {
      const float* from = rows.row(t);
      T* const to = task_.y.row(row + t);
      if (task_.gain) {
        finish_gained(row + t, from, of.sums[t] > 0 ? 1.0f / of.sums[t] : 0.0f);
        continue;
      }
      const Vec factor(share_of(of.sums[t]));
      for (std::int64_t c = 0; c < whole; c += lanes) store(to + c, load(from + c) * factor);
      if (rest != 0) store_first(to + whole, load(from + whole) * factor, rest);
      if (rule == Rule::stick && task_.residue) put_residue(from, task_.residue.row(row + t));
    }
    if (rule == Rule::stick || !task_.log_sum) return;
    for (std::int64_t t = 0; t < panel; t += lanes) {
      const Vec sum = load(of.sums + t), x = fma(load(of.maxima + t), Vec(ln_of_2), log(sum));
      const bool may_be_none = rule == Rule::tra || task_.gain;
      store(of.shrink + t, may_be_none ? select(sum > Vec(0.0f), x, Vec(0.0f)) : x);
    }
    for (std::int64_t t = 0; t < queries(row); ++t) {
      *task_.log_sum.row(row + t) = of.shrink[t];
    }
  }

  /// Stores what rounding takes from a row of y.
  void put_residue(const float* y, T* to) const {
    for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
      const Vec x = load(y + c);
      put(x - round_to(static_cast<const T*>(nullptr), x), to, c, shape_.value_width, {});
    }
  }

  /// The factor of a row's outputs at the end.
  static float share_of(float sum) {
    if constexpr (rule == Rule::stick) return 1;
    return rule == Rule::tra && sum == 0 ? 0.0f : 1.0f / sum;
  }

  const AttentionRows<T>& task_;
  const SegmentShape& shape_;
  std::int64_t begin_, end_;
  Space<Product> space_;
  struct {
    std::int64_t row;
    Sight sight;
    const float* values;
  } waiting_ = {};
};

template <class Product>
std::int64_t scratch(std::int64_t width, std::int64_t value_width, std::int64_t chunk,
                     std::int64_t) {
  return most(Space<Product>(width, value_width, chunk, nullptr).floats,
              single_scratch(width, value_width));
}

template <class T, class Product, Rule rule>
inline constexpr AttentionKernels<T> forward_kernels{
    scratch<Product>,
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, float* at) {
      Rows<T, Product, rule>(task, chunk, at).begin();
    },
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, std::int64_t from,
       std::int64_t to, float* at) { Rows<T, Product, rule>(task, chunk, at).before(from, to); },
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, float* at) {
      Rows<T, Product, rule>(task, chunk, at).own();
    },
    [](const AttentionRows<T>& task, std::int64_t row, float* at) {
      Single<T, rule>(task, row, at).run();
    }};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
