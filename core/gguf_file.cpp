#include "core/gguf_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "core/regular_file.h"
#include "core/utf8.h"

namespace longhand {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they are stored");

constexpr std::string_view magic = "GGUF";
constexpr std::uint32_t string_type = 8, array_type = 9;

/// Size in bytes of a value of each type, in the order of the type codes: u8, i8, u16, i16, u32,
/// i32, f32, bool, string, array, u64, i64, f64. The size of strings and arrays varies (here 0).
constexpr std::array<std::size_t, 13> sizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// Reads the bytes of a file in order.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t place() const { return place_; }
  std::span<const std::byte> take(std::uint64_t count) {
    LONGHAND_CHECK(count <= bytes_.size() - place_, file_, ": expected ", count,
                   " more bytes from byte ", place_, " on, got ", bytes_.size() - place_);
    const auto taken = bytes_.subspan(place_, static_cast<std::size_t>(count));
    place_ += taken.size();
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view string() {
    const auto text = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  std::string name() {
    const std::string_view text = string();
    LONGHAND_CHECK(text.size() <= GgufFile::longest_name, file_, ": expected names of at most ",
                   GgufFile::longest_name, " bytes, got ", text.size());
    LONGHAND_CHECK(find_broken_utf8(text) == std::string_view::npos, file_,
                   ": expected names in UTF-8, got ", quote(text));
    return std::string(text);
  }

  GgufFile::Value value(std::uint32_t type) {
    switch (type) {
      case 0:
        return std::uint64_t{number<std::uint8_t>()};
      case 1:
        return std::int64_t{number<std::int8_t>()};
      case 2:
        return std::uint64_t{number<std::uint16_t>()};
      case 3:
        return std::int64_t{number<std::int16_t>()};
      case 4:
        return std::uint64_t{number<std::uint32_t>()};
      case 5:
        return std::int64_t{number<std::int32_t>()};
      case 6:
        return double{number<float>()};
      case 7:
        return number<std::uint8_t>() != 0;
      case string_type:
        return string();
      case array_type:
        return array();
      case 10:
        return number<std::uint64_t>();
      case 11:
        return number<std::int64_t>();
      case 12:
        return number<double>();
      default:
        fail(file_, ": expected a metadata value of type 0 to 12, got type ", type);
    }
  }

 private:
  GgufFile::Array array() {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    LONGHAND_CHECK(type < sizes.size() && type != array_type, file_,
                   ": expected an array of numbers or strings, got an array of type ", type);
    const std::size_t begin = place_;
    if (type == string_type) {
      for (std::uint64_t i = 0; i < count; ++i) string();
    } else {
      LONGHAND_CHECK(count <= bytes_.size(), file_, ": expected an array of at most ",
                     bytes_.size(), " values, the number of bytes in the file, got ", count);
      take(count * sizes[type]);
    }
    return {type, count, bytes_.subspan(begin, place_ - begin)};
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t place_ = 0;
};

/// The beginning of every error message about a tensor.
std::string subject_of(const GgufFile::Entry& entry, const std::string& file) {
  return text(file, ": tensor ", quote(entry.name), ": ");
}

Shape read_shape(Cursor& cursor, const std::string& subject) {
  const auto rank = cursor.number<std::uint32_t>();
  LONGHAND_CHECK(rank <= Shape::max_rank, subject, "expected at most ", Shape::max_rank,
                 " axes, got ", rank);
  std::array<std::int64_t, Shape::max_rank> extents{};
  for (std::uint32_t axis = rank; axis-- > 0;) {  // in the file, the first axis varies fastest
    const auto extent = cursor.number<std::uint64_t>();
    LONGHAND_CHECK(std::in_range<std::int64_t>(extent), subject,
                   "expected extents below 2^63, got ", extent);
    extents[axis] = static_cast<std::int64_t>(extent);
  }
  std::int64_t size = 1;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    LONGHAND_CHECK(!__builtin_mul_overflow(size, extents[axis], &size), subject,
                   "expected fewer than 2^63 elements, got more");
  }
  return Shape(std::span(extents.data(), rank));
}

/// Reads the name, shape and type of a tensor.
GgufFile::Entry read_entry(Cursor& cursor, const std::string& file) {
  GgufFile::Entry entry{};
  entry.name = cursor.name();
  const std::string subject = subject_of(entry, file);
  entry.shape = read_shape(cursor, subject);
  const auto code = cursor.number<std::uint32_t>();
  entry.type = gguf_type(code);
  LONGHAND_CHECK(entry.type, subject, "expected F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, ",
                 "Q5_1, Q4_K, Q5_K or Q6_K, got type ", code);
  const std::int64_t row = entry.shape.rank() == 0 ? 1 : entry.shape.back();
  LONGHAND_CHECK(row % entry.type->block == 0, subject,
                 "expected a row length that is a multiple of the block size ", entry.type->block,
                 ", got ", row);
  return entry;
}

}  // namespace

bool GgufFile::is_gguf(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  std::array<char, 4> first{};
  const ssize_t count = ::pread(file.get(), first.data(), first.size(), 0);
  return count == ssize_t{first.size()} && std::string_view(first.data(), first.size()) == magic;
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile file;
  file.file_ = MappedFile(path);
  file.name_ = path.string();
  file.read(file.file_.bytes());
  return file;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.name_ = std::move(name);
  file.read(bytes);
  return file;
}

void GgufFile::read(std::span<const std::byte> bytes) {
  Cursor cursor(bytes, name_);
  const auto begins = cursor.take(4);
  LONGHAND_CHECK(std::memcmp(begins.data(), magic.data(), magic.size()) == 0, name_,
                 ": expected a GGUF file, got another kind of file");
  const auto version = cursor.number<std::uint32_t>();
  LONGHAND_CHECK(version == 2 || version == 3, name_, ": expected GGUF version 2 or 3, got ",
                 version);
  const auto tensors = cursor.number<std::uint64_t>(), values = cursor.number<std::uint64_t>();
  LONGHAND_CHECK(values <= most_values, name_, ": expected at most ", most_values,
                 " metadata values, got ", values);
  LONGHAND_CHECK(tensors <= most_tensors, name_, ": expected at most ", most_tensors,
                 " tensors, got ", tensors);
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key = cursor.name();
    const auto type = cursor.number<std::uint32_t>();
    Value value = cursor.value(type);
    const auto [place, is_new] = values_.try_emplace(std::move(key), value);
    LONGHAND_CHECK(is_new, name_, ": metadata value ", quote(place->first), " is given twice");
  }
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    entries_.push_back(read_entry(cursor, name_));
    offsets.push_back(cursor.number<std::uint64_t>());
  }

  const std::uint64_t alignment = has("general.alignment") ? integer("general.alignment") : 32;
  LONGHAND_CHECK(alignment >= 1 && alignment <= 1 << 20, name_,
                 ": general.alignment: expected 1 to 1048576, got ", alignment);
  if (entries_.empty()) return;
  const std::uint64_t header = (cursor.place() + alignment - 1) / alignment * alignment;
  LONGHAND_CHECK(header <= bytes.size(), name_,
                 ": expected tensors after the header, got the end of the file");
  place_entries(bytes.subspan(static_cast<std::size_t>(header)), offsets);
}

