// Tests reading arrays and tables from files that other programs wrote.
#include "core/numbers.h"

#include <cmath>
#include <limits>

#include "core/atomic_file.h"
#include "core/backend.h"
#include "core/npy.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(numbers_test)

using namespace longhand;

namespace {

using Doubles = std::vector<double>;

/// The bytes of an IDX file with this element type, these extents of its axes and these numbers.
std::string idx(int type, const std::vector<std::uint32_t>& extents, const std::string& bytes) {
  std::string file{0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(extent >> shift & 255);
  }
  return file + bytes;
}

struct Fixture {
  TemporaryFolder folder;

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    write_atomically(folder / name, bytes);
    return folder / name;
  }
  Doubles read(const std::string& bytes) const {
    const Numbers numbers = read_numbers(write("data", bytes));
    Doubles values;
    for (std::int64_t i = 0; i < numbers.count(); ++i) numbers.append_row(i, values);
    return values;
  }
  void refuses(const std::string& bytes, std::string_view message) const {
    write("data", bytes);
    expect_refusal([&] { read_numbers(folder / "data"); }, message);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(idx_files_of_every_type_are_read, Fixture) {
  const auto bytes = [](std::initializer_list<int> list) {
    return std::string(list.begin(), list.end());
  };
  BOOST_TEST(read(idx(8, {3}, bytes({0, 1, 255}))) == Doubles({0, 1, 255}));
  BOOST_TEST(read(idx(9, {2}, bytes({127, 255}))) == Doubles({127, -1}));
  BOOST_TEST(read(idx(11, {2}, bytes({1, 2, 255, 254}))) == Doubles({258, -2}));
  BOOST_TEST(read(idx(12, {1, 1}, bytes({1, 0, 0, 2}))) == Doubles({16777218}));
  BOOST_TEST(read(idx(13, {1}, bytes({0x3f, 0xc0, 0, 0}))) == Doubles({1.5}));
  BOOST_TEST(read(idx(14, {1}, bytes({0xc0, 4, 0, 0, 0, 0, 0, 0}))) == Doubles({-2.5}));
  const Numbers images = read_numbers(write("images", idx(8, {2, 3, 2}, "abcdefghijkl")));
  BOOST_TEST(images.shape() == Shape({2, 3, 2}));
  BOOST_TEST(images.row_size() == 6);
  BOOST_TEST(images[11] == 'l');
  const std::int64_t second = 1;
  BOOST_TEST(images.select({&second, 1})[0] == 'g');
  BOOST_TEST(read_numbers(write("none", idx(8, {0, 5}, ""))).count() == 0);
}

BOOST_FIXTURE_TEST_CASE(broken_idx_files_are_refused, Fixture) {
  refuses("", "begins with two zero bytes");
  refuses("\x1f\x8b and more", "unpack it with gunzip");
  refuses("P6 an image", "begins with two zero bytes");
  refuses(idx(7, {1}, "a"), "expected an IDX type from 8 to 14, got 7");
  refuses(idx(8, {}, "a"), "expected 1 to 4 axes, got 0");
  refuses(idx(8, {1, 1, 1, 1, 1}, "a"), "expected 1 to 4 axes, got 5");
  refuses(idx(8, {1, 1}, "").substr(0, 11), "the header is truncated");
  refuses(idx(8, {4, 4}, "abc"), "expected 16 bytes for the shape [4, 4], got 3");
  refuses(idx(8, {1}, "ab"), "expected 1 bytes for the shape [1], got 2");
  const std::uint32_t huge = 0xffff'ffff;
  refuses(idx(8, {huge, huge, huge}, "abc"), "the shape is too large");
  refuses(idx(8, {0, huge, huge, huge}, ""), "the shape is too large");
}

BOOST_FIXTURE_TEST_CASE(numpy_and_safetensors_arrays_are_read, Fixture) {
  const auto backend = make_reference_backend();
  const Tensor a = Tensor::from(*backend, {2, 2}, DType::f32, Doubles{1, -2, 0.5, 4});
  const Tensor b = Tensor::from(*backend, {3}, std::vector<std::int32_t>{7, 0, 9});
  save_arrays(folder / "a.npy", std::vector<NamedTensor>{{"a", a}});
  BOOST_TEST(read_numbers(folder / "a.npy")[2] == 0.5);
  for (const char* name : {"both.npz", "both.safetensors"}) {
    save_arrays(folder / name, std::vector<NamedTensor>{{"a", a}, {"b", b}});
    BOOST_TEST(read_numbers(folder / name, "b").to_classes() == b.to_ints());
    expect_refusal([&] { read_numbers(folder / name); }, "the name of one of the 2 arrays");
    expect_refusal([&] { read_numbers(folder / name, "c"); }, "expected an array named \"c\"");
  }
  expect_refusal([&] { read_numbers(folder / "a.npy").to_classes(); },
                 "expected integer classes from 0 to 2^31 - 1, got -2 at entry 1");
  const auto last = [](double value) {
    Numbers one({1}, Numbers::Type::f64,
                std::string(reinterpret_cast<const char*>(&value), sizeof value));
    return refusal([&] { one.to_classes(); });
  };
  BOOST_TEST(last(0) == "accepted");
  BOOST_TEST(last(2147483647) == "accepted");
  for (const double wrong : {2147483648.0, 0.5, std::nan("")}) {
    BOOST_TEST(contains(last(wrong), "expected integer classes"));
  }
}

BOOST_FIXTURE_TEST_CASE(columns_of_a_table_become_numbers_and_classes, Fixture) {
  const auto table = write("t.csv",
                           "size,name,weight\r\n"
                           "1,\"b, c\",-2.5\r\n"
                           " 3e2 ,a,0\r\n"
                           "0.5,\"b, c\",7\r\n");
  const Numbers numbers = read_columns(table, {"weight", "size"});
  BOOST_TEST(numbers.shape() == Shape({3, 2}));
  Doubles values;
  for (std::int64_t i = 0; i < 3; ++i) numbers.append_row(i, values);
  BOOST_TEST(values == Doubles({-2.5, 1, 0, 300, 7, 0.5}));
  const Classes classes = read_classes(table, "name");
  BOOST_TEST(classes.names == std::vector<std::string>({"a", "b, c"}));
  BOOST_TEST(classes.rows == std::vector<std::int32_t>({1, 0, 1}));
  expect_refusal(
      [&] {
        read_columns(table, {"size", "name"});
      },
      R"(t.csv:2: "name": expected a number, got "b, c")");
  expect_refusal([&] { read_columns(table, {"sise"}); }, R"(expected a column named "sise")");
  write("twice.csv", "size,weight,size\n1,2,3\n");
  expect_refusal([&] { read_columns(folder / "twice.csv", {"size"}); },
                 R"(twice.csv: expected one column named "size", got several)");
  for (const char* wrong : {"", "nan", "inf", "1e999", "1 2", "0x10"}) {
    write("u.csv", std::string("x,y\n\"") + wrong + "\",1\n");
    expect_refusal([&] { read_columns(folder / "u.csv", {"x"}); },
                   R"(u.csv:2: "x": expected a number)");
  }
  write("u.csv", "x,y\n\"\",1\n");
  expect_refusal([&] { read_classes(folder / "u.csv", "x"); }, "got an empty cell");
}

BOOST_FIXTURE_TEST_CASE(a_column_with_too_many_classes_is_refused, Fixture) {
  std::string table = "x\n";
  for (std::size_t i = 0; i <= most_classes; ++i) table += std::to_string(i) + '\n';
  expect_refusal([&] { read_classes(write("t.csv", table), "x"); },
                 "expected at most 65536 different classes");
}

BOOST_AUTO_TEST_CASE(entries_outside_an_array_are_refused) {
  const Numbers numbers({2, 2}, Numbers::Type::u8, "abcd");
  Doubles out;
  expect_refusal([&] { numbers[4]; }, "expected an entry index from 0 to 3, got 4");
  expect_refusal([&] { numbers.append_row(-1, out); }, "expected a row index from 0 to 1, got -1");
  const std::int64_t row = 2;
  expect_refusal([&] { numbers.select({&row, 1}); }, "expected a row index from 0 to 1, got 2");
  expect_refusal([&] { Numbers({3}, Numbers::Type::i16, "abcde"); },
                 "expected data of the shape [3] with 2 bytes per entry, got 5 bytes in total");
}

BOOST_AUTO_TEST_SUITE_END()
