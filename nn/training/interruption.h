#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "core/backend.h"

namespace longhand::nn {

/// Thrown between two operations of work that is to be left unfinished.
struct Interrupted {};

/// While it stands, an operation of the backend is preceded by a question: where the answer is yes,
/// Interrupted is thrown in its place.
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
