#include "core/block_matrix.h"

#include <cmath>
#include <cstring>
#include <limits>
#include "tests/check.h"

#include "autograd/blocks.h"
#include "autograd/linear_cross_entropy.h"
#include "autograd/matmul.h"
#include "autograd/tape.h"
#include "core/contract/blocks.h"
#include "core/contract/matmul.h"
#include "core/cpu/cpu_backend.h"
#include "core/error.h"
#include "core/gguf_writer.h"
#include "core/rng.h"
#include "nn/models/decoder.h"
#include "nn/models/gguf.h"
#include "nn/models/hugging_face.h"
#include "nn/training/checkpoint.h"
#include "tests/random_tensor.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(blocks_test)

using namespace longhand;

namespace {

const GgufType& type_named(std::string_view name) {
  const GgufType* const type = gguf_type(name);
  LONGHAND_CHECK(type, "no type ", name);
  return *type;
}

/// Random bytes as blocks of any type. Some factors may be infinite or NaN.
BlockMatrix random_bytes(Backend& backend, const GgufType& type, std::int64_t rows,
                         std::int64_t columns, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  const Tensor bytes(backend, {rows, row_bytes(type, columns)}, DType::u8);
  std::vector<std::uint8_t> values(bytes.bytes());
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(rng.below(256));
  backend.upload(bytes.address(), values.data(), values.size());
  return {.parts = {{&type, bytes}}, .columns = columns};
}

std::vector<double> decoded(const BlockMatrix& w, Backend& backend) {
  const Tensor numbers(backend, {w.rows(), w.columns}, DType::f32);
  decode_blocks(w, numbers);
  return numbers.to_doubles();
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_instruction_set_decodes_any_bytes_as_the_file_reader_does) {
  for (const GgufType* const type : block_types()) {
    for (const cpu::Isa isa : cpu::supported_isas()) {
      const auto backend = make_cpu_backend({.threads = 2}, isa);
      const BlockMatrix w = random_bytes(*backend, *type, 50, 2 * type->block, 3);
      const std::vector<double> got = decoded(w, *backend);
      std::vector<double> expected(got.size());
      const auto* const bytes = static_cast<const std::byte*>(w.parts[0].bytes.address());
      decode_gguf(*type, {bytes, w.bytes()}, 0, expected);
      std::size_t different = 0;
      for (std::size_t i = 0; i < got.size(); ++i) different += same(got[i], expected[i]) ? 0 : 1;
      BOOST_TEST(different == 0u, type->name << " on " << cpu::name_of(isa));
    }
  }
}

BOOST_AUTO_TEST_CASE(products_of_integers_have_the_same_bits_for_all_threads_and_row_counts) {
  const GgufType& type = type_named("q8_0");
  for (const cpu::Isa isa : cpu::supported_isas()) {
    std::vector<double> expected;
    for (const int threads : {1, 3}) {
      const auto backend = make_cpu_backend({.threads = threads, .math = Math::fast}, isa);
      const BlockMatrix w = in_blocks(random_tensor(*backend, {301, 320}, DType::f32, 5), type);
      const Tensor x = random_tensor(*backend, {3, 320}, DType::f32, 6);
      const std::vector<double> whole = block_matmul(x, w).value().to_doubles();
      if (expected.empty()) expected = whole;
      BOOST_TEST((whole == expected), cpu::name_of(isa) << ", " << threads << " threads");
      for (std::int64_t row = 0; row < 3; ++row) {
        const auto alone = block_matmul(x.slice(row, 1), w).value().to_doubles();
        const std::vector<double> part(whole.begin() + row * 301, whole.begin() + (row + 1) * 301);
        BOOST_TEST((alone == part), "row " << row << " alone");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rounding_rows_changes_a_product_by_less_than_its_bound) {
  // |error of x_i| <= 1/254 of the largest of 32 neighbours, so |error of y| <= sum of that |w_i|.
  const auto backend = make_cpu_backend({.threads = 1, .math = Math::fast});
  const auto exact = make_cpu_backend({.threads = 1, .math = Math::exact});
  for (const GgufType* const type : block_types()) {
    const std::int64_t k = 512;
    Rng rng(4, Purpose::test);
    const auto made = [&](Backend& on) {
      const Tensor numbers = random_tensor(on, {40, k}, DType::f32, 9);
      if (type->encode) return in_blocks(numbers, *type);
      BlockMatrix w = random_bytes(on, *type, 40, k, 8);
      std::vector<std::uint8_t> bytes(w.bytes());
      on.download(bytes.data(), w.parts[0].bytes.address(), bytes.size());
      for (std::size_t block = 0; block < bytes.size(); block += type->bytes) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{208}}) {
          if (at + 1 < type->bytes) bytes[block + at + 1] = 0x1c;  // halves of about 2^-8
        }
      }
      on.upload(w.parts[0].bytes.address(), bytes.data(), bytes.size());
      return w;
    };
    const BlockMatrix w = made(*backend), same_w = made(*exact);
    const Tensor x = random_tensor(*backend, {1, k}, DType::f32, 2);
    const auto rounded = block_matmul(x, w).value().to_doubles();
    const auto right =
        block_matmul(random_tensor(*exact, {1, k}, DType::f32, 2), same_w).value().to_doubles();
    const auto numbers = decoded(w, *backend), row = x.to_doubles();
    double most = 0;
    for (std::size_t j = 0; j < rounded.size(); ++j) {
      double bound = 0, size = 0;
      for (std::int64_t part = 0; part < k; part += 32) {
        double largest = 0, sum = 0;
        for (std::int64_t i = part; i < part + 32; ++i) {
          largest = std::max(largest, std::abs(row[static_cast<std::size_t>(i)]));
          sum += std::abs(numbers[j * static_cast<std::size_t>(k) + static_cast<std::size_t>(i)]);
        }
        bound += largest / 254 * sum;
        size += largest * sum;
      }
      most = std::max(most, std::abs(rounded[j] - right[j]) / (bound + 1e-6 * size));
    }
    BOOST_TEST(most < 1, type->name << ": " << most);
    BOOST_TEST(most > 1e-3, type->name << ": expected rounded rows, got exact ones");
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_in_a_row_reach_the_result) {
  const auto backend = make_cpu_backend({.threads = 1, .math = Math::fast});
  const BlockMatrix w =
      in_blocks(random_tensor(*backend, {4, 64}, DType::f32, 1), type_named("q4_0"));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<double> x(64, 1);
    x[40] = bad;
    const auto y = block_matmul(Tensor::from(*backend, {1, 64}, DType::f32, x), w);
    for (const double value : y.value().to_doubles()) BOOST_TEST(!std::isfinite(value));
  }
}

BOOST_AUTO_TEST_CASE(the_loss_of_a_weight_in_blocks_equals_that_of_the_decoded_weight) {
  const auto backend = make_cpu_backend({.threads = 2, .math = Math::exact});
  const BlockMatrix w =
      in_blocks(random_tensor(*backend, {96, 64}, DType::f32, 1), type_named("q4_0"));
  const Tensor numbers(*backend, {96, 64}, DType::f32);
  decode_blocks(w, numbers);
  const Tensor values = random_tensor(*backend, {30, 64}, DType::f32, 2);
  std::vector<std::int32_t> classes;
  for (std::int32_t i = 0; i < 30; ++i) classes.push_back(3 * i);
  const Tensor targets = Tensor::from(*backend, {30, 1}, classes);
  const auto run = [&](auto&& weight) {
    const Var x(values, true);
    Tape tape;
    Var loss;
    {
      const Recording recording(tape);
      loss = linear_cross_entropy(x, weight, targets, {.at_once = 12});
    }
    tape.backward(loss);
    auto all = x.grad().to_doubles();
    all.push_back(loss.value().item());
    return all;
  };
  const auto got = run(w), expected = run(Var(numbers));
  for (std::size_t i = 0; i < got.size(); ++i) {
    BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-5 * (std::abs(expected[i]) + 0.01));
  }
}

