#pragma once

#include <map>
#include <vector>

#include "core/backend.h"
#include "nn/options.h"

namespace longhand::nn {

/// Rotary positions (core/contract/rope.h): which entries of a head turn, and how fast.
struct RopeOptions {
  double share = 1;          // of a head's entries; 0: none turn
  double base = 10000;       // of the wavelengths
  bool interleaved = false;  // pairs (2p, 2p + 1) instead of (p, p + dims/2)
  /// Long wavelengths are stretched, as Llama 3 does it: with w the wavelength of f, those with
  /// w < original / high stay, those with w > original / low become f / factor, and between them
  ///   f' = (1 - s) f / factor + s f,   s = (original / w - low) / (high - low)
  double factor = 1, low = 1, high = 4;
  std::int64_t original = 8192;

  void declare(Options& options);
  /// Entries of a head of this width that turn, as the frequencies count them: where the number is
  /// odd one more turns with it, if there is one.
  std::int64_t dims(std::int64_t width) const;
  /// base^(-2p/dims) for all p with 2p < dims, stretched; computed in f32 as the original models
  /// do.
  std::vector<double> frequencies(std::int64_t dims) const;
};

/// Tables of cosines and sines by their frequencies, grown when a later position is met. What a
/// larger table replaces stays: a recorded step may read it. Sizes double, so it is less than the
/// last.
class RopeTables {
 public:
  RopeTables() = default;
  /// rows: of a new table, at least.
  explicit RopeTables(std::int64_t rows) : rows_(rows) {}

  const Tensor& table(Backend& backend, DType type, const std::vector<double>& frequencies,
                      std::int64_t longest);

 private:
  std::int64_t rows_ = 0;
  std::map<std::vector<double>, Tensor> tables_;
  std::vector<Tensor> replaced_;
};

/// Rows of a new table of positions for sequences of up to `longest` tokens.
std::int64_t position_rows(std::int64_t longest, std::int64_t at_least);

}  // namespace longhand::nn
