#pragma once

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Scratch memory of the backward pass, for a range of consecutive keys and one panel of queries.
template <class Product>
struct GradientSpace {
  // The keys and values of the range, packed as operands of matrix products. keys_left and
  // values_left: left operands of the products that compute the scores and dP. These products sum
  // over the columns of a head. keys_right: the keys in blocks of 64, an operand of the product
  // that computes dq. This product sums over keys. ChaCAL and DeltaFormer multiply P not
  // by v but by other vectors (the solved values of forward_rows.h). values_left contains these
  // vectors.
  float *keys_left, *keys_right, *values_left;
  // key_sums, value_sums: dk and dv of the range, summed over the queries so far. For ChaCAL and
  // DeltaFormer, value_sums belongs to one query head, and all_value_sums is dv summed over all
  // query heads.
  float *key_sums, *value_sums;
  float* all_value_sums;
  // Buffers for one panel of queries. queries, gradients: q and dy, packed for products that sum
  // over queries. turned, turned_gradients: q and dy, transposed and packed. gradient_rows: dy in
  // f32. query_sums: dq, summed over the keys so far. ChaCAL and DeltaFormer replace dy by W, the
  // solution of their triangular system.
  float *queries, *gradients, *turned, *turned_gradients, *gradient_rows, *query_sums;
  // A transposed copy of query_sums, with one row per query. Only products on tile registers use
  // it.
  float* query_rows;
  // Two blocks of 64 by 64 f32 numbers, [key][query]. p contains first the scores and later P. ds
  // contains first dP and later dS. If P or dS is stored only as packed words, it does not replace
  // the scores or dP.
  float *p, *ds;
  // P (p_rows) and dS (ds_rows, ds_keys) of a block, packed as words of `depth` numbers
  // (product.h). p_rows and ds_rows have one row of panel / depth words per key. ds_keys has
  // panel / depth rows with one word per query.
  float *p_rows, *ds_rows, *ds_keys;
  // One number per query. scale: factor of its scores. times: factor of its dS. logs: the number
  // subtracted from its scores, for softmax the base-2 log of the denominator. row_sums: sum of its
  // dS over the keys. sums: D_i = dy_i . y_i.
  float *scale, *times, *logs, *sums, *row_sums;
  float *tau, *shifts;  // for each query: the factor tau and the shift c of its scores (scores.h)
  float* turned_means;  // entmax only: the saved root means, transposed and packed
  // TRA only. bounds: one number per query. If it is low enough, the weights of all earlier keys
  // are 0 and these keys are skipped (core/rules/tra.h). `bounds` is computed from longest_key and
  // least_shift. longest_key: the largest norm of a key vector. least_shift: the smallest number
  // that Scores::decay contains for a key.
  float *bounds, *longest_key, *least_shift;
  // One number per query. pulls: for TRA, the query's bias count_bias times log2(e).
  // log_sums: for TRA, the logarithm of the softmax denominator. walked: for stick-breaking and
  // TRA, the numbers that are updated at every key (see walked_numbers).
  float *pulls, *log_sums, *walked[walked_numbers];
  // key_shifts: the shift (Scores::decay) of each key of the range. key_shift_sums: for each key, a
  // SIMD vector of partial sums of dS over queries, from which the gradient of the shift is
  // computed.
  float *key_shifts, *key_shift_sums;
  std::int64_t depth, value_depth;  // number of packed words per row of k, and per row of v
  std::int64_t left_stride, value_left_stride, key_stride, value_stride, key_words, floats;

  GradientSpace(std::int64_t width, std::int64_t value_width, std::int64_t range, float* at) {
    depth = words<Product>(width);
    value_depth = words<Product>(value_width);
    constexpr int d = Product::depth, parts = Product::parts;
    left_stride = packed_width(parts * depth);
    value_left_stride = packed_width(parts * value_depth);
    key_words = key_block<Product>(width);
    key_stride = packed_width(width);
    value_stride = packed_width(value_width);
    const std::int64_t rows = round_up(range, panel);
    ScratchParts take{at};
    keys_left = take(rows * left_stride);
    keys_right = d == 1 ? keys_left : take(rows / block * key_words);
    values_left = take(rows * value_left_stride);
    key_sums = take(rows * key_stride);
    value_sums = take(rows * value_stride);
    all_value_sums = Product::tiled ? nullptr : take(rows * value_stride);
    queries = take(parts * panel / d * key_stride);
    gradient_rows = take(panel * value_stride);
    gradients = Product::rounds ? take(parts * panel / d * value_stride) : gradient_rows;
    turned = take(parts * panel * depth);
    turned_gradients = take(parts * panel * value_depth);
    turned_means = Product::tiled ? nullptr : take(panel * value_depth);
    query_sums = take(panel * key_stride);
    query_rows = Product::tiled ? take(panel * key_stride) : nullptr;
    p = take(panel * panel);
    ds = take(panel * panel);
    p_rows = Product::rounds ? take(parts * panel * panel / d) : p;
    ds_rows = d == 1 ? ds : take(parts * panel * panel / d);
    ds_keys = d == 1 ? ds : take(parts * panel * panel / d);
    scale = take(panel);
    times = take(panel);
    logs = take(panel);
    sums = take(panel);
    row_sums = take(panel);
    tau = take(panel);
    shifts = take(panel);
    pulls = take(panel);
    bounds = take(panel);
    longest_key = take(1);
    least_shift = take(1);
    log_sums = take(panel);
    for (float*& number : walked) number = take(panel);
    key_shifts = take(rows);
    key_shift_sums = take(rows * Sums::count);
    floats = take.floats;
  }
};

template <class U>
Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                      std::int64_t width) {
  return {{x.row(row), x.stride}, rows, width};
}

/// A panel of consecutive queries of one head. `head` is the index of the head among the query
/// heads that share its key head. `row` is the panel's first query, and `count` is its number of
/// queries.
template <class T, class Product>
struct GradientPanel {
  const AttentionGradients<T>& task;
  const GradientSpace<Product>& space;
  std::int64_t head, row, count;

  HeadRows<const T> q() const { return {task.q.at + head * task.shape.width, task.q.stride}; }
  /// The panel's rows of x (for example y), in the columns of this head. Each head of x has
  /// value_width columns.
  HeadRows<const T> of_values(HeadRows<const T> x) const {
    return {x.row(row) + head * task.shape.value_width, x.stride};
  }
  /// Returns this head's column of x, a tensor [rows, heads]. Null if x is null.
  HeadRows<const float> column(HeadRows<const float> x) const {
    return x ? HeadRows<const float>{x.at + head, x.stride} : x;
  }
  float* gradient_row(std::int64_t t) const { return space.gradient_rows + t * space.value_stride; }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
