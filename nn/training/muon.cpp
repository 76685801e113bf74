#include "nn/training/muon.h"

#include <algorithm>
#include <cmath>

#include "autograd/operators.h"
#include "core/contract/optimizer.h"
#include "core/error.h"

namespace longhand::nn {
namespace {

/// Returns the square root of the sum of the squares of all entries of x, [1].
Var frobenius_norm(const Var& x) {
  Backend& backend = x.backend();
  const DType type = x.value().dtype();
  const Tensor squares(backend, {SquareSums::pieces(x.value().size())}, type);
  const Tensor norm(backend, {1}, type), factor(backend, {1}, type);
  backend(SquareSums{.tensors = {x.value()}, .sums = {squares}});
  backend(Fill{.value = 1, .y = factor});
  backend(GlobalNorm{.squares = squares, .norm = norm, .factor = factor});
  return norm;
}

}  // namespace

Var orthogonalized(const Var& x, std::int64_t steps) {
  using Is = NewtonSchulz;
  const bool tall = x.value().shape()[0] > x.value().shape()[1];
  const Var norm = frobenius_norm(x);
  Var y = x / maximum(norm, number_like(norm, Is::smallest_norm));
  for (std::int64_t i = 0; i < steps; ++i) {
    const Var p = matmul(y, y, {.transpose_a = tall, .transpose_b = !tall});
    const Var q = matmul(p, p, {.alpha = Is::c, .residual = Is::b * p});
    y = matmul(tall ? y : q, tall ? q : y, {.residual = Is::a * y});
  }
  return y;
}

MuonOptimizer::MuonOptimizer(const Parameters& parameters, const MuonOptions& options,
                             Groups groups, Communicator* ranks)
    : Optimizer(parameters,
                {.decay = options.adam.decay,
                 .clip = options.adam.clip,
                 .state = {"m", "v"},
                 .numbers = 4,
                 .has_one_state =
                     [](const Parameter& parameter, const ParameterGroup* group) {
                       return parameter.shape().rank() == 2 && !(group && group->adam) &&
                              parameter.learning_rows().empty();
                     }},
                groups, ranks),
      options_(options) {
  LONGHAND_CHECK(options.momentum >= 0 && options.momentum < 1,
                 "optimizer: muon: momentum: expected a number from 0 to below 1, got ",
                 options.momentum);
  LONGHAND_CHECK(options.steps >= 1 && options.steps <= 100,
                 "optimizer: muon: steps: expected 1 to 100, got ", options.steps);
  LONGHAND_CHECK(std::isfinite(options.rate) && options.rate >= 0,
                 "optimizer: muon: rate: expected a number of at least 0, got ", options.rate);
  LONGHAND_CHECK(!options.adam.short_moments && options.adam.decoupled,
                 "optimizer: muon: expected decoupled weight decay and moments of the parameters' "
                 "type, got other options");
}

double MuonOptimizer::scale_of(MuonOptions::Scale scale, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  if (scale == MuonOptions::Scale::adam) return 0.2 * std::sqrt(std::max(rows, columns));
  return std::sqrt(std::max(1.0, rows / columns));
}

/// Returns the learning rate of matrices, followed by the three numbers of adam_now().
std::vector<double> MuonOptimizer::now(double rate, std::int64_t step) const {
  const auto adam = adam_now(rate, step, options_.adam.beta1, options_.adam.beta2);
  return {options_.rate * rate, adam[0], adam[1], adam[2]};
}

Optimizer::Numbers MuonOptimizer::constants() const {
  Numbers all = AdamOptimizer::constants(options_.adam);
  all.emplace_back("momentum", std::vector{options_.momentum});
  all.emplace_back("nesterov", std::vector{options_.nesterov ? 1.0 : 0.0});
  all.emplace_back("newton_schulz", std::vector{NewtonSchulz::a, NewtonSchulz::b, NewtonSchulz::c});
  all.emplace_back("newton_schulz_steps", std::vector{static_cast<double>(options_.steps)});
  all.emplace_back("matches_adam",
                   std::vector{options_.scale == MuonOptions::Scale::adam ? 1.0 : 0.0});
  return all;
}

void MuonOptimizer::apply(const Update& update) const {
  Update others{.now = update.now.slice(1, 3), .factor = update.factor};
  others.state.resize(2);
  for (std::size_t i = 0; i < update.parameters.size(); ++i) {
    if (!update.state[1][i]) {
      update_matrix(update, i);
      continue;
    }
    others.parameters.push_back(update.parameters[i]);
    others.gradients.push_back(update.gradients[i]);
    for (std::size_t k = 0; k < 2; ++k) others.state[k].push_back(update.state[k][i]);
    others.decay.push_back(update.decay[i]);
  }
  if (!others.parameters.empty()) AdamOptimizer::apply(options_.adam, others);
}

void MuonOptimizer::update_matrix(const Update& update, std::size_t i) const {
  const Var w = update.parameters[i], m = update.state[0][i];
  const Var g = Var(update.gradients[i]) * Var(update.factor);
  const Var rate = update.now.slice(0, 1);
  const Var next = options_.momentum * m + g;
  const Var d = options_.nesterov ? g + options_.momentum * next : next;
  const double scale = scale_of(options_.scale, w.value().shape());
  update.assign(w.value(),
                w - rate * (scale * orthogonalized(d, options_.steps) + update.decay[i] * w));
  update.assign(m.value(), next);
}

}  // namespace longhand::nn
