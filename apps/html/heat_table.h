#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// A table of figures; larger figures have a darker background. Groups of columns have a heading.
struct HeatTable {
  struct Group {
    std::string name;
    std::vector<std::string> columns;
  };
  struct Cell {
    std::string text = {}, small = {};  // the figure, and the text below it
    double share = 0;                   // share of the full colour
    std::string title = {};             // shown under the pointer
  };
  struct Row {
    std::string name;
    std::vector<Cell> cells;  // of all groups, in order
  };
  std::vector<Group> groups;
  std::vector<Row> rows;
};
std::string heat_table(const HeatTable& table);

}  // namespace longhand::app::html
