#include "core/tensor_file.h"

#include <algorithm>
#include <utility>
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

constexpr std::size_t bytes_at_once = std::size_t{1} << 22;

SafetensorsItem item_of(std::string name, Tensor tensor) {
  const auto bytes = [tensor](const SafetensorsItem::Give& give) {
    std::vector<std::byte> host(std::min(tensor.bytes(), bytes_at_once));
    for (std::size_t first = 0; first < tensor.bytes(); first += host.size()) {
      host.resize(std::min(host.size(), tensor.bytes() - first));
      tensor.backend().download(
          host.data(), static_cast<const std::byte*>(tensor.address()) + first, host.size());
      give(host);
    }
  };
  return {std::move(name), tensor.dtype(), tensor.shape(), bytes};
}

void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<SafetensorsItem> items;
  for (const NamedTensor& named : tensors) items.push_back(item_of(named.name, named.tensor));
  write_safetensors(path, items, metadata);
}

}  // namespace longhand
