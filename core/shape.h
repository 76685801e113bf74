#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

namespace longhand {

/// The extents of a row-major tensor with at most four axes. When a shape is created, the product
/// of the extents is checked for overflow, so size() is always correct.
class Shape {
 public:
  static constexpr int max_rank = 4;

  Shape() = default;  // rank 0 with one element
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  std::int64_t operator[](int axis) const;  // a negative axis counts from the end
  std::int64_t front() const { return (*this)[0]; }
  std::int64_t back() const { return (*this)[-1]; }

  /// The tensor as a matrix: the last axis gives the columns, and all other axes together give the
  /// rows.
  std::int64_t columns() const { return rank_ == 0 ? 1 : back(); }
  std::int64_t rows() const { return rank_ == 0 ? 1 : rows_; }

  /// The shape with its first (or last) extent replaced.
  Shape with_front(std::int64_t extent) const;
  Shape with_back(std::int64_t extent) const;

  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  friend bool operator==(const Shape& a, const Shape& b);
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);  // prints [2, 3]

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
  std::int64_t size_ = 1;
  std::int64_t rows_ = 1;  // product of all extents except the last
};

}  // namespace longhand
