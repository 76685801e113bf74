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
  std::int64_t row_size() const;                         // entries per index of the first axis

  double operator[](std::int64_t entry) const;
  /// Appends the numbers of one row to `out`. A row is all numbers at one index of the first axis.
  void append_row(std::int64_t row, std::vector<double>& out) const;
  /// Copies the rows with these indices on the first axis.
  Numbers select(std::span<const std::int64_t> rows) const;
  /// Returns the entries as class numbers. Throws an Error unless each entry is a whole number from
  /// 0 to 2^31 - 1.
  std::vector<std::int32_t> to_classes() const;

 private:
  Shape shape_ = {0};
  Type type_ = Type::u8;
  std::shared_ptr<const std::string> bytes_ = std::make_shared<std::string>();
};

/// Reads an array from a file. The extensions .npy, .npz and .safetensors mean these formats. A
/// file with any other extension must be an uncompressed IDX file, the format of the MNIST data. If
/// the file contains several arrays, `array` is the name of the one to read. A truncated or damaged
/// file is refused. The memory required is at most a small multiple of the file's size.
Numbers read_numbers(const std::filesystem::path& path, const std::string& array = {});

/// Reads columns of a table (core/table_file.h) in which every cell is a number. The result has the
/// shape [rows, columns].
Numbers read_columns(const std::filesystem::path& table, const std::vector<std::string>& columns);

/// A column of words, converted to class numbers. Class k is the word names[k], and `names` is in
/// ascending order.
struct Classes {
  std::vector<std::string> names;
  std::vector<std::int32_t> rows;  // the class number in each row of the column
};
inline constexpr std::size_t most_classes = 65'536;
Classes read_classes(const std::filesystem::path& table, const std::string& column);

}  // namespace longhand
