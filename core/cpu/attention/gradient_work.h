#pragma once

#include "core/cpu/attention/gradient_space.h"
#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"
#include "core/cpu/attention/score_gradients.h"
#include "core/cpu/attention/tile_products.h"

/// Softmax attention and ChaCAL, backward, for a range of keys. The panels of queries pass over the
/// range from the last to the first. P is recomputed from log_sum, and each block takes five
/// products.
///
/// With D_i = dy_i . y_i, where dS includes the factor `scale` unless the sums of dS itself are
/// needed (the scale is then applied at the end):
///   dS_ij = P_ij (dy_i . v_j - D_i)
///   dv_j += P_ij dy_i;  dk_j += dS_ij tau_i q_i;  dq_i / tau_i += dS_ij k_j
/// Leftward rules take the blocks of a range from the last to the first. The numbers that they
/// carry for each row (walked_numbers) pass from range to range in `walked`.
///
/// ChaCAL uses W_i for dy_i and U_j = (1 - g) v_j + g y_j for v_j, and on the diagonal subtracts
/// the term g W_i . y_i that U adds too much. W is solved on the panel's own keys, from the last
/// row up:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j;  dv_j = (1 - g) A_j
///
/// DeltaFormer uses g_i W_i for dy_i, y_j for v_j and z for y in D_i, and has no diagonal:
///   B_j = sum_(i>j) P_ij g_i W_i;  W_j = dy_j + B_j = dv_j
namespace longhand::cpu::LONGHAND_ISA::attention {

template <class T, class Product, Rule rule>
class Work {
 public:
  Work(const AttentionGradients<T>& task, float* scratch)
      : task_(task),
        shape_(task.shape),
        count_(task.end - task.begin),
        key_width_(shape_.width),
        value_width_(shape_.value_width),
        space_(key_width_, value_width_, task.range, scratch) {}

  void begin() {
    const auto keys = source(task_.k, task_.begin, count_, key_width_);
    if constexpr (rule == Rule::tra) {
      *space_.longest_key = longest_row(task_.k, 0, task_.end, key_width_);
    }
    pack_left<Product>(keys, count_, key_width_, space_.keys_left, space_.left_stride);
    if (Product::depth > 1) {
      pack_key_blocks<Product>(keys, count_, key_width_, space_.keys_right);
    }
    clear(space_.key_sums, round_up(count_, tile_rows) * space_.key_stride);
    if (chain()) {
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
      if constexpr (rule == Rule::tra) {
        *space_.least_shift = least_entry(of_head(task_.shift, head), 0, task_.end);
      }
      clear(space_.key_shift_sums, round_up(count_, tile_rows) * lanes);
    }
    if (!chain()) return;
    const ChacalSource<T> chained{source(task_.v, task_.begin, count_, value_width_),
                                  source(head_of(task_.y, head), task_.begin, count_, value_width_),
                                  gamma(head)};
    pack_left<Product>(chained, count_, value_width_, space_.values_left, space_.value_left_stride);
    clear(space_.value_sums, round_up(count_, tile_rows) * space_.value_stride);
    if (!task_.gain) task_.dgamma[head] = 0;
  }

  void end_head(std::int64_t head) {
    if (task_.dshift) {
      for (std::int64_t r = 0; r < count_; ++r) {
        float& to = task_.dshift.row(task_.begin + r)[head];
        to = (task_.add_dshift ? to : 0.0f) - sum(load(space_.key_shift_sums + r * lanes));
      }
    }
    if (!chain()) return;
    if (task_.gain) return add_solved(head);
    const Vec own(1.0f - gamma(head));
    float* const all = space_.all_value_sums;
    for (std::int64_t i = 0; i < count_ * space_.value_stride; i += lanes) {
      store(all + i, fma(own, load(space_.value_sums + i), load(all + i)));
    }
    for (std::int64_t r = 0; r < count_; ++r) {
      task_.dgamma[head] -= dot(space_.value_sums + r * space_.value_stride,
                                task_.v.row(task_.begin + r), value_width_);
    }
  }

