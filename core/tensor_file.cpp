#include "core/tensor_file.h"

#include <vector>

#include "core/backend.h"

namespace longhand {

Tensor load_tensor(Backend& backend, const SafetensorsFile& file, std::string_view name) {
  const SafetensorsEntry& entry = file.at(name);
  const Tensor tensor(backend, entry.shape, *entry.dtype);
  backend.upload(tensor.address(), entry.bytes.data(), entry.bytes.size());
  return tensor;
}

void load_into(const Tensor& tensor, const SafetensorsFile& file, std::string_view name) {
  const SafetensorsEntry& entry = file.at(name, tensor.dtype(), tensor.shape());
  tensor.backend().upload(tensor.address(), entry.bytes.data(), entry.bytes.size());
}

void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<std::byte> host;
  std::vector<SafetensorsItem> items;
  for (const NamedTensor& named : tensors) {
    items.push_back({.name = named.name,
                     .dtype = named.tensor.dtype(),
                     .shape = named.tensor.shape(),
                     .bytes = [&host, tensor = named.tensor]() -> std::span<const std::byte> {
                       host.resize(tensor.bytes());
                       tensor.backend().download(host.data(), tensor.address(), host.size());
                       return host;
                     }});
  }
  write_safetensors(path, items, metadata);
}

}  // namespace longhand
