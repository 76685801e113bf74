#include "core/safetensors_header.h"

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/quote.h"
#include "core/safetensors.h"

namespace longhand {
namespace {

class HeaderReader {
 public:
  HeaderReader(std::string_view json, const std::string& file)
      : file_(file), json_(json, file + ": the header") {}

  SafetensorsHeader read() {
    bool has_metadata = false;
    for (json_.open_object(); json_.next_member();) {
      if (json_.name() == "__metadata__") {
        LONGHAND_CHECK(!std::exchange(has_metadata, true), file_, ": __metadata__ is given twice");
        read_metadata();
      } else {
        LONGHAND_CHECK(header_.records.size() < SafetensorsFile::max_entries, file_,
                       ": expected at most ", SafetensorsFile::max_entries, " tensors, got more");
        read_tensor();
      }
    }
    json_.finish();
    return std::move(header_);
  }

 private:
  void read_metadata() {
    if (!json_.at_object()) unexpected(file_ + ": __metadata__: ", "an object");
    for (json_.open_object(); json_.next_member();) {
      LONGHAND_CHECK(header_.metadata.size() < SafetensorsFile::max_entries, file_,
                     ": expected at most ", SafetensorsFile::max_entries,
                     " metadata keys, got more");
      const auto [place, is_new] = header_.metadata.try_emplace(std::string(json_.name()));
      LONGHAND_CHECK(is_new, file_, ": metadata key ", quote(place->first), " is given twice");
      if (!json_.at_string()) unexpected(file_ + ": __metadata__: ", "a string");
      place->second = json_.string();
    }
  }

  void read_tensor() {
    SafetensorsRecord& record = header_.records.emplace_back();
    record.name = json_.name();
    LONGHAND_CHECK(record.name.size() <= SafetensorsFile::max_name, subject(),
                   "expected a name of at most ", SafetensorsFile::max_name, " bytes, got ",
                   record.name.size());
    if (!json_.at_object()) unexpected(subject(), "an object");
    bool has_type = false, has_shape = false, has_offsets = false;
    const auto once = [&](bool& seen) {
      LONGHAND_CHECK(!std::exchange(seen, true), subject(), json_.name(), " given twice");
    };
    for (json_.open_object(); json_.next_member();) {
      if (json_.name() == "dtype") {
        once(has_type);
        if (!json_.at_string()) unexpected(subject() + "dtype: ", "a string");
        record.type = json_.string();
      } else if (json_.name() == "shape") {
        once(has_shape);
        record.shape = read_shape();
      } else if (json_.name() == "data_offsets") {
        once(has_offsets);
        read_offsets(record);
      } else {
        fail(subject(), "expected the key dtype, shape or data_offsets, got ", quote(json_.name()));
      }
    }
    LONGHAND_CHECK(has_type, subject(), "has no dtype");
    LONGHAND_CHECK(has_shape, subject(), "has no shape");
    LONGHAND_CHECK(has_offsets, subject(), "has no data_offsets");
  }

  Shape read_shape() {
    if (!json_.at_array()) unexpected(subject() + "shape: ", "an array");
    std::array<std::int64_t, Shape::max_rank> extents{};
    std::size_t rank = 0;
    std::int64_t size = 1;
    for (json_.open_array(); json_.next_element();) {
      const auto extent = read_number<std::int64_t>("shape: ", "numbers from 0 to 2^63 - 1");
      LONGHAND_CHECK(rank < extents.size(), subject(), "expected at most ", Shape::max_rank,
                     " axes, got more");
      LONGHAND_CHECK(!__builtin_mul_overflow(size, extent, &size), subject(),
                     "expected fewer than 2^63 elements, got more");
      extents[rank++] = extent;
    }
    return Shape(std::span(extents.data(), rank));
  }

  void read_offsets(SafetensorsRecord& record) {
    if (!json_.at_array()) unexpected(subject() + "data_offsets: ", "an array");
    int count = 0;
    for (json_.open_array(); json_.next_element(); ++count) {
      const auto offset =
          read_number<std::uint64_t>("data_offsets: ", "numbers from 0 to 2^64 - 1");
      LONGHAND_CHECK(count < 2, subject(), "expected 2 data_offsets, got more");
      (count == 0 ? record.begin : record.end) = offset;
    }
    LONGHAND_CHECK(count == 2, subject(), "expected 2 data_offsets, got ", count);
  }

  /// Reads the next value as an integer that is not negative.
  template <class Integer>
  Integer read_number(std::string_view field, std::string_view wanted) {
    if (!json_.at_number()) unexpected(subject().append(field), wanted);
    const std::string_view digits = json_.number();
    Integer value = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value);
    LONGHAND_CHECK(read.ptr == end && read.ec == std::errc() && digits.front() != '-', subject(),
                   field, "expected ", wanted, ", got the number ", digits.substr(0, 30));
    return value;
  }

  /// The beginning of an error message about the current tensor.
  std::string subject() const {
    return text(file_, ": tensor ", quote(header_.records.back().name), ": ");
  }

  [[noreturn]] void unexpected(const std::string& where, std::string_view wanted) {
    fail(where, "expected ", wanted, ", got ", json_.in_words());
  }

  const std::string& file_;
  JsonReader json_;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file) {
  // JSON may begin with white space, but a safetensors header must begin with {.
  LONGHAND_CHECK(json.starts_with('{'), file, ": the header does not begin with {");
  return HeaderReader(json, file).read();
}

}  // namespace longhand
