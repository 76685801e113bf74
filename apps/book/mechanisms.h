#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// An attention mechanism and the weights that it assigns to the values in an example.
struct Mechanism {
  std::string_view name;  // file name of the mechanism's page, without the extension
  std::string_view title;
  std::string_view chapter;  // name of the page in docs/math that explains the mechanism
  std::string_view heads;    // the mechanism's name in the flag --heads
  std::string_view says;     // explanation of how to read the picture
  /// weights[i][j]: weight of value j in the output of query i.
  std::vector<std::vector<double>> weights;
};

/// All mechanisms with their weights for the same queries and keys. The output of a mechanism is
/// linear in the values. If the values are the identity matrix, the output is therefore the matrix
/// of weights.
std::vector<Mechanism> mechanisms();

/// An HTML picture of a mechanism's weights that shows one query at a time. In a browser without
/// scripts it shows the last query.
std::string steps_picture(const Mechanism& mechanism, std::size_t number);

}  // namespace longhand::app::book
