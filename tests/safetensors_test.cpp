#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include "tests/check.h"

#include "core/atomic_file.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/tensor_file.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(safetensors_test)

using namespace longhand;

namespace {

/// The bytes of a file: the length of the header, the header, the data. If `length` is given, it is
/// written in place of the actual length.
std::string file_of(const std::string& header, const std::string& data = "",
                    std::optional<std::uint64_t> length = {}) {
  const std::uint64_t said = length.value_or(header.size());
  std::string bytes(sizeof said, '\0');
  std::memcpy(bytes.data(), &said, sizeof said);
  return bytes + header + data;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + '}';
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "x");
}

template <class T>
SafetensorsItem item(const std::string& name, DType dtype, const Shape& shape,
                     const std::vector<T>& values) {
  return {name, dtype, shape,
          [&values](const SafetensorsItem::Give& give) { give(std::as_bytes(std::span(values))); }};
}

std::string refusal(const std::string& bytes) {
  return longhand::refusal([&] { (void)parse(bytes); });
}

/// Expects that each file is refused with its message.
void expect_refusals(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [bytes, message] : cases) BOOST_TEST(refusal(bytes) == message);
}

/// Returns how many KiB of this process's memory contain pages of mapped files.
std::int64_t mapped_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "RssFile:") continue;
    std::int64_t kib = 0;
    status >> kib;
    return kib;
  }
  return -1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_written_file_is_read_back) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<float> floats{1, -2, 0.5f, std::numeric_limits<float>::infinity(), -0.0f, 7};
  const std::vector<double> doubles{1.0 / 3};
  const std::vector<float> none;
  const std::vector<SafetensorsItem> items{
      item("bytes", DType::u8, {3}, bytes),
      item("line\n\"quote\" größe", DType::f32, {2, 3}, floats),
      item("scalar", DType::f64, {}, doubles), item("none", DType::f32, {4, 0}, none)};
  write_safetensors(folder / "a.safetensors", items, {{"step", "12"}, {"note", "a\tb"}});

  const SafetensorsFile file = SafetensorsFile::open(folder / "a.safetensors");
  BOOST_TEST(file.entries().size() == 4u);
  BOOST_TEST(file.metadata().at("step") == "12");
  BOOST_TEST(file.metadata().at("note") == "a\tb");
  for (const SafetensorsItem& wanted : items) {
    const SafetensorsEntry& entry = file.at(wanted.name, wanted.dtype, wanted.shape);
    wanted.bytes([&](std::span<const std::byte> expected) {
      BOOST_TEST(entry.bytes.size() == expected.size());
      BOOST_TEST(std::ranges::equal(entry.bytes, expected));
    });
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(entry.bytes.data()) % size_of(wanted.dtype) == 0u);
  }
  BOOST_TEST(folder.count() == 1);
}

// The memory for a large model would otherwise contain the whole file beside the parameters.
BOOST_AUTO_TEST_CASE(checked_and_forgotten_tensors_leave_no_pages_in_memory) {
  constexpr std::int64_t kib = 32 << 10;
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kib) << 10, 7);
  const std::vector<SafetensorsItem> items{item("a", DType::u8, {kib << 10}, bytes)};
  write_safetensors(folder / "a.safetensors", items);
  const SafetensorsFile file = SafetensorsFile::open(folder / "a.safetensors");
  const std::int64_t before = mapped_kib();
  BOOST_TEST_REQUIRE(before >= 0);

  file.check_sums();
  BOOST_TEST(mapped_kib() < before + kib / 8);
  const SafetensorsEntry& entry = file.at("a");
  BOOST_TEST(std::ranges::count(entry.bytes, std::byte{7}) == kib << 10);
  BOOST_TEST(mapped_kib() > before + kib / 2);
  file.forget(entry);
  BOOST_TEST(mapped_kib() < before + kib / 8);
  BOOST_TEST(std::ranges::count(entry.bytes, std::byte{7}) == kib << 10);
}

BOOST_AUTO_TEST_CASE(a_file_without_tensors_is_read_back) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a.safetensors", {});
  const auto file = SafetensorsFile::open(folder / "a.safetensors");
  BOOST_TEST(file.entries().empty());
  BOOST_TEST(std::filesystem::file_size(folder / "a.safetensors") == 8 + 64u);
}

/// A file with `count` tensors of one byte each. The header lists the last tensor first.
std::string file_of_many(std::size_t count) {
  std::string header = "{";
  for (std::size_t i = count; i-- > 0;) {
    header += entry("t" + std::to_string(i), "U8", "[1]",
                    '[' + std::to_string(i) + ',' + std::to_string(i + 1) + ']');
    header += i > 0 ? ',' : '}';
  }
  return file_of(header, std::string(count, 'x'));
}

