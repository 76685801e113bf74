// Tests that paths and names from users or files are escaped in messages, so that they cannot
// control the terminal.
#include "tests/check.h"

#include "core/quote.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace messages_test {

using namespace longhand;

// Characters that must not be printed as they are: an escape sequence that clears the screen, a C1
// control character, a character that reverses the rest of the line, an invisible character, a line
// break, and invalid UTF-8.
const std::string bad = "\x1b[2J\xc2\x9b\xe2\x80\xae\xe2\x80\x8b\n\xff";

/// Quotes a word for the shell.
std::string word(const std::string& text) { return '\'' + text + '\''; }

void safetensors(const std::filesystem::path& path, const std::string& header) {
  std::ofstream file(path, std::ios::binary);
  const std::uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header << 'x';
}

struct Fixture {
  Program longhand;

  void one_printable_line(const std::string& words) const {
    const Program::Outcome outcome = longhand(words);
    BOOST_TEST_CONTEXT("longhand " << printable(words) << " says: " << printable(outcome.err)) {
      BOOST_TEST(outcome.status != 0);
      BOOST_TEST(outcome.out.empty());
      BOOST_REQUIRE(outcome.err.ends_with('\n'));
      const std::string line = outcome.err.substr(0, outcome.err.size() - 1);
      BOOST_TEST((line == printable(line)));
      BOOST_TEST(line.size() < 2000u);
    }
  }
};

}  // namespace messages_test

BOOST_FIXTURE_TEST_SUITE(messages_test, Fixture)

BOOST_AUTO_TEST_CASE(arguments_are_shown_escaped) {
  for (const std::string before : {"",
                                   "help ",
                                   "repro ",
                                   "train --",
                                   "train --task ",
                                   "train --resume ",
                                   "train --steps ",
                                   "train --config ",
                                   "train --heads ",
                                   "eval ",
                                   "eval nowhere --on ",
                                   "inspect ",
                                   "generate ",
                                   "export --out x ",
                                   "import --out x ",
                                   "data check ",
                                   "data --on ",
                                   "op ",
                                   "op layer_norm --in ",
                                   "gradcheck ",
                                   "bench ",
                                   "repro fal/table1 --scale ",
                                   "repro fal/table1 --only ",
                                   "repro matrix --tasks ",
                                   "info "}) {
    one_printable_line(before + word(bad));
    one_printable_line(before + word("x" + bad));
  }
}

BOOST_AUTO_TEST_CASE(names_in_files_are_shown_escaped) {
  const std::string name = R"(\u001b[2J\u009b\u202e\u200b\n)" + std::string(5000, 'x');
  for (const std::string& header : std::initializer_list<std::string>{
           R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           R"({"\u001b\u202e":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           R"({"x":{"dtype":")" + name + R"(","shape":[1],"data_offsets":[0,1]}})",
           R"({"x":{")" + name + R"(":1}})"}) {
    safetensors(longhand.path("a.safetensors"), header);
    one_printable_line("op layer_norm --in a.safetensors");
  }
  for (const std::string& line : std::initializer_list<std::string>{
           "[task]\nname = " + bad, "[task]\nname = flip-flop\n" + bad + " = 1",
           "[task]\nname = flip-flop\n[model]\nheads = " + bad}) {
    std::ofstream(longhand.path("run.ini")) << line;
    one_printable_line("train --config run.ini");
  }
  std::filesystem::create_directory(longhand.path("model"));
  std::ofstream(longhand.path("model/config.json")) << R"({"model_type":")" + name + R"("})";
  one_printable_line("import model --out x");
}

BOOST_AUTO_TEST_CASE(a_folder_with_an_escaped_name_can_be_used) {
  const std::string folder = "run\x1b[2J\xe2\x80\xae";
  const Program::Outcome trained = longhand(
      "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1 "
      "--batch 2 --steps 1 --evaluate_samples 1 --threads 1 --out " +
      word(folder));
  BOOST_TEST(trained.status == 0);
  BOOST_TEST((trained.err == printable_lines(trained.err)));
  BOOST_TEST(contains(trained.err, printable(folder)));
  const std::string page = contents(longhand.path(folder) + "/report.html");
  BOOST_TEST((page == printable_lines(page)));
  one_printable_line("train --task flip-flop --out " + word(folder));
  for (const char* command : {"eval ", "inspect "}) {
    const Program::Outcome shown = longhand(command + word(folder) + " --samples 1");
    BOOST_TEST(shown.status == 0, printable(shown.err));
    BOOST_TEST((shown.out == printable_lines(shown.out)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
