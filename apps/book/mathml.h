#pragma once

#include <string>
#include <string_view>

namespace longhand::app::book {

/// A formula in the LaTeX that docs/math uses, as a MathML element. A command that is not known is
/// an Error that names it: nothing stays LaTeX in a page.
std::string mathml(std::string_view latex, bool display);

}  // namespace longhand::app::book
