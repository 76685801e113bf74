#pragma once

#include <type_traits>

#include "core/cpu/attention/gradient_rows.h"
#include "core/cpu/attention/leftward_gradients.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/solve_tile.h"

/// The backward pass for a range of keys. The panels of queries are processed from the last to the
/// first. For each block of keys, a rule (softmax_gradients.h and similar files) computes P and dS
/// from the scores and dP. Each block requires five matrix products.
///
/// The gradients are sums of terms with P and dS, where tau_i is a factor of the scores of query i:
///   dv_j += P_ij dy_i;  dk_j += dS_ij tau_i q_i;  dq_i / tau_i += dS_ij k_j.
/// dS is usually multiplied by `scale`, the factor of all scores, before these products. TRA, and
/// heads with Scores::decay, also need sums of dS without this factor. For them, `scale` multiplies
/// the finished sums for dk and dq instead.
///
/// Leftward rules (stick-breaking, TRA) process the keys of a row from the last to the first.
/// Between two ranges of keys, `walked` stores the numbers that these rules keep for each row
/// (walked_numbers in kernels.h).
///
/// Rules with the member `solves` (ChaCAL, DeltaFormer) replace dy by W, the solution of a
/// triangular system. The rows of W for a panel are computed, from the last to the first, by the
/// range that contains the keys at the panel's own positions. This is the panel's first range, and
/// `solved_rows` stores W for its other ranges.
namespace longhand::cpu::LONGHAND_ISA::attention {

template <class T, class Product, class Rule>
class BackwardKernel : GradientRows<T, Product, Rule> {
  using Base = GradientRows<T, Product, Rule>;
  using Panel = typename Base::Panel;
  using Formula = typename Rule::Formula;
  using Base::key_width_, Base::value_width_, Base::factor, Base::from;
  using Base::task_, Base::shape_, Base::space_, Base::count_;

 public:
  using Base::Base;

  void begin() {
    const auto keys = source(task_.k, task_.begin, count_, key_width_);
    if constexpr (bounds) *space_.longest_key = longest_row(task_.k, 0, task_.end, key_width_);
    pack_left<Product>(keys, count_, key_width_, space_.keys_left, space_.left_stride);
    if (Product::depth > 1) {
      pack_key_blocks<Product>(keys, count_, key_width_, space_.keys_right);
    }
    clear(space_.key_sums, round_up(count_, tile_rows) * space_.key_stride);
    if constexpr (solves) {
      clear(space_.all_value_sums, round_up(count_, tile_rows) * space_.value_stride);
    } else {
      pack_left<Product>(source(task_.v, task_.begin, count_, value_width_), count_, value_width_,
                         space_.values_left, space_.value_left_stride);
      clear(space_.value_sums, round_up(count_, tile_rows) * space_.value_stride);
    }
  }

  void begin_head(std::int64_t head) {
    if (task_.shift) {
      for (std::int64_t r = 0; r < count_; ++r) {
        space_.key_shifts[r] = task_.shift.row(task_.begin + r)[head];
      }
      if constexpr (bounds) {
        const HeadRows<const float> shift{task_.shift.at + head, task_.shift.stride};
        *space_.least_shift = least_entry(shift, 0, task_.end);
      }
      clear(space_.key_shift_sums, round_up(count_, tile_rows) * Sums::count);
    }
    if constexpr (solves) {
      const HeadRows<const T> y{task_.y.at + head * value_width_, task_.y.stride};
      const auto values = Rule::values(task_, source(task_.v, task_.begin, count_, value_width_),
                                       source(y, task_.begin, count_, value_width_), head);
      pack_left<Product>(values, count_, value_width_, space_.values_left,
                         space_.value_left_stride);
      clear(space_.value_sums, round_up(count_, tile_rows) * space_.value_stride);
      Rule::begin_head(task_, head);
    }
  }

  void end_head(std::int64_t head) {
    if (task_.dshift) {
      for (std::int64_t r = 0; r < count_; ++r) {
        float& to = task_.dshift.row(task_.begin + r)[head];
        Sums sums;
        for (int p = 0; p < Sums::vectors; ++p) {
          sums.part[p] = load(space_.key_shift_sums + r * Sums::count + p * lanes);
        }
        to = (task_.add_dshift ? to : 0.0f) - sum(sums);
      }
    }
    if constexpr (solves) Rule::end_head(task_, space_, head, count_);
  }

  void end() {
    if (task_.dk) {
      write_rows(space_.key_sums, space_.key_stride, factor(), from(task_.dk, task_.begin),
                 task_.add_dk, count_, key_width_);
    }
    if (task_.dv) {
      write_rows(solves ? space_.all_value_sums : space_.value_sums, space_.value_stride, 1.0f,
                 from(task_.dv, task_.begin), task_.add_dv, count_, value_width_);
    }
  }

