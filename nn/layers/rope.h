#pragma once

#include <map>
#include <vector>

#include "core/backend.h"
#include "nn/options.h"

namespace longhand::nn {

/// Options of rotary positions (core/contract/rope.h): the rotated entries of a head, and the
/// frequencies of the rotation.
struct RopeOptions {
  double share = 1;          // share of a head's entries that are rotated; 0: no rotation
  double base = 10000;       // base of the wavelengths
  bool interleaved = false;  // rotate pairs (2p, 2p + 1) instead of (p, p + dims/2)
  /// Long wavelengths are lengthened as in Llama 3. Let w = 2 pi / f be the wavelength of frequency
  /// f. f is unchanged if w < original / high, and replaced by f / factor if w > original / low.
  /// Between these bounds, f is replaced by
  ///   f' = (1 - s) f / factor + s f,   s = (original / w - low) / (high - low)
  double factor = 1, low = 1, high = 4;
  std::int64_t original = 8192;

  void declare(Options& options);
  /// Returns `share` times the width, rounded down. Pass the result to frequencies(). Entries are
  /// rotated in pairs, so if the result is odd, one more entry is rotated. If the head has no
  /// further entry, the result is reduced by one.
  std::int64_t dims(std::int64_t width) const;
  /// The frequency of each pair p with 2p < dims: base^(-2p/dims), changed as `factor` requires.
  /// Frequencies are computed in f32, as in the published models.
  std::vector<double> frequencies(std::int64_t dims) const;
};

/// Tables of cosines and sines, one table per set of frequencies. If a position exceeds a table, a
/// new table replaces it, with at least twice as many rows. Replaced tables are kept because
/// recorded steps may still use them. Together, the kept tables are smaller than the current table.
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

/// Number of rows of a new position table: `longest` rounded up to a power of two, but not less
/// than min(at_least, 16384).
std::int64_t position_rows(std::int64_t longest, std::int64_t at_least);

}  // namespace longhand::nn
