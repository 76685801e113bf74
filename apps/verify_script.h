#pragma once

#include <string_view>

namespace longhand::app {

/// The contents of verify.py and verify_formulas.py, which CMake embeds in the program and
/// `longhand audit` writes.
extern const std::string_view verify_script, verify_formulas;

}  // namespace longhand::app
