#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand {

/// The index of tensors in several files of one folder:
///   {"metadata": {"total_size": BYTES OF ALL TENSORS},
///    "weight_map": {"TENSOR": "NAME-00001-of-00003.safetensors", ...}}
/// It may be untrusted, so it can name files of its own folder only.
struct SafetensorsIndex {
  static constexpr std::size_t max_bytes = 64 << 20;
  static constexpr std::size_t max_files = 1000;

  std::vector<std::string> files;                            // each once, in order of first mention
  std::vector<std::pair<std::string, std::size_t>> tensors;  // tensor and index of its file
  std::optional<std::int64_t> total;                         // total_size, if it is valid

  /// Refuses anything else in one line that begins with `source`.
  static SafetensorsIndex parse(std::string_view json, const std::string& source);
};

}  // namespace longhand