void GgufFile::place_entries(std::span<const std::byte> data,
                             std::span<const std::uint64_t> offsets) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const std::string subject = subject_of(entry, name_);
    const auto blocks = static_cast<std::uint64_t>(entry.shape.size() / entry.type->block);
    std::uint64_t size = 0;
    LONGHAND_CHECK(!__builtin_mul_overflow(blocks, std::uint64_t{entry.type->bytes}, &size) &&
                       offsets[i] <= data.size() && size <= data.size() - offsets[i],
                   subject, "expected data for ", blocks, " blocks from byte ", offsets[i],
                   " on, got a file with ", data.size(), " bytes of data");
    entry.bytes =
        data.subspan(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(size));
    places.emplace_back(offsets[i], offsets[i] + size);
    LONGHAND_CHECK(by_name_.emplace(entry.name, i).second, subject, "given twice");
  }
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) {
    LONGHAND_CHECK(places[i - 1].second <= places[i].first, name_,
                   ": expected tensors that do not overlap, got two that overlap at byte ",
                   places[i].first, " of the data");
  }
}

const GgufFile::Entry* GgufFile::find(std::string_view tensor) const {
  const auto found = by_name_.find(tensor);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

template <class T>
const T& GgufFile::as(std::string_view key, std::string_view wanted) const {
  const auto found = values_.find(key);
  LONGHAND_CHECK(found != values_.end(), name_, ": expected a metadata value named ", key,
                 ", got none");
  const T* const value = std::get_if<T>(&found->second);
  LONGHAND_CHECK(value, name_, ": ", key, ": expected ", wanted, ", got a value of another kind");
  return *value;
}

std::string_view GgufFile::string(std::string_view key) const {
  return as<std::string_view>(key, "a text");
}

std::uint64_t GgufFile::integer(std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end()) {
    const auto* const value = std::get_if<std::int64_t>(&found->second);
    if (value && *value >= 0) return static_cast<std::uint64_t>(*value);
  }
  return as<std::uint64_t>(key, "a number from 0 on");
}

double GgufFile::number(std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end() && !std::holds_alternative<double>(found->second)) {
    return static_cast<double>(integer(key));
  }
  return as<double>(key, "a number");
}

bool GgufFile::boolean(std::string_view key) const { return as<bool>(key, "true or false"); }

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  const Array& array = as<Array>(key, "an array of texts");
  LONGHAND_CHECK(array.type == string_type, name_, ": ", key, ": expected strings, got numbers");
  Cursor cursor(array.bytes, name_);
  std::vector<std::string_view> all;
  all.reserve(static_cast<std::size_t>(array.count));
  for (std::uint64_t i = 0; i < array.count; ++i) all.push_back(cursor.string());
  return all;
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const Array& array = as<Array>(key, "an array of integers");
  LONGHAND_CHECK(array.count <= 1 << 24, name_, ": ", key, ": expected at most ", 1 << 24,
                 " values, got ", array.count);
  Cursor cursor(array.bytes, name_);
  std::vector<std::int64_t> all;
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const Value value = array.type == string_type ? Value(false) : cursor.value(array.type);
    const auto* const small = std::get_if<std::int64_t>(&value);
    const auto* const great = std::get_if<std::uint64_t>(&value);
    LONGHAND_CHECK(small || (great && std::in_range<std::int64_t>(*great)), name_, ": ", key,
                   ": expected integers, got values of another kind");
    all.push_back(small ? *small : static_cast<std::int64_t>(*great));
  }
  return all;
}

}  // namespace longhand
