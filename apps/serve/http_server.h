#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app {

struct HttpRequest {
  std::string method;                                          // GET or POST
  std::string path;                                            // without the query
  std::map<std::string, std::string, std::less<>> query = {};  // decoded
  std::string token = {};                                      // of the header X-Longhand-Token
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string policy = {};  // its Content-Security-Policy; empty: the page's own
};

/// Parts of "a=1&b=2" with %XX and + decoded; false where that is malformed.
bool parse_query(std::string_view text, std::map<std::string, std::string, std::less<>>& query);

/// Whether a Host header names this machine by number or as localhost. A page from elsewhere whose
/// name was pointed here (DNS rebinding) sends its own name.
bool is_plain_host(std::string_view host);

/// Limits for clients; a connection beyond them is closed.
struct HttpLimits {
  std::uint32_t header_bytes = 8192;
  std::uint64_t body_bytes = 4096;
  std::size_t connections = 64;              // a new one closes the one that has waited longest
  std::uint64_t waiting_bytes = 256u << 20;  // of all answers that clients have not taken yet
  std::chrono::seconds idle{20};  // for a request to come, and for its answer to be taken
};

/// A small HTTP/1.1 server on one thread: no request waits for another's slow client, and the
/// handler is never called twice at once.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on an address given as a number; port 0: any free one.
  HttpServer(const std::string& address, std::uint16_t port, Handler handler,
             HttpLimits limits = {});
  ~HttpServer();
  std::uint16_t port() const;
  /// Serves until `stop`, asked a few times a second, says so.
  void run(const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::app
