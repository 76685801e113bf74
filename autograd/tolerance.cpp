#include "autograd/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::tolerance {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double trial_unit = 0x1p-24;
/// A trial (see tolerance.h) multiplies each input by 1 + z trial_unit, where z is a standard
/// normal number, and then rounds it to f32. The root mean square of the relative change is 1
/// trial_unit by z, 0.42 trial_unit by rounding (over all significands), and sqrt(1 + 0.42^2) =
/// 1.085 trial_unit by both together. The effect that a trial measures is therefore multiplied by
/// 0.42 / 1.085 to obtain the effect of rounding alone.
constexpr double rounding_error = 0.42, felt_move = rounding_error / 1.085;

double round_to(double value, DType type) {
  switch (type) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::bf16:
      return static_cast<float>(bf16(static_cast<float>(value)));
    default:
      return value;
  }
}

double moved_f32(double value, Rng& rng) {
  return round_to(value * (1 + trial_unit * rng.normal()), DType::f32);
}

Result read(const Tensor& x) { return {x.shape(), x.dtype(), x.to_doubles()}; }

/// The output gradients of every run are the first numbers of this series.
class OutputGradients {
 public:
  double next() { return round_to(rng_.normal(), DType::bf16); }

 private:
  Rng rng_{7, Purpose::test};
};

/// Runs the operation forward and backward. `gradients` contains the output gradients of all
/// outputs one after another. If it is null, they are OutputGradients.
Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations, const Values* gradients) {
  const catalog::Call call = prepare(operation, values, backend, activations, true);
  Tape tape;
  std::vector<catalog::Output> outputs;
  {
    const Recording recording(tape);
    outputs = operation.run(call);
  }
  Results results;
  OutputGradients series;
  std::size_t at = 0;
  for (const catalog::Output& output : outputs) {
    const Tensor& y = output.value.value();
    results[output.name] = read(y);
    if (!is_float(y.dtype())) continue;
    Values dy(static_cast<std::size_t>(y.size()));
    for (double& value : dy) value = gradients ? gradients->at(at++) : series.next();
    if (output.value.wants_grad()) {
      output.value.sink().add(Tensor::from(backend, y.shape(), y.dtype(), dy));
    }
  }
  tape.backward({});
  for (const catalog::Argument& argument : operation.inputs) {
    if (!values.inputs.contains(argument.name) || !argument.differentiable) continue;
    const Tensor grad = call.in(argument.name).grad();
    if (grad) results["d" + argument.name] = read(grad);
  }
  return results;
}

