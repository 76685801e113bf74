#pragma once

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The scratch of a backward pass over a range of keys.
template <class Product>
struct GradientSpace {
  // The packed keys and values of the range. A product sums along the rows of a left operand and
  // over the rows of a right operand. For rules that solve a triangular system (ChaCAL,
  // DeltaFormer), values_left contains the solved values (forward_rows.h) instead of v.
  float *keys_left, *keys_right, *values_left;  // keys_right: stored block by block
  float *key_sums, *value_sums;  // sums for dk and dv (for rules that solve: dv of one head)
  float* all_value_sums;         // for rules that solve: dv of all heads
  // queries, gradients: the panel's q and dy as right operands (for rules that solve a triangular
  // system, its solution W instead of dy). turned, turned_gradients: their transposes.
  // gradient_rows: dy or W in f32. query_sums: the sums for dq.
  float *queries, *gradients, *turned, *turned_gradients, *gradient_rows, *query_sums;
  float* query_rows;  // query_sums with one row per query
  float *p, *ds;      // [panel][panel], f32: scores and dP, then P and dS
  // Packed P and dS. p_rows and ds_rows have `panel` rows of panel / depth words. ds_keys has panel
  // / depth rows of `panel` words.
  float *p_rows, *ds_rows, *ds_keys;
  // [panel]: factor of the scores, factor of dS, log_sum in base 2, D, row sum of dS
  float *scale, *times, *logs, *sums, *row_sums;
  float *tau, *shifts;  // [panel]: tau and c (contract/scores.h) of the queries
  float* turned_means;  // entmax: root_mean (contract/attention.h), packed
  float *bounds, *longest_key, *least_shift;         // TRA: bounds of scores, and their inputs
  float *pulls, *log_sums, *walked[walked_numbers];  // [panel]: stick-breaking and TRA only
  // One shift c and one vector of partial sums of dS per key of the range.
  float *key_shifts, *key_shift_sums;
  std::int64_t depth, value_depth;  // number of words in a row of keys; in a row of values
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
    key_shift_sums = take(rows * lanes);
    floats = take.floats;
  }
};

template <class U>
Source<std::remove_const_t<U>> source(HeadRows<U> x, std::int64_t row, std::int64_t rows,
                                      std::int64_t width) {
  return {{x.row(row), x.stride}, rows, width};
}

/// A panel of queries of one head. `head` is its index among the heads that read the key head,
/// `row` is the panel's first row, and `count` is the panel's number of rows.
template <class T, class Product>
struct GradientPanel {
  const AttentionGradients<T>& task;
  const GradientSpace<Product>& space;
  std::int64_t head, row, count;

  HeadRows<const T> q() const { return {task.q.at + head * task.shape.width, task.q.stride}; }
  /// The panel's rows of x, in the columns of the head. Each head of x has value_width columns.
  HeadRows<const T> of_values(HeadRows<const T> x) const {
    return {x.row(row) + head * task.shape.value_width, x.stride};
  }
  /// The head's column of a tensor [rows, heads]. Null if x is null.
  HeadRows<const float> column(HeadRows<const float> x) const {
    return x ? HeadRows<const float>{x.at + head, x.stride} : x;
  }
  float* gradient_row(std::int64_t t) const { return space.gradient_rows + t * space.value_stride; }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
