#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"

/// Checksums in the metadata of a safetensors file. Programs other than longhand ignore them.
///   "crc32c": one checksum per tensor, the CRC-32C of the tensor's bytes as eight hexadecimal
///             digits. The checksums are separated by spaces. They are in the order in which the
///             tensors are stored in the file;
///   "crc32c_header": the CRC-32C of names, types, shapes and all other metadata.
/// A file has both keys or neither. If one of the keys is damaged, the file can therefore not be
/// mistaken for a file without checksums.
namespace longhand::checksums {

using Metadata = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view tensors_key = "crc32c", header_key = "crc32c_header";

std::string hexadecimal(std::uint32_t checksum);

/// Computes the checksum of a header. The metadata must not contain the keys "crc32c" and
/// "crc32c_header".
class OfHeader {
 public:
  explicit OfHeader(const Metadata& metadata);
  void add_tensor(std::string_view name, std::string_view type, const Shape& shape);
  std::uint32_t value() const { return value_; }

 private:
  void add(std::string_view text);
  std::uint32_t value_ = 0;
};

/// Removes "crc32c" and "crc32c_header" from the metadata and verifies the header's checksum.
/// Returns the checksums of the tensors. If the file has no checksums, returns an empty list. If
/// the header's checksum does not match, throws an Error that names the file.
std::vector<std::string> take(Metadata& metadata, std::span<const SafetensorsEntry> entries,
                              const std::string& file);

}  // namespace longhand::checksums