double root_mean_square(const Values& x) {
  double squares = 0;
  std::size_t count = 0;
  for (const double value : x) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

std::int64_t number(const catalog::Case& values, const char* name, std::int64_t otherwise) {
  const auto found = values.attributes.find(name);
  return found == values.attributes.end() ? otherwise : std::stoll(found->second);
}

/// Adds one block per sequence if the result has one row per token, otherwise four equal blocks of
/// rows.
void row_blocks(std::vector<Block>& all, const catalog::Case& values, const std::string& result,
                const Shape& shape) {
  const std::int64_t rows = shape.rows(), columns = shape.columns();
  const bool of_keys = result == "dk" || result == "dv";
  auto lengths = values.inputs.find(of_keys ? "key_lengths" : "lengths");
  if (lengths == values.inputs.end()) lengths = values.inputs.find("lengths");
  if (lengths != values.inputs.end()) {
    std::int64_t row = 0;
    std::size_t left = lengths->second.values.size();
    std::vector<Block> sequences;
    for (const double length : lengths->second.values) {
      const auto count = static_cast<std::int64_t>(length);
      // Sequences are numbered from the end, so that the last sequence has the same name in every
      // case.
      sequences.push_back({text("sequence -", left--), row, count, 0, columns});
      row += count;
    }
    if (row == rows) {
      all.insert(all.end(), sequences.begin(), sequences.end());
      return;
    }
  }
  if (rows < 4) return;
  for (std::int64_t q = 0; q < 4; ++q) {
    const std::int64_t begin = q * rows / 4, end = (q + 1) * rows / 4;
    all.push_back({text("quarter ", q + 1, " of the rows"), begin, end - begin, 0, columns});
  }
}

/// Adds one block of columns per head if the op has heads, otherwise four equal blocks.
void column_blocks(std::vector<Block>& all, const catalog::Case& values, const std::string& result,
                   const Shape& shape) {
  const std::int64_t rows = shape.rows(), columns = shape.columns();
  const std::int64_t heads = number(values, "heads", 0);
  const auto add_heads = [&](const char* what, std::int64_t first, std::int64_t count,
                             std::int64_t width) {
    if (width <= 0 || first + count * width > columns) return;
    for (std::int64_t h = 0; h < count; ++h) {
      all.push_back({text(what, " head ", h), 0, rows, first + h * width, width});
    }
  };
  if (heads > 0) {
    const std::int64_t key_heads = std::max<std::int64_t>(1, number(values, "key_heads", heads));
    const std::int64_t width = number(values, "width", 0);
    // If q, k and v are in one tensor, the gradient of this tensor is named dq.
    if (result == "dq" && width > 0 && !values.inputs.contains("k")) {
      add_heads("query", number(values, "q_column", 0), heads, width);
      add_heads("key", number(values, "k_column", 0), key_heads, width);
      add_heads("value", number(values, "v_column", 0), key_heads, number(values, "v_width", 0));
      return;
    }
    const std::int64_t count = result == "dk" || result == "dv" ? key_heads : heads;
    if (columns % count == 0) {
      add_heads("", 0, count, columns / count);
      return;
    }
  }
  if (columns < 4) return;
  for (std::int64_t q = 0; q < 4; ++q) {
    const std::int64_t begin = q * columns / 4, end = (q + 1) * columns / 4;
    all.push_back({text("quarter ", q + 1, " of the columns"), 0, rows, begin, end - begin});
  }
}

}  // namespace

double unit(const catalog::Operation& operation, DType activations, Math math, bool tf32) {
  if (activations == DType::f64) return 0x1p-53;
  const auto has = [&](catalog::Role role) {
    return std::ranges::count(operation.inputs, role, &catalog::Argument::role) > 0;
  };
  // If all inputs are integers, the result has the type of the activations.
  const bool all_f32 =
      has(catalog::Role::master) && !has(catalog::Role::activation) && !has(catalog::Role::weight);
  if (all_f32 || operation.always_f32) return 0x1p-24;
  if (operation.rounds_rows && math == Math::fast && !tf32) return 0x1p-7;
  if (activations == DType::bf16) return 0x1p-8;
  if (!operation.products || math == Math::exact || math == Math::portable) return 0x1p-24;
  if (math == Math::bf16) return 0x1p-8;
  return tf32 ? 0x1p-11 : 0x1p-17;
}

Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations) {
  return run(operation, values, backend, activations, nullptr);
}

catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations) {
  catalog::Case result = values;
  for (const catalog::Argument& argument : operation.inputs) {
    const auto found = result.inputs.find(argument.name);
    if (found == result.inputs.end()) continue;
    const DType type = type_of(argument.role, activations);
    for (double& value : found->second.values) value = round_to(value, type);
  }
  return result;
}

