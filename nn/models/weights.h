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

/// A tensor of a file as numbers in a row, whatever type the file holds them in.
struct StoredTensor {
  std::string place;  // how a message about it begins: `FILE: tensor "NAME": `
  Shape shape;
  /// Numbers first, first + 1, ..., in the file's order.
  std::function<void(std::int64_t first, std::span<double> numbers)> read;
};

/// Where a published model's tensors lie, under the names of Hugging Face's form. What they give
/// out must not outlive it.
class Weights {
 public:
  virtual ~Weights() = default;
  virtual const std::string& name() const = 0;
  virtual double numbers() const = 0;  // in all tensors
  /// Whether all matrices are stored in bf16, which then holds them as they are.
  virtual bool matrices_are_bf16() const = 0;
  virtual std::optional<StoredTensor> find(std::string_view tensor) const = 0;

  /// The first of these names that is there; an Error that gives the first one where none is.
  StoredTensor at(std::span<const std::string> names) const;
};

/// model.safetensors of a folder, or its parts.
std::unique_ptr<Weights> open_weights(const std::filesystem::path& folder);
std::unique_ptr<Weights> weights_of(SafetensorsParts parts);

}  // namespace longhand::nn
