#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/module.h"
#include "nn/optimizer.h"

namespace longhand::nn {

using Metadata = std::map<std::string, std::string, std::less<>>;

/// What a checkpoint says beside its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::optional<double> score = {};  // of the evaluation at this step, if there was one
  Metadata more = {};                // whatever the caller wants back
};

/// A checkpoint is a folder: model.safetensors, with the parameters by name, and, when it is for
/// going on, optimizer.safetensors with the moments. Either all of it is there or none. Where one
/// of the two would be larger than `most` bytes (0: no limit) it lies in parts with an index
/// (core/safetensors_parts.h).
void save_checkpoint(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const AdamOptimizer* optimizer,
                     std::uint64_t most = 0);

/// Refused where a tensor is larger than a file of a checkpoint may be.
void check_file_size(const Parameters& parameters, const AdamOptimizer& optimizer,
                     const Metadata& more, std::uint64_t most);

/// Reads it into parameters (and moments, if wanted) of the same names, types and shapes. What does
/// not fit is told in one line that names the tensor, before anything is changed.
CheckpointInfo load_checkpoint(const std::filesystem::path& folder, const Parameters& parameters,
                               const AdamOptimizer* optimizer = nullptr);
CheckpointInfo read_checkpoint_info(const std::filesystem::path& folder);

/// checkpoints/ of a run: step-N folders and the file `best`, which names one of them. The last
/// `keep` and the best are kept. Files have at most `most` bytes; 0: no limit.
class CheckpointStore {
 public:
  CheckpointStore(std::filesystem::path folder, int keep, std::uint64_t most = 0);

  /// Removes what an interrupted save left behind.
  void clean() const;

  void save(const CheckpointInfo& info, const Parameters& parameters,
            const AdamOptimizer& optimizer) const;
  void mark_best(std::int64_t step) const;

  std::filesystem::path path(std::int64_t step) const;
  std::vector<std::int64_t> steps() const;  // ascending
  std::optional<std::int64_t> latest() const;
  std::optional<std::int64_t> best() const;

 private:
  void prune() const;

  std::filesystem::path folder_;
  int keep_;
  std::uint64_t most_;
};

}  // namespace longhand::nn