BOOST_AUTO_TEST_CASE(a_matrix_that_is_decoded_in_several_strips_gives_the_product_of_its_numbers) {
  // 1024 rows of 2048 numbers are 8 MiB of floats, a strip.
  constexpr std::int64_t m = 9, rows = 1100, columns = 2048;
  const auto backend = make_cpu_backend({.threads = 2, .math = Math::exact});
  const BlockMatrix w =
      in_blocks(random_tensor(*backend, {rows, columns}, DType::f32, 1), type_named("q8_0"));
  const Tensor numbers(*backend, {rows, columns}, DType::f32);
  decode_blocks(w, numbers);
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool transposed : {true, false}) {
      const Tensor a = random_tensor(*backend, {m, transposed ? columns : rows}, DType::f32, 2);
      const Shape shape{m, transposed ? rows : columns};
      const Tensor c = random_tensor(*backend, shape, type, 3);
      const Tensor expected = random_tensor(*backend, shape, type, 3);
      (*backend)(BlockMatmul{.a = a, .w = w, .transpose_w = transposed, .c = {c, true}});
      (*backend)(Matmul{.a = a, .b = numbers, .transpose_b = transposed, .c = expected, .beta = 1});
      const std::vector<double> got = c.to_doubles(), right = expected.to_doubles();
      double most = 0, size = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        most = std::max(most, std::abs(got[i] - right[i]));
        size = std::max(size, std::abs(right[i]));
      }
      // A sum that lies between two bf16 numbers may be rounded to either.
      BOOST_TEST(most <= (type == DType::bf16 ? 0x1p-7 : 1e-5) * size, type << ' ' << transposed);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_matrix_that_is_not_made_of_whole_blocks_is_refused) {
  const auto backend = make_cpu_backend();
  const Tensor narrow = random_tensor(*backend, {4, 33}, DType::f32, 1);
  BOOST_TEST(refusal([&] { in_blocks(narrow, type_named("q8_0")); }) ==
             "q8_0: expected rows whose length is a multiple of 32, the numbers of a block, got "
             "rows of 33");
  const BlockMatrix w =
      in_blocks(random_tensor(*backend, {4, 64}, DType::f32, 1), type_named("q8_0"));
  const Tensor x = random_tensor(*backend, {2, 32}, DType::f32, 1);
  BOOST_TEST(refusal([&] { block_matmul(x, w); }) ==
             "block_matmul: a: expected rows of 64 entries, got [2, 32]");
}

BOOST_AUTO_TEST_SUITE_END()
