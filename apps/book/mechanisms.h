#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// An attention mechanism and the weights that it assigns to the values in an example.
struct Mechanism {
  std::string_view name;  // title of its page
  std::string_view title;
  std::string_view chapter;  // its page in docs/math
  std::string_view heads;    // its name in --heads
  std::string_view says;     // explanation of how to read the picture
  /// Weights[i][j]: weight of value j in the output of query i.
  std::vector<std::vector<double>> weights;
};

/// All mechanisms, applied to the same queries and keys. Their operations are linear in the values:
/// if the values are the identity matrix, the output is the matrix of weights.
std::vector<Mechanism> mechanisms();

/// A picture of the weights with one step per query. Without scripts it shows the last step.
std::string steps_picture(const Mechanism& mechanism, std::size_t number);

}  // namespace longhand::app::book
