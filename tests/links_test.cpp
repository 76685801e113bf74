#include <string>
#include <vector>

#include "tests/check.h"
#include "tests/contents.h"
#include "tests/paths.h"

/// Tests the links between the repository's documents.
BOOST_AUTO_TEST_SUITE(links_test)

using longhand::contents;
namespace fs = std::filesystem;

namespace {

/// True for a folder that does not contain documents of the repository.
bool holds_no_documents(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name == ".git" || name == "runs" || name.starts_with("build");
}

std::vector<fs::path> documents(const fs::path& source) {
  std::vector<fs::path> all;
  for (auto at = fs::recursive_directory_iterator(source); at != fs::end(at); ++at) {
    if (at->is_directory() && holds_no_documents(at->path())) {
      at.disable_recursion_pending();
    } else if (at->path().extension() == ".md") {
      all.push_back(at->path());
    }
  }
  return all;
}

/// Returns the files to which the links "[...](...)" of a Markdown text point, without the part
/// after "#". Links to web addresses are omitted.
std::vector<std::string> links_of(const std::string& text) {
  std::vector<std::string> links;
  for (std::size_t at = text.find("]("); at != text.npos; at = text.find("](", at + 1)) {
    const std::size_t end = text.find_first_of(") \n", at);
    if (end == text.npos || text[end] != ')') continue;
    std::string link = text.substr(at + 2, end - at - 2);
    link = link.substr(0, link.find('#'));
    const bool elsewhere = link.find(':') != link.npos;
    if (!link.empty() && !elsewhere) links.push_back(link);
  }
  return links;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_link_between_documents_leads_to_a_file) {
  const fs::path source = fs::path(longhand::test_data).parent_path();
  std::size_t links = 0;
  for (const fs::path& document : documents(source)) {
    for (const std::string& link : links_of(contents(document))) {
      ++links;
      BOOST_TEST(fs::exists(document.parent_path() / link),
                 document.lexically_relative(source).string() << ": no " << link);
    }
  }
  BOOST_TEST(links > 300u);
}

BOOST_AUTO_TEST_CASE(links_are_found_in_a_text) {
  const std::vector<std::string> expected{"a.md", "b/c.svg"};
  BOOST_TEST(
      links_of("[x](a.md#part) ![](b/c.svg) [y](https://z) [w](#here) f[i](a, b)") == expected,
      boost::test_tools::per_element());
}

// Each block of code in docs/guide/library.md must be part of a program in examples/. The test
// `install` compiles and runs these programs.
BOOST_AUTO_TEST_CASE(the_code_in_the_guide_to_the_library_is_part_of_an_example) {
  const fs::path source = fs::path(longhand::test_data).parent_path();
  std::string examples;
  for (const auto& file : fs::directory_iterator(source / "examples")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string example = contents(file.path());
    // An example fits on a page.
    BOOST_TEST(std::ranges::count(example, '\n') < 80, file.path());
    examples += example;
  }
  const std::string guide = contents(source / "docs/guide/library.md"), fence = "```cpp\n";
  std::size_t blocks = 0;
  for (std::size_t at = guide.find(fence); at != guide.npos; at = guide.find(fence, at)) {
    at += fence.size();
    const std::string block = guide.substr(at, guide.find("```", at) - at);
    BOOST_TEST((examples.find(block) != examples.npos), block);
    ++blocks;
  }
  BOOST_TEST(blocks > 5u);
}

BOOST_AUTO_TEST_SUITE_END()
