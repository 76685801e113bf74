#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/safetensors.h"
#include "core/tensor.h"

namespace longhand {

/// The tensor of that name in the backend's memory, in the file's own element type.
Tensor load_tensor(Backend& backend, const SafetensorsFile& file, std::string_view name);

/// Fills `tensor` from the file's tensor of that name, whose type and shape must be the same.
void load_into(const Tensor& tensor, const SafetensorsFile& file, std::string_view name);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// For a file: a tensor's bytes pass through host memory some at a time.
SafetensorsItem item_of(std::string name, Tensor tensor);

/// Writes a safetensors file, whole or not at all.
void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace longhand