Noise noise(const catalog::Operation& operation, const catalog::Case& drawn, Backend& reference) {
  using catalog::Role;
  const catalog::Case values = rounded(operation, drawn, DType::f32);
  const Results expected = run(operation, values, reference, DType::f64);
  std::int64_t count = 0;
  for (const std::string& output : operation.outputs) {
    const auto y = expected.find(output);
    if (y != expected.end() && is_float(y->second.dtype)) count += y->second.shape.size();
  }
  OutputGradients series;
  Values gradients(static_cast<std::size_t>(count));
  for (double& value : gradients) value = series.next();
  bool has_master = false;
  for (const catalog::Argument& argument : operation.inputs) {
    has_master =
        has_master || (argument.role == Role::master && values.inputs.contains(argument.name));
  }
  Noise result;
  const auto add = [&](bool with_master, std::uint64_t stream, Noise::Deviations& all,
                       double felt) {
    for (int trial = 0; trial < trials; ++trial) {
      Rng rng(11, Purpose::test, stream, static_cast<std::uint32_t>(trial));
      catalog::Case moved = values;
      for (const catalog::Argument& argument : operation.inputs) {
        const auto found = moved.inputs.find(argument.name);
        if (found == moved.inputs.end() || argument.role == Role::index) continue;
        if (argument.role == Role::master && !with_master) continue;
        for (double& value : found->second.values) value = moved_f32(value, rng);
      }
      Values moved_gradients = gradients;
      for (double& value : moved_gradients) value = moved_f32(value, rng);
      const Results stored = run(operation, moved, reference, DType::f32, &moved_gradients);
      const Results exact = run(operation, moved, reference, DType::f64, &moved_gradients);
      for (const auto& [name, y] : expected) {
        const Values &at = stored.at(name).values, &from = exact.at(name).values;
        Values& d = all[name].emplace_back(y.values.size());
        for (std::size_t i = 0; i < d.size(); ++i) {
          if (!std::isfinite(y.values[i])) continue;
          d[i] = (at[i] - from[i]) + felt * (from[i] - y.values[i]);
        }
      }
    }
  };
  add(false, 1, result.operands, operation.products ? felt_move : 0);
  if (has_master || !operation.products) {
    add(true, 2, result.all, felt_move);
  } else {
    result.all = result.operands;
  }
  return result;
}

std::map<std::string, double> relative_errors(const Results& expected, const Results& got) {
  std::map<std::string, double> all;
  for (const auto& [name, y] : expected) {
    if (!is_float(y.dtype)) continue;
    const Values& x = got.at(name).values;
    double errors = 0, squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      errors += std::pow(x[i] - y.values[i], 2);
      squares += std::pow(y.values[i], 2);
    }
    all[name] = std::sqrt(errors / squares);
  }
  return all;
}

std::vector<Block> blocks(const catalog::Operation&, const catalog::Case& values,
                          const std::string& result, const Shape& shape) {
  std::vector<Block> all{{"all", 0, shape.rows(), 0, shape.columns()}};
  if (shape.rank() < 2) {  // a vector: its entries are treated as columns
    column_blocks(all, {}, result, shape);
    return all;
  }
  row_blocks(all, values, result, shape);
  column_blocks(all, values, result, shape);
  return all;
}

void Comparison::Average::add(const Average& other, double weight) {
  deviation += weight * other.deviation;
  size += weight * other.size;
  floor_variance += weight * weight * other.floor_variance;
  for (std::size_t t = 0; t < all.size(); ++t) {
    all[t] += weight * other.all[t];
    operands[t] += weight * other.operands[t];
  }
}

double Comparison::deviation(double all, double operands) const {
  return std::max(all, unit_ / trial_unit * operands);
}

double Comparison::bias() const {
  return (unit_ > 0x1p-11 ? coarse_bias_units : bias_units) * unit_;
}

double Comparison::used(const Average& a) const {
  if (a.size <= 0) return 0;
  const double trials_alone = deviation(root_mean_square(a.all), root_mean_square(a.operands));
  const double sigma = std::hypot(trials_alone, std::sqrt(a.floor_variance)) / a.size;
  return std::abs(a.deviation) / a.size / (slope_factor * sigma + bias());
}

void Comparison::note(double used, std::string where) {
  if (!(used <= worst_.used)) worst_ = {std::isnan(used) ? infinity : used, std::move(where)};
}

/// The part of a tolerance that is proportional to the expected value: the permitted systematic
/// error bias(), plus the error of rounding the result to its type.
double Comparison::relative() const {
  return (activations_ == DType::bf16 ? 0x1p-8 : 0x1p-22) + bias();
}

double Comparison::floor(const catalog::Case& values, const Results& expected,
                         const std::string& name) const {
  const auto x = name.starts_with('d') ? values.inputs.find(name.substr(1)) : values.inputs.end();
  if (x == values.inputs.end()) return 0;
  const auto squares = [](const Values& of) {
    double sum = 0;
    for (const double value : of) sum += std::isfinite(value) ? value * value : 0;
    return sum;
  };
  double outputs = 0;
  for (const std::string& output : operation_->outputs) {
    const auto y = expected.find(output);
    if (y != expected.end() && is_float(y->second.dtype)) outputs += squares(y->second.values);
  }
  const double inputs = squares(x->second.values);
  if (inputs == 0) return 0;
  const double of_sums = std::max(growth_ * trial_unit, activations_ == DType::bf16 ? 0x1p-17 : 0);
  return rounding_error * operation_->error_terms * of_sums * std::sqrt(outputs / inputs);
}

