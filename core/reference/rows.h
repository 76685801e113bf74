#pragma once

#include <cstdint>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand::reference {

/// Reads a tensor as a matrix of doubles: x(i, j) is entry j of row i, and x(i) is entry i of the
/// whole tensor. All arithmetic of the reference is f64. An f32 result is rounded once, when it is
/// stored.
class Rows {
 public:
  explicit Rows(const Tensor& x)
      : address_(x.address()), wide_(x.dtype() == DType::f64), columns_(x ? x.columns() : 0) {}

  double operator()(std::int64_t i, std::int64_t j) const { return (*this)(i * columns_ + j); }
  double operator()(std::int64_t i) const {
    return wide_ ? static_cast<const double*>(address_)[i]
                 : static_cast<double>(static_cast<const float*>(address_)[i]);
  }

 private:
  const void* address_;
  bool wide_;
  std::int64_t columns_;
};

/// The output of an operation. put(i, j, value) assigns the value to entry j of row i, or adds it
/// if Target::add is set. If the target is empty, put() does nothing.
class Result {
 public:
  explicit Result(const Target& y)
      : address_(y.tensor.address()),
        wide_(y.tensor.dtype() == DType::f64),
        add_(y.add),
        columns_(y.tensor ? y.tensor.columns() : 0) {}

  void put(std::int64_t i, std::int64_t j, double value) const { put(i * columns_ + j, value); }
  void put(std::int64_t i, double value) const {
    if (!address_) return;
    if (wide_) {
      double& y = static_cast<double*>(address_)[i];
      y = add_ ? y + value : value;
    } else {
      float& y = static_cast<float*>(address_)[i];
      y = static_cast<float>(add_ ? static_cast<double>(y) + value : value);
    }
  }

 private:
  void* address_;
  bool wide_;
  bool add_;
  std::int64_t columns_;
};

}  // namespace longhand::reference
