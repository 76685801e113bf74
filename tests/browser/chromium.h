#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/json.h"
#include "tests/temporary_folder.h"

namespace longhand {

/// A headless Chromium, controlled by the DevTools protocol over two pipes: JSON messages, each
/// ended by a zero byte. Every wait has a time limit. The destructor kills all processes of
/// Chromium.
class Chromium {
 public:
  using Seconds = std::chrono::seconds;

  explicit Chromium(const std::string& program);
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  /// The process group of Chromium, so that it can be killed.
  pid_t group() const { return process_; }

  /// Opens an address in a page of `width` x `height` pixels, in light or dark mode, and waits
  /// until it is loaded.
  void open(const std::string& address, int width, int height, bool dark);
  /// Evaluates a JavaScript expression in the page and returns its value.
  Json evaluate(const std::string& expression);
  /// Waits until a JavaScript expression is true. Returns false after the time limit.
  bool wait_for(const std::string& expression, Seconds most = Seconds(15));
  void move_pointer(double x, double y);

  /// Errors since the page was opened: exceptions, and error messages on the console.
  const std::vector<std::string>& errors() const { return errors_; }
  /// All addresses that the page requested.
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  Json call(const std::string& method, Json parameters = Json::object(), bool of_page = true);
  /// Returns the next message of Chromium, or null if none has arrived at the time `until`.
  Json next(std::chrono::steady_clock::time_point until);
  void note(const Json& event);

  TemporaryFolder profile_;
  pid_t process_ = -1;
  FileDescriptor to_, from_;
  // received_: bytes of incomplete messages; target_: id of the page; session_: id of the session
  // with the page
  std::string received_, target_, session_;
  std::int64_t number_ = 0;
  bool loaded_ = false;
  std::vector<std::string> errors_, requests_;
};

}  // namespace longhand
