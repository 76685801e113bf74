#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"

namespace longhand {

/// An array of numbers on the host, in row-major order, usually read from a file. The entries keep
/// the file's type in memory, so the pixels of an image take one byte each. Copies share the
/// memory.
class Numbers {
 public:
  enum class Type : std::uint8_t { u8, i8, i16, i32, i64, f16, bf16, f32, f64 };

  Numbers() = default;
  /// `bytes` are the entries, little-endian.
  Numbers(const Shape& shape, Type type, std::string bytes);

  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return shape_.size(); }
  std::int64_t count() const { return shape_.front(); }  // extent of the first axis
  std::int64_t row_size() const;                         // number of entries per index of that axis

  double operator[](std::int64_t entry) const;
  /// Appends entry `row` of the first axis to `out`.
  void append_row(std::int64_t row, std::vector<double>& out) const;
  /// A copy of the given rows.
  Numbers select(std::span<const std::int64_t> rows) const;
  /// The entries as classes. Throws an Error unless each is a whole number from 0 to 2^31 - 1.
  std::vector<std::int32_t> to_classes() const;

 private:
  Shape shape_ = {0};
  Type type_ = Type::u8;
  std::shared_ptr<const std::string> bytes_ = std::make_shared<std::string>();
};

/// Reads the array of a .npy file, an array of a .npz or .safetensors file, or an IDX file, the
/// format of the MNIST data (uncompressed; any other extension). If a file contains several arrays,
/// `array` is the name of one. A file that is truncated or damaged is refused, and the memory is at
/// most a small multiple of the file's size.
Numbers read_numbers(const std::filesystem::path& path, const std::string& array = {});

/// Reads columns of a table (core/table_file.h) in which every cell is a number. [rows, columns]
Numbers read_columns(const std::filesystem::path& table, const std::vector<std::string>& columns);

/// A column of words, as numbers. Class k is the k-th name in ascending order.
struct Classes {
  std::vector<std::string> names;
  std::vector<std::int32_t> rows;  // class of each row
};
inline constexpr std::size_t most_classes = 65'536;
Classes read_classes(const std::filesystem::path& table, const std::string& column);

}  // namespace longhand
