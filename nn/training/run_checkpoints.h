#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "nn/training/checkpoint_store.h"

namespace longhand::nn {

struct CheckpointOptions {
  /// Folder of the checkpoints; empty: no checkpoints are written.
  std::filesystem::path folder = {};
  int keep = 2;  // number of latest checkpoints to keep; the best one is always kept
  std::uint64_t most_file_bytes = 0;  // maximum bytes of each file; 0: no limit
  Metadata metadata = {};             // stored in every checkpoint
};

/// Writes the checkpoints of a training run. Remembers the last saved step and the best score.
class RunCheckpoints {
 public:
  /// `writes` is false on ranks that do not write files.
  RunCheckpoints(CheckpointOptions options, const Parameters& parameters,
                 const Optimizer& optimizer, bool writes);

  void open();  // must be called before the first checkpoint is written
  CheckpointInfo load(const std::filesystem::path& checkpoint);
  std::optional<std::filesystem::path> latest() const;

  /// True if save() would write a checkpoint of this step.
  bool wants(std::int64_t step) const { return writes() && saved_ != step; }
  /// Writes the checkpoint of this step and returns its folder. Returns no value if the step is
  /// already saved or if no checkpoints are written. If `sharing` is given, its ranks write the
  /// checkpoint together, and each of them must call this function.
  std::optional<std::filesystem::path> save(std::int64_t step, Communicator* sharing = nullptr);
  void score(std::int64_t step, double score);
  std::optional<std::int64_t> saved() const { return saved_; }  // the step that was saved last

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
