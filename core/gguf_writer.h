#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand {

/// Writes a GGUF file of version 3: metadata values, then tensors, in the order in which they were
/// added. core/gguf_file.h reads such files.
class GgufWriter {
 public:
  void text(std::string_view key, std::string_view value);
  void integer(std::string_view key, std::uint32_t value);
  void number(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, const std::vector<std::string>& all);
  void integers(std::string_view key, const std::vector<std::int32_t>& all);
  void numbers(std::string_view key, const std::vector<float>& all);

  using Give = std::function<void(std::span<const std::byte>)>;
  /// Adds a tensor of `size` bytes. `shape` begins with the axis that varies fastest. `type` is a
  /// code of core/gguf_blocks.h. write() calls bytes(give), which must pass the tensor's bytes to
  /// give() in order, in one or more calls.
  void tensor(std::string_view name, std::span<const std::uint64_t> shape, std::uint32_t type,
              std::uint64_t size, std::function<void(const Give&)> bytes);

  /// Passes the bytes of the file to give() in order, in several calls. Throws an Error if a
  /// tensor's function `bytes` does not produce exactly the tensor's size in bytes.
  void write(const Give& give) const;

 private:
  struct Item {
    std::string name;
    std::uint64_t size;
    std::function<void(const Give&)> bytes;
  };
  void begin(std::string_view key, std::uint32_t type);
  void begin_array(std::string_view key, std::uint32_t type, std::size_t count);

  std::uint64_t values_ = 0, offset_ = 0;
  std::string metadata_, infos_;
  std::vector<Item> items_;
};

}  // namespace longhand
