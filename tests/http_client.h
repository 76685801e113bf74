#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/json.h"

namespace longhand {

/// Connects to a server on this machine. Reads time out after ten seconds.
inline FileDescriptor connect_to(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return FileDescriptor();
  }
  return socket;
}

inline bool send_all(const FileDescriptor& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// Returns all bytes that arrive before the server closes the connection, or no value if a read
/// times out first.
inline std::optional<std::string> receive_all(const FileDescriptor& socket) {
  std::string all(1 << 16, '\0'), received;
  ssize_t got = 0;
  while ((got = ::recv(socket.get(), all.data(), all.size(), 0)) > 0) {
    received.append(all.data(), static_cast<std::size_t>(got));
  }
  if (got < 0 && errno != ECONNRESET) return std::nullopt;
  return received;
}

struct HttpAnswer {
  int status = 0;  // HTTP status code; 0 if there was no response
  std::string head, body;

  Json json() const { return Json::parse(body).value_or(nullptr); }
};

/// Sends `bytes` as a request to a server on this machine and returns the response.
inline HttpAnswer raw_request(std::uint16_t port, std::string_view bytes) {
  const FileDescriptor socket = connect_to(port);
  if (!socket.valid()) return {};
  send_all(socket, bytes);
  const std::string all = receive_all(socket).value_or("");
  const std::size_t end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.") || end == std::string::npos) return {};
  return {std::atoi(all.c_str() + 9), all.substr(0, end), all.substr(end + 4)};
}

inline HttpAnswer http_request(std::uint16_t port, const std::string& method,
                               const std::string& target, const std::string& headers = "") {
  return raw_request(port, method + " " + target +
                               " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                               "\r\nConnection: close\r\n" + headers + "\r\n");
}

}  // namespace longhand
