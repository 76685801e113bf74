#pragma once

#include <cstdint>
#include <string_view>

#include "autograd/variable.h"

/// Parts of images, for convolutions and pooling. An image is [height, width, channels], and x is
/// [images, height, width, channels]. All functions are composed of operations of core/contract.
namespace longhand {

/// Patches are squares of `size` x `size` pixels, `stride` pixels apart. The image is extended by
/// `padding` pixels of value 0 on each side.
struct PatchOptions {
  std::int64_t size = 1, stride = 1, padding = 0;

  static constexpr std::int64_t most = 4096;  // upper limit of both size and stride
  /// Throws an Error that begins with `subject` unless size and stride are from 1 to `most` and
  /// padding is below size.
  void check(std::string_view subject) const;
};

/// Returns the pixels of each patch, side by side: [images, rows, columns, size * size * channels].
/// There are (height + 2 padding - size) / stride + 1 rows of patches, rounded down. Pixels are in
/// row-major order within a patch.
Var patches(const Var& x, const PatchOptions& options);

/// max_pool() and mean_pool() return the maximum and the mean of each channel over squares of
/// `size` x `size` pixels that do not overlap: [images, height / size, width / size, channels].
/// Pixels at the lower and right border that do not fill a square are ignored. The gradient of a
/// maximum goes to the first pixel with this value.
Var max_pool(const Var& x, std::int64_t size);
Var mean_pool(const Var& x, std::int64_t size);

}  // namespace longhand
