// Fuzz target for requests to `serve`. The input is parsed as a Host header, a line break, and the
// query of a URL. An accepted host is localhost or a numeric address. A query is refused, or its
// names and values are the same after they are written and parsed again.
#include <algorithm>
#include <cctype>

#include "apps/serve/http_server.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view host = input.substr(0, end);
  if (app::is_plain_host(host)) {
    constexpr std::string_view local = "localhost";
    const std::string_view numbers = host.substr(host.starts_with(local) ? local.size() : 0);
    require(std::ranges::all_of(numbers,
                                [](char c) {
                                  return std::isxdigit(static_cast<unsigned char>(c)) ||
                                         std::string_view(".:[]").find(c) != std::string_view::npos;
                                }),
            "a host is localhost or a number");
  }
  std::map<std::string, std::string, std::less<>> query, again;
  if (app::parse_query(input.substr(std::min(end + 1, size)), query)) {
    std::string written;
    for (const auto& [name, value] : query) {
      written += encoded(name) + '=' + encoded(value) + '&';
    }
    require(app::parse_query(written, again), "a query that is written can be read");
    again.erase("");
    query.erase("");  // empty names, as in the query "&=&", are not compared
    require(again == query, "a query reads back as the same");
  }
  return 0;
}
