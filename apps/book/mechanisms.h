#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// One kind of head in an example: the weights that it puts on the values.
struct Mechanism {
  std::string_view name;  // title of its page
  std::string_view title;
  std::string_view chapter;                  // its page in docs/math
  std::string_view heads;                    // its name in --heads
  std::string_view says;                     // how to read the picture
  std::vector<std::vector<double>> weights;  // weights[i][j]: weight of value j for query i
};

/// All mechanisms on the same queries and keys. Their operations are linear in the values, so if
/// value j is 1 in column j only, the output is the matrix of weights.
std::vector<Mechanism> mechanisms();

/// The weights as a picture with one step per query. Without scripts the last step is shown.
std::string steps_picture(const Mechanism& mechanism, std::size_t number);

}  // namespace longhand::app::book
