#pragma once

#include <map>
#include <vector>

#include "core/backend.h"
#include "nn/options.h"

namespace longhand::nn {

/// Options of rotary positions (core/contract/rope.h): which entries of a head are rotated, and
/// with which frequencies.
struct RopeOptions {
  double share = 1;          // share of a head's entries that are rotated; 0: no rotation
  double base = 10000;       // base of the wavelengths
  bool interleaved = false;  // rotate pairs (2p, 2p + 1) instead of (p, p + dims/2)
  /// Lengthens long wavelengths as Llama 3 does. Let w be the wavelength of frequency f.
  /// Frequencies with w < original / high are unchanged, those with w > original / low become f /
  /// factor, and between these bounds
  ///   f' = (1 - s) f / factor + s f,   s = (original / w - low) / (high - low)
  double factor = 1, low = 1, high = 4;
  std::int64_t original = 8192;

  void declare(Options& options);
  /// Number of rotated entries of a head of this width. An odd number is rounded up to the next
  /// even number if the head is wide enough.
  std::int64_t dims(std::int64_t width) const;
  /// base^(-2p/dims) for all p with 2p < dims, with long wavelengths lengthened. Computed in f32,
  /// as the original models do.
  std::vector<double> frequencies(std::int64_t dims) const;
};

/// Tables of cosines and sines, one per set of frequencies. When a later position is needed, a
/// table is replaced by one of twice the size. Replaced tables are kept, because a recorded step
/// may still use them; together they are smaller than the current table.
class RopeTables {
 public:
  RopeTables() = default;
  /// `rows` is the minimum number of rows of a new table.
  explicit RopeTables(std::int64_t rows) : rows_(rows) {}

  const Tensor& table(Backend& backend, DType type, const std::vector<double>& frequencies,
                      std::int64_t longest);

 private:
  std::int64_t rows_ = 0;
  std::map<std::vector<double>, Tensor> tables_;
  std::vector<Tensor> replaced_;
};

/// Number of rows of a new position table for sequences of at most `longest` tokens.
std::int64_t position_rows(std::int64_t longest, std::int64_t at_least);

}  // namespace longhand::nn
