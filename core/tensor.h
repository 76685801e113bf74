#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace longhand {

class Backend;

/// A row-major, contiguous array in a backend's memory. Copying a Tensor copies a reference. Slices
/// along the first axis and reshaped tensors share the memory and keep it alive. An empty Tensor
/// converts to false and represents an optional argument that is omitted.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Backend& backend, const Shape& shape, DType dtype);  // contents are undefined

  static Tensor zeros(Backend& backend, const Shape& shape, DType dtype);
  /// Copies host values, in row-major order, and converts them to dtype.
  static Tensor from(Backend& backend, const Shape& shape, DType dtype,
                     std::span<const double> values);
  static Tensor from(Backend& backend, const Shape& shape, std::span<const std::int32_t> values);

  /// A tensor of bytes in host memory that nobody changes, such as a mapped file. If the backend
  /// computes in host memory, the tensor refers to these bytes and keeps `owner` alive. Otherwise,
  /// it contains a copy. No operation may write to the tensor.
  static Tensor of_bytes(Backend& backend, const Shape& shape, const std::byte* bytes,
                         std::shared_ptr<const void> owner);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return shape_.size(); }
  std::int64_t rows() const { return shape_.rows(); }
  std::int64_t columns() const { return shape_.columns(); }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(dtype_); }
  Backend& backend() const;

  /// Address of the first element in the backend's memory. Throws an Error if T is not the element
  /// type.
  template <class T>
  T* data() const {
    require(dtype_of<T>);
    return static_cast<T*>(address());
  }
  void* address() const;

  Tensor reshape(const Shape& shape) const;                    // the size must be the same
  Tensor slice(std::int64_t first, std::int64_t count) const;  // a range of the first axis
  bool same_memory(const Tensor& other) const;                 // true if address and size are equal
  bool sole() const;  // true if no other Tensor refers to the memory, so that it may be overwritten

  /// Replaces the values. The tensor keeps its memory. Operations that were called before still
  /// read the old values.
  void assign(std::span<const double> values) const;
  void assign(std::span<const std::int32_t> values) const;

  /// Waits for the device and copies the values to the host as doubles. Intended for small results,
  /// tests and files.
  std::vector<double> to_doubles() const;
  std::vector<std::int32_t> to_ints() const;
  double item() const;  // the value of a tensor with one element

 private:
  struct Storage;
  void require(DType expected) const;
  void require_count(std::size_t values) const;

  std::shared_ptr<Storage> storage_;
  std::size_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = DType::f32;
};

/// A new tensor with the shape and type of x and undefined contents.
Tensor empty_like(const Tensor& x);

/// The type of parameters, statistics and losses for activations of the given type: f64 for f64,
/// otherwise f32.
inline DType master_type(DType activations) {
  return activations == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace longhand
