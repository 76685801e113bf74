#include "core/safetensors_parts.h"

#include <sys/stat.h>

#include <fstream>
#include <numeric>
#include "tests/check.h"

#include "core/error.h"
#include "core/json.h"
#include "core/rng.h"
#include "core/safetensors_index.h"
#include "tests/contents.h"
#include "tests/refusal.h"
#include "tests/replaced.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(safetensors_parts_test)

using namespace longhand;
namespace fs = std::filesystem;

namespace {

using Metadata = std::map<std::string, std::string, std::less<>>;

/// Tensors t0, t1, ... with the given numbers of elements, filled with consecutive numbers.
class Tensors {
 public:
  explicit Tensors(const std::vector<std::int64_t>& sizes) {
    float next = 0;
    for (const std::int64_t size : sizes) {
      auto& values = values_.emplace_back(static_cast<std::size_t>(size));
      std::iota(values.begin(), values.end(), next);
      next += static_cast<float>(size);
    }
  }
  std::string name(std::size_t i) const { return text("t", i); }
  std::span<const float> values(std::size_t i) const { return values_[i]; }
  std::size_t count() const { return values_.size(); }
  std::vector<SafetensorsItem> items() const {
    std::vector<SafetensorsItem> all;
    for (std::size_t i = 0; i < count(); ++i) {
      all.push_back(
          {name(i), DType::f32, Shape{static_cast<std::int64_t>(values_[i].size())},
           [this, i](const SafetensorsItem::Give& give) { give(std::as_bytes(values(i))); }});
    }
    return all;
  }

