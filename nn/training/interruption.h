#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "core/backend.h"

namespace longhand::nn {

/// Thrown between two operations to leave the current work unfinished.
struct Interrupted {};

/// While an object of this class lives, the backend asks a question before each operation. If the
/// answer is yes, it throws Interrupted instead of running the operation.
class Interruptible {
 public:
  Interruptible(Backend& backend, std::function<bool()> asked)
      : backend_(backend), before_(backend.observer) {
    if (!asked) return;
    backend_.observer = [asked = std::move(asked), before = before_](std::string_view operation) {
      if (asked()) throw Interrupted();
      if (before) before(operation);
    };
  }
  ~Interruptible() { backend_.observer = std::move(before_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  Backend& backend_;
  std::function<void(std::string_view)> before_;
};

}  // namespace longhand::nn
