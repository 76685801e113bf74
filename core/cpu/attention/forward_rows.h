#pragma once

#include <type_traits>

#include "core/cpu/attention/forward_space.h"
#include "core/cpu/attention/solve_tile.h"

/// The forward pass over a chunk of one head's rows. Each block of keys is packed once and then
/// processed by all panels of queries of the chunk. A rule (softmax_rows.h and similar files)
/// computes the weights of each block. A rule has the members
///   Formula            the formulas of the rule in core/rules/
///   start(rows)        sets the initial state of a panel
///   weigh(...)         turns the scores of a block into weights
///   spent              true if the remaining keys can be skipped for all rows of a panel
///   share              returns the factor that turns a row's weighted sum into its output
///   log_sum            returns the number that is saved for the backward pass, for each row
///   Query              the state of a single query (single.h)
/// Leftward rules (stick-breaking, TRA) process the keys of a row from the last to the first. They
/// begin with the keys at the positions of the chunk's queries and continue with the earlier
/// blocks of keys. They stop when `spent` is true for all panels of the chunk. TRA also has the
/// member `bound`, which computes numbers that `spent` requires.
///
/// ChaCAL and DeltaFormer have the member `solves`. They multiply the weights not by v but by
/// vectors that depend on the outputs y of earlier rows (ChaCAL: (1 - gamma) v + gamma y,
/// DeltaFormer: y). These vectors are called solved values. The function `values` returns them for
/// keys whose outputs are already computed. The function `solve` computes the outputs of a tile of
/// consecutive rows, one row after the other.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// True if the rule multiplies its weights not by v but by vectors that depend on the outputs of
/// earlier rows (ChaCAL, DeltaFormer). Products on tile registers do not support this.
template <class Product, class Rule>
inline constexpr bool solves = !Product::tiled && requires {
  Rule::solves;
};

