#pragma once

#include <cstdint>
#include <optional>

#include "autograd/dropout.h"

namespace longhand::nn {

/// The random numbers that a model's layers draw in training. They depend only on the seed, the
/// step, the part of the step and the layer, so a resumed run draws the same numbers. Layers draw
/// only while a Drawing exists; evaluation has none.
class Noise {
 public:
  Noise(Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  /// Returns the number of a new layer that draws.
  std::uint32_t add_layer();
  /// Sets the current step. Recorded work reads it from the same memory.
  void prepare(std::int64_t step) const;
  /// The layer's draw for the current step; empty in evaluation.
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
  Tensor step_;  // i32 [1]; empty if no layer draws
  std::uint32_t layers_ = 0;
  std::optional<std::uint32_t> part_;
};

}  // namespace longhand::nn
