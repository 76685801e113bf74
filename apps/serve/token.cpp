#include "apps/serve/token.h"

#include <sys/random.h>

#include <array>

#include "core/error.h"

namespace longhand::app {
namespace {

bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;  // all characters are compared, so that the time reveals nothing
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

std::string make_token() {
  std::array<unsigned char, 16> bytes;
  LONGHAND_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
                 "the system provides no random numbers");
  std::string token;
  for (const unsigned char byte : bytes) {
    for (const int digit : {byte >> 4, byte & 15}) token += "0123456789abcdef"[digit];
  }
  return token;
}

bool is_token(const HttpRequest& request, std::string_view token) {
  constexpr std::string_view bearer = "Bearer ";
  const std::string_view key = request.authorization;
  return is_same(request.token, token) ||
         (key.starts_with(bearer) && is_same(key.substr(bearer.size()), token));
}

}  // namespace longhand::app
