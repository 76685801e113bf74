#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/memory.h"
#include "nn/batch.h"
#include "nn/model.h"
#include "nn/training/gradient_tree.h"

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
  /// Of several ranks the one that took longest for its own share, without waiting for others.
  struct Slowest {
    int rank = 0;
    double seconds = 0;
  };
  std::optional<Slowest> slowest = {};
  /// Of this rank with others: seconds in which gradients were exchanged, those that it waited for
  /// them after its backward, and the bytes that it sent in the step.
  struct Exchange {
    double seconds = 0, exposed = 0;
    std::uint64_t bytes = 0;
  };
  std::optional<Exchange> exchange = {};
  /// No target of its batch counts, so there was nothing to learn: parameters and moments stayed as
  /// they were, and loss and norm mean nothing.
  bool skipped = false;
};

/// How a step's batch is cut, by the run's options alone: into parts, a power of two, whose
/// gradients are added in a binary tree of neighbours (nn/ranks/tree.h), and each of them into
/// batches, which are computed one after another. Each rank has as many neighbouring parts, so that
/// the sum does not depend on the number of ranks.
struct StepCut {
  std::int64_t parts = 1;  // of this rank
  std::int64_t first = 0;  // of them, among those of all ranks
  std::int64_t each = 1;   // batches of a part

  std::int64_t batches() const { return parts * each; }
  std::int64_t first_batch() const { return first * each; }
  /// Which of this rank's parts a batch is in, by its place in the step.
  std::size_t part_of(std::int64_t place) const {
    return static_cast<std::size_t>(place / each - first);
  }
};

/// A step on its way: its batches on the host, and once it was taken, where its numbers lie.
struct Step {
  using Clock = std::chrono::steady_clock;

  StepReport report;
  StepCut cut = {};
  std::vector<Batch> batches;        // those of this rank with a counted target
  std::vector<std::int64_t> places;  // of each among the step's batches on all ranks
  std::vector<double> shares;        // of each in the step's weight
  Clock::time_point start;
  double own_seconds = 0;  // of this rank's share, where there are several ranks
  Tensor numbers = {};     // as in PlacedStep
  bool choices = true;

  double seconds() const {  // since it began
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
};

/// A step's batches in the backend's memory, and room for the numbers that come of it.
struct PlacedStep {
  StepCut cut;
  std::vector<PlacedBatch> batches;
  std::vector<std::int64_t> places;
  Tensor shares;        // [batches]
  Tensor numbers;       // the batches' losses, then their hits, then the gradients' norm
  bool choices = true;  // every batch has hits

  /// The model is prepared for the step.
  PlacedStep(Model& model, const Step& step);
  /// Another step of the same shape (nn/training/step_shape.h), into the same memory.
  void assign(Model& model, const Step& step);

  Tensor losses() const { return numbers.slice(0, std::ssize(batches)); }
  void put_norm(const Tensor& norm) const;
  /// Runs the model on each batch. The parameters' gradients are then the sum of this rank's; with
  /// `summed`, which hears of each as soon as it is known, they are empty.
  void add_gradients(Model& model, const GradientTree::Summed& summed = {});
  /// Told each batch's place among the step's before it is computed.
  std::function<void(std::int64_t place)> begins = {};

 private:
  void add_gradients(Model& model, std::size_t batch, GradientTree* tree);
  void prepare(Model& model, const Step& step) const;
};

}  // namespace longhand::nn
