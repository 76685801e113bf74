#include "tests/browser/chromium.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace longhand {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience(20);  // maximum time to wait for a response

struct Pipe {
  FileDescriptor read, write;
};
Pipe make_pipe() {
  int ends[2];
  LONGHAND_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "pipe: none to be had");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

Chromium::Chromium(const std::string& program) {
  const Pipe in = make_pipe(), out = make_pipe();
  const std::string profile = "--user-data-dir=" + profile_.path().string();
  process_ = ::fork();
  LONGHAND_CHECK(process_ >= 0, program, ": cannot be started");
  if (process_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Chromium reads from descriptor 3 and writes to descriptor 4, so the pipes are first copied to
    // descriptors above both.
    const int read = ::fcntl(in.read.get(), F_DUPFD, 10),
              write = ::fcntl(out.write.get(), F_DUPFD, 10);
    ::dup2(read, 3);
    ::dup2(write, 4);
    ::close(read);
    ::close(write);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) ::dup2(nowhere, i);
    ::execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions",
            "--disable-component-update", "--disable-sync", "--no-first-run",
            "--no-default-browser-check", "--hide-scrollbars", "--remote-debugging-pipe",
            profile.c_str(), "about:blank", nullptr);
    ::_exit(127);
  }
  ::setpgid(process_, process_);
  to_ = FileDescriptor(::fcntl(in.write.get(), F_DUPFD_CLOEXEC, 0));
  from_ = FileDescriptor(::fcntl(out.read.get(), F_DUPFD_CLOEXEC, 0));
}

Chromium::~Chromium() {
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  // Chromium's helper processes end a little later than Chromium, and may write to the profile
  // until then.
  for (int tries = 0; tries < 100 && ::kill(-process_, 0) == 0; ++tries) ::usleep(20'000);
  std::error_code left;
  std::filesystem::remove_all(profile_.path(), left);
}

Json Chromium::next(Clock::time_point until) {
  while (true) {
    if (const std::size_t end = received_.find('\0'); end != std::string::npos) {
      const Json message = Json::parse(received_.substr(0, end)).value_or(nullptr);
      received_.erase(0, end + 1);
      return message;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return nullptr;
    pollfd ready{.fd = from_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    std::string bytes(1 << 16, '\0');
    const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
    LONGHAND_CHECK(got > 0, "chromium: has ended");
    received_.append(bytes, 0, static_cast<std::size_t>(got));
  }
}

void Chromium::note(const Json& event) {
  const Json* const method = event.find("method");
  if (!method) return;
  const std::string& name = method->string();
  const Json& with = event["params"];
  if (name == "Page.loadEventFired") loaded_ = true;
  if (name == "Network.requestWillBeSent") requests_.push_back(with["request"]["url"].string());
  if (name == "Runtime.exceptionThrown") errors_.push_back(with["exceptionDetails"].dump());
  if (name == "Runtime.consoleAPICalled" && with["type"] == "error") {
    errors_.push_back(with["args"].dump());
  }
  if (name == "Log.entryAdded" && with["entry"]["level"] == "error") {
    errors_.push_back(with["entry"].dump());
  }
}

Json Chromium::call(const std::string& method, Json parameters, bool of_page) {
  Json message{{"id", ++number_}, {"method", method}};
  message["params"] = std::move(parameters);
  if (of_page) message["sessionId"] = session_;
  const std::string bytes = message.dump() + '\0';
  LONGHAND_CHECK(::write(to_.get(), bytes.data(), bytes.size()) == std::ssize(bytes),
                 "chromium: has ended");
  const auto until = Clock::now() + patience;
  while (true) {
    const Json answer = next(until);
    LONGHAND_CHECK(answer.is_object(), "chromium: no answer to ", method, " in ", patience.count(),
                   " s");
    const Json* const id = answer.find("id");
    if (!id) {
      note(answer);
    } else if (id->integer() == number_) {
      LONGHAND_CHECK(!answer.contains("error"), "chromium: ", method, ": ", answer["error"].dump());
      return answer["result"];
    }
  }
}

void Chromium::open(const std::string& address, int width, int height, bool dark) {
  if (!session_.empty()) call("Target.closeTarget", {{"targetId", target_}}, false);
  target_ = call("Target.createTarget", {{"url", "about:blank"}}, false)["targetId"].string();
  session_ =
      call("Target.attachToTarget", {{"targetId", target_}, {"flatten", true}}, false)["sessionId"]
          .string();
  errors_.clear();
  requests_.clear();
  for (const char* domain : {"Page", "Runtime", "Log", "Network"}) {
    call(std::string(domain) + ".enable");
  }
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", width < 600}});
  Json scheme = Json::array();
  scheme.push_back({{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}});
  call("Emulation.setEmulatedMedia", {{"features", scheme}});
  loaded_ = false;
  call("Page.navigate", {{"url", address}});
  const auto until = Clock::now() + patience;
  while (!loaded_) {
    const Json event = next(until);
    LONGHAND_CHECK(event.is_object(), "chromium: ", address, ": is not loaded in ",
                   patience.count(), " s");
    note(event);
  }
}

Json Chromium::evaluate(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}});
  LONGHAND_CHECK(!answer.contains("exceptionDetails"), "chromium: ", expression, ": ",
                 answer["exceptionDetails"].dump());
  const Json* const value = answer["result"].find("value");
  return value ? *value : Json();
}

bool Chromium::wait_for(const std::string& expression, Seconds most) {
  for (const auto until = Clock::now() + most; Clock::now() < until; ::usleep(50'000)) {
    if (evaluate("Boolean(" + expression + ")").boolean()) return true;
  }
  return false;
}

void Chromium::move_pointer(double x, double y) {
  call("Input.dispatchMouseEvent", {{"type", "mouseMoved"}, {"x", x}, {"y", y}});
}

}  // namespace longhand
