#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/rng.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

namespace longhand::fuzz {

/// Changes one field of a GGUF file: a number, or a text together with its length. A changed number
/// takes as many bytes as before, so the rest of the file can still be parsed.
class GgufMutator {
 public:
  GgufMutator(std::vector<std::uint8_t> file, unsigned seed)
      : file_(std::move(file)), rng_(seed, Purpose::test) {}

  std::vector<std::uint8_t> edited() {
    walk();
    if (fields_.empty()) return {};
    const Field field = fields_[rng_.below(static_cast<std::uint32_t>(fields_.size()))];
    if (field.text) {
      change_text(field);
    } else {
      change_number(field);
    }
    return std::move(file_);
  }

 private:
  struct Field {
    // Position and size of the field in bytes. The position of a text is that of its first
    // character; the length of the text is stored before it.
    std::size_t place, size;
    bool text = false;
  };

  bool has(std::size_t bytes) const { return bytes <= file_.size() - at_; }
  template <class T>
  T number() {
    T value{};
    if (!has(sizeof value)) {
      at_ = file_.size();
      return value;
    }
    std::memcpy(&value, file_.data() + at_, sizeof value);
    fields_.push_back({at_, sizeof value});
    at_ += sizeof value;
    return value;
  }
  void text() {
    const auto length = number<std::uint64_t>();
    if (length > file_.size() - at_) {
      at_ = file_.size();
      return;
    }
    fields_.push_back({at_, static_cast<std::size_t>(length), true});
    at_ += static_cast<std::size_t>(length);
  }
  void value(std::uint32_t type, int depth = 0) {
    constexpr std::array<std::size_t, 13> sizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      text();
    } else if (type == 9 && depth == 0) {
      const auto inner = number<std::uint32_t>();
      const auto count = number<std::uint64_t>();
      for (std::uint64_t i = 0; i < count && at_ < file_.size(); ++i) value(inner, 1);
    } else if (type < sizes.size() && sizes[type] > 0 && has(sizes[type])) {
      fields_.push_back({at_, sizes[type]});
      at_ += sizes[type];
    } else {
      at_ = file_.size();
    }
  }

  void walk() {
    at_ = std::min<std::size_t>(4, file_.size());
    number<std::uint32_t>();  // the version of the format
    const auto tensors = number<std::uint64_t>(), values = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < values && at_ < file_.size(); ++i) {
      text();
      value(number<std::uint32_t>());
    }
    for (std::uint64_t i = 0; i < tensors && at_ < file_.size(); ++i) {
      text();
      const auto rank = number<std::uint32_t>();
      for (std::uint32_t axis = 0; axis < rank && at_ < file_.size(); ++axis) {
        number<std::uint64_t>();
      }
      number<std::uint32_t>();  // element type of the tensor
      number<std::uint64_t>();  // offset of the tensor's numbers in the file
    }
  }

  void change_number(const Field& field) {
    constexpr std::array<std::uint64_t, 14> known{0,
                                                  1,
                                                  2,
                                                  7,
                                                  8,
                                                  9,
                                                  31,
                                                  513,
                                                  0x7fffffff,
                                                  0x80000000,
                                                  0xffffffff,
                                                  std::uint64_t{1} << 61,
                                                  std::uint64_t{1} << 63,
                                                  ~std::uint64_t{0}};
    std::uint64_t value = 0;
    std::memcpy(&value, file_.data() + field.place, field.size);
    switch (rng_.below(3)) {
      case 0:
        value = known[rng_.below(known.size())];
        break;
      case 1:
        value += rng_.below(2) == 0 ? 1 : ~std::uint64_t{0};
        break;
      default:
        value ^= std::uint64_t{1} << rng_.below(static_cast<std::uint32_t>(8 * field.size));
    }
    std::memcpy(file_.data() + field.place, &value, field.size);
  }

  void change_text(const Field& field) {
    const auto begin = file_.begin() + static_cast<std::ptrdiff_t>(field.place);
    std::vector<std::uint8_t> bytes(begin, begin + static_cast<std::ptrdiff_t>(field.size));
    bytes.resize(field.size + 16);
    bytes.resize(LLVMFuzzerMutate(bytes.data(), field.size, bytes.size()));
    const std::uint64_t length = bytes.size();
    std::memcpy(file_.data() + field.place - sizeof length, &length, sizeof length);
    file_.erase(begin, begin + static_cast<std::ptrdiff_t>(field.size));
    file_.insert(file_.begin() + static_cast<std::ptrdiff_t>(field.place), bytes.begin(),
                 bytes.end());
  }

  std::vector<std::uint8_t> file_;
  std::vector<Field> fields_;
  std::size_t at_ = 0;
  Rng rng_;
};

/// Implements LLVMFuzzerCustomMutator for GGUF files. Three inputs in four are changed by
/// GgufMutator, the others by libFuzzer's own mutations of bytes.
inline std::size_t mutate_gguf_input(std::uint8_t* data, std::size_t size, std::size_t room,
                                     unsigned seed) {
  if (seed % 4 != 0 && size <= room) {
    const auto made = GgufMutator({data, data + size}, seed).edited();
    if (!made.empty() && made.size() <= room) {
      std::memcpy(data, made.data(), made.size());
      return made.size();
    }
  }
  return LLVMFuzzerMutate(data, size, room);
}

}  // namespace longhand::fuzz
