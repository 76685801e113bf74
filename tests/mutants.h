#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tolerance.h"
#include "tests/altered_backend.h"

/// Mistakes that a backend could make, for parity to notice.
namespace longhand::mutants {

/// Of any result: changes it and returns whether that made a difference.
struct ResultMutant {
  std::string name;
  std::function<bool(tolerance::Result& result, const std::vector<tolerance::Block>& blocks)> apply;
};
const std::vector<ResultMutant>& of_results();

/// Of an operation of the contract: every op of the catalog that runs it is altered.
struct BackendMutant {
  std::string name;
  std::function<void(AlteredBackend& backend)> install;
};
const std::vector<BackendMutant>& of_backends();

/// Of one op of the catalog: the op computed in a wrong way.
struct OperationMutant {
  std::string operation, name;
  std::function<std::vector<catalog::Output>(const catalog::Call&)> run;
};
const std::vector<OperationMutant>& of_operations();

}  // namespace longhand::mutants
