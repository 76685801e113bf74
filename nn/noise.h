#pragma once

#include <cstdint>
#include <optional>

#include "autograd/dropout.h"

namespace longhand::nn {

/// The random numbers that a model's layers use in training. They depend only on the seed, the
/// training step, the part of the step's batch and the layer, so a resumed run uses the same
/// numbers. Layers draw random numbers only while an object of the class Drawing exists. Training
/// creates such an object; evaluation does not.
class Noise {
 public:
  Noise(Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  /// Registers a layer that draws random numbers, and returns the layer's number.
  std::uint32_t add_layer();
  /// Sets the number of the current training step. Operations in a recorded CUDA graph read this
  /// number from memory, so a replay of the graph uses the new number.
  void prepare(std::int64_t step) const;
  /// True while a Drawing exists.
  bool training() const { return part_.has_value(); }
  /// Selects the random numbers of a layer in the current training step. No value in evaluation.
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
  Tensor step_;  // number of the current step, i32 [1]; empty if no layer uses random numbers
  std::uint32_t layers_ = 0;
  std::optional<std::uint32_t> part_;
};

}  // namespace longhand::nn
