#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/rng.h"
#include "tasks/task.h"

namespace longhand::tasks {

/// The lengths of samples. In training, most samples are short: with probability 4/5, a length is
/// drawn uniformly from 2 to `short`, and otherwise from `short` + 1 to `long`. In each test set,
/// all samples have the same length.
class LengthMix {
 public:
  static constexpr std::int64_t most = 1 << 14;

  /// Reads the options `length` (0: short and long lengths are mixed as in training), `short` and
  /// `long`.
  explicit LengthMix(const OptionValues& options);
  static std::vector<TaskOption> options(int short_length, int long_length);
  /// The test set in which all samples have this length.
  static Distribution exactly(std::int64_t length);

  std::int64_t draw(Rng& rng) const;
  bool is_mix() const { return exact_ == 0; }
  std::int64_t longest() const { return is_mix() ? long_ : exact_; }

 private:
  std::int64_t short_, long_, exact_;
};

}  // namespace longhand::tasks
