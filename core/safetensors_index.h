#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand {

/// The index of tensors that are stored in several files of one folder:
///   {"metadata": {"total_size": BYTES OF ALL TENSORS},
///    "weight_map": {"TENSOR": "NAME-00001-of-00003.safetensors", ...}}
/// The index is not trusted. It can refer only to files of its own folder.
struct SafetensorsIndex {
  static constexpr std::size_t max_bytes = 64 << 20;
  static constexpr std::size_t max_files = 1000;

  // Names of the files, each once, in the order in which the index first mentions them.
  std::vector<std::string> files;
  /// Name of each tensor, and the position of its file in `files`.
  std::vector<std::pair<std::string, std::size_t>> tensors;
  std::optional<std::int64_t> total;  // total_size of the index, if it is a valid integer

  /// Throws a one-line Error that begins with `source` if the text is not a valid index.
  static SafetensorsIndex parse(std::string_view json, const std::string& source);
};

}  // namespace longhand
