#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "core/backend.h"

namespace longhand::nn {

/// Exception that abandons the current work. An Interruptible throws it before the backend executes
/// an operation.
struct Interrupted {};

/// While an Interruptible exists, the backend calls `asked` before each operation. If `asked`
/// returns true, Interrupted is thrown and the operation is not executed.
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
