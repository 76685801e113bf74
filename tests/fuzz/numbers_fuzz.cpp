// Fuzz target: reads any bytes as an IDX file and as a CSV table. They are refused, or the file has
// at least one byte for each number that is read, so the memory in use is bounded.
#include "core/numbers.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/scratch_file.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto idx = folder.write("input", input);
  done_or_refused(
      [&] {
        const Numbers numbers = read_numbers(idx);
        require(numbers.size() <= static_cast<std::int64_t>(size), "an entry has at least a byte");
        std::vector<double> row;
        if (numbers.size() > 0) numbers.append_row(numbers.count() - 1, row);
        require(std::ssize(row) == numbers.row_size(), "a row has all of its entries");
      },
      idx.string());
  const auto table = folder.write("input.csv", input);
  done_or_refused(
      [&] {
        const Numbers numbers = read_columns(table, {"x", "y"});
        require(numbers.size() <= static_cast<std::int64_t>(size), "a cell has at least a byte");
      },
      table.string());
  done_or_refused(
      [&] {
        const Classes classes = read_classes(table, "name");
        for (const std::int32_t row : classes.rows) {
          require(row >= 0 && row < std::ssize(classes.names), "every class has a name");
        }
      },
      table.string());
  return 0;
}
