#pragma once

#include <string_view>

#include "core/contract/heads.h"

namespace longhand {

/// A weighted sum of the last `taps` tokens of a sequence. For token t and column c,
///   y_tc = sum over i < taps of weight_ic x_(t-i)c.
/// For tokens before the start of the sequence, x is read from `before`; without `before`, it is 0.
/// The heads of x together have n columns. `after` receives the last taps - 1 tokens, the `before`
/// of the next call. `before` and `after` may be the same tensor.
struct ShortConvolution {
  static constexpr std::string_view name = "short_convolution";
  static constexpr std::int64_t most_taps = 8;
  Heads x;
  Segments segments;   // cover all rows of x
  Tensor weight;       // [taps, n], f64 if x is f64, otherwise f32
  Tensor before = {};  // [sequences, (taps - 1) n], the oldest token first, with the type of weight
  Tensor y;            // [tokens, n]
  Tensor after = {};
};

/// The gradients of a forward pass without `before`, for token t, column c and tap i:
///   dx_tc = sum_i weight_ic dy_(t+i)c;  dweight_ic = sum_t dy_tc x_(t-i)c
struct ShortConvolutionBackward {
  static constexpr std::string_view name = "short_convolution_backward";
  Heads x;
  Segments segments;
  Tensor weight, dy;
  HeadsTarget dx = {};
  Target dweight = {};
};

void check(const ShortConvolution& op);
void check(const ShortConvolutionBackward& op);

}  // namespace longhand
