#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tolerance.h"
#include "tests/altered_backend.h"

/// Mutants: deliberate bugs, which the parity test between two backends must detect.
namespace longhand::mutants {

/// A bug that any op could have: it changes the computed result, for example by a factor of 1.02.
/// `apply` returns false if the result stays the same.
struct ResultMutant {
  std::string name;
  std::function<bool(tolerance::Result& result, const std::vector<tolerance::Block>& blocks)> apply;
};
const std::vector<ResultMutant>& of_results();

/// A bug of a backend, which executes an operation (a struct of core/contract) in a wrong way. It
/// affects every op of the catalog that uses the operation.
struct BackendMutant {
  std::string name;
  std::function<void(AlteredBackend& backend)> install;
};
const std::vector<BackendMutant>& of_backends();

/// A bug in the formula of one op of the catalog: `run` replaces the op's own computation.
struct OperationMutant {
  std::string operation, name;
  std::function<std::vector<catalog::Output>(const catalog::Call&)> run;
};
const std::vector<OperationMutant>& of_operations();

}  // namespace longhand::mutants
