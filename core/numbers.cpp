#include "core/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/dtype.h"
#include "core/error.h"
#include "core/float16.h"
#include "core/npy.h"
#include "core/quote.h"
#include "core/table_file.h"
#include "core/text_file.h"

namespace longhand {
namespace {

using Type = Numbers::Type;
// Maximum bytes of a file: 1 TiB, or the maximum of std::size_t if that is less.
constexpr std::size_t largest_file =
    std::min<std::uint64_t>(std::uint64_t{1} << 40, std::numeric_limits<std::size_t>::max());

std::size_t size_of(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8:
      return 1;
    case Type::i16:
    case Type::f16:
    case Type::bf16:
      return 2;
    case Type::i32:
    case Type::f32:
      return 4;
    default:
      return 8;
  }
}

template <class T>
T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double entry_at(Type type, const char* at) {
  switch (type) {
    case Type::u8:
      return read<std::uint8_t>(at);
    case Type::i8:
      return read<std::int8_t>(at);
    case Type::i16:
      return read<std::int16_t>(at);
    case Type::i32:
      return read<std::int32_t>(at);
    case Type::i64:
      return static_cast<double>(read<std::int64_t>(at));
    case Type::f16:
      return from_f16(read<std::uint16_t>(at));
    case Type::bf16:
      return static_cast<float>(read<bf16>(at));
    case Type::f32:
      return read<float>(at);
    default:
      return read<double>(at);
  }
}

/// The type with this name in safetensors files.
Type type_named(std::string_view name, const std::string& where) {
  constexpr std::pair<std::string_view, Type> types[] = {
      {"U8", Type::u8},   {"BOOL", Type::u8}, {"I8", Type::i8},   {"I16", Type::i16},
      {"I32", Type::i32}, {"I64", Type::i64}, {"F16", Type::f16}, {"BF16", Type::bf16},
      {"F32", Type::f32}, {"F64", Type::f64}};
  for (const auto& [known, type] : types) {
    if (known == name) return type;
  }
  fail(where, ": expected numbers of at most 64 bits, got type ", quote(name));
}

Numbers read_array(const std::filesystem::path& path, const std::string& array) {
  const ArrayFile file(path, array.empty() ? "array" : array);
  const SafetensorsFile& arrays = file.arrays();
  LONGHAND_CHECK(!array.empty() || arrays.entries().size() == 1, path.string(),
                 ": expected the name of one of the ", arrays.entries().size(),
                 " arrays in this file, got no name");
  const SafetensorsEntry* entry = array.empty() ? &arrays.entries().front() : arrays.find(array);
  LONGHAND_CHECK(entry, path.string(), ": expected an array named ", quote(array), ", got none");
  const std::string where = text(path.string(), ": array ", quote(entry->name));
  LONGHAND_CHECK(entry->shape.rank() > 0, where, ": expected an array with rows, got one number");
  return {entry->shape, type_named(entry->type, where),
          std::string(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size())};
}

/// Reads an IDX file. It contains two zero bytes, the type, the number of axes, the extents as
/// big-endian words of 4 bytes, and the entries, also big-endian.
Numbers read_idx(const std::filesystem::path& path) {
  std::string file = read_text(path, largest_file);
  const std::string where = path.string();
  LONGHAND_CHECK(!file.starts_with("\x1f\x8b"), where,
                 ": expected an uncompressed file, got a gzip file: unpack it with gunzip");
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(file[at]); };
  LONGHAND_CHECK(file.size() >= 4 && byte(0) == 0 && byte(1) == 0, where,
                 ": expected a .npy, .npz or .safetensors file, or an IDX file, which begins with "
                 "two zero bytes");
  constexpr std::pair<unsigned char, Type> types[] = {{8, Type::u8},   {9, Type::i8},
                                                      {11, Type::i16}, {12, Type::i32},
                                                      {13, Type::f32}, {14, Type::f64}};
  const auto known = std::ranges::find(types, byte(2), &std::pair<unsigned char, Type>::first);
  LONGHAND_CHECK(known != std::end(types), where, ": expected an IDX type from 8 to 14, got ",
                 int{byte(2)});
  const std::size_t axes = byte(3), begin = 4 + 4 * axes;
  LONGHAND_CHECK(axes >= 1 && axes <= Shape::max_rank, where, ": expected 1 to ", Shape::max_rank,
                 " axes, got ", axes);
  LONGHAND_CHECK(file.size() >= begin, where, ": the header is truncated");
  const std::size_t each = size_of(known->second);
  std::vector<std::int64_t> extents;
  std::uint64_t bytes = each, without_zeros = each;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::uint64_t extent = 0;
    for (std::size_t i = 0; i < 4; ++i) extent = extent << 8 | byte(4 + 4 * axis + i);
    LONGHAND_CHECK(!__builtin_mul_overflow(without_zeros, std::max<std::uint64_t>(extent, 1),
                                           &without_zeros) &&
                       without_zeros <= largest_file,
                   where, ": the shape is too large");
    extents.push_back(static_cast<std::int64_t>(extent));
    bytes *= extent;
  }
  const Shape shape(extents);
  LONGHAND_CHECK(file.size() - begin == bytes, where, ": expected ", bytes, " bytes for the shape ",
                 shape, ", got ", file.size() - begin);
  file.erase(0, begin);
  if (each > 1) {
    for (std::size_t at = 0; at < file.size(); at += each) {
      std::reverse(&file[at], &file[at] + each);
    }
  }
  return {shape, known->second, std::move(file)};
}

}  // namespace

