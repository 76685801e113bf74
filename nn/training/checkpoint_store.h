#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/training/checkpoint.h"

namespace longhand::nn {

/// The folder checkpoints/ of a run. It holds a folder step-N for each checkpoint and a file `best`
/// that names one of them. The last `keep` checkpoints and the best one are kept; older ones are
/// removed. No file exceeds `most` bytes (0: no limit).
///
/// The folder is held open from the first write on, so that nothing is ever written into another
/// folder that took its place.
class CheckpointStore {
 public:
  CheckpointStore(std::filesystem::path folder, int keep, std::uint64_t most = 0);

  /// Creates the folder if it is missing, and removes what killed runs left in it.
  void open();

  void save(const CheckpointInfo& info, const Parameters& parameters,
            const Optimizer* optimizer = nullptr);
  /// Called by all ranks that share the optimizer's state.
  void save(const CheckpointInfo& info, const Parameters& parameters, const Optimizer& optimizer,
            Communicator& ranks);
  void save_score(std::int64_t step, double score);
  void mark_best(std::int64_t step);
  /// Checkpoints of later steps go out of the way: step-N becomes set-aside-step-N. The best is
  /// then one of those that stay.
  void set_aside_after(std::int64_t step);

  std::filesystem::path path(std::int64_t step) const;
  std::vector<std::int64_t> steps() const;  // in ascending order
  std::optional<std::int64_t> latest() const;
  /// The step that `best` names; none where there is no such file. An Error if it names none.
  std::optional<std::int64_t> best() const;
  /// The last checkpoint before `step` that is undamaged and holds the moments that training needs
  /// to go on.
  std::optional<std::int64_t> last_sound_before(std::int64_t step) const;

  /// The checkpoint up to `step` with the highest score, the first of equal ones; none if none has
  /// a score.
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
