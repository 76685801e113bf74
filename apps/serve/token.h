#pragma once

#include <string>
#include <string_view>

#include "apps/serve/http_server.h"

namespace longhand::app {

/// A random token of 128 bits, in hexadecimal.
std::string make_token();

/// True if the request contains the token: in the header X-Longhand-Token, or as the API key in
/// "Authorization: Bearer TOKEN". The time of the comparison does not depend on the characters.
bool is_token(const HttpRequest& request, std::string_view token);

}  // namespace longhand::app