Values Comparison::deviations(const Column& c) const {
  Values sigma(c.expected.size());
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    double all = 0, operands = 0;
    for (std::size_t t = 0; t < c.all.size(); ++t) {
      all += c.all[t][i] * c.all[t][i];
      operands += c.operands[t][i] * c.operands[t][i];
    }
    sigma[i] = std::hypot(
        deviation(growth_ * std::sqrt(all / trials), std::sqrt(operands / trials)), c.floor);
  }
  return sigma;
}

void Comparison::entries(const std::string& name, const Column& c) {
  const Values& sigma = c.sigma;
  // The standard deviation sigma of an entry is estimated from few trials, so it may be too small
  // by chance. The root mean square of sigma over the whole tensor is therefore used as a minimum.
  const double typical = root_mean_square(sigma);
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    const double a = c.expected[i], b = c.got[i];
    double used = std::abs(a - b) /
                  (entry_factor * std::max(sigma[i], typical) + relative() * std::abs(a) + 1e-30);
    if (!std::isfinite(a)) used = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : infinity;
    if (std::isnan(used)) used = infinity;
    if (used <= worst) continue;
    worst = used;
    at = i;
  }
  if (worst > worst_.used) {
    note(worst, text("case ", cases_, ", ", name, '[', at, "]: expected ", c.expected[at], ", got ",
                     c.got[at]));
  }
}

void Comparison::sizes(const std::string& name, const Shape& shape, const Block& block,
                       const Column& c) {
  double errors = 0, sigmas = 0, squares = 0, count = 0;
  const std::int64_t columns = shape.columns();
  for (std::int64_t row = block.row; row < block.row + block.rows; ++row) {
    for (std::int64_t column = block.column; column < block.column + block.columns; ++column) {
      const auto i = static_cast<std::size_t>(row * columns + column);
      if (!std::isfinite(c.expected[i]) || !std::isfinite(c.got[i])) continue;
      errors += std::pow(c.got[i] - c.expected[i], 2);
      sigmas += c.sigma[i] * c.sigma[i];
      squares += c.expected[i] * c.expected[i];
      count += 1;
    }
  }
  if (count == 0) return;
  const double factor = norm_factor + norm_of_row / std::sqrt(static_cast<double>(block.rows));
  const double bound = factor * std::sqrt(sigmas) + relative() * std::sqrt(squares) + 1e-30;
  const double use = std::sqrt(errors) / bound;
  if (use > worst_.used) {
    note(use, text("case ", cases_, ", ", name, ", size of ", block.name, ": off by ",
                   std::sqrt(errors / std::max(squares, 1e-300))));
  }
}

void Comparison::averages(const std::string& name, const Shape& shape, const Block& block,
                          const Column& c, double weight) {
  Average slope, mean;
  double squares = 0, count = 0;
  const std::int64_t columns = shape.columns();
  for (std::int64_t row = block.row; row < block.row + block.rows; ++row) {
    for (std::int64_t column = block.column; column < block.column + block.columns; ++column) {
      const auto i = static_cast<std::size_t>(row * columns + column);
      if (!std::isfinite(c.expected[i]) || !std::isfinite(c.got[i])) continue;
      const double e = c.expected[i], d = c.got[i] - e;
      slope.deviation += d * e;
      mean.deviation += d;
      squares += e * e;
      count += 1;
      for (std::size_t t = 0; t < static_cast<std::size_t>(trials); ++t) {
        slope.all[t] += growth_ * c.all[t][i] * e;
        slope.operands[t] += c.operands[t][i] * e;
        mean.all[t] += growth_ * c.all[t][i];
        mean.operands[t] += c.operands[t][i];
      }
    }
  }
  if (squares == 0) return;
  const double size = std::sqrt(squares / count);
  slope.size = squares;
  mean.size = count * size;
  // c.floor is the standard deviation of an entry's error due to the rounding of saved sums such as
  // y (Operation::error_terms). If the entries of a row depend on the same saved sum, they may all
  // have the same error. The variance of the sum over a row is then `width` times larger than for
  // independent errors.
  const auto width = static_cast<double>(block.columns);
  slope.floor_variance = c.floor * c.floor * squares * width;
  mean.floor_variance = c.floor * c.floor * count * width;
  const auto report = [&](const char* kind, const Average& average, double share) {
    const double use = used(average);
    if (use > worst_.used) {
      note(use, text("case ", cases_, ", ", name, ", ", kind, " of ", block.name, ": off by ",
                     average.deviation / average.size));
    }
    if (weight > 0) pooled_[text(name, ", ", kind, " of ", block.name)].add(average, share);
  };
  report("slope", slope, weight);
  report("mean", mean, weight * size);
}

