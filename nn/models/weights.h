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

/// A tensor of a file, read as a flat array of numbers, whatever its stored type is.
struct StoredTensor {
  std::string place;  // prefix of messages about the tensor: `FILE: tensor "NAME": `
  Shape shape;
  /// Reads numbers first, first + 1, ... in the order of the file.
  std::function<void(std::int64_t first, std::span<double> numbers)> read;
};

/// The tensors of a published model under Hugging Face's names. A StoredTensor must not outlive
/// this object.
class Weights {
 public:
  virtual ~Weights() = default;
  virtual const std::string& name() const = 0;
  virtual double numbers() const = 0;  // total number of elements of all tensors
  /// True if all matrices are stored in bf16, so that bf16 parameters represent them exactly.
  virtual bool matrices_are_bf16() const = 0;
  virtual std::optional<StoredTensor> find(std::string_view tensor) const = 0;

  /// The tensor with the first of these names that exists. If none exists, throws an Error that
  /// contains the first name.
  StoredTensor at(std::span<const std::string> names) const;
};

/// Opens model.safetensors in a folder, or its parts.
std::unique_ptr<Weights> open_weights(const std::filesystem::path& folder);
std::unique_ptr<Weights> weights_of(SafetensorsParts parts);

}  // namespace longhand::nn
