#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

/// Compares a backend with the reference: every output and every gradient of an op. All tolerances
/// of the parity tests and of `longhand gradcheck --backend` come from here.
///
/// The reference computes in f64 from inputs rounded to the type under test. The effect of rounding
/// on a result is measured by trials, in which the inputs and the output gradients are moved at
/// random by the rounding error of f32. A trial's deviation has two parts. The first is the
/// reference's result with all tensors stored in f32 less its result in f64, from the same inputs
/// (rounding of stored tensors). The second is the change of the f64 result by the move (rounding
/// of operands). The trials give each entry a standard deviation sigma. Rounding errors are linear
/// in the unit of rounding, so for other arithmetic sigma is scaled with `unit`. Then only tensors
/// that this arithmetic rounds count: activations and weights, not gamma or a bias, which stay in
/// f32, and inputs only where there are products (elsewhere bf16 inputs are used as they are).
///
/// A result is compared in three ways:
/// - *entry by entry*: |got - expected| <= entry_factor sigma + bias_units units + the rounding of
///   its own type. Finds a wrong sign, a dropped row, a wrong neighbour.
/// - *by slope*: got regressed on expected, a = <got, expected> / <expected, expected>, must be 1
/// to
///   within slope_factor times the standard deviation of a in the trials, plus bias_units units.
///   Rounding averages out and a factor of 1.02 does not. The slope is taken for each tensor, each
///   head (or quarter of the columns) and each sequence (or quarter of the rows).
/// - *by mean*: the same for the mean of got - expected over the root mean square of expected.
///
/// Slope and mean are also taken over all cases of an op together, each case weighted by 1 /
/// variance: the few entries of one case are too few in bf16, those of thirty cases are enough.
/// Integers must be equal, and so must infinities and NaN.
///
/// The factors. entry_factor: some 10^5 entries are compared and their largest normal deviation
/// is 4.4 sigma; a kernel that rounds inside (P and dS of attention) has up to twice the trials'
/// variance. slope_factor: the deviation is estimated from 10 trials, so a deviation divided by it
/// follows Student's t, which exceeds 8 once in 10^5. bias_units: TF32 hardware truncates operands,
/// which makes each 0.7 units smaller on average, and where one product follows another there are
/// four operands; bf16 is rounded to nearest everywhere (coarse_bias_units). For f32 itself the
/// trials include neither approximated functions (exp, erf: function_units units) nor sums. Adding
/// n terms one after the other accumulates about 0.4 sqrt(n) times the error that moving the terms
/// has, and n is taken to be the largest extent of an input. The trials' f32 part grows by the sum
/// of both.
namespace longhand::tolerance {

constexpr double entry_factor = 12, slope_factor = 8, bias_units = 4, coarse_bias_units = 1.5,
                 function_units = 4;
constexpr int trials = 10;

using Values = std::vector<double>;

struct Result {
  Shape shape;
  DType dtype{};
  Values values;
  friend bool operator==(const Result&, const Result&) = default;
};
using Results = std::map<std::string, Result>;  // by output or gradient name

/// The largest relative rounding error of the op's arithmetic: 2^-24 in f32, 2^-8 with bf16
/// tensors; where it has products, 2^-17 in fast and 2^-8 in bf16 math, and 2^-11 where fast means
/// TF32.
double unit(const catalog::Operation& operation, DType activations, Math math, bool tf32 = false);

/// Every output and every input gradient ("dx" for input x) of an op, for fixed output gradients.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations);

/// The case with its inputs rounded to what the type can hold.
catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations);

/// The distance that the trials moved every entry of a result, for a rounding error of 2^-24.
struct Noise {
  using Deviations = std::map<std::string, std::vector<Values>>;  // by result, then trial
  Deviations all;       // every input and every stored tensor moved
  Deviations operands;  // without inputs that are f32 whatever the activations are
};
Noise noise(const catalog::Operation& operation, const catalog::Case& values, Backend& reference);

/// A set of entries that is compared as a whole.
struct Block {
  std::string name;
  std::int64_t row, rows, column, columns;
};
std::vector<Block> blocks(const catalog::Operation& operation, const catalog::Case& values,
                          const std::string& result, const Shape& shape);

struct Worst {
  // the largest error divided by its bound; infinity for NaN, shape or a wrong integer
  double used = 0;
  std::string where;  // where that error is, with the expected and the actual value
};

/// Gathers the cases of one op on one backend.
class Comparison {
 public:
  Comparison(const catalog::Operation& operation, DType activations, double unit)
      : operation_(&operation), activations_(activations), unit_(unit) {}

  void add(const catalog::Case& values, const Results& expected, const Noise& noise,
           const Results& got);
  Worst worst() const;

 private:
  /// sum of weights times deviations, over the sum of weights times sizes
  struct Average {
    double deviation = 0, size = 0;
    std::vector<double> all = std::vector<double>(trials), operands = all;  // of the trials
    void add(const Average& other, double weight);
  };
  struct Column {
    const Values& expected;
    const Values& got;
    const std::vector<Values>& all;
    const std::vector<Values>& operands;
  };

  void entries(const std::string& name, const Column& c);
  void averages(const std::string& name, const Shape& shape, const Block& block, const Column& c,
                double weight);
  double deviation(double all, double operands) const;
  double bias() const;
  double used(const Average& average) const;
  void note(double used, std::string where);

  const catalog::Operation* operation_;
  DType activations_;
  double unit_;
  double growth_ = 1;
  std::size_t cases_ = 0;
  std::map<std::string, Average> pooled_;
  Worst worst_;
};

/// The reference's results for some cases of an op, with their noise, computed once for all
/// backends, types and units that are compared with them.
class Standard {
 public:
  Standard(const catalog::Operation& operation, std::vector<catalog::Case> cases,
           Backend& reference);

  Worst compare(Backend& backend, DType activations, double unit);
  /// Returns the results of any backend, for each case in turn.
  using Run = std::function<Results(const catalog::Case& values, const Results& expected)>;
  Worst compare(DType activations, double unit, const Run& run);

  struct Answer {
    catalog::Case values;
    Results expected;
  };
  const std::vector<Answer>& answers(DType activations);
  const Noise& noise(std::size_t number) const { return noise_[number]; }

 private:
  const catalog::Operation* operation_;
  std::vector<catalog::Case> cases_;
  Backend* reference_;
  std::vector<Noise> noise_;
  std::map<DType, std::vector<Answer>> answers_;
};

}  // namespace longhand::tolerance
