#pragma once

#include "core/cpu/attention/gradient_space.h"
#include "core/cpu/attention/tile_products.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The part of the backward pass that reads and writes rows of queries. For each panel of queries,
/// it first reads q, dy and tau (a factor of each query's scores) and computes D_i = dy_i . y_i.
/// After a range of keys has been processed for the panel, it writes dq and dtau. If further ranges
/// of keys follow, it saves the partial sums for dq instead.
template <class T, class Product, class Rule>
class GradientRows {
 public:
  using Panel = GradientPanel<T, Product>;
  using Formula = typename Rule::Formula;

  GradientRows(const AttentionGradients<T>& task, float* scratch)
      : task_(task),
        shape_(task.shape),
        count_(task.end - task.begin),
        key_width_(shape_.width),
        value_width_(shape_.value_width),
        space_(key_width_, value_width_, task.range, scratch) {}

 protected:
  template <class U>
  static HeadRows<U> from(HeadRows<U> x, std::int64_t row) {
    return {x.row(row), x.stride};
  }
  /// True if `scale`, the factor of all scores, multiplies the finished sums for dq and dk. False
  /// if it multiplies dS.
  bool late() const {
    return task_.shift || requires { Rule::scale_late; };
  }
  float early() const { return late() ? 1.0f : task_.scale; }
  float factor() const { return late() ? task_.scale : 1.0f; }

  void start(const Panel& rows) {
    const std::int64_t row = rows.row, n = rows.count;
    gather(rows.column(task_.tau), row, n, 1.0f, space_.tau);
    gather(rows.column(task_.shift), shape_.offset + row, n, 0.0f, space_.shifts);
    const Vec scale(task_.scale * Formula::unit);
    for (std::int64_t t = 0; t < panel; t += lanes) {
      store(space_.times + t, Vec(early()));
      store(space_.scale + t, scale * load(space_.tau + t));
    }
    // If the weights of a row sum to 1 and its query sees only one key, P = 1 for any score of this
    // key. The gradient dS of the score must then be exactly 0, so the factor `times` of dS is set
    // to 0. With a sink (an extra score without a value), P is less than 1.
    if (Rule::normalized && !task_.sink) {
      if (shape_.offset + row == 0) space_.times[Rule::lone_query] = 0;
      if (shape_.window == 1 || shape_.keys == 1) clear(space_.times, panel);
    }

    const auto q = source(rows.q(), row, n, key_width_);
    // pack_right reads q row by row, and pack_transposed reads it column by column. pack_right runs
    // first: if the rows of q are far apart in memory, this order loads them into the caches
    // faster.
    if (task_.tau) {
      pack_right<Product>(ScaledSource<T>{q, space_.tau}, n, key_width_, space_.queries,
                          space_.key_stride);
    } else {
      pack_right<Product>(q, n, key_width_, space_.queries, space_.key_stride);
    }
    pack_transposed<Product>(q, n, key_width_,
                             scaled_late<Product, Formula> ? nullptr : space_.scale, space_.turned);
    Rule::start(rows);
  }

  /// Reads dy. If the matrix products round dy to bf16, dy is rounded here as well, so that
  /// D_i = dy_i . y_i is computed from the same numbers as dP. Otherwise dP and D in dS = P (dP -
  /// D) would not match, and the row sums of dS would be wrong.
  void read_gradients(const Panel& rows) {
    const auto dy = source(rows.of_values(task_.dy), 0, rows.count, value_width_);
    if constexpr (Product::rounds && Product::parts == 1) {
      pack_left<Exact>(RoundedSource<T>{dy}, rows.count, value_width_, space_.gradient_rows,
                       space_.value_stride);
    } else {
      pack_left<Exact>(dy, rows.count, value_width_, space_.gradient_rows, space_.value_stride);
    }
  }

