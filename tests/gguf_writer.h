#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace longhand {

/// Writes GGUF files, version 3, for tests.
class GgufWriter {
 public:
  void text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_text(values_, value);
  }
  void integer(std::string_view key, std::uint32_t value) {
    begin(key, 4);
    put(values_, value);
  }
  void number(std::string_view key, float value) {
    begin(key, 6);
    put(values_, value);
  }
  void boolean(std::string_view key, bool value) {
    begin(key, 7);
    put(values_, static_cast<std::uint8_t>(value));
  }
  void texts(std::string_view key, const std::vector<std::string>& all) {
    begin(key, 9);
    put(values_, std::uint32_t{8});
    put(values_, static_cast<std::uint64_t>(all.size()));
    for (const std::string& one : all) put_text(values_, one);
  }
  void integers(std::string_view key, const std::vector<std::int32_t>& all) {
    begin(key, 9);
    put(values_, std::uint32_t{5});
    put(values_, static_cast<std::uint64_t>(all.size()));
    for (const std::int32_t one : all) put(values_, one);
  }
  /// `shape` is in the order of a GGUF file, which begins with the axis that varies fastest.
  void tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
              std::string_view bytes) {
    ++tensors_;
    put_text(infos_, name);
    put(infos_, static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t extent : shape) put(infos_, extent);
    put(infos_, type);
    put(infos_, static_cast<std::uint64_t>(data_.size()));
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
  }

  std::string file(std::uint32_t version = 3) const {
    std::string whole = "GGUF";
    put(whole, version);
    put(whole, tensors_);
    put(whole, count_);
    whole += values_ + infos_;
    whole.resize((whole.size() + 31) / 32 * 32);
    return whole + data_;
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof value);
  }
  static void put_text(std::string& out, std::string_view text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  void begin(std::string_view key, std::uint32_t type) {
    ++count_;
    put_text(values_, key);
    put(values_, type);
  }

  std::uint64_t count_ = 0, tensors_ = 0;
  std::string values_, infos_, data_;
};

}  // namespace longhand
