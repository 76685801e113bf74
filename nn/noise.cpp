#include "nn/noise.h"

#include <array>

#include "core/error.h"

namespace longhand::nn {
namespace {

// Number of low bits of a random stream's index that contain the number of the layer. The other
// bits contain the number of the part of the step. (A step's batch is cut into parts.)
constexpr int layer_bits = 16;

}  // namespace

std::uint32_t Noise::add_layer() {
  LONGHAND_CHECK(layers_ < 1u << layer_bits, "model: expected at most ", 1u << layer_bits,
                 " layers that draw random numbers, got more");
  if (!step_) step_ = Tensor::zeros(backend_, {1}, DType::i32);
  return layers_++;
}

void Noise::prepare(std::int64_t step) const {
  if (step_) step_.assign(std::array{static_cast<std::int32_t>(step)});
}

std::optional<DropoutDraw> Noise::draw(std::uint32_t layer, double rate) const {
  if (!part_) return std::nullopt;
  return DropoutDraw{
      .rate = rate, .seed = seed_, .index = *part_ << layer_bits | layer, .step = step_};
}

Noise::Drawing::Drawing(Noise& noise, std::int64_t part) : noise_(noise) {
  LONGHAND_CHECK(!noise.step_ || part < 1 << (32 - layer_bits),
                 "model: expected a batch that is cut into at most ", 1 << (32 - layer_bits),
                 " parts, got ", part + 1, " parts");
  noise.part_ = static_cast<std::uint32_t>(part);
}

}  // namespace longhand::nn