  /// Computes D_i = dy_i . y_i for the rows of a panel and packs dy. ChaCAL and DeltaFormer use W,
  /// the solution of their triangular system (chacal_gradients.h), instead of dy. If the products
  /// do not round to bf16, D and the transposed dy are multiplied by `times`, the factor of dS.
  /// Then dP, D and dS = P (dP - D) include this factor.
  void turn_gradients(const Panel& rows, bool last) {
    const std::int64_t n = rows.count;
    const HeadRows<const T> means = Rule::mean(task_);
    for (std::int64_t t = 0; t < panel; ++t) {
      float d = 0;
      if (means && t < n) d = dot(rows.gradient_row(t), rows.of_values(means).row(t), value_width_);
      if (task_.residue && t < n) {
        d += dot(rows.gradient_row(t), rows.of_values(task_.residue).row(t), value_width_);
      }
      space_.sums[t] = Product::rounds ? d : space_.times[t] * d;
      if (task_.dots && last && t < n) task_.dots.row(rows.row + t)[rows.head] = d;
    }
    const HeadRows<const float> gradient_rows{space_.gradient_rows, space_.value_stride};
    const auto gradients = source(gradient_rows, 0, n, value_width_);
    pack_transposed<Product>(gradients, n, value_width_, space_.times, space_.turned_gradients);
    if constexpr (requires { Rule::skips_blocks; }) Rule::dots_like_products(rows);
    if (Product::rounds) {
      pack_right<Product>(gradients, n, value_width_, space_.gradients, space_.value_stride);
    }
  }

  void start_query_sums(const Panel& rows, bool first) {
    if (first) return clear_query_sums<Product>(space_.query_sums, rows.count, key_width_);
    const float* const saved = saved_query_sums(rows);
    for (std::int64_t i = 0; i < query_sums<Product>(rows.count, key_width_); i += lanes) {
      store(space_.query_sums + i, load(saved + i));
    }
  }

  void finish_query_sums(const Panel& rows, bool last) {
    const std::int64_t row = rows.row, n = rows.count;
    if (!last) {
      float* const saved = saved_query_sums(rows);
      for (std::int64_t i = 0; i < query_sums<Product>(n, key_width_); i += lanes) {
        store(saved + i, load(space_.query_sums + i));
      }
      return;
    }
    const HeadRows<const float> sums =
        query_rows<Product>(space_.query_sums, n, key_width_, space_.query_rows);
    if (task_.dtau) {
      for (std::int64_t t = 0; t < n; ++t) {
        float& to = task_.dtau.row(row + t)[rows.head];
        const float product = dot(rows.q().row(row + t), sums.row(t), key_width_);
        to = (task_.add_dtau ? to : 0.0f) + factor() * product;
      }
    }
    if (!task_.dq) return;
    const HeadRows<T> dq{task_.dq.row(row) + rows.head * key_width_, task_.dq.stride};
    if (!task_.tau) {
      return write_rows(sums.at, sums.stride, factor(), dq, task_.add_dq, n, key_width_);
    }
    for (std::int64_t t = 0; t < n; ++t) {
      write_rows(sums.row(t), sums.stride, factor() * space_.tau[t], from(dq, t), task_.add_dq, 1,
                 key_width_);
    }
  }

  void add_row_sums(const Panel& rows, bool first) {
    for (std::int64_t t = 0; t < rows.count && task_.row_sums; ++t) {
      float& to = task_.row_sums.row(rows.row + t)[rows.head];
      to = (first ? 0.0f : to) + space_.row_sums[t];
    }
  }
  float* walked(const Panel& rows) const {
    return task_.walked + walked_numbers * (rows.head * shape_.queries + rows.row);
  }
  void read_walked(const Panel& rows) {
    const float* const from = walked(rows);
    for (std::int64_t t = 0; t < panel; ++t) {
      for (int i = 0; i < walked_numbers; ++i) {
        space_.walked[i][t] = t < rows.count ? from[walked_numbers * t + i] : 0.0f;
      }
    }
  }
  void write_walked(const Panel& rows) {
    float* const to = walked(rows);
    for (std::int64_t t = 0; t < rows.count; ++t) {
      for (int i = 0; i < walked_numbers; ++i) to[walked_numbers * t + i] = space_.walked[i][t];
    }
  }

  float* saved_query_sums(const Panel& rows) const {
    return task_.dq_sums +
           (rows.head * round_up(shape_.queries, panel) + rows.row) * space_.key_stride;
  }

  const AttentionGradients<T>& task_;
  const SegmentShape& shape_;
  std::int64_t count_, key_width_, value_width_;
  GradientSpace<Product> space_;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
