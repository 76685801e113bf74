#include "core/safetensors_header.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "core/safetensors.h"

namespace longhand {
namespace {

using nlohmann::json;

/// Takes the parser's events one by one. The format fixes the nesting, so what may come next
/// depends on where we are alone, and nothing deeper than an entry's arrays is ever followed. A
/// DOM would silently merge names given twice.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) {
    if (where_ == Where::start) {
      where_ = Where::names;
    } else if (where_ == Where::name_value) {
      where_ = Where::fields;
    } else if (where_ == Where::metadata_value) {
      where_ = Where::metadata_keys;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) {
    if (where_ == Where::names) {
      begin_name(key);
    } else if (where_ == Where::metadata_keys) {
      LONGHAND_CHECK(header_.metadata.size() < SafetensorsFile::max_entries, file_, ": more than ",
                     SafetensorsFile::max_entries, " metadata keys");
      const auto [place, is_new] = header_.metadata.try_emplace(std::move(key));
      LONGHAND_CHECK(is_new, file_, ": metadata key ", quote(place->first), " given twice");
      metadata_text_ = &place->second;
      where_ = Where::metadata_text;
    } else {
      begin_field(key);
    }
    return true;
  }

  bool string(std::string& value) {
    if (where_ == Where::metadata_text) {
      *metadata_text_ = std::move(value);
      where_ = Where::metadata_keys;
    } else if (where_ == Where::type) {
      record_.type = std::move(value);
      where_ = Where::fields;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) {
    if (where_ == Where::shape) {
      where_ = Where::extents;
    } else if (where_ == Where::offsets) {
      where_ = Where::offset_values;
    } else {
      unexpected("an array");
    }
    numbers_ = 0;
    return true;
  }

  bool number_unsigned(std::uint64_t value) {
    if (where_ == Where::extents) {
      LONGHAND_CHECK(numbers_ < Shape::max_rank, subject(), "expected at most ", Shape::max_rank,
                     " axes, got more");
      LONGHAND_CHECK(value <= std::numeric_limits<std::int64_t>::max(), subject(), "extent ", value,
                     " passes 2^63");
      extents_[static_cast<std::size_t>(numbers_++)] = static_cast<std::int64_t>(value);
    } else if (where_ == Where::offset_values) {
      LONGHAND_CHECK(numbers_ < 2, subject(), "expected 2 data_offsets, got more");
      (numbers_++ == 0 ? record_.begin : record_.end) = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool end_array() {
    if (where_ == Where::extents) {
      std::int64_t size = 1;
      for (int axis = 0; axis < numbers_; ++axis) {
        LONGHAND_CHECK(
            !__builtin_mul_overflow(size, extents_[static_cast<std::size_t>(axis)], &size),
            subject(), "its element count passes 2^63");
      }
      record_.shape = Shape(std::span(extents_.data(), static_cast<std::size_t>(numbers_)));
    } else {
      LONGHAND_CHECK(numbers_ == 2, subject(), "expected 2 data_offsets, got ", numbers_);
    }
    where_ = Where::fields;
    return true;
  }

  bool end_object() {
    if (where_ == Where::fields) {
      LONGHAND_CHECK(has_type_, subject(), "has no dtype");
      LONGHAND_CHECK(has_shape_, subject(), "has no shape");
      LONGHAND_CHECK(has_offsets_, subject(), "has no data_offsets");
      header_.records.push_back(std::move(record_));
      where_ = Where::names;
    } else {
      where_ = where_ == Where::metadata_keys ? Where::names : Where::end;
    }
    return true;
  }

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_integer(std::int64_t value) { unexpected(text("the number ", value)); }
  bool number_float(double, const std::string& digits) {
    unexpected(text("the number ", digits.substr(0, 30)));
  }
  bool binary(json::binary_t&) { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    fail(file_, ": the header is not valid JSON at its byte ", position);
  }

 private:
  enum class Where {
    start,           // before the outermost brace
    names,           // a tensor's name, "__metadata__" or the end
    name_value,      // the object after a tensor's name
    fields,          // dtype, shape, data_offsets or the end of the tensor
    type,            // the string after dtype
    shape,           // the array after shape
    extents,         // numbers in it
    offsets,         // the array after data_offsets
    offset_values,   // numbers in it
    metadata_value,  // the object after "__metadata__"
    metadata_keys,   // a key in it or its end
    metadata_text,   // the string after a key
    end
  };

  void begin_name(std::string& name) {
    if (name == "__metadata__") {
      LONGHAND_CHECK(!std::exchange(has_metadata_, true), file_, ": __metadata__ given twice");
      where_ = Where::metadata_value;
      return;
    }
    LONGHAND_CHECK(header_.records.size() < SafetensorsFile::max_entries, file_, ": more than ",
                   SafetensorsFile::max_entries, " tensors");
    record_ = {};
    record_.name = std::move(name);
    LONGHAND_CHECK(record_.name.size() <= SafetensorsFile::max_name, subject(),
                   "expected a name of at most ", SafetensorsFile::max_name, " bytes, got ",
                   record_.name.size());
    has_type_ = has_shape_ = has_offsets_ = false;
    where_ = Where::name_value;
  }

  void begin_field(const std::string& name) {
    bool* seen = nullptr;
    if (name == "dtype") {
      seen = &has_type_;
      where_ = Where::type;
    } else if (name == "shape") {
      seen = &has_shape_;
      where_ = Where::shape;
    } else if (name == "data_offsets") {
      seen = &has_offsets_;
      where_ = Where::offsets;
    } else {
      fail(subject(), "expected dtype, shape or data_offsets, got ", quote(name));
    }
    LONGHAND_CHECK(!std::exchange(*seen, true), subject(), name, " given twice");
  }

  /// How a message about where we are begins.
  std::string subject() const { return text(file_, ": tensor ", quote(record_.name), ": "); }

  [[noreturn]] void unexpected(std::string_view what) const {
    switch (where_) {
      case Where::start:
      case Where::names:
      case Where::end:
        fail(file_, ": the header: expected an object, got ", what);
      case Where::metadata_value:
        fail(file_, ": __metadata__: expected an object, got ", what);
      case Where::metadata_keys:
      case Where::metadata_text:
        fail(file_, ": __metadata__: expected a string, got ", what);
      case Where::name_value:
      case Where::fields:
        fail(subject(), "expected an object, got ", what);
      case Where::type:
        fail(subject(), "dtype: expected a string, got ", what);
      case Where::shape:
        fail(subject(), "shape: expected an array, got ", what);
      case Where::extents:
        fail(subject(), "shape: expected numbers from 0 to 2^63 - 1, got ", what);
      case Where::offsets:
        fail(subject(), "data_offsets: expected an array, got ", what);
      case Where::offset_values:
        fail(subject(), "data_offsets: expected numbers from 0 to 2^64 - 1, got ", what);
    }
    fail(file_, ": the header: unexpected ", what);
  }

  const std::string& file_;
  SafetensorsHeader& header_;
  Where where_ = Where::start;
  SafetensorsRecord record_;
  bool has_metadata_ = false;
  bool has_type_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int numbers_ = 0;  // taken of the array we are in
  std::array<std::int64_t, Shape::max_rank> extents_{};
  std::string* metadata_text_ = nullptr;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text_of_header,
                                           const std::string& file) {
  // The parser would skip a byte order mark and leading space; the format knows neither.
  LONGHAND_CHECK(text_of_header.starts_with('{'), file, ": the header does not begin with {");
  // And it would take a zero byte for the end, whatever comes after it.
  LONGHAND_CHECK(text_of_header.find('\0') == std::string_view::npos, file,
                 ": the header has a zero byte");
  SafetensorsHeader header;
  HeaderReader reader(file, header);
  json::sax_parse(text_of_header.begin(), text_of_header.end(), &reader);
  return header;
}

std::string json_string(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::type_error&) {
    fail("expected UTF-8 text, got ", quote(text));
  }
}

}  // namespace longhand
