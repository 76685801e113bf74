#include "nn/training/fingerprints.h"

#include <sstream>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/safetensors_parts.h"
#include "core/sha256.h"
#include "core/tensor_file.h"
#include "nn/training/checkpoint.h"

namespace longhand::nn {
namespace {

/// Hashes the members of a batch. A list of numbers is hashed as the line "NAME COUNT\n", followed
/// by the bytes of its COUNT numbers.
class BatchHash {
 public:
  template <class Number>
  void add(std::string_view name, std::span<const Number> numbers) {
    hash_.add(text(name, ' ', numbers.size(), '\n'));
    hash_.add(std::as_bytes(numbers));
  }
  template <class Number>
  void add(std::string_view name, const std::vector<Number>& numbers) {
    add(name, std::span<const Number>(numbers));
  }
  void add(std::string_view name, const Floats& floats) {
    hash_.add(text(name, ' ', floats.shape, '\n'));
    add(name, floats.values);
  }
  void add(std::string_view name, const TokenRows& rows) {
    hash_.add(text(name, '\n'));
    add("tokens", rows.tokens);
    add("lengths", rows.lengths);
  }
  std::string finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

std::string hash_of(const Batch& batch) {
  static_assert(sizeof(ReferencePair) == 2 * sizeof(std::int32_t), "there is no padding");
  BatchHash hash;
  hash.add("tokens", batch.tokens);
  hash.add("lengths", batch.lengths);
  hash.add("positions", batch.positions);
  hash.add("reference", batch.reference);
  hash.add("features", batch.features);
  for (const auto& [name, floats] : batch.named_features) hash.add(name, floats);
  for (const auto& [name, rows] : batch.named_tokens) hash.add(name, rows);
  hash.add("targets", batch.targets);
  hash.add("values", batch.values);
  hash.add("weights", batch.weights);
  hash.add("groups, head", std::vector<std::int64_t>{batch.groups, batch.head});
  return hash.finish();
}

std::string hash_of(const SafetensorsItem& item) {
  Sha256 hash;
  hash.add(text(item.dtype, ' ', item.shape, '\n'));
  item.bytes([&](std::span<const std::byte> piece) { hash.add(piece); });
  return hash.finish();
}

TensorHashes hashes_in(const std::filesystem::path& folder, const std::string& name) {
  const SafetensorsParts parts = SafetensorsParts::open(folder, name);
  parts.check_exact();
  TensorHashes hashes;
  for (const SafetensorsFile& file : parts.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      const DType type = file.at(entry.name).dtype.value();
      hashes[entry.name] = hash_of({entry.name, type, entry.shape,
                                    [&](const SafetensorsItem::Give& give) { give(entry.bytes); }});
    }
  }
  return hashes;
}

}  // namespace

std::string hash_of(std::span<const Batch> batches, Communicator& ranks) {
  std::string lines;
  for (const Batch& batch : batches) lines += hash_of(batch) + '\n';
  Sha256 hash;
  for (const std::string& of_one : ranks.gather(std::string_view(lines))) hash.add(of_one);
  return hash.finish();
}

std::string root_of(const TensorHashes& tensors) {
  Sha256 hash;
  for (const auto& [name, of_tensor] : tensors) hash.add(text(name, ' ', of_tensor, '\n'));
  return hash.finish();
}

StateHashes hash_state(const Parameters& parameters, const Optimizer& optimizer,
                       Communicator* sharing) {
  StateHashes hashes;
  for (const Parameter& p : parameters.all()) {
    hashes.parameters[p.name()] = hash_of(item_of(p.name(), p.value()));
  }
  for (const Optimizer::State& state : optimizer.state()) {
    hashes.optimizer[state.name] = hash_of(item_of(state.name, state.tensor));
  }
  if (!sharing) return hashes;
  std::string lines;
  for (const auto& [name, hash] : hashes.optimizer) lines += text(name, '\n', hash, '\n');
  for (const std::string& of_one : sharing->gather(std::string_view(lines))) {
    std::istringstream in(of_one);
    for (std::string name, hash; std::getline(in, name) && std::getline(in, hash);) {
      hashes.optimizer[name] = hash;
    }
  }
  return hashes;
}

StateHashes hash_checkpoint(const std::filesystem::path& folder) {
  const CheckedCheckpoint checked = check_checkpoint(folder);
  StateHashes hashes{.parameters = hashes_in(folder, "model")};
  if (checked.optimizer) hashes.optimizer = hashes_in(folder, "optimizer");
  return hashes;
}

}  // namespace longhand::nn
