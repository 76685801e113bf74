#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "nn/training/checkpoint_store.h"

namespace longhand::nn {

struct CheckpointOptions {
  std::filesystem::path folder = {};  // empty: no checkpoints are written
  int keep = 2;  // how many of the latest to keep; the best one is kept as well
  std::uint64_t most_file_bytes = 0;  // the size limit of a checkpoint's files; 0: no limit
  Metadata metadata = {};             // stored in every checkpoint
};

/// Writes the checkpoints of a training run, and remembers which step was saved last and which
/// checkpoint scored best.
class RunCheckpoints {
 public:
  /// writes: false on ranks that leave writing to rank 0.
  RunCheckpoints(CheckpointOptions options, const Parameters& parameters,
                 const Optimizer& optimizer, bool writes);

  void open();  // call before the first checkpoint is written
  CheckpointInfo load(const std::filesystem::path& checkpoint);
  std::optional<std::filesystem::path> latest() const;

  /// True if save() would write this step.
  bool wants(std::int64_t step) const { return writes() && saved_ != step; }
  /// Writes the checkpoint of this step and returns its folder; returns nothing if the step is
  /// saved already or no checkpoints are written. sharing: the ranks that write it together; all of
  /// them call this.
  std::optional<std::filesystem::path> save(std::int64_t step, Communicator* sharing = nullptr);
  void score(std::int64_t step, double score);
  std::optional<std::int64_t> saved() const { return saved_; }  // the step saved last

 private:
  bool writes() const { return store_ && writes_; }

  CheckpointOptions options_;
  const Parameters& parameters_;
  const Optimizer& optimizer_;
  bool writes_;
  std::optional<CheckpointStore> store_;
  std::optional<std::int64_t> saved_;
  std::optional<double> best_;
};

}  // namespace longhand::nn
