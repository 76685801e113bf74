#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

/// Compares a backend with the reference backend: every output and every gradient of an op. All
/// tolerances of the parity tests and of `longhand gradcheck --backend` are defined here.
///
/// The reference computes in f64, from inputs rounded to the type under test. The effect of
/// rounding on a result is measured by trials, in which the inputs and the output gradients are
/// perturbed at random by the rounding error of f32. The deviation of a trial has two parts. The
/// first is the reference's result with all tensors stored in f32 minus its result in f64, from the
/// same inputs (rounding of stored tensors). The second is the change of the f64 result by the
/// perturbation (rounding of operands). The trials give a standard deviation sigma for each entry.
/// Rounding errors are proportional to the unit of rounding, so for other arithmetic sigma is
/// scaled by `unit`. Only tensors that this arithmetic rounds are then included: activations and
/// weights, but not gamma or a bias, which stay in f32; and inputs only if the op contains products
/// (all other ops use bf16 inputs without rounding).
///
/// A result is compared in four ways:
/// - *entry by entry*: |got - expected| <= entry_factor sigma + bias_units units + the rounding of
///   its own type. This finds a wrong sign, a missing row, a wrong neighbour.
/// - *by size*: ||got - expected|| <= (norm_factor + norm_of_row / sqrt(rows)) ||sigma|| + the same
///   small terms times ||expected||. This finds an error that all entries of a long sequence share.
/// - *by slope*: the slope of got regressed on expected, a = <got, expected> / <expected,
/// expected>,
///   must be 1 to within slope_factor times the standard deviation of a in the trials, plus
///   bias_units units. Rounding errors average out, but a factor of 1.02 does not. The slope is
///   computed for each tensor, each head (or quarter of the columns) and each sequence (or quarter
///   of the rows).
/// - *by mean*: the same for the mean of got - expected, divided by the root mean square of
/// expected.
///
/// The trials include the rounding of tensors that a forward pass has to save, such as y, but no
/// error that a kernel adds by the order of its sums. In the reference of the attention family, P
/// is computed from the scores and not from the saved logarithms, the sums of a stick begin at the
/// first key and not at D = dy . y, and dc is the difference of row sums and column sums.
///
/// A gradient that is 0 in exact arithmetic may be a difference of rounded sums. The terms of dx
/// have the size ||y|| / ||x||, as the derivative of an op of degree 1. The rounding error of a
/// saved sum of this size, times Operation::error_terms, is added to every sigma. A saved sum has
/// the precision of f32, or of two bf16 numbers (2^-17) if tensors are bf16.
///
/// Slope and mean are also computed over all cases of an op together, where each case has the
/// weight 1 / variance. In bf16, a single case has too few entries, but thirty cases have enough.
/// Integers, infinities and NaN must be equal.
///
/// The factors. entry_factor: some 10^5 entries are compared, whose largest normal deviation is 4.4
/// sigma; a kernel that rounds intermediate results (P and dS of attention) has up to twice the
/// variance of the trials. norm_factor: this variance, and the rounding of sums within a row, stay
/// below 3 sigma; the errors of one row are related, so a norm over few rows may deviate as much as
/// one entry. slope_factor: the deviation is estimated from 10 trials, so a deviation
/// divided by it has Student's t distribution, which exceeds 8 once in 10^5. bias_units: TF32
/// hardware truncates operands, which makes each of them 0.7 units smaller on average, and two
/// consecutive products have four operands; bf16 is rounded to nearest everywhere
/// (coarse_bias_units). For f32 itself, the trials include neither approximated functions (exp,
/// erf: function_units units) nor sums. Adding n terms one after another accumulates about 0.4
/// sqrt(n) times the error that moving the terms has; n is assumed to be the largest extent of an
/// input. The f32 part of the trials is increased by the sum of both.
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

/// The maximum relative rounding error of the op's arithmetic: 2^-24 in f32, 2^-8 with bf16
/// tensors. If the op has products, it is 2^-17 in `fast` and 2^-8 in `bf16` math, and 2^-11 where
/// `fast` means TF32.
double unit(const catalog::Operation& operation, DType activations, Math math, bool tf32 = false);

/// Computes every output and every input gradient ("dx" for input x) of an op, for fixed output
/// gradients.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations);

/// The case with its inputs rounded to the type under test.
catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations);

/// The change of every entry of a result in each trial, for a rounding error of 2^-24.
struct Noise {
  /// key: name of the result; then one entry per trial
  using Deviations = std::map<std::string, std::vector<Values>>;
  Deviations all;       // all inputs and all stored tensors are perturbed
  Deviations operands;  // as `all`, but inputs that are always f32 are not perturbed
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
  // The largest error divided by its bound. Infinity if there is a NaN, a wrong shape or a wrong
  // integer.
  double used = 0;
  std::string where;  // place of that error, with the expected and the actual value
};

/// Collects the comparisons of one op on one backend over all cases.
class Comparison {
 public:
  Comparison(const catalog::Operation& operation, DType activations, double unit)
      : operation_(&operation), activations_(activations), unit_(unit) {}

  void add(const catalog::Case& values, const Results& expected, const Noise& noise,
           const Results& got);
  /// The maximum over the single cases and over all cases together.
  Worst worst() const;
  /// The maximum over the single cases. Further cases cannot decrease it.
  const Worst& worst_of_cases() const { return worst_; }

 private:
  /// A weighted average of the deviations of many entries. It is `deviation` / `size`; the two are
  /// stored separately so that several averages can be added.
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
    double floor;  // the deviation of terms that cancel
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

/// The reference's results for some cases of an op, with their noise. They are computed once for
/// all backends, types and units that are compared with them.
class Standard {
 public:
  Standard(const catalog::Operation& operation, std::vector<catalog::Case> cases,
           Backend& reference);

  Worst compare(Backend& backend, DType activations, double unit);
  /// Returns the results of a backend. It is called for each case in order.
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
