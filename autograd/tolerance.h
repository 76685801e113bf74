#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

/// Compares every output and every gradient of an op on some backend with those of the reference
/// backend. All tolerances of the parity tests and of `longhand gradcheck --backend` are defined
/// here.
///
/// The reference computes in f64, from inputs that are rounded to the type under test. The effect
/// of rounding on a result is measured by trials. Each trial changes the inputs and the output
/// gradients at random by about the rounding error of f32. The deviation of a trial is the sum of
/// two parts:
/// - rounding of stored tensors: the reference's result with all tensors stored in f32, minus its
///   result in f64, both from the changed inputs;
/// - rounding of operands: the f64 result from the changed inputs, minus the f64 result from the
///   original inputs.
///
/// The deviations of all trials give a standard deviation sigma for each entry. Rounding errors are
/// proportional to the unit of rounding. For arithmetic with a larger unit than f32, sigma is
/// therefore multiplied by the ratio of the units. The trials then change only tensors that this
/// arithmetic rounds: activations and weights, but not gamma or a bias, which stay in f32. Changed
/// inputs count only if the op contains products, because all other ops use bf16 inputs without
/// rounding.
///
/// A result is compared in four ways. The small terms are |expected| times (bias_units units + the
/// rounding of the result to its own type).
/// - *entry by entry*: |got - expected| <= entry_factor sigma + the small terms. This finds a wrong
///   sign, a missing row, a wrong neighbour.
/// - *by size*: ||got - expected|| <= (norm_factor + norm_of_row / sqrt(rows)) ||sigma|| + the norm
///   of the small terms. This finds an error that all entries of a long sequence share.
/// - *by slope*: a linear regression of got on expected has the slope
///     a = <got, expected> / <expected, expected>
///   It must be 1 to within slope_factor times the standard deviation of a in the trials, plus
///   bias_units units. Rounding errors average out in a, but a wrong factor of 1.02 does not. The
///   slope is computed for each tensor, each head (or quarter of the columns) and each sequence (or
///   quarter of the rows).
/// - *by mean*: the mean of got - expected, divided by the root mean square of expected, must be 0
///   to within the corresponding bound.
///
/// Slope and mean are also computed over all cases of an op together, where each case has the
/// weight 1 / variance. In bf16, a single case has too few entries, but thirty cases have enough.
/// Integers, infinities and NaN must be equal.
///
/// The trials include the rounding of tensors that a forward pass has to save, such as y, but not
/// the errors that depend on how a kernel orders its sums. For the attention family, the reference
/// therefore computes P from the scores and not from the saved logarithms. It begins the running
/// sums of stick-breaking at the first key and not at D = dy . y. It computes dc as the difference
/// of row sums and column sums.
///
/// A gradient that is 0 in exact arithmetic may be the difference of two rounded sums. These sums
/// have about the size ||y|| / ||x||, as if y were proportional to x. The rounding error of a saved
/// sum of this size, times Operation::error_terms, is included in every sigma. A saved sum has the
/// precision of f32 or, if tensors are bf16, of two bf16 numbers (2^-17).
///
/// The factors have these reasons:
/// - entry_factor: about 10^5 entries are compared. The largest of so many normal deviations is
///   4.4 sigma. A kernel that rounds intermediate results (P and dS of attention) has up to twice
///   the variance of the trials.
/// - norm_factor, norm_of_row: this variance and the rounding of sums within a row stay below 3
///   sigma. The errors of one row are related, so a norm over few rows may deviate as much as one
///   entry.
/// - slope_factor: the standard deviation of a is estimated from 10 trials. A deviation divided by
///   this estimate has Student's t distribution. It exceeds 8 in one of 10^5 comparisons.
/// - bias_units: TF32 hardware truncates operands, which makes each operand 0.7 units smaller on
///   average. Two consecutive products have four operands.
/// - coarse_bias_units: the corresponding number for bf16, to which all backends round to nearest.
/// - function_units: with f32 arithmetic, the trials include neither the errors of approximated
///   functions (exp, erf) nor those of sums. Adding n terms one after another causes about
///   0.4 sqrt(n) times the error that changing the terms causes. n is taken to be the largest
///   extent of an input. The deviations of f32 are therefore multiplied by
///   function_units + 0.4 sqrt(n).
namespace longhand::tolerance {

constexpr double entry_factor = 12, norm_factor = 3, norm_of_row = 9, slope_factor = 8,
                 bias_units = 4, coarse_bias_units = 1.5, function_units = 4;
constexpr int trials = 10;

using Values = std::vector<double>;

struct Result {
  Shape shape;
  DType dtype{};
  Values values;
  friend bool operator==(const Result&, const Result&) = default;
};
using Results = std::map<std::string, Result>;  // key: name of the output or gradient

/// The maximum relative rounding error of the op's arithmetic. It is 2^-24 in f32 and 2^-8 with
/// bf16 tensors. For f32 tensors in ops with products, it depends on the math mode: 2^-17 in `fast`
/// (2^-11 if `fast` means TF32) and 2^-8 in `bf16`.
double unit(const catalog::Operation& operation, DType activations, Math math, bool tf32 = false);

/// Computes every output of an op and every input gradient ("dx" for input x). The output gradients
/// are the same in every call.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations);

/// The case with its inputs rounded to the type under test.
catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations);

