#pragma once

#include <memory>

#include "autograd/tolerance.h"

namespace longhand::mutants {

/// Tests that the comparison of a backend with the reference detects bugs. Every op of the catalog
/// is computed with deliberate bugs (mutants), in each type and math mode, and compared with the
/// reference as in parity_test. If the environment variable LONGHAND_MUTANTS_TABLE is set, one line
/// per op and setting is printed.
class Trials {
 public:
  Trials();
  ~Trials();

  /// `standard` contains the results of the reference for the op.
  void check(const catalog::Operation& operation, tolerance::Standard& standard);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::mutants
