#pragma once

#include <memory>

#include "core/backend.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// Accumulates the gradient of one value over all of its uses. A Sink does not keep the value in
/// memory, so a backward function that needs only the Sink does not keep the value in memory
/// either.
class Sink {
 public:
  Sink() = default;
  explicit operator bool() const { return slot_ != nullptr; }  // false if no gradient is required
  /// True if both Sinks belong to the same value, or if both are empty.
  friend bool operator==(const Sink& a, const Sink& b) { return a.slot_ == b.slot_; }

  /// The target to which an operation writes one contribution to the gradient. The first
  /// contribution is assigned, all others are added. Each call must be followed by one write. The
  /// target is empty if no gradient is required.
  Target target() const;
  /// Adds dy to the gradient. The first contribution is stored without a copy, so the gradient
  /// shares the memory of dy until another contribution is added.
  void add(const Tensor& dy) const;
  /// Sums dy over the axes along which the value was broadcast (core/contract/steps.h), and adds
  /// the result to the gradient.
  void add_repeated(const Tensor& dy) const;
  /// The gradient accumulated so far, or zeros if there is none. The caller may modify it in place.
  Tensor sum_in_place() const;

 private:
  friend class Var;
  friend class Tape;
  struct Slot;
  explicit Sink(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
  std::shared_ptr<Slot> slot_;
};

/// A value that may require a gradient. Copies share the value and the gradient. Leaves
/// (parameters, inputs) are created by the constructors. All other values are results of the
/// operations in autograd/.
class Var {
 public:
  Var() = default;
  // NOLINTNEXTLINE: implicit, so that operations accept a Tensor as a constant
  Var(Tensor value, bool wants_grad = false);

  explicit operator bool() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Backend& backend() const { return value_.backend(); }
  bool wants_grad() const { return static_cast<bool>(sink_); }
  const Sink& sink() const { return sink_; }

  /// The gradient computed so far, or an empty tensor. The gradient of a leaf remains after
  /// backward and accumulates until it is cleared. The gradients of other values are freed during
  /// backward.
  Tensor grad() const;
  void clear_grad() const;

 private:
  Tensor value_;
  Sink sink_;
};

}  // namespace longhand