/// The deviations of every entry in each trial, for a rounding error of 2^-24.
struct Noise {
  /// For each name of a result, one element per trial.
  using Deviations = std::map<std::string, std::vector<Values>>;
  Deviations all;       // all inputs are changed
  Deviations operands;  // as `all`, but inputs that are always f32 are not changed
};
Noise noise(const catalog::Operation& operation, const catalog::Case& values, Backend& reference);

/// ||got - expected|| / ||expected|| of each result of a float type.
std::map<std::string, double> relative_errors(const Results& expected, const Results& got);

/// A set of entries that are compared together.
struct Block {
  std::string name;
  std::int64_t row, rows, column, columns;
};
std::vector<Block> blocks(const catalog::Operation& operation, const catalog::Case& values,
                          const std::string& result, const Shape& shape);

struct Worst {
  // The largest error divided by its bound. It is infinity if there is a NaN, a wrong shape or a
  // wrong integer.
  double used = 0;
  std::string where;  // place of this error, with the expected and the actual value
};

/// Collects the comparisons of one op on one backend over all cases.
class Comparison {
 public:
  Comparison(const catalog::Operation& operation, DType activations, double unit)
      : operation_(&operation), activations_(activations), unit_(unit) {}

  void add(const catalog::Case& values, const Results& expected, const Noise& noise,
           const Results& got);
  /// The maximum over the comparisons of single cases and the comparison of all cases together.
  Worst worst() const;
  /// The maximum over the comparisons of single cases. Further cases cannot decrease it.
  const Worst& worst_of_cases() const { return worst_; }

 private:
  /// A weighted average of the deviations of many entries, `deviation` / `size`. Both are stored,
  /// so that several averages can be added.
  struct Average {
    double deviation = 0, size = 0, floor_variance = 0;
    std::vector<double> all = std::vector<double>(trials), operands = all;  // one value per trial
    void add(const Average& other, double weight);
  };
  struct Column {
    const Values& expected;
    const Values& got;
    const std::vector<Values>& all;
    const std::vector<Values>& operands;
    double floor;  // included in every sigma, see Comparison::floor()
    Values sigma;
  };

  double floor(const catalog::Case& values, const Results& expected, const std::string& name) const;
  Values deviations(const Column& c) const;
  double relative() const;
  void entries(const std::string& name, const Column& c);
  void sizes(const std::string& name, const Shape& shape, const Block& block, const Column& c);
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

/// The reference's results for some cases of an op, with their noise. They are computed once, for
/// all backends, types and units that are compared with them.
class Standard {
 public:
  Standard(const catalog::Operation& operation, std::vector<catalog::Case> cases,
           Backend& reference);

  Worst compare(Backend& backend, DType activations, double unit);
  /// Returns the results of a backend. The function is called for each case in order.
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
