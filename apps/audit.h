#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"
#include "core/tensor_file.h"

/// The audit door: one op of the catalog run on tensors from outside.
///
/// A file holds the op's inputs under their names and, for gradients, the gradient of output y as
/// "dy". The result holds the outputs and, for gradients, that of input x as "dx".
namespace longhand::app {

/// The inputs and output gradients of a file; what belongs to neither is refused.
struct AuditFile {
  catalog::Case values;
  std::map<std::string, catalog::HostTensor> output_gradients;  // by the output's name
  DType type = DType::f32;  // of the first activation, else of the first float tensor
};
AuditFile read_audit_file(const std::filesystem::path& path, const catalog::Operation& operation);

/// Runs the op: the outputs and, when asked for, the gradients of all differentiable inputs.
/// Output gradients that the file lacks are an Error, but for the one of an output named "loss":
/// it is 1.
std::vector<NamedTensor> audit(const catalog::Operation& operation, const AuditFile& file,
                               Backend& backend, DType type, bool gradients);

/// Names of the outputs that have a gradient, found by running the op's first case.
std::vector<std::string> differentiable_outputs(const catalog::Operation& operation);

}  // namespace longhand::app
