#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"
#include "core/tensor_file.h"

/// Runs one operation of the catalog on tensors read from a file.
///
/// The file contains the operation's inputs under their names and, if gradients are requested, the
/// gradient of output y as "dy". The result contains the outputs and, if gradients are requested,
/// the gradient of input x as "dx".
namespace longhand::app {

/// The inputs and output gradients of one operation, read from a file. A file with any other tensor
/// is refused.
struct AuditFile {
  catalog::Case values;
  std::map<std::string, catalog::HostTensor> output_gradients;  // key: name of the output
  /// Type of the first input that is an activation. If no input is an activation, type of the first
  /// float input.
  DType type = DType::f32;
};
AuditFile read_audit_file(const std::filesystem::path& path, const catalog::Operation& operation);

/// Runs the operation. Returns the outputs and, if requested, the gradients of all differentiable
/// inputs. The gradient of an output named "loss" defaults to 1. If any other output gradient is
/// missing, throws an Error.
std::vector<NamedTensor> audit(const catalog::Operation& operation, const AuditFile& file,
                               Backend& backend, DType type, bool gradients);

/// Names of the outputs that have a gradient. They are found by running the operation on its first
/// test case.
std::vector<std::string> differentiable_outputs(const catalog::Operation& operation);

}  // namespace longhand::app
