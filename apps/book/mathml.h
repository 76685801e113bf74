#pragma once

#include <string>
#include <string_view>

namespace longhand::app::book {

/// Converts a formula in the LaTeX subset of docs/math to a MathML element. An unknown command is
/// an Error that names the command, so that no LaTeX remains in a page.
std::string mathml(std::string_view latex, bool display);

}  // namespace longhand::app::book
