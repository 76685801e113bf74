#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tolerance.h"
#include "tests/altered_backend.h"

/// Bugs that a backend could have, which the parity test must detect.
namespace longhand::mutants {

/// A wrong change of a result, which can be made to every op. `apply` returns false if the result
/// stays the same.
struct ResultMutant {
  std::string name;
  std::function<bool(tolerance::Result& result, const std::vector<tolerance::Block>& blocks)> apply;
};
const std::vector<ResultMutant>& of_results();

/// A wrong execution of an operation of the contract. It affects every op of the catalog that uses
/// the operation.
struct BackendMutant {
  std::string name;
  std::function<void(AlteredBackend& backend)> install;
};
const std::vector<BackendMutant>& of_backends();

/// An op of the catalog that is computed in a wrong way.
struct OperationMutant {
  std::string operation, name;
  std::function<std::vector<catalog::Output>(const catalog::Call&)> run;
};
const std::vector<OperationMutant>& of_operations();

}  // namespace longhand::mutants
