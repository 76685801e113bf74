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

/// The inputs and output gradients stored in a file. A file with any other tensor is refused.
struct AuditFile {
  catalog::Case values;
  std::map<std::string, catalog::HostTensor> output_gradients;  // key: name of the output
  DType type = DType::f32;  // type of the first activation, otherwise of the first float tensor
};
AuditFile read_audit_file(const std::filesystem::path& path, const catalog::Operation& operation);

/// Runs the operation. Returns the outputs and, if requested, the gradients of all differentiable
/// inputs. A missing output gradient is an Error; only for an output named "loss" it defaults to 1.
std::vector<NamedTensor> audit(const catalog::Operation& operation, const AuditFile& file,
                               Backend& backend, DType type, bool gradients);

/// Names of the outputs that have a gradient, found by running the operation's first case.
std::vector<std::string> differentiable_outputs(const catalog::Operation& operation);

}  // namespace longhand::app
