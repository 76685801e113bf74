#pragma once

#include <string_view>

namespace longhand::app {

/// The texts of verify.py and formulas.py, which `longhand audit` writes and CMake embeds in the
/// program.
extern const std::string_view verify_script, verify_formulas;

}  // namespace longhand::app
