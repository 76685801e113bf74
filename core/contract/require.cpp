#include "core/contract/require.h"

#include <algorithm>

#include "core/backend.h"

namespace longhand {

void Arguments::floats(std::string_view argument, const Tensor& tensor, int least_rank) {
  any(argument, tensor);
  require(is_float(tensor.dtype()), argument, "expected a float type, got ", tensor.dtype());
  require(tensor.shape().rank() >= least_rank, argument, "expected at least ", least_rank,
          " axes, got ", tensor.shape());
}

void Arguments::any(std::string_view argument, const Tensor& tensor) {
  require(static_cast<bool>(tensor), argument, "expected a tensor, got none");
  same_backend(argument, tensor);
  remember(argument, tensor);
}

void Arguments::in(std::string_view argument, const Tensor& tensor, const Shape& shape,
                   DType type) {
  match(argument, tensor, shape, type);
  remember(argument, tensor);
}

void Arguments::in_mixed(std::string_view argument, const Tensor& tensor, const Shape& shape,
                         DType type) {
  const bool fits = is_float(tensor.dtype()) && master_type(tensor.dtype()) == master_type(type);
  in(argument, tensor, shape, fits ? tensor.dtype() : type);
}

void Arguments::out(std::string_view argument, const Tensor& tensor, const Shape& shape, DType type,
                    Names may_be) {
  match(argument, tensor, shape, type);
  apart(argument, tensor, may_be);
  remember(argument, tensor);
}

void Arguments::out_mixed(std::string_view argument, const Tensor& tensor, const Shape& shape,
                          DType type, Names may_be) {
  const bool fits = is_float(tensor.dtype()) && master_type(tensor.dtype()) == master_type(type);
  out(argument, tensor, shape, fits ? tensor.dtype() : type, may_be);
}

void Arguments::out(std::string_view argument, const Target& target, const Shape& shape, DType type,
                    Names may_be) {
  if (target) out(argument, target.tensor, shape, type, may_be);
}

void Arguments::match(std::string_view argument, const Tensor& tensor, const Shape& shape,
                      DType type) {
  require(static_cast<bool>(tensor), argument, "expected ", shape, " ", type, ", got none");
  require(tensor.dtype() == type && tensor.shape() == shape, argument, "expected ", shape, " ",
          type, ", got ", tensor.shape(), " ", tensor.dtype());
  same_backend(argument, tensor);
}

void Arguments::same_backend(std::string_view argument, const Tensor& tensor) {
  const Backend& backend = tensor.backend();
  if (!backend_) {
    backend_ = &backend;
    first_ = argument;
  }
  require(backend_ == &backend, argument, "expected the backend of ", first_, " (",
          backend_->name(), "), got another (", backend.name(), ")");
}

void Arguments::remember(std::string_view argument, const Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.address());
  memory_.at(arguments_++) = {argument, begin, begin + tensor.bytes()};
}

void Arguments::apart(std::string_view argument, const Tensor& tensor, Names may_be) const {
  const auto* begin = static_cast<const std::byte*>(tensor.address());
  const auto* end = begin + tensor.bytes();
  for (std::size_t i = 0; i < arguments_; ++i) {
    const Memory& other = memory_[i];
    if (begin >= other.end || other.begin >= end) continue;
    const bool same = begin == other.begin && end == other.end;
    const bool allowed = same && std::ranges::find(may_be, other.argument) != may_be.end();
    require(allowed, argument, "expected memory of its own, got memory shared with ",
            other.argument);
  }
}

void require_indices(std::string_view op, std::string_view argument, const Tensor& indices,
                     std::int64_t bound) {
  const auto* index = indices.data<std::int32_t>();
  for (std::int64_t i = 0; i < indices.size(); ++i) {
    LONGHAND_CHECK(index[i] >= 0 && index[i] < bound, op, ": ", argument, ": expected 0 to ",
                   bound - 1, ", got ", index[i], " at index ", i);
  }
}

}  // namespace longhand
