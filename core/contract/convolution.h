#pragma once

#include <string_view>

#include "core/contract/heads.h"

namespace longhand {

/// A weighted sum of the last `taps` tokens of a sequence. For token t and column c,
///   y_tc = sum over i < taps of weight_ic x_(t-i)c.
/// For tokens before the start of the sequence, x is read from the tensor `before`, or is 0 if this
/// tensor is empty. `after` receives x of the last taps - 1 tokens, which the next call reads as
/// `before`. `before` and `after` may be the same tensor.
struct ShortConvolution {
  static constexpr std::string_view name = "short_convolution";
  static constexpr std::int64_t most_taps = 8;
  Heads x;
  Segments segments;  // must cover all rows of x
  Tensor weight;      // [taps, columns of all heads], f64 if x is f64, otherwise f32
  // x of the taps - 1 tokens before each sequence, from the oldest to the newest. The shape is
  // [sequences, (taps - 1) * columns of all heads], and the type is that of `weight`.
  Tensor before = {};
  Tensor y;  // [tokens, columns of all heads]
  Tensor after = {};
};

/// The gradients of ShortConvolution for sequences whose x is 0 before the first token. For token
/// t, column c and tap i,
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
