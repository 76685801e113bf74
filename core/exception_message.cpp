#include "core/exception_message.h"

#include <filesystem>

#include "core/error.h"

namespace longhand {

std::string message_of(const std::exception& exception) {
  const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception);
  if (!of_file) return exception.what();
  return text(of_file->path1().native(), ": cannot be read: ", of_file->code().message());
}

}  // namespace longhand
