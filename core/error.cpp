#include "core/error.h"

#include <locale>
#include <sstream>

#include "core/quote.h"

namespace longhand {

void MessagePart::print_text(std::ostream& out, const void* text) {
  out << static_cast<const char*>(text);
}

std::string message_of(std::initializer_list<MessagePart> parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // format numbers independently of the user's language
  for (const MessagePart& part : parts) part.print_(out, part.value_);
  return out.str();
}

// Escapes paths and names from files, so that a message cannot control a terminal.
void fail_with(std::initializer_list<MessagePart> parts) {
  throw Error(printable(message_of(parts)));
}

}  // namespace longhand
