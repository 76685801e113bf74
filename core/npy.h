#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/tensor_file.h"

namespace longhand {

/// Whether NumPy's load() would read a file of that name: .npy or .npz.
bool is_numpy_file(const std::filesystem::path& path);

/// Whether arrays can be written to a file of that name: .npy, .npz, .safetensors or, in the form
/// of safetensors too, a name without an extension.
bool is_array_file(const std::filesystem::path& path);

/// The arrays of a .npz file, or the one of a .npy file under the name `single`, as the bytes of a
/// safetensors file (SafetensorsFile::parse). They are little-endian and in C order; compressed
/// ones (savez_compressed) are refused. Whatever is wrong is refused in one line naming the file
/// and array.
std::vector<std::byte> numpy_as_safetensors(const std::filesystem::path& path,
                                            const std::string& single);

/// Writes a .npz file, or a .npy file of one tensor, whole or not at all. bf16, which NumPy lacks,
/// is written as f32 of the same values. At most 4 GiB, the limit of the zip format.
void save_numpy(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// The arrays of a file, whichever form its name says: NumPy's .npy or .npz, else
/// safetensors.
class ArrayFile {
 public:
  /// single: the name of what a .npy file holds.
  ArrayFile(const std::filesystem::path& path, const std::string& single);

  const SafetensorsFile& arrays() const { return arrays_; }

 private:
  std::vector<std::byte> bytes_;  // of NumPy's
  SafetensorsFile arrays_;
};

/// Writes a file in the form that its name says, whole or not at all. Other names are refused.
void save_arrays(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// CRC-32 as zip files have it (polynomial 0x04C11DB7, reflected, inverted before and after).
std::uint32_t crc32(std::string_view bytes);

}  // namespace longhand
