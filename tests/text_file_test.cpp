#include "core/text_file.h"

#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace text_file_test {

using namespace longhand;

struct Fixture {
  TemporaryFolder folder;

  std::filesystem::path file(const std::string& text) const {
    std::ofstream(folder / "file", std::ios::binary) << text;
    return folder / "file";
  }
  std::vector<std::string> lines(const std::string& text, std::size_t longest = 100) const {
    std::vector<std::string> all;
    LineReader reader(file(text), longest);
    while (const auto line = reader.next()) {
      all.emplace_back(*line);
      BOOST_TEST(reader.number() == static_cast<std::int64_t>(all.size()));
    }
    return all;
  }
};

}  // namespace text_file_test

BOOST_FIXTURE_TEST_SUITE(text_file_test, Fixture)

BOOST_AUTO_TEST_CASE(a_text_up_to_the_limit_is_read_completely) {
  for (const std::size_t size : {0u, 1u, 65'535u, 65'536u, 65'537u, 200'000u}) {
    const std::string text(size, 'x');
    BOOST_TEST((read_text(file(text), size) == text));
    if (size == 0) continue;
    BOOST_TEST(refusal([&] { read_text(file(text), size - 1); }) ==
               (folder / "file").string() + ": expected at most " + std::to_string(size - 1) +
                   " bytes, got more");
  }
}

BOOST_AUTO_TEST_CASE(an_endless_file_is_refused_at_the_limit) {
  BOOST_TEST(refusal([] { read_text("/dev/zero", 1000); }) ==
             "/dev/zero: expected a file, got a device");
  BOOST_TEST(refusal([] { read_text_or_pipe("/dev/zero", 1000); }) ==
             "/dev/zero: expected at most 1000 bytes, got more");
  BOOST_TEST(refusal([] { LineReader("/dev/zero", 1000).next(); }) ==
             "/dev/zero:1: expected a line of at most 1000 bytes, got more");
}

BOOST_AUTO_TEST_CASE(lines_are_returned_without_line_breaks) {
  using Lines = std::vector<std::string>;
  BOOST_TEST((lines("") == Lines{}));
  BOOST_TEST((lines("\n") == Lines{""}));
  BOOST_TEST((lines("a\n\nb") == Lines{"a", "", "b"}));
  BOOST_TEST((lines("a\nb\n") == Lines{"a", "b"}));
  BOOST_TEST((lines("abc\n", 3) == Lines{"abc"}));
  Lines many;
  std::string text;
  for (std::size_t i = 0; i < 3000; ++i) {  // a text of 3000 lines is read in several pieces
    many.emplace_back(i % 97, 'x');
    text += many.back() + '\n';
  }
  BOOST_TEST((lines(text) == many));
}

BOOST_AUTO_TEST_CASE(a_last_line_without_a_line_break_is_reported_as_cut) {
  for (const auto& [text, cut] : {std::pair("a\n", false), {"a\nb", true}, {"", false}}) {
    LineReader reader(file(text), 10);
    while (reader.next()) continue;
    BOOST_TEST(reader.cut() == cut);
  }
}

BOOST_AUTO_TEST_CASE(a_long_line_is_refused_with_its_number) {
  const auto message = [&](const std::string& text) { return refusal([&] { lines(text, 3); }); };
  BOOST_TEST(message("abc\nabcd\n") ==
             (folder / "file").string() + ":2: expected a line of at most 3 bytes, got more");
  BOOST_TEST(message("abcd") ==
             (folder / "file").string() + ":1: expected a line of at most 3 bytes, got more");
}

BOOST_AUTO_TEST_CASE(a_pipe_is_read_to_its_end) {
  const std::filesystem::path pipe = folder / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text(100'000, 'x');
  std::jthread writer([&] { std::ofstream(pipe) << text; });
  BOOST_TEST((read_text_or_pipe(pipe, text.size()) == text));
}

BOOST_AUTO_TEST_CASE(names_that_are_not_files_are_refused) {
  BOOST_TEST(refusal([&] { read_text(folder.path(), 10); }) ==
             folder.path().string() + ": expected a file, got a folder");
  BOOST_TEST(refusal([&] { read_text(folder / "none", 10); }) ==
             (folder / "none").string() + ": cannot be read: No such file or directory");
}

BOOST_AUTO_TEST_SUITE_END()
