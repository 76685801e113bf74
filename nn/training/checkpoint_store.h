#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/training/checkpoint.h"

namespace longhand::nn {

/// The folder checkpoints/ of a run. It contains a folder step-N for each checkpoint, and the file
/// `best`, which contains the name of the best checkpoint. The last `keep` checkpoints and the best
/// one are kept. All others are removed. No file exceeds `most` bytes (0: no limit).
///
/// The folder is opened at the first write and stays open. If another folder replaces it at the
/// same path, nothing is written to that other folder.
class CheckpointStore {
 public:
  CheckpointStore(std::filesystem::path folder, int keep, std::uint64_t most = 0);

  /// Creates the folder if it is missing, and removes temporary files of killed runs.
  void open();

  void save(const CheckpointInfo& info, const Parameters& parameters,
            const Optimizer* optimizer = nullptr);
  /// Like save() above, for ranks that share the optimizer's state. All ranks must call this
  /// function.
  void save(const CheckpointInfo& info, const Parameters& parameters, const Optimizer& optimizer,
            Communicator& ranks);
  void save_score(std::int64_t step, double score);
  void mark_best(std::int64_t step);
  /// Renames the checkpoints of all later steps from step-N to set-aside-step-N. The file `best`
  /// then names the best of the remaining checkpoints.
  void set_aside_after(std::int64_t step);

  std::filesystem::path path(std::int64_t step) const;
  std::vector<std::int64_t> steps() const;  // in ascending order
  std::optional<std::int64_t> latest() const;
  /// The step named by the file `best`; no value if the file is missing. Throws an Error if the
  /// file is invalid.
  std::optional<std::int64_t> best() const;
  /// The latest checkpoint before `step` that is not damaged and contains the optimizer's state.
  std::optional<std::int64_t> last_sound_before(std::int64_t step) const;

  /// The checkpoint with the highest score among those up to `step`. If several have the highest
  /// score, the earliest of them. No value if none has a score.
  std::optional<std::int64_t> best_up_to(std::int64_t step) const;

 private:
  const Folder& held();
  void after_save(std::int64_t step);
  void prune();

  std::filesystem::path folder_;
  std::optional<Folder> held_;
  int keep_;
  std::uint64_t most_;
};

}  // namespace longhand::nn
