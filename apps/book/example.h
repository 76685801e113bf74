#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/audit.h"

namespace longhand::app::book {

/// A worked example of docs/math, a block of its own between ```example and ```:
///
///     layer_norm epsilon=0
///     x = [[1, 3]]
///     gain = [1, 1]
///     y : [[-1, 1]]
///     dy = [[1, 0]]
///     dx : [[0, 0]]
///
/// First the operation and its attributes; what it is given has "=", what comes out ":".
struct Example {
  const catalog::Operation* operation = nullptr;
  AuditFile given;
  std::vector<std::pair<std::string, catalog::HostTensor>> claimed;
};

/// An Error that names the line for what is no example.
Example parse_example(std::string_view text);

/// What the reference loop gives in f64: outputs, and gradients if one is claimed.
std::map<std::string, catalog::HostTensor> compute(const Example& example);

/// What of the claims is not so, in words; empty if all hold to within half of the fourth decimal.
std::string disagreement(const Example& example);

/// The example with what was computed, as HTML.
std::string example_html(const Example& example);

}  // namespace longhand::app::book
