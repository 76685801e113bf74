#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/safetensors_parts.h"
#include "core/shape.h"

namespace longhand::nn {

/// A tensor of a file as a flat array of numbers, in any stored type.
struct StoredTensor {
  std::string place;  // prefix of messages about it: `FILE: tensor "NAME": `
  Shape shape;
  /// Reads numbers first, first + 1, ... in the file's order.
  std::function<void(std::int64_t first, std::span<double> numbers)> read;
};

/// The tensors of a published model, under the names that Hugging Face uses. Returned tensors must
/// not outlive it.
class Weights {
 public:
  virtual ~Weights() = default;
  virtual const std::string& name() const = 0;
  virtual double numbers() const = 0;  // count of numbers in all tensors
  /// True if all matrices are stored in bf16, so that bf16 parameters hold them exactly.
  virtual bool matrices_are_bf16() const = 0;
  virtual std::optional<StoredTensor> find(std::string_view tensor) const = 0;

  /// The first of these names that exists. Throws an Error that names the first one if none does.
  StoredTensor at(std::span<const std::string> names) const;
};

/// Opens model.safetensors of a folder, or its parts.
std::unique_ptr<Weights> open_weights(const std::filesystem::path& folder);
std::unique_ptr<Weights> weights_of(SafetensorsParts parts);

}  // namespace longhand::nn
