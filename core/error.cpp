#include "core/error.h"

#include <sstream>

namespace longhand {

void Piece::print_text(std::ostream& out, const void* text) {
  out << static_cast<const char*>(text);
}

std::string message_of(std::initializer_list<Piece> pieces) {
  std::ostringstream out;
  for (const Piece& piece : pieces) piece.print_(out, piece.value_);
  return out.str();
}

void fail_with(std::initializer_list<Piece> pieces) { throw Error(message_of(pieces)); }

}  // namespace longhand
