// Tests the worked example of docs/math/tape.md: its code is compiled here, and its numbers are
// compared with those of a recorded forward and backward pass.
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "tests/check.h"

#include "autograd/combine.h"
#include "autograd/reduce.h"
#include "autograd/tape.h"
#include "tests/contents.h"
#include "tests/paths.h"

BOOST_AUTO_TEST_SUITE(tape_page_test)

using namespace longhand;

namespace {

const std::filesystem::path page_file = std::filesystem::path(test_data) / "../docs/math/tape.md";

/// The values as docs/math/tape.md writes them: "(3, 2)".
std::string written(const std::vector<double>& values) {
  std::string all;
  for (const double value : values) {
    all += (all.empty() ? "" : ", ") + std::to_string(static_cast<int>(value));
  }
  return "(" + all + ")";
}
std::string written(const Tensor& x) { return written(x.to_doubles()); }

/// Returns x. In the backward pass, `look` receives the complete gradient of x.
Var watched(const Var& x, std::function<void(const Tensor& dx)> look) {
  return record("watched", {&x}, x.value(), [dx = x.sink(), look](const Tensor& dy) {
    look(dy);
    dx.add(dy);
  });
}

/// The lines of a text, each without the spaces at its beginning.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line.substr(std::min(line.size(), line.find_first_not_of(' '))));
  }
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_numbers_of_the_page_are_those_of_the_tape) {
  const auto backend = make_reference_backend();
  const auto values = [&](std::vector<double> v) {
    return Tensor::from(*backend, {2}, DType::f64, v);
  };
  const Var w(values({3, 1}), true), x(values({1, 2}));
  std::map<std::string, std::string> numbers;
  Tape tape;
  {
    const Recording recording(tape);
    // These three lines are also in docs/math/tape.md.
    const Var p = multiply(w, x);
    const Var q = multiply(p, w);
    const Var loss = row_sum(q);
    BOOST_TEST(tape.size() == 3u);
    numbers["p"] = written(p.value());
    numbers["q"] = written(q.value());
    numbers["L"] = written(loss.value());
    tape.backward(loss);
  }
  BOOST_TEST(tape.size() == 0u);
  numbers["dw"] = written(w.grad());
  BOOST_TEST(!x.grad());

  // Repeats the pass and stores the gradient of the output of each recorded operation.
  w.clear_grad();
  // Both products read w, so the gradient of w is a sum of two parts. The backward pass adds the
  // part of the second product first. This part is stored in `first`.
  std::vector<double> first;
  {
    const Recording recording(tape);
    const auto store = [&](const char* name) {
      return [&numbers, name](const Tensor& dy) { numbers[name] = written(dy); };
    };
    const Var p = watched(multiply(w, x), [&](const Tensor& dp) {
      numbers["dp"] = written(dp);
      first = w.grad().to_doubles();
    });
    const Var q = watched(multiply(p, w), store("dq"));
    tape.backward(watched(row_sum(q), store("dL")));
  }
  BOOST_TEST(written(w.grad()) == numbers["dw"]);
  std::vector<double> second = w.grad().to_doubles();
  for (std::size_t i = 0; i < 2; ++i) second[i] -= first[i];

  std::vector<std::string> claims{
      "to dw: dp x = " + written(second) + " |",
      "to dp: dq w = " + numbers["dp"] + ", to dw: dq p = " + written(first) + " |",
      "to dq: " + numbers["dq"] + " |",
      "$dw = " + written(first) + " + " + written(second) + " = " + numbers["dw"] + "$"};
  for (const std::string name : {"p", "q", "L", "dp", "dq", "dL"}) {
    claims.push_back("| " + name + " = " + numbers[name] + " |");
  }
  const std::string page = contents(page_file);
  for (const std::string& claim : claims) BOOST_TEST(page.find(claim) != page.npos, claim);
}

BOOST_AUTO_TEST_CASE(the_code_of_the_page_is_the_code_of_this_test) {
  const std::string page = contents(page_file);
  const std::string begin = "```cpp\n";
  const std::size_t at = page.find(begin);
  BOOST_REQUIRE(at != page.npos);
  const std::size_t from = at + begin.size();
  const auto code = lines_of(page.substr(from, page.find("```", from) - from));
  const auto test = lines_of(contents(std::filesystem::path(test_data) / "tape_page_test.cpp"));
  BOOST_TEST(code.size() == 3u);
  BOOST_TEST((std::search(test.begin(), test.end(), code.begin(), code.end()) != test.end()));
}

BOOST_AUTO_TEST_SUITE_END()
