#pragma once

#include "autograd/variable.h"
#include "core/segments.h"

namespace longhand {

/// A gated recurrent unit (docs/math/gru.md). x [tokens, 3 n] contains the parts [r | z | n] of
/// each token. u [3 n, n] contains the matrices U_r, U_z and U_n of these parts, one after the
/// other. bias [n] is added to the product with U_n. u and bias have the master type. With h_0 = 0
/// in each sequence and the sigmoid s,
///   r = s(x_r + U_r h_(t-1));  z = s(x_z + U_z h_(t-1))
///   n = tanh(x_n + r (U_n h_(t-1) + bias));  h_t = (1 - z) n + z h_(t-1);  y_t = h_t
/// Returns y, [tokens, n]. The sequences cover all rows.
///
/// Composed of products and elementwise operations, token by token. The operations depend on the
/// length of each sequence, so training steps cannot be recorded and replayed as CUDA graphs. A
/// model that uses this function must therefore return false from Model::repeats().
Var gru(const Var& x, const Segments& segments, const Var& u, const Var& bias);

}  // namespace longhand
