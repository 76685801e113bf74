#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// What one kind of head reads on an example, seen as weights on its values.
struct Mechanism {
  std::string_view name;  // of its page
  std::string_view title;
  std::string_view chapter;                  // its page in docs/math
  std::string_view heads;                    // as --heads names it
  std::string_view says;                     // how to read the picture
  std::vector<std::vector<double>> weights;  // row by row: what query i reads of value j
};

/// All of them on the same queries and keys. An operation is linear in its values, so that with
/// value j being 1 in column j alone its output is the weights.
std::vector<Mechanism> mechanisms();

/// The weights as a picture to step through, a query at a time; without scripts the last one is
/// seen.
std::string steps_picture(const Mechanism& mechanism, std::size_t number);

}  // namespace longhand::app::book
