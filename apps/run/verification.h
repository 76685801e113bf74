#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app {

/// The steps of a run that are computed again.
struct StepsToVerify {
  bool all = false;  // all steps, from step 0
  /// Steps from `first` to `second`, from the last checkpoint before them.
  std::optional<std::pair<std::int64_t, std::int64_t>> range = {};
  /// This number of stretches, chosen with `seed`. A stretch leads from one checkpoint, or from
  /// step 0, to the next one.
  std::int64_t sample = 0;
  std::uint64_t seed = 0;
};

struct Verified {
  std::string holds;      // all that was checked
  std::string unchecked;  // what could not be checked, and why; empty if everything was
  std::string hash;       // hash of the transcript's last line
};

/// Compares a run with its transcript (apps/run/transcript.h): the chain of hashes, config.ini, the
/// data, the metrics and all checkpoints. Computes `steps` again. Throws an Error that names the
/// first difference. `against` is the expected hash of the transcript's last line. `threads`
/// replaces the run's number of threads.
Verified verify(const std::filesystem::path& run, const StepsToVerify& steps,
                const std::optional<std::string>& against, const std::optional<int>& threads);

}  // namespace longhand::app
