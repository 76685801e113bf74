#include "apps/serve/http_server.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <sstream>
#include <utility>

#include "core/error.h"

namespace longhand::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

/// Content security policy: scripts, styles and data come from this server only, and no other page
/// may embed this one.
constexpr const char* own_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(16 * high + low);
    i += 2;
  }
  return plain;
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

/// The response to a request, or an error response that states why the request is refused.
HttpResponse answer(const http::request<http::string_body>& request,
                    const HttpServer::Handler& handler) {
  const auto hosts = request.equal_range(http::field::host);
  if (std::distance(hosts.first, hosts.second) != 1 || !is_plain_host(view(hosts.first->value()))) {
    return {.status = 403,
            .body = "this server answers to its address in numbers or to localhost\n"};
  }
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  if (!reads && request.method() != http::verb::post) {
    return {.status = 405, .body = "GET or POST, please\n"};
  }
  const std::string_view target = view(request.target());
  const std::size_t mark = std::min(target.find('?'), target.size());
  HttpRequest asked{.method = reads ? "GET" : "POST",
                    .path = std::string(target.substr(0, mark)),
                    .query = {},
                    .token = std::string(view(request["X-Longhand-Token"])),
                    .authorization = std::string(view(request[http::field::authorization])),
                    .body = request.body()};
  if (!parse_query(target.substr(std::min(mark + 1, target.size())), asked.query)) {
    return {.status = 400, .body = "the query is malformed\n"};
  }
  try {
    return handler(asked);
  } catch (const std::exception& error) {
    return {.status = 500, .body = text(error.what(), '\n')};
  }
}

class Connection;

/// State shared by all connections.
struct Shared {
  const HttpServer::Handler& handler;
  const HttpLimits& limits;
  // The first connection has waited longest for its client.
  std::list<Connection*> connections = {};
  std::uint64_t waiting_bytes = 0;
};

/// A client's connection. It handles one request after another, each within the limits.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)),
        shared_(shared),
        place_(shared.connections.insert(shared.connections.end(), this)) {}
  ~Connection() {
    if (open_) shared_.connections.erase(place_);
    shared_.waiting_bytes -= waiting_;
    if (body_) body_->cancel();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    shared_.waiting_bytes -= std::exchange(waiting_, 0);
    response_ = {};
    body_ = nullptr;
    parser_.emplace();
    parser_->header_limit(shared_.limits.header_bytes);
    parser_->body_limit(shared_.limits.body_bytes);
    wait_anew();
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              error ? self->respond(error) : self->read_body();
                            });
  }

  /// Closes the socket. A pending operation then ends with an error, and the connection is
  /// destroyed.
  void close() {
    if (std::exchange(open_, false)) shared_.connections.erase(place_);
    stream_.close();
  }

 private:
  /// Starts waiting for the client. The connection moves to the end of the list, because new
  /// connections replace the first one.
  void wait_anew() {
    if (open_) shared_.connections.splice(shared_.connections.end(), shared_.connections, place_);
    stream_.expires_after(shared_.limits.idle);
  }

  void read_body() {
    const auto& request = parser_->get();
    const beast::string_view expected = request[http::field::expect];
    if (expected.empty() || request.version() < 11) return read_rest();
    if (!beast::iequals(expected, "100-continue")) {
      expectation_failed_ = true;
      return respond({});
    }
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(go_on),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error) self->read_rest();
                      });
  }

  void read_rest() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->respond(error);
                     });
  }

  void respond(beast::error_code error) {
    HttpResponse made;
    bool keep = false;
    unsigned version = 11;
    bool only_head = false;
    if (expectation_failed_) {
      made = {.status = 417, .body = "only 100-continue can be expected here\n"};
    } else if (!error) {
      const auto& request = parser_->get();
      version = request.version();
      only_head = request.method() == http::verb::head;
      keep = request.keep_alive();
      made = answer(request, shared_.handler);
    } else if (error == http::error::header_limit || error == http::error::body_limit) {
      made = {.status = 413, .body = "the request is too large\n"};
    } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
               error != http::error::end_of_stream && error != http::error::partial_message) {
      made = {.status = 400, .body = "the request is malformed\n"};
    } else {
      return;  // the client has disconnected or is too slow
    }
    if (shared_.waiting_bytes + made.body.size() > shared_.limits.waiting_bytes) {
      made = {.status = 503, .body = "too many answers wait for their clients\n"};
    }
    waiting_ = made.body.size();
    shared_.waiting_bytes += waiting_;
    response_.version(version);
    response_.result(static_cast<unsigned>(made.status));
    response_.set(http::field::content_type, made.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Content-Security-Policy", made.policy.empty() ? own_policy : made.policy);
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (made.stream) return start_stream(std::move(made.stream), keep, version >= 11);
    response_.keep_alive(keep);
    const std::size_t size = made.body.size();
    if (!only_head) response_.body() = std::move(made.body);
    response_.content_length(size);
    wait_anew();
    http::async_write(stream_, response_,
                      [self = shared_from_this(), keep](beast::error_code failed, std::size_t) {
                        if (!failed) self->finish(keep);
                      });
  }

  void finish(bool keep) {
    if (keep) return read();
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  /// Sends the parts of `body` while another thread writes them. If `chunked` is false, because
  /// HTTP/1.0 has no chunked encoding, the end of the body is marked by closing the connection.
  void start_stream(std::shared_ptr<HttpStream> body, bool keep, bool chunked) {
    body_ = std::move(body);
    chunked_ = chunked;
    keep_ = keep && chunked;
    response_.keep_alive(keep_);
    response_.chunked(chunked);
    head_sent_ = false;
    send_parts();
  }

  /// Sends what was written since the last call. Parts that are written within 5 ms are sent
  /// together.
  void send_parts() {
    if (!open_) return;
    const HttpStream::Parts parts = body_->take();
    if (parts.bytes.empty() && !parts.is_last) {
      if (has_disconnected()) return close();
      stream_.expires_never();
      pause_.expires_after(std::chrono::milliseconds(5));
      pause_.async_wait([self = shared_from_this()](beast::error_code aborted) {
        if (!aborted) self->send_parts();
      });
      return;
    }
    std::ostringstream out;
    if (!std::exchange(head_sent_, true)) {
      response_.result(static_cast<unsigned>(parts.status));
      out << response_.base();
    }
    if (!chunked_) out << parts.bytes;
    if (chunked_ && !parts.bytes.empty()) {
      out << std::hex << parts.bytes.size() << "\r\n" << parts.bytes << "\r\n";
    }
    if (chunked_ && parts.is_last) out << "0\r\n\r\n";
    out_ = out.str();
    wait_anew();
    asio::async_write(stream_, asio::buffer(out_),
                      [self = shared_from_this(), is_last = parts.is_last](beast::error_code failed,
                                                                           std::size_t) {
                        if (failed) return;
                        is_last ? self->finish(self->keep_) : self->send_parts();
                      });
  }

  /// True if the client has closed the connection.
  bool has_disconnected() {
    char byte = 0;
    return ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{32768};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  Shared& shared_;
  // Position in Shared::connections while the connection is open.
  std::list<Connection*>::iterator place_;
  bool open_ = true, expectation_failed_ = false;
  std::uint64_t waiting_ = 0;  // bytes of this connection's unsent responses
  // The members below are used while the body of a response comes from an HttpStream.
  std::shared_ptr<HttpStream> body_;
  asio::steady_timer pause_{stream_.get_executor()};
  std::string out_;  // the bytes that are being sent
  bool chunked_ = false, keep_ = false, head_sent_ = false;
};

}  // namespace

