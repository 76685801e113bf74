#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "nn/models/decoder.h"

namespace longhand::app {

/// A decoder of two layers with two heads each. Its weights are constructed so that it sorts. This
/// is Theorem 5.1 of the task-hinting paper with a corrected appendix, in the notation of
/// docs/math/sorting_construction.md. Its tokens are those of the sorting task: tokens 1 to q are
/// the numbers, token q + 1 is the delimiter ⊥ after the input, and tokens 0 and q + 2 are not
/// used.
struct SortingConstruction {
  std::int64_t numbers = 100;   // q, the greatest number
  std::int64_t longest = 1000;  // N: maximum length of the inputs that it sorts
  /// The exponent beta: if a score is higher by 1, its attention weight is n^beta times as large,
  /// where n is the number of visible tokens.
  double sharpness = 32;
  /// epsilon: what the second attention adds to the logit of the next greater number.
  double successor = 0.5;
  /// G: the factor by which the second feed-forward layer multiplies the coordinate that is
  /// positive while copies of the current number are left to be output.
  double gain = 2500;

  /// The construction whose sharpness and gain suffice for every input of 1 to `longest` numbers.
  static SortingConstruction for_inputs(std::int64_t numbers, std::int64_t longest);
  /// The construction of the paper's appendix, with sharpness 3 and without a gain.
  static SortingConstruction as_printed(std::int64_t numbers, std::int64_t longest);

  std::int32_t delimiter() const { return static_cast<std::int32_t>(numbers) + 1; }
  std::int64_t vocabulary() const { return numbers + 3; }
  // Number of orthogonal directions of the residual stream (SortingDirections).
  std::int64_t directions() const { return 4 * numbers + 2; }
};

/// The K = 4q + 2 orthogonal directions of the residual stream, whose width is 2K. Direction k is 1
/// at entry k and -1 at entry K + k, so that every sum of directions has mean 0. Numbers are 1 to
/// q. Symbols are the numbers and the delimiter ⊥, which is q + 1.
class SortingDirections {
 public:
  explicit SortingDirections(std::int64_t numbers) : q_(numbers) {}

  std::int64_t count() const { return 4 * q_ + 2; }
  std::int64_t e(std::int64_t symbol) const { return symbol - 1; }
  std::int64_t tilde(std::int64_t symbol) const { return q_ + symbol; }
  std::int64_t hat(std::int64_t number) const { return 2 * q_ + 1 + number; }
  std::int64_t hat_prime(std::int64_t number) const { return 3 * q_ + 1 + number; }

 private:
  std::int64_t q_;
};

nn::DecoderConfig decoder_config(const SortingConstruction& construction);
/// Makes the decoder. Throws an Error if a size of the construction is out of range.
std::unique_ptr<nn::Decoder> make_sorting_decoder(Backend& backend,
                                                  const SortingConstruction& construction,
                                                  DType type = DType::f32);
/// Writes a model in f32 as a run of the sorting task with a checkpoint at step 0. The commands
/// eval, generate and inspect can read this run. If the folder already contains this run, only the
/// checkpoint is written again. If it contains another run, throws an Error.
void save_as_run(const nn::Decoder& decoder, const SortingConstruction& construction,
                 const std::filesystem::path& path);

}  // namespace longhand::app
