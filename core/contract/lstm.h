#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// Long short-term memory: a token's change to the state depends on the state.
namespace longhand {

/// For each head of a sequence, starting from h and c of `before`, or 0, with a_t = x_t + U h_(t-1)
/// in four parts of n entries, [i | f | o | g]:
///   c_t = s(f) c_(t-1) + s(i) tanh(g);  h_t = s(o) tanh(c_t);  y_t = h_t,  s the sigmoid
/// x has heads of 4 n columns, y as many heads of n. u [heads * 4 n, n], head after head, and all
/// saved tensors have the master type; products with U are f32 whatever the math mode. Saves the
/// gates s(i), s(f), s(o) and tanh(g), [tokens, heads * 4 n], and c, [tokens, heads * n], unless
/// these tensors are empty.
struct Lstm {
  static constexpr std::string_view name = "lstm";
  Heads x;
  Segments segments;  // cover all rows
  Tensor u;
  Tensor before = {};  // [sequences, heads * 2 n]: h and c of each head
  Heads y;
  Tensor gates = {}, cells = {};
  // like `before`, and may be the same tensor; a sequence without tokens keeps its state
  Tensor after = {};
};

/// For sequences that start at 0, from the last token to the first. With dh_t = dy_t + U^T da_(t+1)
/// and dc_t, the gradient from c_(t+1),
///   dc_t += dh_t s(o) (1 - tanh(c_t)^2);  dc_(t-1) = dc_t s(f)
///   di = dc_t tanh(g) s(i) (1 - s(i));  df = dc_t c_(t-1) s(f) (1 - s(f))
///   do = dh_t tanh(c_t) s(o) (1 - s(o));  dg = dc_t s(i) (1 - tanh(g)^2)
///   dx_t = da_t = [di | df | do | dg];  dU = sum_t da_t h_(t-1)^T
struct LstmBackward {
  static constexpr std::string_view name = "lstm_backward";
  Segments segments;
  Tensor u, gates, cells;
  Heads dy;
  HeadsTarget dx = {};
  Target du = {};
};

void check(const Lstm& op);
void check(const LstmBackward& op);

}  // namespace longhand
