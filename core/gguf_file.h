#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/gguf_blocks.h"
#include "core/mapped_file.h"
#include "core/shape.h"

namespace longhand {

/// A GGUF file of version 2 or 3: named metadata values, then tensors. The file is not trusted.
/// Parsing either succeeds or throws a one-line Error. The memory that parsing needs is
/// proportional to the file's size.
class GgufFile {
 public:
  /// An array of values of one type. Strings are views into the file.
  struct Array {
    std::uint32_t type;
    std::uint64_t count;
    std::span<const std::byte> bytes;
  };
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, Array>;

  struct Entry {
    std::string name;
    Shape shape;  // row-major: unlike in the file, the last axis varies fastest
    const GgufType* type;
    std::span<const std::byte> bytes;
  };

  static GgufFile open(const std::filesystem::path& path);
  /// Parses a file in memory. The bytes must outlive the GgufFile.
  static GgufFile parse(std::span<const std::byte> bytes, std::string name);
  static bool is_gguf(const std::filesystem::path& path);  // checks the file's first four bytes

  const std::string& name() const { return name_; }
  std::span<const Entry> entries() const& { return entries_; }
  std::span<const Entry> entries() const&& = delete;  // the span of a temporary would dangle
  const Entry* find(std::string_view tensor) const;

  bool has(std::string_view key) const { return values_.contains(key); }
  /// The metadata value of a key. Throws an Error if the key is missing or if its value has another
  /// type.
  std::string_view string(std::string_view key) const;
  std::uint64_t integer(std::string_view key) const;  // throws if the value is negative
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;

  static constexpr std::size_t most_values = 65'536, most_tensors = 250'000, longest_name = 4096;

 private:
  template <class T>
  const T& as(std::string_view key, std::string_view wanted) const;
  void read(std::span<const std::byte> bytes);
  /// Sets the member `bytes` of each entry. `offsets` count from the start of `data`, which is the
  /// part of the file after the header.
  void place_entries(std::span<const std::byte> data, std::span<const std::uint64_t> offsets);

  MappedFile file_;
  std::string name_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<Entry> entries_;
  std::map<std::string_view, std::size_t> by_name_;
};

}  // namespace longhand
