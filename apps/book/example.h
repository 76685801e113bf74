#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/audit.h"

namespace longhand::app::book {

/// A worked example of docs/math, in a block between ```example and ```:
///
///     layer_norm epsilon=0
///     x = [[1, 3]]
///     gain = [1, 1]
///     y : [[-1, 1]]
///     dy = [[1, 0]]
///     dx : [[0, 0]]
///
/// The first line contains the operation and its attributes. "=" marks inputs and ":" marks claimed
/// results.
struct Example {
  const catalog::Operation* operation = nullptr;
  AuditFile given;
  std::vector<std::pair<std::string, catalog::HostTensor>> claimed;
};

/// Throws an Error that names the line if the text is not an example.
Example parse_example(std::string_view text);

/// Computes the outputs of the example's operation with the reference loop in f64. If the example
/// claims a gradient, also computes the gradients.
std::map<std::string, catalog::HostTensor> compute(const Example& example);

/// Describes the wrong results that the example claims. The text is empty if every claimed result
/// is correct to within half a unit of the fourth decimal.
std::string disagreement(const Example& example);

/// The example with its computed results, as HTML.
std::string example_html(const Example& example);

}  // namespace longhand::app::book
