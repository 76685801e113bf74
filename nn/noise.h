#pragma once

#include <cstdint>
#include <optional>

#include "autograd/dropout.h"

namespace longhand::nn {

/// The random numbers that a model's layers draw in training: a pure function of its seed, the
/// step, the part of the step and the layer, so that a run that was cut and resumed draws the same
/// ones. Nothing is drawn in evaluation: only while a Drawing stands.
class Noise {
 public:
  Noise(Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  /// A number for a new layer that draws.
  std::uint32_t add_layer();
  /// Which step comes. Recorded work reads it where it lies.
  void prepare(std::int64_t step) const;
  /// What the layer draws now; none in evaluation.
  std::optional<DropoutDraw> draw(std::uint32_t layer, double rate) const;

  class Drawing {
   public:
    Drawing(Noise& noise, std::int64_t part);
    ~Drawing() { noise_.part_.reset(); }
    Drawing(const Drawing&) = delete;
    Drawing& operator=(const Drawing&) = delete;

   private:
    Noise& noise_;
  };

 private:
  Backend& backend_;
  std::uint64_t seed_;
  Tensor step_;  // i32 [1]; empty where no layer draws
  std::uint32_t layers_ = 0;
  std::optional<std::uint32_t> part_;
};

}  // namespace longhand::nn