BOOST_AUTO_TEST_CASE(the_number_of_tensors_is_limited) {
  constexpr std::size_t most = SafetensorsFile::max_entries;
  const std::string bytes = file_of_many(most);
  const SafetensorsFile file = parse(bytes);
  BOOST_TEST(file.entries().size() == most);
  for (const std::size_t i : {std::size_t{0}, std::size_t{99'999}, most - 1}) {
    BOOST_TEST(file.find("t" + std::to_string(i)) == &file.entries()[i]);
  }
  BOOST_TEST(!file.find("t"));
  BOOST_TEST(!file.find("z"));
  BOOST_TEST(refusal(file_of_many(most + 1)) == "x: expected at most 250000 tensors, got more");
}

BOOST_AUTO_TEST_CASE(the_length_of_a_name_is_limited) {
  const auto named = [](std::size_t length) {
    return file_of('{' + entry(std::string(length, 'n'), "U8", "[1]", "[0,1]") + '}', "a");
  };
  BOOST_TEST(refusal(named(SafetensorsFile::max_name)) == "accepted");
  BOOST_TEST(refusal(named(SafetensorsFile::max_name + 1)) ==
             "x: tensor \"" + std::string(60, 'n') +
                 "...\": expected a name of at most 4096 bytes, got 4097");
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> byte{1};
  const std::vector<SafetensorsItem> items{item(std::string(4097, 'n'), DType::u8, {1}, byte)};
  BOOST_CHECK_THROW(write_safetensors(folder / "a.safetensors", items), Error);
  BOOST_TEST(folder.count() == 0);
}

BOOST_AUTO_TEST_CASE(tensors_are_listed_in_the_order_of_their_data) {
  const std::string bytes = file_of('{' + entry("late", "U8", "[2]", "[1,3]") + ',' +
                                        entry("early", "U8", "[1]", "[0,1]") + "}  ",
                                    "abc");
  const SafetensorsFile file = parse(bytes);
  BOOST_TEST(file.entries()[0].name == "early");
  BOOST_TEST(file.find("late") == &file.entries()[1]);
  BOOST_TEST(std::to_integer<char>(file.at("late").bytes[0]) == 'b');
  BOOST_TEST(file.find("later") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_broken_header_is_refused_with_its_reason) {
  expect_refusals({
      {"", "x: expected a safetensors file of at least 8 bytes, got 0"},
      {"1234567", "x: expected a safetensors file of at least 8 bytes, got 7"},
      {file_of("{}", "", 3),
       "x: expected a header of at most 2 bytes (the rest of the file), got 3"},
      {file_of("{}", "", ~std::uint64_t{0}),
       "x: expected a header of at most 2 bytes (the rest of the file), got 18446744073709551615"},
      {file_of(""), "x: the header does not begin with {"},
      {file_of(" {}"), "x: the header does not begin with {"},
      {file_of("{}}"), "x: the header: expected the end at byte 2, got \"}\""},
      {file_of("{\"a\""), "x: the header: expected ':' at byte 4, got the end of the text"},
      {file_of("{\"\xff\":1}"), "x: the header: not JSON: broken UTF-8 at byte 2"},
  });
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fill_the_data_are_refused) {
  const std::string a = entry("a", "U8", "[2]", "[0,2]");
  expect_refusals({
      {file_of("{}", "a"), "x: expected 0 data bytes for the tensors, got 1"},
      {file_of('{' + a + '}', "a"),
       "x: tensor \"a\": expected data_offsets within the file's 1 data bytes, got [0, 2]"},
      {file_of('{' + a + '}', "abc"), "x: expected 2 data bytes for the tensors, got 3"},
      {file_of('{' + entry("a", "U8", "[2]", "[2,0]") + '}', "ab"),
       "x: tensor \"a\": expected data_offsets within the file's 2 data bytes, got [2, 0]"},
      {file_of('{' + entry("a", "F32", "[2]", "[0,2]") + '}', "ab"),
       "x: tensor \"a\": expected 8 bytes for F32 [2], got 2"},
      {file_of('{' + a + ',' + entry("b", "U8", "[2]", "[1,3]") + '}', "abc"),
       "x: tensor \"b\": overlaps the tensor before it: expected data_offsets that begin at 2, got "
       "1"},
      {file_of('{' + a + ',' + entry("b", "U8", "[2]", "[0,2]") + '}', "ab"),
       "x: tensor \"b\": overlaps the tensor before it: expected data_offsets that begin at 2, got "
       "0"},
      {file_of('{' + a + ',' + entry("b", "U8", "[1]", "[3,4]") + '}', "abcd"),
       "x: tensor \"b\": leaves a gap after the tensor before it: expected data_offsets that begin "
       "at 2, got 3"},
      {file_of('{' + a + ',' + a + '}', "ab"), "x: tensor \"a\": given twice"},
      {file_of('{' + entry("a", "U8", "[4294967296,4294967296]", "[0,0]") + '}'),
       "x: tensor \"a\": expected fewer than 2^63 elements, got more"},
      {file_of('{' + entry("a", "F64", "[4294967296,1073741824]", "[0,0]") + '}'),
       "x: tensor \"a\": expected a size of less than 2^64 bits, got more"},
      {file_of('{' + entry("a", "F4", "[3]", "[0,1]") + '}', "a"),
       "x: tensor \"a\": expected a whole number of bytes, got 3 elements of type F4"},
  });
}

BOOST_AUTO_TEST_CASE(broken_entries_of_a_header_are_refused) {
  const std::string deep = R"({"a":)" + std::string(100'000, '[');
  expect_refusals({
      {file_of(R"({"__metadata__":{},"__metadata__":{}})"), "x: __metadata__ is given twice"},
      {file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "x: metadata key \"k\" is given twice"},
      {file_of(R"({"__metadata__":{"k":1}})"),
       "x: __metadata__: expected a string, got the number 1"},
      {file_of(R"({"__metadata__":[]})"), "x: __metadata__: expected an object, got an array"},
      {file_of(R"({"a":{"dtype":"U8","dtype":"U8"}})"), "x: tensor \"a\": dtype given twice"},
      {file_of(R"({"a":{"dtype":"U8","shape":[]}})"), "x: tensor \"a\": has no data_offsets"},
      {file_of(R"({"a":{"data_offsets":[0,0],"shape":[]}})"), "x: tensor \"a\": has no dtype"},
      {file_of(R"({"a":{"data_offsets":[0,0],"dtype":"U8"}})"), "x: tensor \"a\": has no shape"},
      {file_of(R"({"a":{"strides":[]}})"),
       "x: tensor \"a\": expected the key dtype, shape or data_offsets, got \"strides\""},
      {file_of(R"({"a":{"dtype":7}})"),
       "x: tensor \"a\": dtype: expected a string, got the number 7"},
      {file_of(R"({"a":{"shape":[1,[2]]}})"),
       "x: tensor \"a\": shape: expected numbers from 0 to 2^63 - 1, got an array"},
      {file_of(R"({"a":{"shape":[-1]}})"),
       "x: tensor \"a\": shape: expected numbers from 0 to 2^63 - 1, got the number -1"},
      {file_of(R"({"a":{"shape":[2.0]}})"),
       "x: tensor \"a\": shape: expected numbers from 0 to 2^63 - 1, got the number 2.0"},
      {file_of(R"({"a":{"data_offsets":[0]}})"), "x: tensor \"a\": expected 2 data_offsets, got 1"},
      {file_of(R"({"a":{"data_offsets":[0,0,0]}})"),
       "x: tensor \"a\": expected 2 data_offsets, got more"},
      {file_of('{' + entry("a", "Q7", "[1]", "[0,1]") + '}', "a"),
       "x: tensor \"a\": unknown dtype \"Q7\""},
      {file_of('{' + entry("a", "U8", "[1,1,1,1,1]", "[0,1]") + '}', "a"),
       "x: tensor \"a\": expected at most 4 axes, got more"},
      {file_of('{' + entry("a", "U8", "[9223372036854775808]", "[0,1]") + '}', "a"),
       "x: tensor \"a\": shape: expected numbers from 0 to 2^63 - 1, got the number "
       "9223372036854775808"},
      {file_of(R"({"a\n":null})"), "x: tensor \"a\\x0a\": expected an object, got null"},
      {file_of(deep), "x: tensor \"a\": expected an object, got an array"},
  });
}

BOOST_AUTO_TEST_CASE(a_header_past_the_limit_is_refused_before_it_is_read) {
  const TemporaryFolder folder;
  write_atomically(folder / "a", file_of("{}", "", SafetensorsFile::max_header + 1));
  // The file is sparse: it takes little space on the disk.
  std::filesystem::resize_file(folder / "a", SafetensorsFile::max_header + 100);
  BOOST_TEST(contains(longhand::refusal([&] { SafetensorsFile::open(folder / "a"); }),
                      ": expected a header of at most 100000000 bytes, got 100000001"));
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_changed_byte_is_refused_or_read_in_bounds) {
  const std::string bytes = file_of(
      '{' + entry("a", "U8", "[2]", "[0,2]") + ',' + entry("b", "F32", "[1]", "[2,6]") + '}',
      "abcdef");
  BOOST_TEST(refusal(bytes) == "accepted");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    BOOST_TEST(refusal(bytes.substr(0, length)) != "accepted");
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      BOOST_TEST(refusal(changed).find('\n') == std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(unsupported_types_are_listed_but_not_read) {
  const std::string bytes = file_of('{' + entry("h", "F16", "[1]", "[0,2]") + '}', "ab");
  const SafetensorsFile file = parse(bytes);
  BOOST_TEST(file.entries()[0].type == "F16");
  BOOST_TEST(!file.entries()[0].dtype.has_value());
  using longhand::refusal;
  BOOST_TEST(refusal([&] { (void)file.at("h"); }) ==
             "x: tensor \"h\": expected F64, F32, BF16, I32 or U8, got F16");
  BOOST_TEST(refusal([&] { (void)file.at("h", DType::f32, {1}); }) ==
             "x: tensor \"h\": expected F32 [1], got F16 [1]");
  BOOST_TEST(refusal([&] { (void)file.to_i32("h"); }) ==
             "x: tensor \"h\": expected I32, I64, U8 or BOOL, got F16");
  BOOST_TEST(refusal([&] { (void)file.at("w"); }) == "x: has no tensor \"w\"");
}

BOOST_AUTO_TEST_CASE(integers_are_read_as_i32_if_they_fit) {
  const auto ints = [](const std::string& type, const auto& values) {
    std::string data(sizeof values, '\0');
    std::memcpy(data.data(), values.data(), data.size());
    const std::string bytes = file_of(
        '{' + entry("v", type, text('[', values.size(), ']'), text("[0,", data.size(), ']')) + '}',
        data);
    return parse(bytes).to_i32("v");
  };
  const std::vector<std::int32_t> ends{-2147483648, 2147483647};
  BOOST_TEST(ints("I64", std::array<std::int64_t, 2>{-2147483648, 2147483647}) == ends);
  BOOST_TEST(ints("I32", std::array<std::int32_t, 2>{ends[0], ends[1]}) == ends);
  BOOST_TEST(ints("U8", std::array<std::uint8_t, 2>{0, 255}) == (std::vector{0, 255}));
  BOOST_TEST(ints("BOOL", std::array<std::uint8_t, 2>{0, 1}) == (std::vector{0, 1}));
  const auto large = [&] { ints("I64", std::array<std::int64_t, 2>{0, 2147483648}); };
  BOOST_TEST(
      longhand::refusal(large) ==
      "x: tensor \"v\": expected values from -2^31 to 2^31 - 1, got 2147483648 at element 1");
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_written_are_refused_and_leave_no_file) {
  const TemporaryFolder folder;
  const std::vector<float> one{1};
  const auto refused = [&](std::vector<SafetensorsItem> items,
                           std::map<std::string, std::string, std::less<>> metadata = {}) {
    BOOST_CHECK_THROW(write_safetensors(folder / "a", items, metadata), Error);
    BOOST_TEST(folder.count() == 0);
  };
  refused({item("a", DType::f32, {2}, one)});
  // The writer of this tensor writes its bytes twice, which is more than the shape requires.
  refused({{"a", DType::f32, {1}, [&](const SafetensorsItem::Give& give) {
              give(std::as_bytes(std::span(one)));
              give(std::as_bytes(std::span(one)));
            }}});
  refused({item("a", DType::f32, {1}, one), item("a", DType::f32, {1}, one)});
  refused({item("__metadata__", DType::f32, {1}, one)});
  refused({item("\xff", DType::f32, {1}, one)});
  refused({}, {{"k", "\xff"}});
}

BOOST_AUTO_TEST_CASE(tensors_are_bit_for_bit_the_same_after_writing_and_reading) {
  const TemporaryFolder folder;
  const auto backend = make_reference_backend();
  const std::vector<double> values{1.0 / 3, -2, 0, 1e300, 5, 6};
  const Tensor x = Tensor::from(*backend, {2, 3}, DType::f64, values);
  const Tensor ids = Tensor::from(*backend, {2}, std::vector<std::int32_t>{-7, 9});
  save_tensors(folder / "a", std::vector<NamedTensor>{{"ids", ids}, {"x", x}}, {{"k", "v"}});

  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  BOOST_TEST(load_tensor(*backend, file, "x").to_doubles() == values);
  BOOST_TEST(load_tensor(*backend, file, "ids").to_ints() == (std::vector<std::int32_t>{-7, 9}));
  const Tensor y = Tensor::zeros(*backend, {2, 3}, DType::f64);
  load_into(y, file, "x");
  BOOST_TEST(y.to_doubles() == values);
  BOOST_CHECK_THROW(load_into(Tensor::zeros(*backend, {3, 2}, DType::f64), file, "x"), Error);
  BOOST_CHECK_THROW(load_into(Tensor::zeros(*backend, {2, 3}, DType::f32), file, "x"), Error);
}

BOOST_AUTO_TEST_SUITE_END()
