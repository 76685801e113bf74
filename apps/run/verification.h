#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app {

/// Selects the steps of a run that are computed again.
struct StepsToVerify {
  bool all = false;  // computes all steps again, from the state before the first one
  /// Computes the steps range.first to range.second again. The computation starts at the last
  /// checkpoint before range.first, so the steps between are computed too.
  std::optional<std::pair<std::int64_t, std::int64_t>> range = {};
  /// Number of stretches of steps to compute again. They are chosen at random with the seed `seed`.
  /// A stretch leads from one checkpoint, or from step 0, to the next checkpoint or the last step.
  std::int64_t sample = 0;
  std::uint64_t seed = 0;
};

struct Verified {
  std::string holds;      // list of everything that was checked and found right
  std::string unchecked;  // list of what could not be checked, with the reason; may be empty
  std::string hash;       // hash of the transcript's last line
};

/// Compares a run with its transcript (apps/run/transcript.h): the chain of hashes, config.ini, the
/// data, the metrics and all checkpoints. Computes the selected `steps` again. Throws an Error that
/// names the first difference. If `against` is given, the hash of the transcript's last line must
/// equal it. If `threads` is given, it replaces the run's number of threads.
Verified verify(const std::filesystem::path& run, const StepsToVerify& steps,
                const std::optional<std::string>& against, const std::optional<int>& threads);

}  // namespace longhand::app
