#pragma once

#include <exception>
#include <string>

namespace longhand {

/// The message of any exception. For a filesystem_error it is "PATH: cannot be read: REASON".
std::string message_of(const std::exception& exception);

}  // namespace longhand
