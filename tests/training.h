#pragma once

#include <vector>

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

}  // namespace longhand
