#pragma once

#include "core/json.h"

namespace longhand::app {

/// Differentiates a graph of single numbers with the tape, in f64 on the reference backend.
///
/// `inputs` is a list of {name, value}. `steps` is a list of {name, op, of}, where `of` names one
/// or two earlier numbers and `op` is add, subtract, multiply, tanh or square. The last step is the
/// loss. Returns
///   values     the value of every number, inputs first
///   walk       {name, derivative} of every step, in the order in which the tape is walked
///   numbers    {name, derivative, quotient} of every number; quotient: the central difference
///              quotient of the loss
Json differentiate(const Json& inputs, const Json& steps);

}  // namespace longhand::app