  void panel_of(std::int64_t head, std::int64_t row) {
    const Panel rows{task_, space_, head, row, least(panel, shape_.queries - row)};
    const std::int64_t position = shape_.offset + row;
    // True if the panel sees no key after this range. Ranges are processed from the last to the
    // first, so this range is then the first one for the panel.
    const bool first = least(position + rows.count, shape_.keys) <= task_.end;
    const bool last = position + 1 - shape_.window >= task_.begin || task_.begin == 0;
    const InUse<Product> in_use;
    if constexpr (Formula::leftward) return panel_leftward(rows, first, last);
    this->start(rows);
    clear(space_.row_sums, panel);

    const bool solve = solves && first;
    const Sight own = sight(row, position, rows.count);
    if constexpr (solves) {
      if (solve) {
        if (!own.empty()) {
          score(own, position);
          turn_scores<true, false>(own, position);
        }
        solve_panel(rows);
      } else {
        const HeadRows<const float> saved{solved_row(rows), space_.value_stride};
        pack_left<Exact>(source(saved, 0, rows.count, value_width_), rows.count, value_width_,
                         space_.gradient_rows, space_.value_stride);
      }
    } else {
      this->read_gradients(rows);
    }
    this->turn_gradients(rows, last);
    this->start_query_sums(rows, first);

    if constexpr (solves) {
      if (solve && !own.empty()) {
        score_gradient_tiles(own, position);
        Rule::correct_own(rows);
        turn_scores<false, true>(own, position);
        mix(own, position, false);
      }
    }
    const std::int64_t stop = solve ? position : least(task_.end, position + rows.count);
    // On tile registers, the products with P and dS of a block are computed only after the scores
    // of the next block (Rows::mix explains why). `waiting` is the first key of the block whose
    // products are still to be computed, or -1.
    std::int64_t waiting = -1;
    for (std::int64_t j = task_.begin; j < stop; j += block) {
      const Sight there = sight(row, j, least(block, stop - j));
      if (there.empty()) continue;
      score(there, j);
      if (skips(there, j)) continue;
      score_gradient_tiles(there, j);
      if (waiting >= 0) mix(sight(row, waiting, block), waiting, true);
      turn_scores<true, true>(there, j);
      if constexpr (Product::tiled) {
        waiting = j;
      } else {
        mix(there, j, true);
      }
    }
    if (waiting >= 0) mix(sight(row, waiting, least(block, stop - waiting)), waiting, true);
    this->add_row_sums(rows, first);
    this->finish_query_sums(rows, last);
  }

 private:
  // True for ChaCAL and DeltaFormer, whose backward passes solve a triangular system for each
  // panel. Products on tile registers do not support this.
  static constexpr bool solves = !Product::tiled && requires { Rule::solves; };
  static constexpr bool bounds = requires { Rule::bounds; };

  /// Processes a panel of queries for a leftward rule (stick-breaking, TRA). If no key of the range
  /// can have a weight in any row of the panel, all keys are skipped.
  void panel_leftward(const Panel& rows, bool first, bool last) {
    if (!first) this->read_walked(rows);
    if constexpr (bounds) Rule::bound(rows);
    const bool none = !first && Rule::spent(space_);
    if (none && !last) return;
    clear(space_.row_sums, panel);
    if (!none) {
      this->start(rows);
      this->read_gradients(rows);
      this->turn_gradients(rows, last);
      if (first) Rule::start_walk(rows);
    } else if (task_.tau) {
      gather(rows.column(task_.tau), rows.row, rows.count, 1.0f, space_.tau);
    }
    this->start_query_sums(rows, first);
    const std::int64_t stop = least(task_.end, shape_.offset + rows.row + rows.count);
    for (std::int64_t end = stop; end > task_.begin && !Rule::spent(space_);) {
      const std::int64_t j = task_.begin + (end - 1 - task_.begin) / block * block;
      const Sight there = sight(rows.row, j, end - j);
      end = j;
      if (there.empty()) continue;
      score(there, j);
      score_gradient_tiles(there, j);
      if (task_.shift) {
        leftward_gradients<Product, Rule, true>(there, space_, j - task_.begin);
      } else {
        leftward_gradients<Product, Rule, false>(there, space_, j - task_.begin);
      }
      mix(there, j, true);
    }
    if (!last) this->write_walked(rows);
    this->add_row_sums(rows, first);
    this->finish_query_sums(rows, last);
    if (last) Rule::finish_walk(rows);
  }