  /// dv_j = dy_j + B_j
  void add_solved(std::int64_t head) {
    const auto dy = source(head_of(task_.dy, head), task_.begin, count_, value_width_);
    for (std::int64_t r = 0; r < count_; ++r) {
      for (std::int64_t c = 0; c < value_width_; c += lanes) {
        const std::int64_t at = r * space_.value_stride + c;
        float* const all = space_.all_value_sums + at;
        store(all, load(all) + (load(space_.value_sums + at) + dy.at(r, c)));
      }
    }
  }

  void end() {
    if (task_.dk) {
      write_rows(space_.key_sums, space_.key_stride, factor(), from(task_.dk, task_.begin),
                 task_.add_dk, count_, key_width_);
    }
    if (task_.dv) {
      write_rows(chain() ? space_.all_value_sums : space_.value_sums, space_.value_stride, 1.0f,
                 from(task_.dv, task_.begin), task_.add_dv, count_, value_width_);
    }
  }

  void panel_of(std::int64_t head, std::int64_t row) {
    const std::int64_t n = least(panel, shape_.queries - row);
    const std::int64_t position = shape_.offset + row;
    const bool first = position + n - 1 < task_.end;  // no later range sees this panel
    const bool last = position + 1 - shape_.window >= task_.begin || task_.begin == 0;
    const InUse<Product> in_use;
    if constexpr (leftward(rule)) return panel_leftward(head, row, n, first, last);
    start(head, row, n);
    clear(space_.row_sums, panel);

    const bool solve = chain() && first;
    const Sight own = sight(row, position, n);
    if (solve) {
      if (!own.empty()) {
        score(own, position);
        turn_scores<true, false>(own, position);
      }
      if constexpr (!Product::tiled) solve_chain(head, row, n);
    } else if (chain()) {
      const HeadRows<const float> saved{chain_row(head, row), space_.value_stride};
      pack_left<Exact>(source(saved, 0, n, value_width_), n, value_width_, space_.gradient_rows,
                       space_.value_stride);
    } else {
      read_gradients(head, row, n);
    }
    turn_gradients(head, row, n, last);
    start_query_sums(head, row, n, first);

    if (solve && !own.empty()) {
      score_gradient_tiles(own, position);
      for (std::int64_t i = 0; i < n && !task_.gain; ++i) {
        space_.ds[i * panel + i] -= gamma(head) * space_.sums[i];
      }
      turn_scores<false, true>(own, position);
      mix(own, position, false);
    }
    const std::int64_t stop = solve ? position : least(task_.end, position + n);
    std::int64_t waiting = -1;  // the block whose products are still to come: see Rows::mix
    for (std::int64_t j = task_.begin; j < stop; j += block) {
      const Sight there = sight(row, j, least(block, stop - j));
      if (there.empty()) continue;
      score(there, j);
      if (rule == Rule::entmax && !weighed(there, j)) continue;
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
    add_row_sums(head, row, n, first);
    finish_query_sums(head, row, n, last);
  }

 private:
  /// The same for leftward rules. Rows with nothing left are skipped.
  void panel_leftward(std::int64_t head, std::int64_t row, std::int64_t n, bool first, bool last) {
    if (!first) read_walked(head, row, n);
    if constexpr (rule == Rule::tra) bound_scores(head, row, n);
    const bool none = !first && spent();
    if (none && !last) return;
    clear(space_.row_sums, panel);
    if (!none) {
      start(head, row, n);
      read_gradients(head, row, n);
      turn_gradients(head, row, n, last);
      if (first) start_walk(n);
    } else if (task_.tau) {
      gather({task_.tau.at + head, task_.tau.stride}, row, n, 1.0f, space_.tau);
    }
    start_query_sums(head, row, n, first);
    const std::int64_t stop = least(task_.end, shape_.offset + row + n);
    for (std::int64_t end = stop; end > task_.begin && !spent();) {
      const std::int64_t j = task_.begin + (end - 1 - task_.begin) / block * block;
      const Sight there = sight(row, j, end - j);
      end = j;
      if (there.empty()) continue;
      score(there, j);
      score_gradient_tiles(there, j);
      if (task_.shift) {
        leftward_gradients<Product, rule, true>(there, space_, j - task_.begin);
      } else {
        leftward_gradients<Product, rule, false>(there, space_, j - task_.begin);
      }
      mix(there, j, true);
    }
    if (!last) write_walked(head, row, n);
    add_row_sums(head, row, n, first);
    finish_query_sums(head, row, n, last);
    if (!last) return;
    for (std::int64_t t = 0; t < n && task_.dpull; ++t) {
      float& to = task_.dpull.row(row + t)[head];
      to = (task_.add_dpull ? to : 0.0f) + space_.walked[1][t];
    }
  }

  void start_walk(std::int64_t n) {
    for (std::int64_t t = 0; t < panel; ++t) {
      space_.walked[0][t] = rule == Rule::stick && t < n ? 1.0f : 0.0f;
      space_.walked[1][t] = rule == Rule::stick ? space_.sums[t] : 0.0f;
    }
  }
  void add_row_sums(std::int64_t head, std::int64_t row, std::int64_t n, bool first) {
    for (std::int64_t t = 0; t < n && task_.row_sums; ++t) {
      float& to = task_.row_sums.row(row + t)[head];
      to = (first ? 0.0f : to) + space_.row_sums[t];
    }
  }
  float* walked(std::int64_t head, std::int64_t row) const {
    return task_.walked + walked_numbers * (head * shape_.queries + row);
  }
  void read_walked(std::int64_t head, std::int64_t row, std::int64_t n) {
    const float* const from = walked(head, row);
    for (std::int64_t t = 0; t < panel; ++t) {
      for (int i = 0; i < walked_numbers; ++i) {
        space_.walked[i][t] = t < n ? from[walked_numbers * t + i] : 0.0f;
      }
    }
  }
  void write_walked(std::int64_t head, std::int64_t row, std::int64_t n) {
    float* const to = walked(head, row);
    for (std::int64_t t = 0; t < n; ++t) {
      for (int i = 0; i < walked_numbers; ++i) to[walked_numbers * t + i] = space_.walked[i][t];
    }
  }
  bool spent() const {
    for (int t = 0; t < panel; t += lanes) {
      const Vec known = load(space_.walked[0] + t);
      if constexpr (rule == Rule::stick) {
        if (any(known >= Vec(rules::Stick::spent))) return false;
      } else {
        const Vec most_far =
            fma(load(space_.pulls + t), known + Vec(1.0f), load(space_.bounds + t));
        if (any(~(most_far < Vec(0.0f)))) return false;
      }
    }
    return true;
  }
  /// Sets, for each row, an upper bound of TRA's weights of keys further back.
  void bound_scores(std::int64_t head, std::int64_t row, std::int64_t n) {
    const float times = task_.scale * log2_of_e;
    for (std::int64_t t = 0; t < panel; ++t) {
      space_.bounds[t] = -__builtin_inff();
      space_.pulls[t] = 0;
      if (t >= n) continue;
      const float tau = task_.tau ? task_.tau.row(row + t)[head] : 1.0f;
      const float query = longest_row(query_head(head), row + t, row + t + 1, key_width_);
      float highest = query * *space_.longest_key * times * (tau < 0 ? -tau : tau);
      if (task_.shift) {
        const float own = task_.shift.row(shape_.offset + row + t)[head];
        highest += log2_of_e * (own - *space_.least_shift);
      }
      space_.pulls[t] = log2_of_e * task_.pull.row(row + t)[head];
      space_.bounds[t] = rules::Tra::bound(highest, space_.pulls[t], shape_.keys) -
                         log2_of_e * task_.log_sum.row(row + t)[head];
    }
  }

  template <class U>
  static HeadRows<U> from(HeadRows<U> x, std::int64_t row) {
    return {x.row(row), x.stride};
  }
  template <class U>
  static Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                               std::int64_t width) {
    return {{x.row(row), x.stride}, rows, width};
  }
  template <class U>
  HeadRows<U> head_of(HeadRows<U> x, std::int64_t head) const {
    return {x.at + head * value_width_, x.stride};
  }
  static HeadRows<const float> of_head(HeadRows<const float> x, std::int64_t head) {
    return x ? HeadRows<const float>{x.at + head, x.stride} : x;
  }
  HeadRows<const T> query_head(std::int64_t head) const {
    return {task_.q.at + head * key_width_, task_.q.stride};
  }
  /// ChaCAL solves rows between products of vectors.
  bool chain() const { return !Product::tiled && (task_.gamma != nullptr || task_.gain); }
  float gamma(std::int64_t head) const {
    return task_.gain ? 1.0f : task_.gamma[head * task_.gamma_step];
  }
  /// True if `scale` multiplies the sums at the end rather than dS.
  bool late() const { return task_.shift || rule == Rule::tra; }
  float early() const { return late() ? 1.0f : task_.scale; }
  float factor() const { return late() ? task_.scale : 1.0f; }
  float* chain_row(std::int64_t head, std::int64_t row) const {
    return task_.chain_rows + (head * shape_.queries + row) * space_.value_stride;
  }
  float* saved_query_sums(std::int64_t head, std::int64_t row) const {
    return task_.dq_sums + (head * round_up(shape_.queries, panel) + row) * space_.key_stride;
  }
  Sight sight(std::int64_t row, std::int64_t j, std::int64_t keys) const {
    const std::int64_t less = strict(rule) || task_.gain ? 1 : 0;
    return {keys, least(panel, shape_.queries - row), shape_.offset + row - j - less,
            shape_.window - less};
  }
  float* key_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.key_stride;
  }
  float* value_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.value_stride;
  }

  void start(std::int64_t head, std::int64_t row, std::int64_t n) {
    gather(of_head(task_.tau, head), row, n, 1.0f, space_.tau);
    gather(of_head(task_.shift, head), shape_.offset + row, n, 0.0f, space_.shifts);
    const Vec scale(task_.scale * unit_of(rule));
    for (std::int64_t t = 0; t < panel; t += lanes) {
      store(space_.times + t, Vec(early()));
      store(space_.scale + t, scale * load(space_.tau + t));
    }
    // A query that sees only one key has P = 1 whatever its score, so its gradient must be exactly
    // 0. With a sink, the sink has its share even there.
    if (!task_.sink && shape_.offset + row == 0) space_.times[task_.gain ? 1 : 0] = 0;
    if (!task_.sink && shape_.window == 1) clear(space_.times, panel);

    const auto q = source(query_head(head), row, n, key_width_);
    // Reads along the rows first, which is fastest for rows that are far apart.
    if (task_.tau) {
      pack_right<Product>(ScaledSource<T>{q, space_.tau}, n, key_width_, space_.queries,
                          space_.key_stride);
    } else {
      pack_right<Product>(q, n, key_width_, space_.queries, space_.key_stride);
    }
    pack_transposed<Product>(q, n, key_width_,
                             scaled_late<Product, FormulaOf<rule>> ? nullptr : space_.scale,
                             space_.turned);
    if constexpr (rule == Rule::stick) return;
    if constexpr (rule == Rule::tra) {
      gather(of_head(task_.log_sum, head), row, n, 0.0f, space_.log_sums);
    }
    for (std::int64_t t = 0; t < panel; ++t) {
      const float times = rule == Rule::entmax ? 1.0f : log2_of_e;
      space_.logs[t] = t < n ? times * task_.log_sum.row(row + t)[head] : 1e30f;
    }
  }

  /// True if entmax gives any key of this block a weight.
  bool weighed(const Sight& there, std::int64_t j) const {
    const std::int64_t first = j - task_.begin;
    return task_.shift ? weighed_of<true>(there, first) : weighed_of<false>(there, first);
  }
  template <bool shifted>
  bool weighed_of(const Sight& there, std::int64_t first) const {
    for (std::int64_t t = 0; t < there.queries; t += lanes) {
      const std::int64_t unit = t / Sight::unit * Sight::unit;
      const Range rows = there.keys_of(unit, Sight::unit);
      const Vec scale = load(space_.scale + t), threshold = load(space_.logs + t);
      const Vec shift = load(space_.shifts + t);
      for (int r = rows.begin; r < rows.end; ++r) {
        const Vec x = score_of<Product, FormulaOf<rule>, shifted>(
            load(space_.p + r * panel + t), scale, shift, space_.key_shifts + first + r);
        if (any((x > threshold) & there.sees(r, t))) return true;
      }
    }
    return false;
  }

  /// Computes D of entmax with the products that make dP, in the same order. Where one key has all
  /// of a row's weight, its value is the mean, and dP - D is then exactly 0.
  void dots_like_products(HeadRows<const T> mean, std::int64_t n) {
    for (int t = 0; t < panel; t += lanes) store(space_.pulls + t, Vec(1.0f));
    pack_transposed<Product>(source(mean, 0, n, value_width_), n, value_width_, space_.pulls,
                             space_.turned_means);
    for (std::int64_t t = 0; t < n; t += lanes) {
      Vec d(0.0f);
      for (std::int64_t k = 0; k < space_.value_depth; k += depth_piece) {
        Vec piece(0.0f);
        for (std::int64_t c = k; c < least(k + depth_piece, space_.value_depth); ++c) {
          piece = Product::fold(load(space_.turned_means + c * panel + t),
                                load(space_.turned_gradients + c * panel + t), piece);
        }
        d = k > 0 ? d + piece : piece;
      }
      store(space_.sums + t, d);
    }
  }

  /// Reads dy. Where products round it to bf16, D must too: rows of dS then sum to what they
  /// should.
  void read_gradients(std::int64_t head, std::int64_t row, std::int64_t n) {
    const auto dy = source(head_of(task_.dy, head), row, n, value_width_);
    if constexpr (Product::rounds && Product::parts == 1) {
      pack_left<Exact>(RoundedSource<T>{dy}, n, value_width_, space_.gradient_rows,
                       space_.value_stride);
    } else {
      pack_left<Exact>(dy, n, value_width_, space_.gradient_rows, space_.value_stride);
    }
  }

  /// Computes D, and packs dy or W. If packing does not round, both get dS's factor.
  void turn_gradients(std::int64_t head, std::int64_t row, std::int64_t n, bool last) {
    const auto y = from(head_of(task_.gain ? task_.read : task_.y, head), row);
    for (std::int64_t t = 0; t < panel; ++t) {
      const float* const dy = space_.gradient_rows + t * space_.value_stride;
      float d = t < n ? dot(dy, y.row(t), value_width_) : 0.0f;
      if (rule == Rule::stick && task_.residue && t < n) {
        d += dot(dy, head_of(task_.residue, head).row(row + t), value_width_);
      }
      space_.sums[t] = Product::rounds ? d : space_.times[t] * d;
      if (task_.dots && last && t < n) task_.dots.row(row + t)[head] = d;
    }
    const HeadRows<const float> rows{space_.gradient_rows, space_.value_stride};
    const auto gradients = source(rows, 0, n, value_width_);
    pack_transposed<Product>(gradients, n, value_width_, space_.times, space_.turned_gradients);
    if constexpr (rule == Rule::entmax) dots_like_products(y, n);
    if (Product::rounds) {
      pack_right<Product>(gradients, n, value_width_, space_.gradients, space_.value_stride);
    }
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
      score_gradients<Product, rule, make_p, make_ds, !leftward(rule)>(there, space_, first);
    } else {
      score_gradients<Product, rule, make_p, make_ds, false>(there, space_, first);
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

  /// Solves the panel: from B of the later panels in value_sums, writes W to the gradients and A to
  /// value_sums.
  void solve_chain(std::int64_t head, std::int64_t row, std::int64_t n) {
    constexpr std::int64_t depth = Product::depth, p_row = panel / depth;
    const std::int64_t stride = space_.value_stride;
    float* const sums = value_row(space_.value_sums, shape_.offset + row);
    float* const w = space_.gradient_rows;
    const auto y = from(head_of(task_.y, head), row);
    pack_left<Exact>(source(head_of(task_.dy, head), row, n, value_width_), n, value_width_, w,
                     stride);
    const int vectors = static_cast<int>((value_width_ + lanes - 1) / lanes);
    const float g = gamma(head);
    if (task_.gain) start_gained(head, row, n);
    for (std::int64_t r = (n - 1) / tile_rows * tile_rows; r >= 0; r -= tile_rows) {
      const std::int64_t after = least(r + tile_rows, n);
      if (after < n) {  // then a multiple of tile_rows
        row_tile<Product>({space_.p_rows + r * p_row + after / depth, p_row, 1},
                          space_.gradients + after / depth * stride, stride,
                          words<Product>(n) - after / depth, sums + r * stride, stride, vectors,
                          true);
      }
      if (task_.gain) {
        solve_gained_tile(static_cast<int>(after - r), head, row, r, w, sums);
      } else if (after - r == tile_rows) {
        solve_tile(tile_rows, r, g, w, sums);
      } else {
        solve_tile(static_cast<int>(after - r), r, g, w, sums);
      }
      for (std::int64_t j = r; j < after && !task_.gain; ++j) {
        task_.dgamma[head] += dot(sums + j * stride, y.row(j), value_width_);
        const Vec p(space_.p[j * panel + j]);
        for (std::int64_t c = 0; c < value_width_; c += lanes) {
          float* const a = sums + j * stride + c;
          store(a, fma(p, load(w + j * stride + c), load(a)));
        }
      }
      if (Product::rounds) {
        pack_right<Product>(Source<float>{{w + r * stride, stride}, after - r, value_width_},
                            after - r, value_width_, space_.gradients + r / depth * stride, stride);
      }
    }
    if (task_.chain_rows) {
      float* const saved = chain_row(head, row);
      for (std::int64_t i = 0; i < n * stride; i += lanes) {
        store(saved + i, load(w + i));
      }
    }
  }

  /// Computes B and W of the rows [r, r + count) from dy and the sums over later rows. It is
  /// inlined, so that the tile is unrolled and its W stay in registers: each row waits for the one
  /// after.
  [[gnu::always_inline]] void solve_tile(int count, std::int64_t r, float g, float* w,
                                         float* sums) const {
    const std::int64_t stride = space_.value_stride;
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      Vec solved[tile_rows];
#pragma GCC unroll 8
      for (int j = count - 1; j >= 0; --j) {
        const float* const p = space_.p + (r + j) * panel + r;
        float* const b_at = sums + (r + j) * stride + c;
        float* const w_at = w + (r + j) * stride + c;
        Vec b = load(b_at);
#pragma GCC unroll 8
        for (int i = count - 1; i > j; --i) b = fma(Vec(p[i]), solved[i], b);
        solved[j] = fma(Vec(g), b, load(w_at));
        store(w_at, solved[j]);
        store(b_at, b);
      }
    }
  }

  /// Starts dgain_j = W_j . z_j with the part that comes from dy_j, in gradient_rows.
  void start_gained(std::int64_t head, std::int64_t row, std::int64_t n) {
    if (!task_.dgain) return;
    const auto z = from(head_of(task_.read, head), row);
    for (std::int64_t j = 0; j < n; ++j) {
      float& to = task_.dgain.row(row + j)[head];
      to = (task_.add_dgain ? to : 0.0f) +
           dot(space_.gradient_rows + j * space_.value_stride, z.row(j), value_width_);
    }
  }

  /// solve_tile with gains: w becomes g_j W_j, and dgain gets the part that comes from B_j.
  void solve_gained_tile(int count, std::int64_t head, std::int64_t row, std::int64_t r, float* w,
                         float* sums) const {
    const std::int64_t stride = space_.value_stride;
    float gains[tile_rows];
    for (int j = 0; j < count; ++j) gains[j] = task_.gain.row(row + r + j)[head];
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      Vec solved[tile_rows];
      for (int j = count - 1; j >= 0; --j) {
        const float* const p = space_.p + (r + j) * panel + r;
        float* const b_at = sums + (r + j) * stride + c;
        float* const w_at = w + (r + j) * stride + c;
        Vec b = load(b_at);
        for (int i = count - 1; i > j; --i) b = fma(Vec(p[i]), solved[i], b);
        solved[j] = Vec(gains[j]) * (load(w_at) + b);
        store(w_at, solved[j]);
        store(b_at, b);
      }
    }
    if (!task_.dgain) return;
    const auto z = from(head_of(task_.read, head), row + r);
    for (int j = 0; j < count; ++j) {
      task_.dgain.row(row + r + j)[head] += dot(sums + (r + j) * stride, z.row(j), value_width_);
    }
  }

  void start_query_sums(std::int64_t head, std::int64_t row, std::int64_t n, bool first) {
    const std::int64_t floats = query_sums<Product>(n, key_width_);
    if (first) {
      clear_query_sums<Product>(space_.query_sums, n, key_width_);
    } else {
      const float* const saved = saved_query_sums(head, row);
      for (std::int64_t i = 0; i < floats; i += lanes) {
        store(space_.query_sums + i, load(saved + i));
      }
    }
  }

  void finish_query_sums(std::int64_t head, std::int64_t row, std::int64_t n, bool last) {
    if (!last) {
      float* const saved = saved_query_sums(head, row);
      for (std::int64_t i = 0; i < query_sums<Product>(n, key_width_); i += lanes) {
        store(saved + i, load(space_.query_sums + i));
      }
      return;
    }
    const HeadRows<const float> sums =
        query_rows<Product>(space_.query_sums, n, key_width_, space_.query_rows);
    if (task_.dtau) {
      for (std::int64_t t = 0; t < n; ++t) {
        float& to = task_.dtau.row(row + t)[head];
        const float product = dot(query_head(head).row(row + t), sums.row(t), key_width_);
        to = (task_.add_dtau ? to : 0.0f) + factor() * product;
      }
    }
    if (!task_.dq) return;
    const HeadRows<T> dq{task_.dq.row(row) + head * key_width_, task_.dq.stride};
    if (!task_.tau) {
      return write_rows(sums.at, sums.stride, factor(), dq, task_.add_dq, n, key_width_);
    }
    for (std::int64_t t = 0; t < n; ++t) {
      write_rows(sums.row(t), sums.stride, factor() * space_.tau[t], from(dq, t), task_.add_dq, 1,
                 key_width_);
    }
  }

  const AttentionGradients<T>& task_;
  const SegmentShape& shape_;
  std::int64_t count_, key_width_, value_width_;
  GradientSpace<Product> space_;
};

