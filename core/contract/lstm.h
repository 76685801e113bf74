#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// Long short-term memory: a recurrent network. The state after a token depends on the state before
/// it through tanh and sigmoid, so the tokens must be processed one after another.
namespace longhand {

/// Each head of a sequence has a state of two vectors h and c of n entries, which starts at
/// `before`, or at 0 if `before` is empty. For token t, the sum a_t = x_t + U h_(t-1) consists of
/// four parts of n entries, [i | f | o | g]. With the sigmoid s,
///   c_t = s(f) c_(t-1) + s(i) tanh(g);  h_t = s(o) tanh(c_t);  y_t = h_t.
/// The heads of x have 4 n columns, and the heads of y have n. u [heads * 4 n, n] contains the
/// matrices U of all heads, one after the other. u and all saved tensors are f64 if x is f64,
/// otherwise f32. Products with U are computed in f32 in every math mode. s(i), s(f), s(o) and
/// tanh(g) are saved in `gates`, [tokens, heads * 4 n], and c in `cells`, [tokens, heads * n],
/// unless these tensors are empty.
struct Lstm {
  static constexpr std::string_view name = "lstm";
  Heads x;
  Segments segments;  // must cover all rows of x
  Tensor u;
  // the initial states h and c of each head, [sequences, heads * 2 n], where n is the width of y
  Tensor before = {};
  Heads y;
  Tensor gates = {}, cells = {};
  // Receives the states of each head after the last token of each sequence. May be the same tensor
  // as `before`. A sequence without tokens keeps its state.
  Tensor after = {};
};

/// The backward pass of Lstm for states that start at 0. h and c are the state of the forward pass.
/// i, f, o and g are the four parts of a_t = x_t + U h_(t-1), and s is the sigmoid. The tokens are
/// processed from the last to the first. dc_t starts as the gradient that comes from c_(t+1):
///   dh_t = dy_t + U^T da_(t+1);
///   dc_t += dh_t s(o) (1 - tanh(c_t)^2);  dc_(t-1) = dc_t s(f);
///   di = dc_t tanh(g) s(i) (1 - s(i));  df = dc_t c_(t-1) s(f) (1 - s(f));
///   do = dh_t tanh(c_t) s(o) (1 - s(o));  dg = dc_t s(i) (1 - tanh(g)^2);
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
