// Fuzz target: parses any bytes as JSON. If they are accepted, the value is written with and
// without line breaks. Both texts must be parsed to the same value.
#include "core/json.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

void visit(const Json& value) {
  if (value.is_number()) (void)value.number();
  if (value.is_integer()) done_or_refused([&] { (void)value.integer(); }, "JSON: expected ");
  if (value.is_array()) {
    for (const Json& element : value) visit(element);
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.members()) {
      require(value.find(name) == &member, "a member is found by its name");
      visit(member);
    }
  } else {
    done_or_refused([&] { (void)value["member"]; }, "JSON: expected ");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto value = Json::parse({reinterpret_cast<const char*>(data), size});
  if (!value) return 0;
  visit(*value);
  const std::string line = value->dump();
  require(line.find('\n') == std::string::npos, "JSON without an indent is one line");
  for (const std::string& text : {line, value->dump(2)}) {
    const auto again = Json::parse(text);
    require(again.has_value(), "what is written can be read");
    require(*again == *value, "what is written reads back as the same value");
  }
  return 0;
}
