#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// A table of numbers in which larger numbers have a darker background. Each group of columns has a
/// heading.
struct HeatTable {
  struct Group {
    std::string name;
    std::vector<std::string> columns;
  };
  struct Cell {
    std::string text = {}, small = {};  // the number as text, and smaller text below it
    double share = 0;                   // share of the full colour, from 0 to 1
    std::string title = {};             // tooltip
  };
  struct Row {
    std::string name;
    std::vector<Cell> cells;  // the cells of all groups, in order
  };
  std::vector<Group> groups;
  std::vector<Row> rows;
};
std::string heat_table(const HeatTable& table);

}  // namespace longhand::app::html
