#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf_writer.h"

namespace longhand {

/// Writes GGUF files to memory. For tests of invalid files, a tensor may have any number of bytes,
/// whatever its type and shape.
class GgufText : public GgufWriter {
 public:
  /// `shape` is in the order of a GGUF file, which begins with the axis that varies fastest.
  void tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
              std::string_view bytes) {
    GgufWriter::tensor(name, shape, type, bytes.size(), [kept = std::string(bytes)](auto& give) {
      give(std::as_bytes(std::span(kept)));
    });
  }

  std::string file(std::uint32_t version = 3) const {
    std::string whole;
    write([&](std::span<const std::byte> bytes) {
      whole.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    std::memcpy(whole.data() + 4, &version, sizeof version);
    return whole;
  }
};

}  // namespace longhand
