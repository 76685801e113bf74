#include "nn/layers/rope.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "core/contract/rope.h"
#include "core/elementary.h"

namespace longhand::nn {
namespace {

/// Maximum value of position_rows()'s argument `at_least`; larger arguments count as this value.
/// The limit keeps the first position table small, even if the model's configured maximum length is
/// large.
constexpr std::int64_t most_at_first = 1 << 14;

}  // namespace

std::int64_t position_rows(std::int64_t longest, std::int64_t at_least) {
  const auto power = std::bit_ceil(static_cast<std::uint64_t>(longest));
  return std::max(std::min(at_least, most_at_first), static_cast<std::int64_t>(power));
}

void RopeOptions::declare(Options& options) {
  options.number("rope_share", share, 0, 1, "fraction of a head's entries that are rotated");
  options.number("rope_base", base, 1, 1e12,
                 "base of the frequencies of rotary and sinusoidal positions");
  options.flag(
      "rope_interleaved", interleaved,
      "1: rotate entries 2p and 2p + 1 as a pair; 0: entries p and p + d/2, of d rotated entries");
  options.number("rope_factor", factor, 1, 1e6,
                 "factor that multiplies long wavelengths (Llama 3's scaling); 1: no scaling");
  options.number("rope_low", low, 1e-6, 1e6,
                 "wavelengths above --rope-original / --rope-low are multiplied by --rope-factor");
  options.number("rope_high", high, 1e-6, 1e6,
                 "wavelengths below --rope-original / --rope-high are not scaled");
  options.integer("rope_original", original, 1, 1 << 30,
                  "context length before scaling, in tokens");
}

std::int64_t RopeOptions::dims(std::int64_t width) const {
  const auto dims = static_cast<std::int64_t>(share * static_cast<double>(width));
  return dims + dims % 2 <= width ? dims : dims - 1;
}

std::vector<double> RopeOptions::frequencies(std::int64_t dims) const {
  std::vector<double> all;
  for (std::int64_t p = 0; 2 * p < dims; ++p) {
    const float exponent = static_cast<float>(2 * p) / static_cast<float>(dims);
    const double power = elementary::power(static_cast<float>(base), exponent);
    float f = 1.0f / static_cast<float>(power);
    if (factor != 1) {
      const auto context = static_cast<float>(original);
      const float wavelength = 2 * std::numbers::pi_v<float> / f;
      const auto stretch = static_cast<float>(factor);
      if (wavelength > context / static_cast<float>(low)) {
        f /= stretch;
      } else if (wavelength >= context / static_cast<float>(high)) {
        const float s = (context / wavelength - static_cast<float>(low)) /
                        (static_cast<float>(high) - static_cast<float>(low));
        f = (1 - s) * f / stretch + s * f;
      }
    }
    all.push_back(f);
  }
  return all;
}

const Tensor& RopeTables::table(Backend& backend, DType type,
                                const std::vector<double>& frequencies, std::int64_t longest) {
  Tensor& table = tables_[frequencies];
  if (!table || table.rows() < longest) {
    if (table) replaced_.push_back(table);
    table = rope_table(backend, type, position_rows(longest, rows_), frequencies);
  }
  return table;
}

}  // namespace longhand::nn