void HttpStream::set_status(int status) {
  const std::lock_guard lock(mutex_);
  waiting_.status = status;
}

void HttpStream::write(std::string_view part) {
  const std::lock_guard lock(mutex_);
  waiting_.bytes += part;
}

void HttpStream::end() {
  const std::lock_guard lock(mutex_);
  waiting_.is_last = true;
}

bool HttpStream::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

HttpStream::Parts HttpStream::take() {
  const std::lock_guard lock(mutex_);
  Parts parts = waiting_;
  waiting_.bytes.clear();
  return parts;
}

void HttpStream::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool parse_query(std::string_view text, std::map<std::string, std::string, std::less<>>& query) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t sign = std::min(part.find('='), part.size());
    const auto name = decoded(part.substr(0, sign));
    const auto value = decoded(part.substr(std::min(sign + 1, part.size())));
    if (!name || !value) return false;
    query[*name] = *value;
  }
  return true;
}

bool is_plain_host(std::string_view host) {
  std::string name(host);
  if (name.find('\0') != std::string::npos || name.find('%') != std::string::npos) return false;
  // True if `rest` is empty, or a colon and a port.
  const auto is_port = [](std::string_view rest) {
    return rest.empty() ||
           (rest.front() == ':' && rest.find_first_not_of("0123456789", 1) == rest.npos);
  };
  if (!name.empty() && name.front() == '[') {
    const std::size_t end = name.find(']');
    if (end == std::string::npos || !is_port(host.substr(end + 1))) return false;
    name = name.substr(1, end - 1);
    beast::error_code error;
    asio::ip::make_address_v6(name, error);
    return !error;
  }
  name.resize(std::min(name.find(':'), name.size()));
  if (!is_port(host.substr(name.size()))) return false;
  if (name == "localhost") return true;
  beast::error_code error;
  asio::ip::make_address_v4(name, error);
  return !error;
}

struct HttpServer::State {
  Handler handler;
  HttpLimits limits;
  Shared shared{handler, limits};
  asio::io_context context{1};  // owns the connections, which refer to the members above
  tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};

  void close_oldest() {
    if (!shared.connections.empty()) shared.connections.front()->close();
  }

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        if (shared.connections.size() >= limits.connections) close_oldest();
        std::make_shared<Connection>(std::move(socket), shared)->read();
        return accept();
      }
      // The process has no descriptors or no memory left. The client stays in the queue of the
      // system. Wait before the next attempt.
      close_oldest();
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](beast::error_code aborted) {
        if (!aborted) accept();
      });
    });
  }
};

HttpServer::HttpServer(const std::string& address, std::uint16_t port, Handler handler,
                       HttpLimits limits)
    : state_(std::make_unique<State>()) {
  state_->handler = std::move(handler);
  state_->limits = limits;
  beast::error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  LONGHAND_CHECK(!error, "expected an address such as 127.0.0.1 or ::1, got ", address);
  const tcp::endpoint endpoint(parsed, port);
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  LONGHAND_CHECK(!error, address, " port ", port, ": cannot listen: ", error.message());
  state_->accept();
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run(const std::function<bool()>& stop) {
  while (!stop()) state_->context.run_for(std::chrono::milliseconds(200));
}

}  // namespace longhand::app
