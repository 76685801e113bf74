#pragma once

#include <exception>
#include <string>

namespace longhand {

/// The message of any exception. A filesystem_error becomes "PATH: cannot be read: REASON".
std::string message_of(const std::exception& exception);

}  // namespace longhand
