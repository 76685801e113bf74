#include "core/safetensors_checksums.h"

#include <sstream>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::checksums {

std::string hexadecimal(std::uint32_t checksum) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(8, '0');
  for (std::size_t i = 0; i < 8; ++i) text[7 - i] = digits[checksum >> (4 * i) & 15];
  return text;
}

OfHeader::OfHeader(const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    add(key);
    add(value);
  }
}

void OfHeader::add_tensor(std::string_view name, std::string_view type, const Shape& shape) {
  add(name);
  add(type);
  add(text(shape));
}

void OfHeader::add(std::string_view text) {
  value_ = crc32c(std::string_view("\0", 1), crc32c(text, value_));
}

std::vector<std::string> take(Metadata& metadata, std::span<const SafetensorsEntry> entries,
                              const std::string& file) {
  auto tensors = metadata.extract(std::string(tensors_key));
  auto header = metadata.extract(std::string(header_key));
  if (!tensors && !header) return {};
  LONGHAND_CHECK(tensors && header, file, ": damaged: expected the checksums ", tensors_key,
                 " and ", header_key, ", got only one of them");
  OfHeader own(metadata);
  for (const SafetensorsEntry& entry : entries) own.add_tensor(entry.name, entry.type, entry.shape);
  const std::string expected = hexadecimal(own.value());
  LONGHAND_CHECK(header.mapped() == expected, file,
                 ": damaged: expected a header with the checksum ", quote(header.mapped()),
                 ", got ", expected);
  std::vector<std::string> sums;
  std::istringstream words(tensors.mapped());
  for (std::string word; words >> word;) sums.push_back(word);
  LONGHAND_CHECK(sums.size() == entries.size(), file, ": damaged: expected ", entries.size(),
                 " checksums of tensors, got ", sums.size());
  return sums;
}

}  // namespace longhand::checksums
