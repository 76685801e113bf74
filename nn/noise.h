#pragma once

#include <cstdint>
#include <optional>

#include "autograd/dropout.h"

namespace longhand::nn {

/// The random numbers that a model's layers use in training. They depend only on the seed, the
/// step, the part of the step and the layer, so a resumed run uses the same numbers. Layers draw
/// random numbers only while a Drawing exists. Evaluation therefore creates no Drawing.
class Noise {
 public:
  Noise(Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  /// Registers a layer and returns its number.
  std::uint32_t add_layer();
  /// Sets the current step. Recorded operations read the step from memory, so a replay uses the new
  /// step.
  void prepare(std::int64_t step) const;
  /// The random stream of a layer for the current step; no value in evaluation.
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
  Tensor step_;  // i32 [1]; empty if no layer uses random numbers
  std::uint32_t layers_ = 0;
  std::optional<std::uint32_t> part_;
};

}  // namespace longhand::nn