  float* solved_row(const Panel& rows) const {
    return task_.solved_rows + (rows.head * shape_.queries + rows.row) * space_.value_stride;
  }
  Sight sight(std::int64_t row, std::int64_t j, std::int64_t keys) const {
    constexpr std::int64_t less = Formula::own_key ? 0 : 1;
    return {keys, least(panel, shape_.queries - row), shape_.offset + row - j - less,
            shape_.window - less};
  }
  float* key_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.key_stride;
  }
  float* value_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.value_stride;
  }

  /// True if all weights in the block that begins at key j are 0. Only entmax tests this.
  bool skips(const Sight& there, std::int64_t j) const {
    if constexpr (requires { Rule::skips_blocks; }) {
      const std::int64_t first = j - task_.begin;
      return task_.shift ? !Rule::template has_weight<Product, true>(there, space_, first)
                         : !Rule::template has_weight<Product, false>(there, space_, first);
    }
    return false;
  }

  void score(const Sight& there, std::int64_t j) {
    score_tiles<Product>(space_.keys_left + (j - task_.begin) * space_.left_stride,
                         space_.left_stride, space_.turned, space_.depth, there, space_.p);
  }
  template <bool make_p, bool make_ds>
  void turn_scores(const Sight& there, std::int64_t j) {
    clear_unseen<Product>(there, space_.ds_keys, space_.ds_rows, space_.p_rows);
    const std::int64_t first = j - task_.begin;
    if (task_.shift) {
      score_gradients<Product, Rule, make_p, make_ds, true>(there, space_, first);
    } else {
      score_gradients<Product, Rule, make_p, make_ds, false>(there, space_, first);
    }
  }
  void score_gradient_tiles(const Sight& there, std::int64_t j) {
    score_tiles<Product>(space_.values_left + (j - task_.begin) * space_.value_left_stride,
                         space_.value_left_stride, space_.turned_gradients, space_.value_depth,
                         there, space_.ds);
  }
  void mix(const Sight& there, std::int64_t j, bool values) {
    if (values) {
      mix_queries<Product>(space_.p_rows, space_.gradients, space_.value_stride, there,
                           value_row(space_.value_sums, j), value_width_);
    }
    mix_queries<Product>(space_.ds_rows, space_.queries, space_.key_stride, there,
                         key_row(space_.key_sums, j), key_width_);
    mix_keys<Product>(space_.ds_keys,
                      space_.keys_right + (j - task_.begin) / block * space_.key_words,
                      space_.key_stride, there, space_.query_sums, key_width_);
  }

  /// Solves the triangular system of ChaCAL or DeltaFormer for the rows of a panel, from the last
  /// to the first. The solution w replaces dy in the products. With b_j = sum_(i>j) P_ij w_i,
  ///   w_j = dy_j + gamma b_j for ChaCAL;  w_j = gain_j (dy_j + b_j) for DeltaFormer.
  /// Before the call, value_sums contains the terms of b_j for rows i of later panels. After the
  /// call, `gradients` contains w, and value_sums contains the sums from which the rule computes
  /// dv (chacal_gradients.h, deltaformer_gradients.h).
  void solve_panel(const Panel& rows) {
    constexpr std::int64_t depth = Product::depth, p_row = panel / depth;
    const std::int64_t stride = space_.value_stride, n = rows.count;
    float* const sums = value_row(space_.value_sums, shape_.offset + rows.row);
    float* const w = space_.gradient_rows;
    pack_left<Exact>(source(rows.of_values(task_.dy), 0, n, value_width_), n, value_width_, w,
                     stride);
    const int vectors = static_cast<int>((value_width_ + lanes - 1) / lanes);
    Rule::start_solve(rows);
    for (std::int64_t r = (n - 1) / tile_rows * tile_rows; r >= 0; r -= tile_rows) {
      const std::int64_t after = least(r + tile_rows, n);
      // Adds the terms of the panel's later rows, from row `after` on, to the sums of the rows
      // r .. after - 1. Each packed word of P contains `depth` rows. If there are later rows,
      // `after` is a multiple of tile_rows and thus of `depth`, so row `after` begins a word.
      if (after < n) {
        row_tile<Product>({space_.p_rows + r * p_row + after / depth, p_row, 1},
                          space_.gradients + after / depth * stride, stride,
                          words<Product>(n) - after / depth, sums + r * stride, stride, vectors,
                          true);
      }
      const SolveGradientTile tile{.p = space_.p + r * panel + r,
                                   .sums = sums + r * stride,
                                   .w = w + r * stride,
                                   .stride = stride,
                                   .first = r};
      if (after - r == tile_rows) {
        Rule::solve(rows, tile, tile_rows);
      } else {
        Rule::solve(rows, tile, static_cast<int>(after - r));
      }
      if (Product::rounds) {
        pack_right<Product>(Source<float>{{w + r * stride, stride}, after - r, value_width_},
                            after - r, value_width_, space_.gradients + r / depth * stride, stride);
      }
    }
    if (!task_.solved_rows) return;
    float* const saved = solved_row(rows);
    for (std::int64_t i = 0; i < n * stride; i += lanes) store(saved + i, load(w + i));
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
