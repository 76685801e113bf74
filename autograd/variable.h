#pragma once

#include <memory>

#include "core/backend.h"
#include "core/tensor.h"

namespace longhand {

/// Where the gradient of one value gathers: the sum of what every use of it sends back. Holding a
/// Sink does not hold the value, so a backward function keeps only the tensors it names.
class Sink {
 public:
  Sink() = default;
  explicit operator bool() const { return slot_ != nullptr; }  // false: no gradient wanted
  /// The same value's gradient, or both none.
  friend bool operator==(const Sink& a, const Sink& b) { return a.slot_ == b.slot_; }

  /// Where an operation writes its share: assigned if it is the first, else added. Each call must
  /// be followed by one write. Empty when no gradient is wanted.
  Target target() const;
  /// The share is dy itself. The first one is kept by reference and copied only if another follows.
  void add(const Tensor& dy) const;
  /// The share is the sum of dy over the axes along which the value was repeated to dy's shape
  /// (core/contract/steps.h).
  void add_repeated(const Tensor& dy) const;
  /// The sum so far (zeros if none), to be added to in place, in parts.
  Tensor sum_in_place() const;

 private:
  friend class Var;
  friend class Tape;
  struct Slot;
  explicit Sink(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
  std::shared_ptr<Slot> slot_;
};

/// A value that may want a gradient. Copies share both. Leaves (parameters, inputs) are made here;
/// all others come from the ops of autograd/.
class Var {
 public:
  Var() = default;
  Var(Tensor value, bool wants_grad = false);  // NOLINT: a plain tensor is a constant

  explicit operator bool() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Backend& backend() const { return value_.backend(); }
  bool wants_grad() const { return static_cast<bool>(sink_); }
  const Sink& sink() const { return sink_; }

  /// The gradient gathered so far; empty if none. A leaf's outlives backward and gathers over
  /// several until cleared; others' are freed as backward passes them.
  Tensor grad() const;
  void clear_grad() const;

 private:
  Tensor value_;
  Sink sink_;
};

}  // namespace longhand
