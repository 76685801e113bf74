#pragma once

#include <tuple>

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/rows.h"
#include "core/rules.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The text of a rule by its name.
template <Rule rule>
using FormulaOf =
    std::tuple_element_t<static_cast<std::size_t>(rule),
                         std::tuple<rules::Softmax, rules::Stick, rules::Tra, rules::Entmax>>;

/// The scratch of a backward pass over a range of keys.
template <class Product>
struct GradientSpace {
  // The keys and values of the range, as operands: `left` ones are summed along, `right` ones over.
  // ChaCAL stores U in place of the values.
  float *keys_left, *keys_right, *values_left;  // keys_right: one per block
  float *key_sums, *value_sums;                 // dk / beta, and dv (for ChaCAL: A of one head)
  float* all_value_sums;                        // for ChaCAL: dv of all heads
  // The panel's q, and dy or W, as operands and transposed; dy or W in f32; dq / beta.
  float *queries, *gradients, *turned, *turned_gradients, *gradient_rows, *query_sums;
  float* query_rows;  // dq / beta as rows
  float *p, *ds;      // [panel][panel], f32
  // P and dS as words, [panel][panel / depth] and [panel / depth][panel]
  float *p_rows, *ds_rows, *ds_keys;
  // [panel]: factor of the scores, factor of dS, log_sum in bits, D, sum of a row of dS
  float *scale, *times, *logs, *sums, *row_sums;
  float *tau, *shifts;                        // [panel]: tau and c of the queries
  float* turned_means;                        // entmax's means as words, transposed
  float *bounds, *longest_key, *least_shift;  // TRA's upper bounds and what they are computed from
  float *pulls, *log_sums, *walked[walked_numbers];  // [panel]: numbers that leftward rules need
  float *key_shifts, *key_shift_sums;  // c of the range's keys, and the sums of dS as vectors
  std::int64_t depth, value_depth;     // words along the widths
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

}  // namespace longhand::cpu::LONGHAND_ISA::attention
