// Tests reading and writing NumPy's .npy and .npz files.
#include "core/npy.h"

#include "core/atomic_file.h"
#include "core/backend.h"
#include "tests/program.h"

namespace npy_test {

using namespace longhand;

std::vector<NamedTensor> some_tensors() {
  const auto backend = make_reference_backend();
  return {
      {"a", Tensor::from(*backend, {2, 3}, DType::f64, std::vector{1., 2., 3., 4., 5., 1e-300})},
      {"b", Tensor::from(*backend, {2}, DType::f32, std::vector{0.5, -0.0})},
      {"c", Tensor::from(*backend, {1, 2}, std::vector<std::int32_t>{7, -9})},
      {"empty", Tensor::from(*backend, {0, 4}, DType::f32, std::vector<double>())}};
}

/// A file as numpy.save writes it: version 1, with a header that is padded to a multiple of 64
/// bytes.
std::string npy(const std::string& header, const std::string& bytes) {
  std::string padded = header;
  padded.append(118 - 1 - header.size(), ' ');
  return std::string("\x93NUMPY\1\0v\0", 10) + padded + "\n" + bytes;
}

}  // namespace npy_test

BOOST_FIXTURE_TEST_SUITE(npy_test, Program)

using namespace npy_test;

BOOST_AUTO_TEST_CASE(the_checksum_equals_that_of_zip_files) {
  BOOST_TEST(crc32("123456789") == 0xcbf43926u);
  BOOST_TEST(crc32("") == 0u);
}

BOOST_AUTO_TEST_CASE(written_arrays_are_read_back) {
  const auto tensors = some_tensors();
  save_numpy(path("x.npz"), tensors);
  const std::vector<std::byte> bytes = numpy_as_safetensors(path("x.npz"), "");
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "x.npz");
  BOOST_TEST(file.entries().size() == 4u);
  const auto backend = make_reference_backend();
  for (const NamedTensor& named : tensors) {
    const Tensor read = load_tensor(*backend, file, named.name);
    BOOST_TEST((read.shape() == named.tensor.shape()));
    BOOST_TEST((read.dtype() == named.tensor.dtype()));
    if (is_float(read.dtype())) BOOST_TEST(read.to_doubles() == named.tensor.to_doubles());
    if (!is_float(read.dtype())) BOOST_TEST(read.to_ints() == named.tensor.to_ints());
  }
  const std::string once = contents(path("x.npz"));
  save_numpy(path("x.npz"), tensors);
  // A .npz file contains no time of writing, so a second file has the same bytes.
  BOOST_TEST(contents(path("x.npz")) == once);
  BOOST_TEST(contains(refusal([&] { save_numpy(path("x.npy"), tensors); }),
                      "expected a name that ends in .npz"));
}

BOOST_AUTO_TEST_CASE(an_array_as_numpy_writes_it_is_read) {
  const double values[] = {1.5, -2};
  write_atomically(path("x.npy"), npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
                                      std::string(reinterpret_cast<const char*>(values), 16)));
  const std::vector<std::byte> bytes = numpy_as_safetensors(path("x.npy"), "x");
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "x.npy");
  const auto backend = make_reference_backend();
  BOOST_TEST((load_tensor(*backend, file, "x").to_doubles() == std::vector{1.5, -2.}));
}

BOOST_AUTO_TEST_CASE(files_of_another_format_are_refused) {
  const auto says = [&](const std::string& bytes, const char* words, const char* name = "x.npy") {
    write_atomically(path(name), bytes);
    BOOST_TEST(contains(refusal([&] { numpy_as_safetensors(path(name), "x"); }), words));
  };
  const std::string eight(8, '\0');
  const auto header = [](const std::string& type, const std::string& order,
                         const std::string& shape) {
    return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  says("", "not a NumPy array");
  says("\x93NUMPY", "not a NumPy array");
  says(npy(header("<f8", "True", "(1,)"), eight), "C order");
  says(npy(header("<c8", "False", "(1,)"), eight), "expected little-endian float64");
  says(npy(header(">f8", "False", "(1,)"), eight), "little-endian");
  says(npy(header("<f8", "False", "(2,)"), eight), "expected 16 bytes of values, got 8");
  says(npy(header("<f8", "False", "(-1,)"), eight), "a shape such as");
  says(npy(header("<f8", "False", "(4611686018427387904, 8)"), eight), "too large");
  says(npy("{'descr': '<f8', }", eight), "expected fortran_order");
  says("", "not an .npz", "x.npz");
  says("PK\5\6", "not an .npz", "x.npz");

  save_numpy(path("y.npz"), some_tensors());
  const std::string good = contents(path("y.npz"));
  std::string flipped = good;
  flipped[200] = static_cast<char>(flipped[200] ^ 1);
  says(flipped, "checksum", "x.npz");
  // Damages the file at many places: one copy has a changed byte there, another copy ends there.
  // The reader must return arrays or throw an Error, and must not crash.
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    for (const std::string& bytes : {bad, good.substr(0, i)}) {
      write_atomically(path("z.npz"), bytes);
      refusal([&] {
        const auto read = numpy_as_safetensors(path("z.npz"), "x");
        SafetensorsFile::parse(read, "z.npz");
      });
    }
  }
}

