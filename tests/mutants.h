#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tolerance.h"
#include "tests/altered_backend.h"

/// Mistakes that a backend could make, which parity must detect.
namespace longhand::mutants {

/// A change of any result. Returns whether the result differs.
struct ResultMutant {
  std::string name;
  std::function<bool(tolerance::Result& result, const std::vector<tolerance::Block>& blocks)> apply;
};
const std::vector<ResultMutant>& of_results();

/// An alteration of an operation of the contract, and thereby of every op of the catalog that runs
/// it.
struct BackendMutant {
  std::string name;
  std::function<void(AlteredBackend& backend)> install;
};
const std::vector<BackendMutant>& of_backends();

/// One op of the catalog, computed in a wrong way.
struct OperationMutant {
  std::string operation, name;
  std::function<std::vector<catalog::Output>(const catalog::Call&)> run;
};
const std::vector<OperationMutant>& of_operations();

}  // namespace longhand::mutants
