#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf_blocks.h"
#include "core/safetensors_parts.h"
#include "core/shape.h"

namespace longhand::nn {

/// A tensor of any type in a file. Its entries are read as doubles, in row-major order.
struct StoredTensor {
  std::string place;  // start of error messages about the tensor: `FILE: tensor "NAME": `
  Shape shape;
  /// Fills `numbers` with consecutive entries, beginning with the entry at index `first`.
  std::function<void(std::int64_t first, std::span<double> numbers)> read;
};

/// A matrix that a file stores in blocks of rounded numbers. Its rows are those of our parameter,
/// [out, in], even if Hugging Face's form has the matrix transposed.
struct StoredBlocks {
  const GgufType* type;
  Shape shape;
  std::span<const std::byte> bytes;   // all rows, in the file's order
  std::vector<std::int64_t> rows;     // row r of the matrix is row rows[r]; empty: the same order
  std::shared_ptr<const void> owner;  // keeps `bytes` in memory
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
  /// Returns no value if the tensor is missing or is not a matrix in blocks.
  virtual std::optional<StoredBlocks> find_blocks(std::string_view /*tensor*/) const { return {}; }

  /// Returns the tensor of the first name that exists. If no name exists, throws an Error that
  /// contains the first name.
  StoredTensor at(std::span<const std::string> names) const;
};

/// Opens model.safetensors in a folder, or the several files into which it is split.
std::unique_ptr<Weights> open_weights(const std::filesystem::path& folder);
std::unique_ptr<Weights> weights_of(SafetensorsParts parts);

}  // namespace longhand::nn
