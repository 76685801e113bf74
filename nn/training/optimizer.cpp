#include "nn/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/optimizer.h"
#include "core/error.h"
#include "nn/training/muon.h"

namespace longhand::nn {
namespace {

/// The group that contains the parameter; null if no group does.
const ParameterGroup* group_of(const Parameter& parameter, std::span<const ParameterGroup> groups) {
  const ParameterGroup* found = nullptr;
  for (const ParameterGroup& group : groups) {
    if (std::ranges::count(group.parameters, parameter) == 0) continue;
    LONGHAND_CHECK(!found, "optimizer: ", parameter.name(),
                   ": expected the parameter in at most one group, got several groups");
    found = &group;
  }
  return found;
}

void require_number(const char* name, double value) {
  LONGHAND_CHECK(std::isfinite(value) && value >= 0, "optimizer: ", name,
                 ": expected a number of at least 0, got ", value);
}

void check(std::span<const ParameterGroup> groups, const Parameters& parameters) {
  for (const ParameterGroup& group : groups) {
    LONGHAND_CHECK(!group.parameters.empty(),
                   "optimizer: expected a group of at least one parameter, got an empty one");
    require_number("a group's rate", group.rate);
    if (group.decay) require_number("a group's decay", *group.decay);
    for (const Parameter& parameter : group.parameters) {
      LONGHAND_CHECK(parameter && std::ranges::count(parameters.all(), parameter) == 1,
                     "optimizer: expected only parameters of the model in a group, got ",
                     parameter ? parameter.name() : "a default-constructed Parameter");
    }
  }
}

/// The trained rows of a parameter.
std::vector<Rows> rows_of(const Parameter& parameter) {
  if (!parameter.learning_rows().empty()) return parameter.learning_rows();
  return {{0, parameter.shape()[0]}};
}

}  // namespace

Optimizer::Optimizer(const Parameters& parameters, Shared shared, Groups groups,
                     Communicator* ranks)
    : shared_(std::move(shared)), ranks_(ranks && ranks->size() > 1 ? ranks : nullptr) {
  check(groups, parameters);
  require_number("decay", shared_.decay);
  require_number("clip", shared_.clip);
  Backend& backend = parameters.backend();
  const DType type = parameters.type();
  buffers_.assign(parameters.buffers().begin(), parameters.buffers().end());
  kept_ = shared_.short_state && type == DType::f32 ? DType::bf16 : type;
  std::vector<std::int64_t> owned(ranks_ ? static_cast<std::size_t>(ranks_->size()) : 1);
  for (const Parameter& parameter : parameters.all()) {
    const std::size_t number = parameters_++;
    const ParameterGroup* const group = group_of(parameter, groups);
    if (group && group->frozen) parameter.freeze();
    if (parameter.frozen()) continue;
    const auto least = std::ranges::min_element(owned);
    *least += parameter.learning();
    Entry entry{.parameter = parameter,
                .number = number,
                .rows = rows_of(parameter),
                .states = shared_.state.size(),
                .state = {},
                .decay = 0,
                .owner = static_cast<int>(least - owned.begin())};
    if (shared_.has_one_state && shared_.has_one_state(parameter, group)) entry.states = 1;
    if (owns(entry)) entry.state = fresh_state(entry);
    if (parameter.decays()) {
      entry.decay = group && group->decay ? *group->decay : shared_.decay;
    }
    rated(group ? group->rate : 1, backend, type).entries.push_back(std::move(entry));
  }
  LONGHAND_CHECK(!all_.empty(), "optimizer: expected a parameter that is not frozen, got none");
  norm_ = Tensor(backend, {1}, type);
  factor_ = Tensor(backend, {1}, type);
  go_on();
}

std::vector<Tensor> Optimizer::fresh_state(const Entry& entry) const {
  std::int64_t rows = 0;
  for (const Rows& some : entry.rows) rows += some.count;
  std::vector<Tensor> state;
  const Tensor& value = entry.parameter.value();
  for (std::size_t k = 0; k < entry.states; ++k) {
    state.push_back(Tensor::zeros(value.backend(), value.shape().with_front(rows), kept_));
  }
  return state;
}

void Optimizer::hold_all() {
  for (Rated& one : all_) {
    for (Entry& entry : one.entries) {
      if (entry.state.empty()) entry.state = fresh_state(entry);
    }
  }
}

bool Optimizer::holds_all() const {
  for (const Rated& one : all_) {
    for (const Entry& entry : one.entries) {
      if (entry.state.size() < entry.states) return false;
    }
  }
  return true;
}

void Optimizer::hold_own() {
  for (Rated& one : all_) {
    for (Entry& entry : one.entries) {
      if (!owns(entry)) entry.state.clear();
    }
  }
}

Optimizer::Rated& Optimizer::rated(double rate, Backend& backend, DType type) {
  for (Rated& one : all_) {
    if (one.rate == rate) return one;
  }
  return all_.emplace_back(Rated{rate, Tensor(backend, {shared_.numbers}, type)});
}

void Optimizer::prepare(double rate, std::int64_t step) {
  require_number("rate", rate);
  for (const Rated& one : all_) {
    const std::vector<double> values = now(one.rate * rate, step);
    LONGHAND_CHECK(std::ssize(values) == shared_.numbers, "optimizer ", kind(),
                   ": now(): expected ", shared_.numbers,
                   " numbers, as declared by the optimizer, got ", values.size());
    one.now.assign(values);
  }
}

std::vector<int> Optimizer::owners() const {
  std::vector<int> owners(parameters_);
  for (const Rated& one : all_) {
    for (const Entry& entry : one.entries) owners[entry.number] = entry.owner;
  }
  return owners;
}

/// Computes the norm of all gradients. If `over_ranks` is true, each rank has only some of the
/// gradients. Each rank then computes the sums of squares of its own gradients. The ranks exchange
/// these sums, so that all of them add the same numbers in the same order. `sizes` contains the
/// sizes of all gradients. `gradients` has the same order; a gradient on another rank is empty.
void Optimizer::put_norm(std::span<const Tensor> gradients, std::span<const std::int64_t> sizes,
                         const Tensor& losses, bool over_ranks) {
  std::int64_t count = 0;
  for (const std::int64_t size : sizes) count += SquareSums::pieces(size);
  Backend& backend = norm_.backend();
  const Tensor squares = over_ranks ? Tensor::zeros(backend, {count}, norm_.dtype())
                                    : Tensor(backend, {count}, norm_.dtype());
  SquareSums sums;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t pieces = SquareSums::pieces(sizes[i]);
    if (gradients[i]) {
      sums.tensors.push_back(gradients[i]);
      sums.sums.push_back(squares.slice(at, pieces));
    }
    at += pieces;
  }
  backend(sums);
  // Each entry of `squares` was computed by a single rank and is 0 on all other ranks. The sum over
  // the ranks therefore gives all entries to every rank.
  if (over_ranks) ranks_->sum({&squares, 1});
  backend(GlobalNorm{.squares = squares,
                     .largest = shared_.clip,
                     .norm = norm_,
                     .factor = factor_,
                     .losses = losses});
}

