#pragma once

#include <string_view>

#include "core/contract/heads.h"

namespace longhand {

/// A sum over the last few tokens, column by column:
///   y_tc = sum_i weight_ic x_(t-i)c for i < taps
/// over the tokens of t's own sequence. For tokens before its start, x is read from `before`, or is
/// 0. The heads of x together have n columns. `after` receives the tokens that the next call needs,
/// and may be `before`.
struct ShortConvolution {
  static constexpr std::string_view name = "short_convolution";
  static constexpr std::int64_t most_taps = 8;
  Heads x;
  Segments segments;   // cover all rows
  Tensor weight;       // [taps, n], of the master type
  Tensor before = {};  // [sequences, (taps - 1) n], the oldest token first; of the master type
  Tensor y;            // [tokens, n]
  Tensor after = {};
};

/// Without `before`: dx_tc = sum_i weight_ic dy_(t+i)c; dweight_ic = sum_t dy_tc x_(t-i)c
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