Numbers::Numbers(const Shape& shape, Type type, std::string bytes)
    : shape_(shape), type_(type), bytes_(std::make_shared<const std::string>(std::move(bytes))) {
  LONGHAND_CHECK(shape.rank() > 0, "numbers: expected at least one axis, got none");
  LONGHAND_CHECK(bytes_->size() / size_of(type) == static_cast<std::size_t>(shape.size()) &&
                     bytes_->size() % size_of(type) == 0,
                 "numbers: expected data of the shape ", shape, " with ", size_of(type),
                 " bytes per entry, got ", bytes_->size(), " bytes in total");
}

std::int64_t Numbers::row_size() const { return count() == 0 ? 0 : size() / count(); }

double Numbers::operator[](std::int64_t entry) const {
  LONGHAND_CHECK(entry >= 0 && entry < size(), "numbers: expected an entry index from 0 to ",
                 size() - 1, ", got ", entry);
  return entry_at(type_, bytes_->data() + static_cast<std::size_t>(entry) * size_of(type_));
}

void Numbers::append_row(std::int64_t row, std::vector<double>& out) const {
  LONGHAND_CHECK(row >= 0 && row < count(), "numbers: expected a row index from 0 to ", count() - 1,
                 ", got ", row);
  const std::size_t each = size_of(type_);
  const char* at = bytes_->data() + static_cast<std::size_t>(row * row_size()) * each;
  for (std::int64_t i = 0; i < row_size(); ++i, at += each) out.push_back(entry_at(type_, at));
}

Numbers Numbers::select(std::span<const std::int64_t> rows) const {
  const std::size_t each = static_cast<std::size_t>(row_size()) * size_of(type_);
  std::string bytes;
  for (const std::int64_t row : rows) {
    LONGHAND_CHECK(row >= 0 && row < count(), "numbers: expected a row index from 0 to ",
                   count() - 1, ", got ", row);
    bytes.append(*bytes_, static_cast<std::size_t>(row) * each, each);
  }
  return {shape_.with_front(std::ssize(rows)), type_, std::move(bytes)};
}

std::vector<std::int32_t> Numbers::to_classes() const {
  std::vector<std::int32_t> classes;
  for (std::int64_t i = 0; i < size(); ++i) {
    const double value = (*this)[i];
    LONGHAND_CHECK(value >= 0 && value <= std::numeric_limits<std::int32_t>::max() &&
                       value == std::floor(value),
                   "numbers: expected integer classes from 0 to 2^31 - 1, got ", value,
                   " at entry ", i);
    classes.push_back(static_cast<std::int32_t>(value));
  }
  return classes;
}

Numbers read_numbers(const std::filesystem::path& path, const std::string& array) {
  if (is_numpy_file(path) || path.extension() == ".safetensors") return read_array(path, array);
  LONGHAND_CHECK(array.empty(), path.string(),
                 ": expected no array name, because an IDX file has "
                 "one array, got ",
                 quote(array));
  return read_idx(path);
}

Numbers read_columns(const std::filesystem::path& table, const std::vector<std::string>& columns) {
  TableFile file(table);
  std::vector<std::size_t> places;
  for (const std::string& name : columns) places.push_back(file.column(name));
  std::string bytes;
  std::int64_t rows = 0;
  for (; const auto row = file.next(); ++rows) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::string_view cell = (*row)[places[i]];
      cell.remove_prefix(std::min(cell.find_first_not_of(' '), cell.size()));
      cell.remove_suffix(cell.size() - (cell.find_last_not_of(' ') + 1));
      double value = 0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      LONGHAND_CHECK(
          error == std::errc() && end == cell.data() + cell.size() && std::isfinite(value),
          file.place(), ": ", quote(columns[i]), ": expected a number, got ", quote(cell));
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return {Shape{rows, std::ssize(columns)}, Type::f64, std::move(bytes)};
}

Classes read_classes(const std::filesystem::path& table, const std::string& column) {
  TableFile file(table);
  const std::size_t place = file.column(column);
  std::map<std::string, std::int32_t> numbers;  // names, numbered in the order of appearance
  Classes classes;
  while (const auto row = file.next()) {
    const std::string& name = (*row)[place];
    LONGHAND_CHECK(!name.empty(), file.place(), ": ", quote(column),
                   ": expected a class, got an empty cell");
    const auto [at, added] = numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
    LONGHAND_CHECK(numbers.size() <= most_classes, file.place(), ": ", quote(column),
                   ": expected at most ", most_classes, " different classes, got more");
    classes.rows.push_back(at->second);
  }
  // sorted[n] is the class number of the name to which `numbers` assigned n. The numbers n follow
  // the order of appearance. Class numbers follow the ascending order of the names.
  std::vector<std::int32_t> sorted(numbers.size());
  for (const auto& [name, number] : numbers) {
    sorted[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(classes.names.size());
    classes.names.push_back(name);
  }
  for (std::int32_t& row : classes.rows) row = sorted[static_cast<std::size_t>(row)];
  return classes;
}

}  // namespace longhand