void Optimizer::step(const Tensor& losses, const std::vector<bool>* reached) {
  std::vector<Update> updates;
  std::vector<Tensor> gradients, values;
  std::vector<std::int64_t> sizes;
  std::vector<int> owners;
  for (const Rated& one : all_) {
    Update update{.now = one.now, .factor = factor_};
    update.state.resize(shared_.state.size());
    for (const Entry& entry : one.entries) {
      const Tensor gradient = entry.parameter.var().grad();
      if (reached ? !(*reached)[entry.number] : !gradient) continue;
      std::int64_t before = 0;  // number of rows in the state before these rows
      for (const Rows& rows : entry.rows) {
        gradients.push_back(gradient ? gradient.slice(rows.first, rows.count) : Tensor());
        values.push_back(entry.parameter.value().slice(rows.first, rows.count));
        sizes.push_back(values.back().size());
        owners.push_back(entry.owner);
        if (!owns(entry)) continue;
        update.parameters.push_back(entry.parameter.value().slice(rows.first, rows.count));
        update.gradients.push_back(gradients.back());
        for (std::size_t k = 0; k < shared_.state.size(); ++k) {
          update.state[k].push_back(k < entry.states ? entry.state[k].slice(before, rows.count)
                                                     : Tensor());
        }
        update.decay.push_back(entry.decay);
        before += rows.count;
      }
    }
    if (!update.parameters.empty()) updates.push_back(std::move(update));
  }
  LONGHAND_CHECK(!gradients.empty(), "optimizer: no parameter has a gradient");
  put_norm(gradients, sizes, losses, reached != nullptr);
  gradients.clear();
  for (const Update& update : updates) apply(update);
  for (const Buffer& buffer : buffers_) buffer.assign_proposed(factor_);
  if (ranks_) ranks_->share(values, owners);
  for (const Rated& one : all_) {
    for (const Entry& entry : one.entries) entry.parameter.var().clear_grad();
  }
}

