#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/safetensors.h"
#include "core/tensor.h"

namespace longhand {

/// Loads the named tensor into the backend's memory, with the file's element type.
Tensor load_tensor(Backend& backend, const SafetensorsFile& file, std::string_view name);

/// Fills `tensor` from the file's tensor with this name. Both must have the same type and shape.
void load_into(const Tensor& tensor, const SafetensorsFile& file, std::string_view name);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Makes an item for write_safetensors() from a tensor. When the item is written, the tensor's
/// bytes are copied to host memory in pieces.
SafetensorsItem item_of(std::string name, Tensor tensor);

/// Writes a safetensors file. The file appears completely or not at all.
void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace longhand
