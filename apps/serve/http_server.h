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
  std::string token = {};                                      // from the header X-Longhand-Token
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string policy = {};  // Content-Security-Policy; empty: the page's own
};

/// Splits "a=1&b=2" and decodes %XX and +. Returns false if it is malformed.
bool parse_query(std::string_view text, std::map<std::string, std::string, std::less<>>& query);

/// True if a Host header names this machine by number or as localhost. A page from elsewhere whose
/// name resolves to this address (DNS rebinding) sends its own name.
bool is_plain_host(std::string_view host);

/// Limits for clients; a connection beyond them is closed.
struct HttpLimits {
  std::uint32_t header_bytes = 8192;
  std::uint64_t body_bytes = 4096;
  std::size_t connections = 64;              // a new one closes the one that has waited longest
  std::uint64_t waiting_bytes = 256u << 20;  // of all responses that clients have not received
  std::chrono::seconds idle{20};  // for receiving a request, and for sending its response
};

/// A small HTTP/1.1 server on one thread. No request waits for another's slow client, and the
/// handler is never called concurrently.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on a numeric address; port 0 selects a free one.
  HttpServer(const std::string& address, std::uint16_t port, Handler handler,
             HttpLimits limits = {});
  ~HttpServer();
  std::uint16_t port() const;
  /// Serves until `stop`, which is polled a few times a second, returns true.
  void run(const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::app
