#pragma once

#include <map>
#include <vector>

#include "core/backend.h"
#include "nn/options.h"

namespace longhand::nn {

/// Options of rotary positions (core/contract/rope.h): the rotated entries of a head, and the
/// frequencies of the rotation.
struct RopeOptions {
  double share = 1;     // share of a head's entries that are rotated; 0: no rotation
  double base = 10000;  // pair p has the frequency base^(-2p/n) if n entries are rotated
  /// If true, pair p consists of the entries 2p and 2p + 1. If false, it consists of the entries p
  /// and p + n/2, where n is the number of rotated entries.
  bool interleaved = false;
  /// Long wavelengths are lengthened as in Llama 3, to extend a model from the context length
  /// `original` to a longer one. If `factor` is 1, no wavelength is lengthened. Let w = 2 pi / f be
  /// the wavelength of frequency f. f is unchanged if w < original / high, and replaced by
  /// f / factor if w > original / low. Between these bounds, f is replaced by
  ///   (1 - s) f / factor + s f, where s = (original / w - low) / (high - low)
  double factor = 1, low = 1, high = 4;
  std::int64_t original = 8192;

  void declare(Options& options);
  /// The argument of frequencies() for a head of this width: n = share * width, rounded down.
  /// Entries are rotated in pairs, so n + 1 entries are rotated if n is odd. If n is odd and equal
  /// to the width, the result is n - 1 instead.
  std::int64_t dims(std::int64_t width) const;
  /// The frequency of each pair p with 2p < dims: base^(-2p/dims), or less if the wavelength of the
  /// pair is lengthened (see `factor`). Frequencies are computed in f32, as in the published
  /// models.
  std::vector<double> frequencies(std::int64_t dims) const;
};

/// Tables of cosines and sines, one table per set of frequencies. If a table has no row for a
/// position, a larger table replaces it. The number of rows of the larger table is a power of two.
/// Replaced tables are kept, because recorded training steps (CUDA graphs) may still use them.
/// Together, the replaced tables have fewer rows than the current table.
class RopeTables {
 public:
  RopeTables() = default;
  /// A new table has at least min(rows, 16384) rows; see position_rows().
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
