#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/memory.h"
#include "nn/batch.h"
#include "nn/model.h"
#include "nn/training/gradient_tree.h"

namespace longhand::nn {

/// The results of an optimizer step.
struct StepReport {
  std::int64_t step = 0;
  double loss = 0;                      // weighted mean loss over the step's scored targets
  std::optional<double> accuracy = {};  // weighted share of right predictions
  double rate = 0;
  double gradient_norm = 0;  // global norm of the gradients before clipping
  std::int64_t tokens = 0;   // number of tokens (or rows of features) on all ranks
  double pairs = 0;          // number of pairs (token, token that it sees), on all ranks
  // UnreadSteps reads the results of several steps at once. `seconds` is the mean duration of these
  // steps, and `waited` is the mean time for which they waited for data, in seconds.
  double seconds = 0;
  double waited = 0;
  MemoryUse memory = {};
  /// The rank that computed longest in this step. Time in which a rank waited for other ranks does
  /// not count.
  struct Slowest {
    int rank = 0;
    double seconds = 0;
  };
  std::optional<Slowest> slowest = {};
  /// The gradient exchange of this rank: its duration in seconds, the seconds in which the rank
  /// waited for it, and the number of bytes sent.
  struct Exchange {
    double seconds = 0, exposed = 0;
    std::uint64_t bytes = 0;
  };
  std::optional<Exchange> exchange = {};
  /// True if the step has no scored target. In this case, the parameters and moments did not
  /// change, and loss and norm have no meaning.
  bool skipped = false;
  /// The hash of the step's batches on all ranks (nn/training/fingerprints.h). Empty if no hook
  /// requires hashes.
  std::string batches = {};
};

/// How a step is divided into parts, and a part into batches. The batches are computed one after
/// another. The gradients of the parts are added in a binary tree (nn/ranks/tree.h). The total
/// number of parts is a power of two, which is an option of the run. Each rank has an equal number
/// of consecutive parts, so the sums do not depend on the number of ranks.
struct StepCut {
  std::int64_t parts = 1;  // number of parts on this rank
  std::int64_t first = 0;  // index of the rank's first part among the parts of all ranks
  std::int64_t each = 1;   // number of batches in each part of a step

  std::int64_t batches() const { return parts * each; }
  std::int64_t first_batch() const { return first * each; }
  /// Returns the index of the part that contains the batch with index `place` in the step. Parts
  /// are counted from this rank's first part.
  std::size_t part_of(std::int64_t place) const {
    return static_cast<std::size_t>(place / each - first);
  }
};

/// A step in progress. It has the batches on the host and, after the step was executed, its
/// results.
struct Step {
  using Clock = std::chrono::steady_clock;

  StepReport report;
  StepCut cut = {};
  std::vector<Batch> batches;        // this rank's batches that have a scored target
  std::vector<std::int64_t> places;  // index of each batch among the step's batches on all ranks
  std::vector<double> shares;        // share of each batch in the total weight of the step
  Clock::time_point start;
  double own_seconds = 0;  // seconds that this rank computed; set only with several ranks
  Tensor numbers = {};     // losses and other results, laid out as in PlacedStep::numbers
  bool choices = true;

  double seconds() const {  // seconds since the step began
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
};

/// A step's batches in the backend's memory, with memory for its results.
struct PlacedStep {
  StepCut cut;
  std::vector<PlacedBatch> batches;
  std::vector<std::int64_t> places;
  Tensor shares;        // [batches]
  Tensor numbers;       // losses of the batches, then their Loss::hits, then the gradients' norm
  bool choices = true;  // true if Loss::hits is set for every batch

  /// Prepares the model for the step.
  PlacedStep(Model& model, const Step& step);
  /// Overwrites the batches with the batches of another step of the same shape
  /// (nn/training/step_shape.h).
  void assign(Model& model, const Step& step);

  Tensor losses() const { return numbers.slice(0, std::ssize(batches)); }
  void put_norm(const Tensor& norm) const;
  /// Runs forward and backward passes on each batch and sums the gradients. If `summed` is given,
  /// each sum is passed to it as soon as it is complete, and the parameters get no gradients.
  /// Otherwise the sums become the parameters' gradients.
  void add_gradients(Model& model, const GradientTree::Summed& summed = {});
  /// If set, called before each batch with the batch's index in the step.
  std::function<void(std::int64_t place)> begins = {};

 private:
  void add_gradients(Model& model, std::size_t batch, GradientTree* tree);
  void prepare(Model& model, const Step& step) const;
};

}  // namespace longhand::nn