void Optimizer::go_on() { factor_.backend()(Fill{.value = 1, .y = factor_}); }

std::vector<Optimizer::State> Optimizer::state() const {
  std::vector<State> states;
  for (const Rated& one : all_) {
    for (const Entry& entry : one.entries) {
      for (std::size_t k = 0; k < entry.state.size(); ++k) {
        states.push_back({text(entry.parameter.name(), '.', shared_.state[k]), entry.state[k]});
      }
    }
  }
  return states;
}

Optimizer::Numbers Optimizer::numbers(double rate, std::int64_t step) const {
  Numbers all = constants();
  all.emplace_back("rate", std::vector{rate});
  all.emplace_back("now", now(rate, step));
  all.emplace_back("clip", std::vector{shared_.clip});
  return all;
}

std::vector<Optimizer::Learning> Optimizer::learning() const {
  std::vector<Learning> all;
  for (const Rated& one : all_) {
    for (const Entry& entry : one.entries) all.push_back({entry.parameter, one.rate, entry.decay});
  }
  return all;
}

void Optimizer::Update::assign(const Tensor& to, const Var& value) const {
  factor.backend()(Copy{.x = where(factor, value, to).value(), .y = to});
}

std::vector<double> Optimizer::now(double rate, std::int64_t /*step*/) const { return {rate}; }

AdamOptimizer::AdamOptimizer(const Parameters& parameters, const AdamOptions& options,
                             Groups groups, Communicator* ranks)
    : Optimizer(parameters,
                {.decay = options.decay,
                 .clip = options.clip,
                 .state = {"m", "v"},
                 .numbers = 3,
                 .short_state = options.short_moments},
                groups, ranks),
      options_(options) {}

std::vector<double> AdamOptimizer::now(double rate, std::int64_t step) const {
  const auto numbers = adam_now(rate, step, options_.beta1, options_.beta2);
  return {numbers.begin(), numbers.end()};
}

Optimizer::Numbers AdamOptimizer::constants() const { return constants(options_); }

Optimizer::Numbers AdamOptimizer::constants(const AdamOptions& options) {
  return {{"beta1", {options.beta1}},
          {"beta2", {options.beta2}},
          {"epsilon", {options.epsilon}},
          {"decoupled", {options.decoupled ? 1.0 : 0.0}}};
}

void AdamOptimizer::apply(const Update& update) const { apply(options_, update); }

void AdamOptimizer::apply(const AdamOptions& options, const Update& update) {
  update.now.backend()(Adam{.parameters = update.parameters,
                            .gradients = update.gradients,
                            .m = update.state[0],
                            .v = update.state[1],
                            .decay = update.decay,
                            .now = update.now,
                            .beta1 = options.beta1,
                            .beta2 = options.beta2,
                            .epsilon = options.epsilon,
                            .decoupled = options.decoupled,
                            .factor = update.factor});
}

SgdOptimizer::SgdOptimizer(const Parameters& parameters, const SgdOptions& options, Groups groups,
                           Communicator* ranks)
    : Optimizer(parameters, {.decay = options.decay, .clip = options.clip, .state = {"velocity"}},
                groups, ranks),
      options_(options) {}

Optimizer::Numbers SgdOptimizer::constants() const { return {{"momentum", {options_.momentum}}}; }

void SgdOptimizer::apply(const Update& update) const {
  update.now.backend()(Sgd{.parameters = update.parameters,
                           .gradients = update.gradients,
                           .velocities = update.state[0],
                           .decay = update.decay,
                           .rate = update.now,
                           .momentum = options_.momentum,
                           .factor = update.factor});
}

std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options,
                                          std::span<const ParameterGroup> groups,
                                          Communicator* ranks) {
  if (const auto* adam = std::get_if<AdamOptions>(&options)) {
    return std::make_unique<AdamOptimizer>(parameters, *adam, groups, ranks);
  }
  if (const auto* sgd = std::get_if<SgdOptions>(&options)) {
    return std::make_unique<SgdOptimizer>(parameters, *sgd, groups, ranks);
  }
  if (const auto* muon = std::get_if<MuonOptions>(&options)) {
    return std::make_unique<MuonOptimizer>(parameters, *muon, groups, ranks);
  }
  const auto& make = std::get<OptimizerMaker>(options);
  std::unique_ptr<Optimizer> own = make ? make(parameters, groups, ranks) : nullptr;
  LONGHAND_CHECK(own, "optimizer: expected a function that returns an optimizer, got ",
                 make ? "a function that returns null" : "no function");
  return own;
}

}  // namespace longhand::nn
