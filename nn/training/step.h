#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/memory.h"
#include "nn/batch.h"
#include "nn/model.h"

namespace longhand::nn {

/// One optimizer step, after it was taken.
struct StepReport {
  std::int64_t step = 0;
  double loss = 0;                      // weighted mean over the step's counted targets
  std::optional<double> accuracy = {};  // weighted share of right choices
  double rate = 0;
  double gradient_norm = 0;  // before clipping
  std::int64_t tokens = 0;   // or other rows of input, on all ranks
  double pairs = 0;          // of a token and one up to it in its sequence, on all ranks
  // Of wall time, and of these for data; means over the steps that were read together.
  double seconds = 0;
  double waited = 0;
  MemoryUse memory = {};
  /// No target of its batch counts, so there was nothing to learn: parameters and moments stayed as
  /// they were, and loss and norm mean nothing.
  bool skipped = false;
};

/// A step on its way: its batch on the host, and once it was taken, where its numbers lie.
struct Step {
  using Clock = std::chrono::steady_clock;

  StepReport report;
  std::vector<Batch> parts;     // those with a counted target
  std::vector<double> shares;   // of each in the step's weight
  std::int64_t first_part = 0;  // of this rank, among those of all ranks
  Clock::time_point start;
  Tensor numbers = {};  // as in PlacedStep
  bool choices = true;

  double seconds() const {  // since it began
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
};

/// A step's batch in the backend's memory, and room for the numbers that come of it.
struct PlacedStep {
  std::vector<PlacedBatch> parts;
  std::int64_t first_part;
  Tensor shares;        // [parts]
  Tensor numbers;       // the parts' losses, then their hits, then the gradients' norm
  bool choices = true;  // every part has hits

  /// The model is prepared for the step.
  PlacedStep(Model& model, const Step& step);
  /// Another step of the same shape (nn/training/step_shape.h), into the same memory.
  void assign(Model& model, const Step& step);

  Tensor losses() const { return numbers.slice(0, std::ssize(parts)); }
  void put_norm(const Tensor& norm) const;
  /// Runs the model on each part and adds the part's share of its gradients to the parameters'.
  void add_gradients(Model& model);

 private:
  void prepare(Model& model, const Step& step) const;
};

}  // namespace longhand::nn
