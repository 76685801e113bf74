#pragma once

#include <memory>
#include <vector>

#include "autograd/operators.h"
#include "nn/training/trainer.h"

/// Short trainings and their results.
namespace longhand {

/// The values of each parameter.
inline std::vector<std::vector<double>> values_of(const nn::Model& model) {
  std::vector<std::vector<double>> all;
  for (const nn::Parameter& p : model.parameters().all()) all.push_back(p.value().to_doubles());
  return all;
}

/// Trains the model to the end and returns the loss of each step.
inline std::vector<double> train_losses(nn::Model& model, const nn::BatchSource& source,
                                        const nn::TrainerOptions& options) {
  std::vector<double> losses;
  nn::Trainer(model, source, options,
              {.report = [&](const nn::StepReport& r) { losses.push_back(r.loss); }})
      .run();
  return losses;
}

/// Gradient descent: w = w - rate * factor * gradient, where `factor` clips the gradient.
class Descent final : public nn::Optimizer {
 public:
  Descent(const nn::Parameters& parameters, Groups groups, nn::Communicator* ranks)
      : Optimizer(parameters, {}, groups, ranks) {}
  std::string_view kind() const override { return "descent"; }

  static std::unique_ptr<nn::Optimizer> make(const nn::Parameters& parameters, Groups groups,
                                             nn::Communicator* ranks) {
    return std::make_unique<Descent>(parameters, groups, ranks);
  }

 private:
  void apply(const Update& update) const override {
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const Var w = update.parameters[i], g = Var(update.gradients[i]) * Var(update.factor);
      update.assign(w.value(), w - Var(update.now) * g);
    }
  }
};

}  // namespace longhand
