#pragma once

#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

/// Holding a backend against the reference. All tolerances of the parity tests come from here.
///
/// The reference computes in f64 from inputs rounded to the type under test. How far another
/// backend may be off follows from the op itself: the reference is run again on inputs moved by the
/// relative rounding error `unit` of the arithmetic under test, at random, several times; what that
/// moves an entry of the result by, times a safety factor, plus the rounding of the result's own
/// type, is that entry's bound. A sum of n terms thereby gets a bound that grows like sqrt(n) times
/// the size of its terms, a difference of large numbers one that knows about the cancellation.
namespace longhand::tolerance {

using Values = std::vector<double>;
using Results = std::map<std::string, Values>;  // by output or gradient name

/// Relative rounding error of the op's arithmetic: 2^-24 in f32, 2^-9 with bf16 tensors; where it
/// has products, 2^-17 in fast and 2^-9 in bf16 math.
double unit(const catalog::Operation& operation, DType activations, Math math);

/// Every output and every input gradient ("dx" for input x) of an op, for fixed output gradients.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations);

/// The case with its inputs rounded to what the type can hold.
catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations);

/// Entry by entry, how far from `expected` a result may be.
Results bounds(const catalog::Operation& operation, const catalog::Case& values, Backend& reference,
               const Results& expected, DType activations, double unit);

struct Comparison {
  double used = 0;  // the largest share of its bound that an entry used; infinity for NaN or shape
  std::string where;
};
/// NaN agrees with NaN, an infinity with the same infinity, and nothing else.
Comparison compare(const Results& expected, const Results& got, const Results& bound);

}  // namespace longhand::tolerance