template <class T, class Product, class Rule>
class Rows {
 public:
  using Chunk = typename AttentionKernels<T>::Chunk;
  using Formula = typename Rule::Formula;

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
    if constexpr (Formula::leftward) return;  // leftwards() processes all keys before the chunk
    const InUse<Product> in_use;
    // the first key that any query of the chunk sees
    const std::int64_t seen = shape_.offset + begin_ - shape_.window + 1;
    for (std::int64_t j = from; j < to; j += block) {
      const std::int64_t count = least(block, to - j);
      if (j + count <= seen) continue;
      const HeadRows<const float> keys = keys_from(j, count);
      pack_shifts(j, count);
      if constexpr (solves<Product, Rule>) {
        pack_solved(j, count);
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
    if (first >= shape_.keys) {  // no causal mask: before() has processed all keys
      for (std::int64_t row = begin_; row < end_; row += panel) finish(row);
      return;
    }
    pack_left<Product>(source(task_.k, first, count, shape_.width), count, shape_.width,
                       space_.keys, space_.key_stride);
    pack_shifts(first, count);
    if constexpr (!solves<Product, Rule>) pack_values(first, count);
    if constexpr (Formula::leftward) return leftwards();
    for (std::int64_t row = begin_; row < end_; row += panel) {
      for (std::int64_t other = begin_; other <= row; other += panel) {
        const std::int64_t keys = least(panel, end_ - other);
        if constexpr (solves<Product, Rule>) {
          if (other == row) {
            solve(row, keys);
            continue;
          }
        }
        attend(row, shape_.offset + other, keys, keys_of(other), shifts_of(other),
               values_of(other));
      }
      mix();
      finish(row);
    }
  }

 private:
  /// Used for rules that process keys from the last to the first. Processes the chunk's own keys,
  /// which are already packed, and then the earlier keys.
  void leftwards() {
    for (std::int64_t row = begin_; row < end_; row += panel) {
      for (std::int64_t other = row; other >= begin_; other -= panel) {
        attend(row, shape_.offset + other, least(panel, end_ - other), keys_of(other),
               shifts_of(other), values_of(other));
      }
    }
    // the first key that any query of the chunk sees
    const std::int64_t seen = most(0, shape_.offset + begin_ - shape_.window + 1);
    bound_scores(seen);
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

  /// Calls bound() of the rule for each panel of queries, if the rule has this function. bound()
  /// computes, for each query, a number from which spent() decides whether a key before the chunk
  /// can still have a weight.
  void bound_scores(std::int64_t seen) {
    if constexpr (requires { Rule::bounds; }) {
      const std::int64_t before = shape_.offset + begin_;
      if (before <= seen) return;
      const float longest_key = longest_row(task_.k, seen, before, shape_.width);
      const float least_shift = least_entry(task_.shift, seen, before);
      for (std::int64_t row = begin_; row < end_; row += panel) {
        Rule::bound(panel_rows(row), longest_key, least_shift);
      }
    }
  }
  bool spent() const {
    for (std::int64_t row = begin_; row < end_; row += panel) {
      if (!Rule::spent(running(row))) return false;
    }
    return true;
  }

  template <class U>
  static Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                               std::int64_t width) {
    return {{x.row(row), x.stride}, rows, width};
  }
  std::int64_t queries(std::int64_t row) const { return least(panel, end_ - row); }
  /// The packed keys of this chunk, beginning with the key at the position of query `row`.
  HeadRows<const float> keys_of(std::int64_t row) const {
    return {space_.keys + (row - begin_) * space_.key_stride, space_.key_stride};
  }
  /// Returns the keys j to j + count - 1 as left operands of the products with queries. For f32
  /// products, packing only copies the rows of f32 keys closer together. Rows of at least 256
  /// entries are long enough to be read in place, if `count` is a multiple of tile_rows. In all
  /// other cases, the keys are packed.
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
            space_.shrink,     space_.pulls + at,        space_.counts + at, space_.bounds + at};
  }
  PanelRows<T> panel_rows(std::int64_t row) const {
    return {task_, row, queries(row), running(row)};
  }

  void start(std::int64_t row) {
    const PanelRows<T> rows = panel_rows(row);
    float* const times = rows.state.times;
    const std::int64_t n = rows.count;
    gather(task_.tau, row, n, 1.0f, times);
    gather(task_.shift, shape_.offset + row, n, 0.0f, rows.state.shifts);
    const Vec scale(task_.scale * log2_of_e);
    for (int t = 0; t < panel; t += lanes) store(times + t, scale * load(times + t));
    Rule::start(rows);
    pack_transposed<Product>(source(task_.q, row, n, shape_.width), n, shape_.width,
                             scaled_late<Product, Formula> ? nullptr : times, queries_of(row));
    clear_query_sums<Product>(outputs_of(row), n, shape_.value_width);
  }

  /// Copies the shifts c (Scores::decay) of `count` keys, beginning at key j.
  void pack_shifts(std::int64_t j, std::int64_t count) {
    if (!task_.shift) return;
    for (std::int64_t r = 0; r < count; ++r) space_.key_shifts[r] = *task_.shift.row(j + r);
  }

  void pack_values(std::int64_t j, std::int64_t count) {
    pack_key_blocks<Product>(source(task_.v, j, count, shape_.value_width), count,
                             shape_.value_width, space_.values);
  }

  /// Packs the vectors that ChaCAL and DeltaFormer multiply by the weights instead of v, for
  /// `count` keys beginning at key j. The vectors are computed from the outputs at these keys.
  /// Outputs at positions before the first query are read from `earlier`, all others from y.
  void pack_solved(std::int64_t j, std::int64_t count) {
    const std::int64_t width = shape_.value_width;
    const HeadRows<const T> y{task_.y.at, task_.y.stride};
    const Source<T> past = j < shape_.offset ? source(task_.earlier, j, count, width)
                                             : source(y, j - shape_.offset, count, width);
    pack_key_blocks<Product>(Rule::values(task_, source(task_.v, j, count, width), past), count,
                             width, space_.values);
  }

  Sight sight_of(std::int64_t row, std::int64_t j, std::int64_t count) const {
    constexpr std::int64_t less = Formula::own_key ? 0 : 1;
    return {count, queries(row), shape_.offset + row - j - less, shape_.window - less};
  }

  /// Computes the scores and weights of a block of keys for a panel of queries. If the block
  /// changes the running maximum of a softmax, multiplies each query's weighted sum so far by the
  /// query's entry of `shrink`.
  void score(std::int64_t row, const Sight& sight, const HeadRows<const float>& keys,
             const float* shifts) {
    score_tiles<Product>(keys.at, keys.stride, queries_of(row), space_.depth, sight, space_.scores);
    mix();  // adds the values of the previous block, multiplied by their weights
    float *const s = space_.scores, *const p = space_.p;
    clear_unseen<Product>(sight, p);
    const Running state = running(row);
    const bool shrinks = task_.shift
                             ? Rule::template weigh<Product, true>(sight, shifts, s, p, state)
                             : Rule::template weigh<Product, false>(sight, shifts, s, p, state);
    if (shrinks) {
      scale_queries<Product>(outputs_of(row), sight.queries, shape_.value_width, space_.shrink);
    }
  }

  void attend(std::int64_t row, std::int64_t j, std::int64_t count,
              const HeadRows<const float>& keys, const float* shifts, const float* values) {
    const Sight sight = sight_of(row, j, count);
    if (sight.empty() || Rule::spent(running(row))) return;
    score(row, sight, keys, shifts);
    waiting_ = {row, sight, values};
    if constexpr (!Product::tiled) mix();
  }

  /// Multiplies the values of a block of keys by their weights p and adds them to the weighted sums
  /// of a panel. The block is the one whose weights were computed last. If its values are already
  /// added, does nothing. With products on vectors, mix() is called as soon as p is stored. With
  /// products on tile registers, the scores of the next block are computed first, because a tile
  /// register that loads p has to wait until p is stored.
  void mix() {
    if (waiting_.values == nullptr) return;
    mix_keys<Product>(space_.p, waiting_.values, space_.value_stride, waiting_.sight,
                      outputs_of(waiting_.row), shape_.value_width);
    waiting_.values = nullptr;
  }

  /// Computes the outputs of a panel for ChaCAL or DeltaFormer, tile by tile. After each tile, v at
  /// its rows is replaced by the vectors that later rows read: (1 - gamma) v + gamma y for ChaCAL,
  /// y for DeltaFormer.
  void solve(std::int64_t row, std::int64_t count) {
    const std::int64_t stride = space_.value_stride, width = shape_.value_width;
    const Sight sight = sight_of(row, shape_.offset + row, count);
    if (!sight.empty()) score(row, sight, keys_of(row), shifts_of(row));
    float *const outputs = outputs_of(row), *const values = values_of(row);
    float* const solved = Product::rounds ? space_.solved : values;
    pack_left<Exact>(source(task_.v, shape_.offset + row, count, width), count, width, solved,
                     stride);
    const int vectors = static_cast<int>((width + lanes - 1) / lanes);
    for (std::int64_t t = 0; t < count; t += tile_rows) {
      if (t > 0) {
        row_tile<Product>({space_.p + t, 1, panel}, values, stride, t / Product::depth,
                          outputs + t * stride, stride, vectors, true);
      }
      const std::int64_t end = least(t + tile_rows, count);
      const SolveTile tile{.p = space_.scores + t * panel + t,
                           .sums = space_.sums + (row - begin_) + t,
                           .outputs = outputs + t * stride,
                           .solved = solved + t * stride,
                           .stride = stride,
                           .width = width,
                           .row = row + t};
      if (end - t == tile_rows) {
        Rule::solve(task_, tile, tile_rows);
      } else {
        Rule::solve(task_, tile, static_cast<int>(end - t));
      }
      if (Product::rounds) {
        pack_right<Product>(Source<float>{{solved + t * stride, stride}, end - t, width}, end - t,
                            width, values + t / Product::depth * stride, stride);
      }
    }
  }

  void finish(std::int64_t row) {
    const std::int64_t width = shape_.value_width;
    const Running of = running(row);
    const HeadRows<const float> rows =
        query_rows<Product>(outputs_of(row), queries(row), width, space_.rows);
    for (std::int64_t t = 0; t < queries(row); ++t) {
      const float* const from = rows.row(t);
      const float share = Rule::share(of.sums[t]);
      if constexpr (requires { Rule::writes_rows; }) {
        Rule::write_row(task_, row + t, from, share);
      } else {
        write_row(from, share, task_.y.row(row + t));
        if (task_.residue) write_residue(from, share, task_.residue.row(row + t));
      }
    }
    if (!task_.log_sum) return;
    for (std::int64_t t = 0; t < panel; t += lanes) {
      store(of.shrink + t, Rule::log_sum(load(of.maxima + t), load(of.sums + t)));
    }
    for (std::int64_t t = 0; t < queries(row); ++t) {
      *task_.log_sum.row(row + t) = of.shrink[t];
    }
  }

  /// Writes an output row, y = factor * sum.
  void write_row(const float* sum, float factor, T* y) const {
    const std::int64_t whole = shape_.value_width / lanes * lanes;
    const int rest = static_cast<int>(shape_.value_width - whole);
    const Vec times(factor);
    for (std::int64_t c = 0; c < whole; c += lanes) store(y + c, load(sum + c) * times);
    if (rest != 0) store_first(y + whole, load(sum + whole) * times, rest);
  }

  /// Writes the rounding error of each entry of an output row: factor * sum minus its value rounded
  /// to the type of y.
  void write_residue(const float* sum, float factor, T* residue) const {
    for (std::int64_t c = 0; c < shape_.value_width; c += lanes) {
      const Vec y = load(sum + c) * Vec(factor);
      put(y - round_to(static_cast<const T*>(nullptr), y), residue, c, shape_.value_width, {});
    }
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

}  // namespace longhand::cpu::LONGHAND_ISA::attention
