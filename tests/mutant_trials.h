#pragma once

#include <memory>

#include "autograd/tolerance.h"

namespace longhand::mutants {

/// Shows that parity_test would detect bugs. An op is computed with deliberate bugs (mutants), in
/// each type and math mode, and every result must exceed the bounds of the comparison with the
/// reference. If the environment variable LONGHAND_MUTANTS_TABLE is set, one line per op and
/// setting is printed, and the sums at the end.
class Trials {
 public:
  Trials();
  ~Trials();

  /// Fails the running test for each mutant of the op that is not detected.
  void check(const catalog::Operation& operation, tolerance::Standard& standard);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::mutants
