#include "core/gguf_writer.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as in memory");

// GGUF's default: tensors begin at multiples of 32 bytes.
constexpr std::uint64_t gguf_alignment = 32;
constexpr std::array<std::byte, gguf_alignment> gguf_padding{};

std::uint64_t bytes_to_align(std::uint64_t place) {
  return (gguf_alignment - place % gguf_alignment) % gguf_alignment;
}

template <class T>
void append(std::string& out, T value) {
  std::array<char, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  out.append(bytes.data(), bytes.size());
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void GgufWriter::begin(std::string_view key, std::uint32_t type) {
  ++values_;
  append_text(metadata_, key);
  append(metadata_, type);
}

void GgufWriter::begin_array(std::string_view key, std::uint32_t type, std::size_t count) {
  begin(key, 9);
  append(metadata_, type);
  append(metadata_, std::uint64_t{count});
}

void GgufWriter::text(std::string_view key, std::string_view value) {
  begin(key, 8);
  append_text(metadata_, value);
}

void GgufWriter::integer(std::string_view key, std::uint32_t value) {
  begin(key, 4);
  append(metadata_, value);
}

void GgufWriter::number(std::string_view key, float value) {
  begin(key, 6);
  append(metadata_, value);
}

void GgufWriter::boolean(std::string_view key, bool value) {
  begin(key, 7);
  append(metadata_, static_cast<std::uint8_t>(value));
}

void GgufWriter::texts(std::string_view key, const std::vector<std::string>& all) {
  begin_array(key, 8, all.size());
  for (const std::string& one : all) append_text(metadata_, one);
}

void GgufWriter::integers(std::string_view key, const std::vector<std::int32_t>& all) {
  begin_array(key, 5, all.size());
  for (const std::int32_t one : all) append(metadata_, one);
}

void GgufWriter::numbers(std::string_view key, const std::vector<float>& all) {
  begin_array(key, 6, all.size());
  for (const float one : all) append(metadata_, one);
}

void GgufWriter::tensor(std::string_view name, std::span<const std::uint64_t> shape,
                        std::uint32_t type, std::uint64_t size,
                        std::function<void(const Give&)> bytes) {
  append_text(infos_, name);
  append(infos_, static_cast<std::uint32_t>(shape.size()));
  for (const std::uint64_t extent : shape) append(infos_, extent);
  append(infos_, type);
  append(infos_, offset_);
  offset_ += size + bytes_to_align(size);
  items_.push_back({std::string(name), size, std::move(bytes)});
}

void GgufWriter::write(const Give& give) const {
  const auto pad = [&](std::uint64_t place) {
    give(std::span(gguf_padding).first(static_cast<std::size_t>(bytes_to_align(place))));
  };
  std::string start = "GGUF";
  append(start, std::uint32_t{3});
  append(start, std::uint64_t{items_.size()});
  append(start, values_);
  give(bytes_of(start));
  give(bytes_of(metadata_));
  give(bytes_of(infos_));
  pad(start.size() + metadata_.size() + infos_.size());
  for (const Item& item : items_) {
    std::uint64_t given = 0;
    item.bytes([&](std::span<const std::byte> bytes) {
      given += bytes.size();
      give(bytes);
    });
    LONGHAND_CHECK(given == item.size, "GGUF: tensor ", quote(item.name), ": expected ", item.size,
                   " bytes, got ", given);
    pad(given);
  }
}

}  // namespace longhand
