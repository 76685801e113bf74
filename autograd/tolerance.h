#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

/// Compares every output and every gradient of an op on some backend with the outputs and gradients
/// of the reference backend. All tolerances of the parity tests and of `longhand gradcheck
/// --backend` are defined here.
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
/// proportional to the unit of rounding, which is 2^-24 in f32 and 2^-8 in bf16. For arithmetic
/// with a larger unit than f32, sigma is therefore multiplied by the ratio of the units. The trials
/// for such arithmetic change only inputs that it rounds: activations and weights, but not inputs
/// that stay in f32, such as a bias. Their deviations contain the second part, rounding of
/// operands, only if the op contains products, because all other ops use bf16 inputs without
/// further rounding.
///
/// A result is compared in four ways. The "small terms" below are |expected| times (bias_units
/// units of rounding + the error of rounding the result to its own type).
/// - *entry by entry*: |got - expected| <= entry_factor sigma + the small terms. This finds a wrong
///   sign, a missing row, a wrong neighbour.
/// - *by size*: ||got - expected|| <= (norm_factor + norm_of_row / sqrt(rows)) ||sigma|| + the norm
///   of the small terms. This finds an error that all entries of a long sequence share.
/// - *by slope*: a linear regression of got on expected has the slope
///     a = <got, expected> / <expected, expected>.
///   The slope must be 1 to within slope_factor times its standard deviation in the trials, plus
///   bias_units units. Rounding errors average out in the slope, but a wrong factor of 1.02 does
///   not. The slope is computed for each tensor, each head (or quarter of the columns) and each
///   sequence (or quarter of the rows).
/// - *by mean*: the mean of got - expected, divided by the root mean square of expected, must be 0
///   to within slope_factor times its standard deviation in the trials, plus bias_units units.
///
/// Slope and mean are also computed over all cases of an op together, where each case has the
/// weight 1 / variance. In bf16, a single case has too few entries, but thirty cases have enough.
/// Integers, infinities and NaN must be equal.
///
/// The trials include the rounding of tensors that a forward pass has to save, such as y, but not
/// the errors that depend on how a kernel orders its sums. For attention, the reference therefore
/// computes the weights P from the scores and not from the saved logarithms of the denominators. In
/// the gradient of stick-breaking, it adds the terms P dP from the first key on, and does not
/// subtract them from their total dy . y. It computes the gradient of Scores::decay as row sums of
/// the gradient of the scores minus its column sums.
///
/// A gradient that is 0 in exact arithmetic may be computed as the difference of two rounded sums,
/// so it consists of their rounding errors. The size of such a sum is estimated as ||y|| / ||x||
/// for the gradient of the input x, where y is the output. Every sigma includes the rounding error
/// of a saved sum of this size, multiplied by Operation::error_terms. A saved sum has the precision
/// of f32 or, if tensors are bf16, of two bf16 numbers (2^-17).
///
/// The factors have these reasons:
/// - entry_factor: about 10^5 entries are compared. The largest of so many normal deviations is
///   4.4 sigma. A kernel that rounds intermediate results (P and dS of attention) has up to twice
///   the variance of the trials.
/// - norm_factor, norm_of_row: the errors of rounded intermediate results and of sums within a row
///   stay below 3 sigma. The errors of one row are related, so a norm over few rows may deviate as
///   much as one entry.
/// - slope_factor: the standard deviation of the slope is estimated from 10 trials. A deviation
///   divided by this estimate has Student's t distribution. It exceeds 8 in one of 10^5
///   comparisons.
/// - bias_units: TF32 hardware truncates operands, which makes each operand 0.7 units smaller on
///   average. Two consecutive products have four operands, so the result may be 2.8 units smaller.
/// - coarse_bias_units: replaces bias_units for bf16, to which all backends round to nearest.
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
/// (2^-11 if `fast` means TF32) and 2^-8 in `bf16`. An op that rounds rows to integers of 8 bits
/// changes an entry by up to 2^-8 of the largest of 32 neighbours, which is several times as large
/// as most entries. The unit of such an op is 2^-7 in `fast`.
double unit(const catalog::Operation& operation, DType activations, Math math, bool tf32 = false);

/// Computes every output of an op and every input gradient ("dx" for input x). The output gradients
/// are the same in every call.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations);

/// The case with its inputs rounded to the type under test.
catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations);

/// The deviations of every entry of the results in each trial. A trial is a run in which the inputs
/// are changed at random by about 2^-24 of their values.
struct Noise {
  /// Maps the name of a result to one vector of deviations per trial.
  using Deviations = std::map<std::string, std::vector<Values>>;
  Deviations all;  // deviations if all inputs are changed
  // Deviations if all inputs are changed except those that stay in f32 in bf16 runs (Role::master).
  Deviations operands;
};
Noise noise(const catalog::Operation& operation, const catalog::Case& values, Backend& reference);

/// ||got - expected|| / ||expected|| of each result of a float type.
std::map<std::string, double> relative_errors(const Results& expected, const Results& got);

/// A rectangle of entries of one result. Its entries are compared together.
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
  std::string where;  // where the largest error is, with the expected and the actual value
};

/// Collects the comparisons of one op on one backend over all test cases.
class Comparison {
 public:
  Comparison(const catalog::Operation& operation, DType activations, double unit)
      : operation_(&operation), activations_(activations), unit_(unit) {}

  void add(const catalog::Case& values, const Results& expected, const Noise& noise,
           const Results& got);
  /// The worst of all comparisons: those of single cases, and the one of all cases together.
  Worst worst() const;
  /// The worst of the comparisons of single cases. Further cases cannot decrease it.
  const Worst& worst_of_cases() const { return worst_; }

 private:
  /// A weighted average of the deviations of many entries: the quotient `deviation` / `size`. The
  /// numerator and the denominator are stored separately, so that several averages can be added.
  struct Average {
    double deviation = 0, size = 0, floor_variance = 0;
    /// The numerator of the average, computed for each trial. A trial is a run with changed inputs.
    /// all: every input is changed. operands: every input is changed except inputs that are always
    /// f32.
    std::vector<double> all = std::vector<double>(trials), operands = all;
    void add(const Average& other, double weight);
  };
  struct Column {
    const Values& expected;
    const Values& got;
    const std::vector<Values>& all;
    const std::vector<Values>& operands;
    /// The part of an entry's standard deviation that comes from the rounding of the tensors that
    /// the forward pass saves.
    double floor;
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

/// The results of the reference backend for some test cases of an op, with their Noise (by how much
/// rounding changes them). They are computed once. The results of any number of backends, also in
/// different types and math modes, are compared with them.
class Standard {
 public:
  Standard(const catalog::Operation& operation, std::vector<catalog::Case> cases,
           Backend& reference);

  Worst compare(Backend& backend, DType activations, double unit);
  /// A function that returns the results of the tested backend for one case. compare() calls it for
  /// each case in order.
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
