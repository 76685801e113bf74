#include "core/shape.h"

#include <algorithm>

#include "core/error.h"

namespace longhand {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  LONGHAND_CHECK(extents.size() <= max_rank, "shape: expected at most ", max_rank, " axes, got ",
                 extents.size());
  for (const std::int64_t extent : extents) {
    LONGHAND_CHECK(extent >= 0, "shape: expected extents of at least 0, got ", extent);
    extents_[static_cast<std::size_t>(rank_++)] = extent;
    rows_ = size_;
    LONGHAND_CHECK(!__builtin_mul_overflow(size_, extent, &size_),
                   "shape: expected fewer than 2^63 elements, got more");
  }
}

std::int64_t Shape::operator[](int axis) const {
  const int index = axis < 0 ? axis + rank_ : axis;
  LONGHAND_CHECK(index >= 0 && index < rank_, "axis ", axis, " of shape ", *this,
                 " does not exist");
  return extents_[static_cast<std::size_t>(index)];
}

Shape Shape::with_front(std::int64_t extent) const {
  LONGHAND_CHECK(rank_ > 0, "a shape of rank 0 has no first axis");
  auto changed = extents_;
  changed.front() = extent;
  return Shape(std::span(changed.data(), static_cast<std::size_t>(rank_)));
}

Shape Shape::with_back(std::int64_t extent) const {
  LONGHAND_CHECK(rank_ > 0, "a shape of rank 0 has no last axis");
  auto changed = extents_;
  changed[static_cast<std::size_t>(rank_ - 1)] = extent;
  return Shape(std::span(changed.data(), static_cast<std::size_t>(rank_)));
}

bool operator==(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.extents(), b.extents());
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int axis = 0; axis < shape.rank(); ++axis) out << (axis ? ", " : "") << shape[axis];
  return out << ']';
}

}  // namespace longhand