 private:
  std::vector<std::vector<float>> values_;
};

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The message of the error that is thrown when the folder is opened and checked.
std::string refusal(const fs::path& folder) {
  return longhand::refusal([&] { SafetensorsParts::open(folder, "model").check_exact(); });
}

const Metadata metadata{{"step", "12"}, {"more", std::string(300, 'x')}};

/// A folder with a model in three files (parts) of two tensors each.
struct Fixture {
  TemporaryFolder folder;
  fs::path index = folder / "model.safetensors.index.json";
  std::string text;
  Fixture() {
    const Tensors tensors({1000, 1000, 1000, 1000, 1000, 1000});
    write_safetensors_parts(folder.path(), "model", tensors.items(), {{"step", "12"}}, 9000);
    BOOST_REQUIRE(folder.count() == 4);
    BOOST_REQUIRE(refusal(folder.path()) == "accepted");
    text = contents(index);
  }
  fs::path part(int i) const {
    return folder / longhand::text("model-0000", i, "-of-00003.safetensors");
  }
  void expect(const std::string& message) const {
    const std::string said = refusal(folder.path());
    BOOST_TEST(contains(said, message));
    BOOST_TEST(said.find('\n') == std::string::npos);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_part_exceeds_the_limit_and_all_tensors_are_read_back) {
  const Tensors tensors({400, 1, 0, 300, 200, 100, 999, 1, 1, 1, 500, 50, 3});
  for (const std::uint64_t most : {0, 5000, 6000, 9000, 1 << 20}) {
    const TemporaryFolder folder;
    write_safetensors_parts(folder.path(), "model", tensors.items(), metadata, most);
    const auto parts = SafetensorsParts::open(folder.path(), "model");
    parts.check_exact();
    const bool cut = most > 0 && most < 10'000;
    BOOST_TEST((parts.files().size() > 1) == cut);
    BOOST_TEST(folder.count() == static_cast<std::ptrdiff_t>(parts.files().size()) + (cut ? 1 : 0));
    BOOST_TEST(fs::exists(folder / "model.safetensors") == !cut);
    for (const SafetensorsFile& file : parts.files()) {
      BOOST_TEST((file.metadata() == metadata));
      if (most > 0) BOOST_TEST(fs::file_size(file.name()) <= most);
    }
    for (std::size_t i = 0; i < tensors.count(); ++i) {
      const std::span<const float> expected = tensors.values(i);
      const auto& entry =
          parts.at(tensors.name(i), DType::f32, Shape{static_cast<std::int64_t>(expected.size())});
      BOOST_TEST(std::ranges::equal(entry.bytes, std::as_bytes(expected)));
    }
    BOOST_TEST(!parts.find("t99").entry);
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_larger_than_a_part_is_refused_before_anything_is_written) {
  const TemporaryFolder folder;
  const auto write = [&](std::int64_t largest, std::uint64_t most) {
    const Tensors tensors({10, largest, 10});
    return longhand::refusal(
        [&] { write_safetensors_parts(folder.path(), "model", tensors.items(), metadata, most); });
  };
  BOOST_TEST(write(1000, 4096)
                 .find("model.safetensors: tensor \"t1\": expected at most 4096 bytes including "
                       "the header of the file, got ") == 0u);
  BOOST_TEST(contains(write(1000, 4000), "\"t1\""));
  BOOST_TEST(contains(write(1000, 1), "\"t0\""));
  BOOST_TEST(folder.count() == 0);
  BOOST_TEST(write(1000, 4700) == "accepted");
  // The tensors would need more parts than a reader accepts.
  const Tensors many(std::vector<std::int64_t>(SafetensorsIndex::max_files + 1, 100));
  BOOST_TEST(contains(longhand::refusal([&] { cut_into_parts("model", many.items(), {}, 800); }),
                      "expected at most 1000 files of at most 800 bytes, got 1001 files"));
}

BOOST_FIXTURE_TEST_CASE(an_index_must_agree_with_its_parts, Fixture) {
  const std::string first = "model-00001-of-00003.safetensors", second = part(2).filename();
  const auto with = [&](const std::string& from, const std::string& to) {
    put(index, replaced(text, from, to));
  };
  with("24000", "23999");
  expect("total_size: expected 24000, the number of bytes of all tensors, got 23999");
  for (const char* total : {"-1", "1e99", "\"24000\"", "24000.5", "99999999999999999999", "null"}) {
    with("24000", total);
    expect("total_size: expected 24000, the number of bytes of all tensors, got none");
  }
  with("\"metadata\"", "\"other\"");
  expect("total_size: expected 24000, the number of bytes of all tensors, got none");
  with(text.substr(text.find("\"metadata\""),
                   text.find("\"weight_map\"") - text.find("\"metadata\"")),
       "\"metadata\": 3,");
  expect("got none");
  for (const char* wrong : {"../x.safetensors", "/etc/passwd", "..", ".", "", ".hidden", "a/b"}) {
    with(first, wrong);
    expect("\"t0\": expected the name of a file in the same folder, got");
  }
  with(first, "a\\u0000b");
  expect("\"t0\": expected the name of a file in the same folder, got");
  with(first, "gone.safetensors");
  expect("gone.safetensors: cannot be read");
  with(first, second);
  expect("has no tensor \"t0\", which");
  with("\"t0\"", "\"t1\"");  // the name t1 occurs twice, and t0 is missing
  expect("tensor \"t0\": expected no such tensor, because");
  with("\"t0\": \"" + first + "\",", "");
  expect("does not list it");
  with("\"t0\": \"", "\"t77\": \"");
  expect("has no tensor \"t77\", which");
  for (const char* wrong : {"", "{", "[]", "3", "{}", R"({"weight_map": {}})",
                            R"({"weight_map": 1})", R"({"weight_map": {"t0": 1}})", "null"}) {
    put(index, wrong);
    expect("expected ");
  }
}

BOOST_FIXTURE_TEST_CASE(missing_truncated_or_changed_parts_are_refused, Fixture) {
  const std::string whole = contents(part(2));
  fs::remove(part(2));
  expect("model-00002-of-00003.safetensors: cannot be read");
  put(part(2), whole.substr(0, whole.size() - 1));
  expect("model-00002-of-00003.safetensors");
  put(part(2), contents(part(1)));
  expect("model-00002-of-00003.safetensors: has no tensor");
  fs::remove(part(2));
  fs::create_directory(part(2));
  expect("expected a file, got a folder");
  fs::remove(part(2));
  // A named pipe in place of a file is refused without waiting for a writer.
  BOOST_REQUIRE(::mkfifo(part(2).c_str(), 0600) == 0);
  expect("expected a file, got a pipe");
  fs::remove(part(2));
  // A second file that contains a tensor of the first file is refused.
  const Tensors more({1000, 1000, 1000});
  auto items = more.items();
  items[1].name = "t2";
  items[2].name = "t3";
  write_safetensors(part(2), items);
  expect("model-00002-of-00003.safetensors: tensor \"t0\": expected no such tensor, because ");
  expect("assigns it to another file");
  put(part(2), whole);
  BOOST_TEST(refusal(folder.path()) == "accepted");
}

BOOST_FIXTURE_TEST_CASE(an_index_of_more_than_a_thousand_files_is_refused, Fixture) {
  std::string map;
  for (int i = 0; i <= 1000; ++i) {
    const std::string name = longhand::text("p", i);
    const Tensors one({1});
    auto items = one.items();
    items[0].name = name;
    write_safetensors(folder / (name + ".safetensors"), items);
    map += longhand::text(i > 0 ? "," : "", '"', name, "\":\"", name, ".safetensors\"");
  }
  put(index, R"({"metadata": {"total_size": 4004}, "weight_map": {)" + map + "}}");
  expect("expected at most 1000 files, got more");
}

// An index with changed, inserted, removed or truncated bytes is either read or refused by an
// Error.
BOOST_FIXTURE_TEST_CASE(edited_indexes_are_read_or_refused, Fixture) {
  Rng rng(1, Purpose::test);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string edited = text;
    for (std::uint32_t edits = 1 + rng.below(3); edits > 0; --edits) {
      const std::size_t at = rng.below(static_cast<std::uint32_t>(edited.size()));
      const char byte = static_cast<char>(rng.below(256));
      switch (rng.below(4)) {
        case 0:
          edited[at] = byte;
          break;
        case 1:
          edited.insert(at, 1, byte);
          break;
        case 2:
          edited.erase(at, 1 + rng.below(40));
          break;
        default:
          edited.insert(at, edited.substr(rng.below(static_cast<std::uint32_t>(at + 1)), 60));
      }
      if (edited.empty()) edited = " ";
    }
    put(index, edited);
    const std::string said = refusal(folder.path());
    refused += said == "accepted" ? 0 : 1;
    BOOST_TEST_REQUIRE(said.find('\n') == std::string::npos, said);
    BOOST_TEST_REQUIRE(said.size() < 1000u, said);
  }
  BOOST_TEST(refused > 1500);
}

BOOST_AUTO_TEST_SUITE_END()
