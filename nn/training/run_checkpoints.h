#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "nn/training/checkpoint_store.h"

namespace longhand::nn {

struct CheckpointOptions {
  std::filesystem::path folder = {};  // empty: none are written
  int keep = 2;                       // of the latest; the best stays as well
  std::uint64_t most_file_bytes = 0;  // of a checkpoint's files; 0: no limit
  Metadata metadata = {};             // written into every checkpoint
};

/// The checkpoints that a training writes and goes on from: which step was saved last, and which
/// had the best score.
class RunCheckpoints {
 public:
  /// writes: false on ranks that leave the files to rank 0.
  RunCheckpoints(CheckpointOptions options, const Parameters& parameters,
                 const Optimizer& optimizer, bool writes);

  void open();  // before the first is written
  CheckpointInfo load(const std::filesystem::path& checkpoint);
  std::optional<std::filesystem::path> latest() const;

  /// Whether save() would write it.
  bool wants(std::int64_t step) const { return writes() && saved_ != step; }
  /// Where the step was saved; none where it was already, or none are written.
  /// sharing: the ranks that write it together, all of which call this.
  std::optional<std::filesystem::path> save(std::int64_t step, Communicator* sharing = nullptr);
  void score(std::int64_t step, double score);
  std::optional<std::int64_t> saved() const { return saved_; }  // the last step that was

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
