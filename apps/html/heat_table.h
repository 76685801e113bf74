#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// A table of figures whose ground is the darker the larger they are. Columns stand in groups with
/// a heading over each.
struct HeatTable {
  struct Group {
    std::string name;
    std::vector<std::string> columns;
  };
  struct Cell {
    std::string text = {}, small = {};  // the figure, and what stands below it
    double share = 0;                   // of the full colour
    std::string title = {};             // told where the pointer rests
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
