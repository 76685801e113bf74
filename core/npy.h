#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/tensor_file.h"

namespace longhand {

/// True if NumPy's load() would read a file with this name: .npy or .npz.
bool is_numpy_file(const std::filesystem::path& path);

/// True if arrays can be written to a file with this name. The extension must be .npy, .npz or
/// .safetensors. A name without an extension is also possible and means the safetensors format.
bool is_array_file(const std::filesystem::path& path);

/// Reads a .npz or .npy file. The single array of a .npy file receives the name `single`. Converts
/// the arrays to the bytes of a safetensors file (SafetensorsFile::parse), little-endian and in C
/// order. Compressed files (savez_compressed) are refused. Every fault throws a one-line Error that
/// names the file and the array.
std::vector<std::byte> numpy_as_safetensors(const std::filesystem::path& path,
                                            const std::string& single);

/// Writes a .npz file, or a .npy file with one tensor. The file appears completely or not at all.
/// NumPy has no bf16, so bf16 tensors are written as f32 with the same values. The zip format
/// limits a file to 4 GiB.
void save_numpy(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// The arrays of a file. The extensions .npy and .npz mean NumPy's formats. All other files must
/// have the safetensors format.
class ArrayFile {
 public:
  /// `single` is the name given to the array of a .npy file.
  ArrayFile(const std::filesystem::path& path, const std::string& single);

  const SafetensorsFile& arrays() const { return arrays_; }

 private:
  // The contents of a NumPy file, converted to the safetensors format. Empty if the file is a
  // safetensors file.
  std::vector<std::byte> bytes_;
  SafetensorsFile arrays_;
};

/// Writes a file in the format of its extension. Throws an Error if is_array_file(path) is false.
/// The file appears completely or not at all.
void save_arrays(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// CRC-32 as used in zip files (polynomial 0x04C11DB7, reflected, inverted before and after).
std::uint32_t crc32(std::string_view bytes);

}  // namespace longhand
