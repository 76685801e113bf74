#pragma once

#include <string>
#include <string_view>

namespace longhand::app::book {

/// Converts a formula in the LaTeX subset of docs/math to a MathML element. Throws an Error that
/// names the command if a command is unknown, so that no LaTeX remains in a page.
std::string mathml(std::string_view latex, bool display);

}  // namespace longhand::app::book
