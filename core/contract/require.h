#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/contract/target.h"
#include "core/error.h"
#include "core/tensor.h"

namespace longhand {

/// Checks the arguments of one operation: first the inputs, then the outputs.
///
///   Arguments are(LayerNorm::name);
///   are.floats("x", op.x);
///   are.in("gain", op.gain, Shape{n}, master);
///   are.out("y", op.y, op.x.shape(), op.x.dtype());
///
/// Each argument must exist, have the given shape and type, and be in the same backend as the first
/// argument. An output must not share memory with any other argument, except an input that is named
/// in `may_be` and has exactly the same memory. An error message is one line: "layer_norm: gain:
/// expected [64] f32, got [63] f32".
class Arguments {
 public:
  using Names = std::initializer_list<std::string_view>;

  explicit Arguments(std::string_view op) : op_(op) {}

  /// Checks an input that must have a float type and at least `least_rank` axes.
  void floats(std::string_view argument, const Tensor& tensor, int least_rank = 0);
  /// Checks an input of any type and shape.
  void any(std::string_view argument, const Tensor& tensor);
  void in(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type);
  /// Checks an input that must have the given shape. If `type` is f64, the input must be f64.
  /// Otherwise, it may be f32 or bf16.
  void in_mixed(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type);

  void out(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type,
           Names may_be = {});
  void out_mixed(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type,
                 Names may_be = {});
  /// Checks an output that may be absent: an empty target is accepted.
  void out(std::string_view argument, const Target& target, const Shape& shape, DType type,
           Names may_be = {});

  template <class... Parts>
  void require(bool condition, std::string_view argument, const Parts&... parts) const {
    LONGHAND_CHECK(condition, op_, ": ", argument, ": ", parts...);
  }

 private:
  struct Memory {
    std::string_view argument;
    const std::byte* begin;
    const std::byte* end;
  };

  void match(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type);
  void same_backend(std::string_view argument, const Tensor& tensor);
  void remember(std::string_view argument, const Tensor& tensor);
  void apart(std::string_view argument, const Tensor& tensor, Names may_be) const;

  std::string_view op_;
  std::string_view first_;
  const Backend* backend_ = nullptr;
  std::array<Memory, 12> memory_{};
  std::size_t arguments_ = 0;
};

/// Throws an Error unless every index is in [0, bound). Used by host backends. The error message
/// names the first invalid index ("embedding: ids: expected 0 to 99, got 100 at index 7").
void require_indices(std::string_view op, std::string_view argument, const Tensor& indices,
                     std::int64_t bound);

}  // namespace longhand