/// If arrays could overlap, the directory of a small .npz file could list the same bytes many
/// times, so that reading it would need much memory.
BOOST_AUTO_TEST_CASE(arrays_that_overlap_are_refused) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::from(*backend, {4}, DType::f64, std::vector{1., 2., 3., 4.});
  save_numpy(path("x.npz"), std::vector<NamedTensor>{{"a", x}, {"b", x}});
  const std::string good = contents(path("x.npz"));
  const std::size_t first = good.find("PK\1\2"), second = good.find("PK\1\2", first + 1);
  BOOST_REQUIRE(second != good.npos);
  std::string same = good;  // the second entry of the directory points to the first array
  same.replace(second + 42, 4, good.substr(first + 42, 4));
  write_atomically(path("same.npz"), same);
  BOOST_TEST(contains(refusal([&] { numpy_as_safetensors(path("same.npz"), ""); }),
                      "overlaps the array before it"));
  // The next file contains an array within another one: the local header and the numbers of the
  // inner array are among the numbers of the outer array.
  const std::string inner = good.substr(0, good.find("PK\3\4", 1));
  const std::string values(inner.size() + 8 - inner.size() % 8, '\0');
  const std::string outer = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                                    std::to_string(values.size()) + ",), }",
                                inner + values.substr(inner.size()));
  const auto little = [](std::uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
    return bytes;
  };
  const std::string entry = good.substr(first, second - first);
  std::string of_outer = entry, of_inner = entry;
  of_outer.replace(16, 4, little(crc32(outer)));
  of_outer.replace(20, 8, little(outer.size()) + little(outer.size()));
  of_outer.replace(42, 4, little(0));
  of_outer[46] = 'z';
  const std::string local = good.substr(0, 30 + 5);
  of_inner.replace(42, 4, little(local.size() + outer.find("PK\3\4")));
  std::string inside = local + outer;
  const std::size_t directory = inside.size();
  inside += of_outer + of_inner + "PK\5\6" + std::string(4, '\0') + std::string("\2\0\2\0", 4) +
            little(of_outer.size() + of_inner.size()) + little(directory) + std::string(2, '\0');
  write_atomically(path("inside.npz"), inside);
  BOOST_TEST(contains(refusal([&] { numpy_as_safetensors(path("inside.npz"), ""); }),
                      "overlaps the array before it"));
}

BOOST_AUTO_TEST_CASE(op_reads_and_writes_numpy_files) {
  const auto backend = make_reference_backend();
  const std::vector<double> values{1, 2, 3, 0.5, 0.25, -1};
  const Tensor x = Tensor::from(*backend, {2, 3}, DType::f32, values);
  save_numpy(path("x.npy"), std::vector<NamedTensor>{{"x", x}});
  save_numpy(path("in.npz"), std::vector<NamedTensor>{{"x", x}, {"dy", x}});
  save_tensors(path("in.safetensors"), std::vector<NamedTensor>{{"x", x}, {"dy", x}});
  for (const char* words :
       {"op softmax --in x.npy --out y.npy", "op softmax --in in.npz --grad --out out.npz",
        "op softmax --in in.safetensors --grad --out out.safetensors"}) {
    const auto done = (*this)(words);
    BOOST_TEST(done.status == 0, done.err);
  }
  const auto from_numpy = numpy_as_safetensors(path("out.npz"), "");
  const SafetensorsFile ours = SafetensorsFile::open(path("out.safetensors"));
  const SafetensorsFile theirs = SafetensorsFile::parse(from_numpy, "out.npz");
  for (const char* name : {"y", "dx"}) {
    BOOST_TEST((load_tensor(*backend, ours, name).to_doubles() ==
                load_tensor(*backend, theirs, name).to_doubles()));
  }
  const auto single = numpy_as_safetensors(path("y.npy"), "y");
  BOOST_TEST((load_tensor(*backend, SafetensorsFile::parse(single, "y.npy"), "y").to_doubles() ==
              load_tensor(*backend, ours, "y").to_doubles()));
  refuses(1, "op softmax --in in.npz --grad --out y.npy",
          "a .npy file holds one array, got the arrays y, dx");
}

BOOST_AUTO_TEST_CASE(op_with_f64_uses_the_reference_backend_by_default) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::from(*backend, {2, 2}, DType::f64, std::vector<double>{1, 2, 3, 4});
  save_numpy(path("x.npy"), std::vector<NamedTensor>{{"x", x}});
  const Json facts = json("op softmax --in x.npy --out y.npy --json");
  BOOST_TEST(facts["backend"] == "reference");
  BOOST_TEST(facts["type"] == "f64");
  const Json narrow = json("op softmax --in x.npy --out y.npy --dtype f32 --json");
  BOOST_TEST(narrow["backend"] == "cpu");
  refuses(2, "op softmax --in x.npy --out z.npy --backend cpu",
          "--backend cpu: expected tensors of f32 or bf16, got f64; --dtype f32");
  BOOST_TEST(!std::filesystem::exists(path("z.npy")));
}

BOOST_AUTO_TEST_CASE(integers_instead_of_floats_are_refused_with_the_accepted_types) {
  write_atomically(path("i.npy"), npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                                      std::string(16, '\0')));
  refuses(1, "op softmax --in i.npy --out y.npy",
          "i.npy: tensor \"x\": expected F64, F32 or BF16, got I64");
}

BOOST_AUTO_TEST_CASE(arrays_are_written_only_to_names_with_a_known_extension) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::from(*backend, {2}, DType::f32, std::vector<double>{1, 2});
  const std::vector<NamedTensor> tensors{{"x", x}};
  save_numpy(path("x.npy"), tensors);
  expect_refusal([&] { save_arrays(path("x.txt"), tensors); },
                 "ends in .npy, .npz or .safetensors");
  for (const char* const words :
       {"op softmax --in x.npy --out y.txt", "generate absent --prompt x --out y.txt",
        "generate absent --prompt x --logits y.txt", "eval absent --out y.txt",
        "data --task flip-flop --step 1 --out y.txt"}) {
    refuses(2, words, "expected a name that ends in .npy, .npz or .safetensors, got \"y.txt\"");
  }
  BOOST_TEST(!std::filesystem::exists(path("y.txt")));
}

BOOST_AUTO_TEST_SUITE_END()
