#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"

/// Checksums in a safetensors file's metadata, where other readers pass them over:
///   "crc32c": the CRC-32C of each tensor's bytes, in the order of the bytes, as eight hexadecimal
///             digits each, with a space between two
///   "crc32c_header": that of names, types, shapes and all other metadata
/// A file has both keys or neither, so that damage to one key cannot pass for a file without them.
namespace longhand::checksums {

using Metadata = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view tensors_key = "crc32c", header_key = "crc32c_header";

std::string hexadecimal(std::uint32_t checksum);

/// The checksum of all that a header says. Metadata without the two keys.
class OfHeader {
 public:
  explicit OfHeader(const Metadata& metadata);
  void add_tensor(std::string_view name, std::string_view type, const Shape& shape);
  std::uint32_t value() const { return value_; }

 private:
  void add(std::string_view text);
  std::uint32_t value_ = 0;
};

/// Takes both keys out of a file's metadata and compares the header's with `entries`. Returns the
/// tensors' checksums; empty where the file has none. Refused, naming the file, where they do not
/// fit.
std::vector<std::string> take(Metadata& metadata, std::span<const SafetensorsEntry> entries,
                              const std::string& file);

}  // namespace longhand::checksums