void Comparison::add(const catalog::Case& values, const Results& expected, const Noise& noise,
                     const Results& got) {
  std::int64_t longest = 1;
  for (const auto& [name, input] : values.inputs) {
    for (const std::int64_t extent : input.shape.extents()) longest = std::max(longest, extent);
  }
  growth_ = function_units + 0.4 * std::sqrt(static_cast<double>(longest));

  for (const auto& [name, y] : expected) {
    const auto found = got.find(name);
    if (found == got.end() || found->second.shape != y.shape) {
      note(infinity, text("case ", cases_, ", ", name, " is missing or has another shape"));
      continue;
    }
    if (!is_float(y.dtype)) {
      if (found->second.values != y.values) {
        note(infinity, text("case ", cases_, ", ", name, ": integers differ"));
      }
      continue;
    }
    Column c{y.values,
             found->second.values,
             noise.all.at(name),
             noise.operands.at(name),
             floor(values, expected, name),
             {}};
    c.sigma = deviations(c);
    entries(name, c);
    double variance = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(trials); ++t) {
      const double all = root_mean_square(c.all[t]), operands = root_mean_square(c.operands[t]);
      variance += std::pow(deviation(growth_ * all, operands), 2) / trials;
    }
    variance += c.floor * c.floor;
    variance += std::pow(1e-3 * unit_ * root_mean_square(c.expected), 2);
    const double weight = variance > 0 ? 1 / variance : 0;
    for (const Block& block : blocks(*operation_, values, name, y.shape)) {
      sizes(name, y.shape, block, c);
      averages(name, y.shape, block, c, weight);
    }
  }
  for (const auto& [name, y] : got) {
    if (!expected.contains(name)) note(infinity, name + " is not expected");
  }
  ++cases_;
}

Worst Comparison::worst() const {
  Worst result = worst_;
  for (const auto& [name, average] : pooled_) {
    const double use = used(average);
    if (use <= result.used) continue;
    result = {use, text(name, ", all cases together: off by ", average.deviation / average.size)};
  }
  return result;
}

Standard::Standard(const catalog::Operation& operation, std::vector<catalog::Case> cases,
                   Backend& reference)
    : operation_(&operation), cases_(std::move(cases)), reference_(&reference) {
  for (const catalog::Case& values : cases_) {
    noise_.push_back(tolerance::noise(operation, values, reference));
  }
}

const std::vector<Standard::Answer>& Standard::answers(DType activations) {
  std::vector<Answer>& all = answers_[activations];
  for (std::size_t i = all.size(); i < cases_.size(); ++i) {
    Answer answer{rounded(*operation_, cases_[i], activations), {}};
    answer.expected = tolerance::run(*operation_, answer.values, *reference_, DType::f64);
    all.push_back(std::move(answer));
  }
  return all;
}

Worst Standard::compare(DType activations, double unit, const Run& run) {
  Comparison comparison(*operation_, activations, unit);
  std::size_t number = 0;
  for (const auto& [values, expected] : answers(activations)) {
    comparison.add(values, expected, noise_[number++], run(values, expected));
  }
  return comparison.worst();
}

Worst Standard::compare(Backend& backend, DType activations, double unit) {
  return compare(activations, unit, [&](const catalog::Case& values, const Results&) {
    return tolerance::run(*operation_, values, backend, activations);
  });
}

}  // namespace longhand::tolerance
