#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand::app {

struct HttpRequest {
  std::string method;                                          // GET or POST
  std::string path;                                            // path without the query
  std::map<std::string, std::string, std::less<>> query = {};  // decoded query parameters
  std::string token = {};          // value of the header X-Longhand-Token
  std::string authorization = {};  // value of the header Authorization
  std::string body = {};
};

/// The body of a response that another thread computes while the first parts are already sent.
/// Every function may be called from any thread.
class HttpStream {
 public:
  /// Sets the status of the response, which is 200 otherwise. Has no effect after the first write.
  void set_status(int status);
  void write(std::string_view part);
  void end();  // no write follows
  /// True if the client has disconnected or the server has closed the connection.
  bool is_cancelled() const;

  /// The parts that were written since the last call of take(), which only the server calls.
  struct Parts {
    int status = 200;
    std::string bytes;
    bool is_last = false;
  };
  Parts take();
  void cancel();

 private:
  mutable std::mutex mutex_;
  Parts waiting_;
  bool cancelled_ = false;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::string policy = {};  // Content-Security-Policy; empty: the server's default policy
  std::shared_ptr<HttpStream> stream = {};  // if set, the body comes from here instead of `body`
};

/// Splits "a=1&b=2" and decodes %XX and +. Returns false if the text is malformed.
bool parse_query(std::string_view text, std::map<std::string, std::string, std::less<>>& query);

/// True if a Host header names this machine, as localhost or by a numeric address. This prevents
/// DNS rebinding, in which a foreign name resolves to this address: the header then contains the
/// foreign name.
bool is_plain_host(std::string_view host);

/// Limits per client and in total. A connection that exceeds a limit is closed.
struct HttpLimits {
  std::uint32_t header_bytes = 8192;
  std::uint64_t body_bytes = 4096;
  std::size_t connections = 64;  // a further connection replaces the one that has waited longest
  /// Total bytes of responses that clients have not received.
  std::uint64_t waiting_bytes = 256u << 20;
  /// Time limit for receiving a request, and also for sending its response or a part of it.
  std::chrono::seconds idle{20};
};

/// A small HTTP/1.1 server with a single thread. A slow client does not delay the requests of other
/// clients, and the handler is never called concurrently.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on a numeric address. Port 0 selects a free port.
  HttpServer(const std::string& address, std::uint16_t port, Handler handler,
             HttpLimits limits = {});
  ~HttpServer();
  std::uint16_t port() const;
  /// Serves requests until `stop` returns true. `stop` is called a few times per second.
  void run(const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::app