/// Number of keys for which queries are packed once. With a quarter of this, heads 768 wide lose a
/// tenth on vectors; narrow heads lose nothing with all of it. With tiles, packing weighs more: all
/// widths gain a tenth from twice as many.
template <class Product>
inline constexpr std::int64_t keys_of_range = (Product::tiled ? 8 : 4) * attention_panel;

template <class T, class Product, Rule rule>
inline constexpr AttentionGradientKernels<T> gradient_kernels{
    keys_of_range<Product>,
    [](std::int64_t width, std::int64_t value_width, std::int64_t range) {
      return GradientSpace<Product>(width, value_width, range, nullptr).floats;
    },
    packed_width,
    [](const AttentionGradients<T>& task, float* at) { Work<T, Product, rule>(task, at).begin(); },
    [](const AttentionGradients<T>& task, std::int64_t head, float* at) {
      Work<T, Product, rule>(task, at).begin_head(head);
    },
    [](const AttentionGradients<T>& task, std::int64_t head, std::int64_t row, float* at) {
      Work<T, Product, rule>(task, at).panel_of(head, row);
    },
    [](const AttentionGradients<T>& task, std::int64_t head, float* at) {
      Work<T, Product, rule>(task, at).end_head(head);
    },
    [](const AttentionGradients<T>& task, float* at) { Work<T, Product, rule>(task, at).end(); }};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
