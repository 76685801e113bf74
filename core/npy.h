#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/tensor_file.h"

namespace longhand {

/// True if NumPy's load() would read a file of that name: .npy or .npz.
bool is_numpy_file(const std::filesystem::path& path);

/// True if arrays can be written to a file of that name: .npy, .npz, .safetensors or, in the format
/// of safetensors, a name without an extension.
bool is_array_file(const std::filesystem::path& path);

/// The arrays of a .npz file, or the one array of a .npy file under the name `single`, as the bytes
/// of a safetensors file (SafetensorsFile::parse), little-endian and in C order. Compressed arrays
/// (savez_compressed) are refused. Every fault is refused in one line that names file and array.
std::vector<std::byte> numpy_as_safetensors(const std::filesystem::path& path,
                                            const std::string& single);

/// Writes a .npz file, or a .npy file of one tensor, completely or not at all. bf16, which NumPy
/// lacks, is written as f32 with the same values. At most 4 GiB, the limit of the zip format.
void save_numpy(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// The arrays of a file. Its name selects the format: .npy, .npz, otherwise safetensors.
class ArrayFile {
 public:
  /// `single`: name of the array in a .npy file.
  ArrayFile(const std::filesystem::path& path, const std::string& single);

  const SafetensorsFile& arrays() const { return arrays_; }

 private:
  std::vector<std::byte> bytes_;  // bytes converted from NumPy's format
  SafetensorsFile arrays_;
};

/// Writes a file in the form that its name says, whole or not at all. Other names are refused.
void save_arrays(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// CRC-32 as in zip files (polynomial 0x04C11DB7, reflected, inverted before and after).
std::uint32_t crc32(std::string_view bytes);

}  // namespace longhand
