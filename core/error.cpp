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
  out.imbue(std::locale::classic());  // the format of numbers must not depend on the user's locale
  for (const MessagePart& part : parts) part.print_(out, part.value_);
  return out.str();
}

// Control characters are escaped, because paths and names may come from untrusted files.
void fail_with(std::initializer_list<MessagePart> parts) {
  throw Error(printable(message_of(parts)));
}

}  // namespace longhand
