#include "nn/module.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/parallel.h"

namespace longhand::nn {
namespace {

/// FNV-1a, cut to the 56 bits a stream's step may have.
std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return (hash ^ (hash >> 56)) & ((std::uint64_t{1} << 56) - 1);
}

/// (0, 1), never 0: the logarithm is taken of it.
float open_uniform(std::uint32_t word) { return (static_cast<float>(word >> 8) + 0.5f) * 0x1p-24f; }

constexpr std::int64_t chunk = 1 << 14;  // numbers from one stream index

void fill_chunk(std::span<float> values, std::uint64_t seed, std::uint64_t stream,
                std::uint32_t index) {
  Rng rng(seed, Purpose::parameters, stream, index);
  for (std::size_t i = 0; i < values.size(); i += 2) {  // Box-Muller: two at a time
    const float radius = std::sqrt(-2.0f * std::log(open_uniform(rng.next())));
    const float angle = 2.0f * std::numbers::pi_v<float> * open_uniform(rng.next());
    values[i] = radius * std::cos(angle);
    if (i + 1 < values.size()) values[i + 1] = radius * std::sin(angle);
  }
}

const Var none;

}  // namespace

void fill_normal(std::span<float> values, std::uint64_t seed, std::uint64_t stream) {
  const auto count = static_cast<std::int64_t>(values.size());
  const auto fill = [&](std::int64_t begin, std::int64_t end) {
    fill_chunk(
        values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
        seed, stream, static_cast<std::uint32_t>(begin / chunk));
  };
  if (count <= chunk) {
    if (count > 0) fill(0, count);
    return;
  }
  ThreadPool pool(0);
  parallel_for(pool, count, chunk, fill);
}

const Var& Parameter::var() const { return state_ ? state_->var : none; }

void Parameter::freeze(bool frozen) const { state_->var = Var(state_->var.value(), !frozen); }

Parameters::Parameters(Backend& backend, DType type, std::uint64_t seed)
    : backend_(backend.shared_from_this()), type_(type), seed_(seed) {
  LONGHAND_CHECK(master_type(type) == type, "parameters: expected f32 or f64, got ", type);
}

Parameter Parameters::add(const std::string& name, const Shape& shape, Initial initial,
                          bool decays) {
  LONGHAND_CHECK(!find(name), "parameters: there is already one named ", name);
  Tensor value(*backend_, shape, type_);
  if (initial.deviation == 0) {
    (*backend_)(Fill{.value = initial.mean, .y = value});
  } else {
    std::vector<float> numbers(static_cast<std::size_t>(shape.size()));
    fill_normal(numbers, seed_, stream_of(name));
    const auto mean = static_cast<float>(initial.mean);
    const auto deviation = static_cast<float>(initial.deviation);
    for (float& x : numbers) x = mean + deviation * x;
    if (type_ == DType::f32) {
      backend_->upload(value.address(), numbers.data(), value.bytes());
    } else {
      const std::vector<double> wide(numbers.begin(), numbers.end());
      backend_->upload(value.address(), wide.data(), value.bytes());
    }
  }
  Parameter parameter;
  parameter.state_ = std::make_shared<Parameter::State>(
      Parameter::State{name, Var(std::move(value), true), decays});
  all_.push_back(parameter);
  return parameter;
}

const Parameter* Parameters::find(std::string_view name) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Parameter& p) { return p.name() == name; });
  return found == all_.end() ? nullptr : &*found;
}

std::int64_t Parameters::count() const {
  std::int64_t numbers = 0;
  for (const Parameter& parameter : all_) numbers += parameter.value().size();
  return numbers;
}

void Parameters::clear_gradients() const {
  for (const Parameter& parameter : all_) parameter.var().clear_grad();
}

Scope Scope::operator/(std::string_view part) const {
  return {*parameters_, name_.empty() ? std::string(part) : name_ + '.' + std::string(part)};
}

Parameter Scope::add(std::string_view leaf, const Shape& shape, Initial initial,
                     bool decays) const {
  return parameters_->add((*this / leaf).name_, shape, initial, decays);
}

}  // namespace longhand::nn
