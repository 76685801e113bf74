// This file includes internal headers of the emulated library and is compiled like it; see
// tests/CMakeLists.txt.
#include "tests/check.h"

#include <cstdlib>

#include "core/error.h"
#include "cuda/device_facts.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/memory.h"
#include "cuda/product_plan.h"
#include "cuda/uploads.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(cuda_plan_test)

using namespace longhand;
using Epilogue = longhand::cuda::Product::Epilogue;

// Tests decisions that the CUDA backend makes on the host.

namespace {

struct Bench {
  std::shared_ptr<Backend> backend = make_emulated_cuda_backend();

  Tensor tensor(std::int64_t rows, std::int64_t columns, DType type = DType::f32) {
    return Tensor(*backend, {rows, columns}, type);
  }
  /// A product of a [6, 8] matrix and an [8, 16] matrix.
  Matmul product(DType operands = DType::f32, DType result = DType::f32) {
    return {.a = tensor(6, 8, operands), .b = tensor(8, 16, operands), .c = tensor(6, 16, result)};
  }
  Tensor bias() { return Tensor(*backend, {16}, DType::f32); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_math_mode_decides_how_operands_are_converted) {
  Bench b;
  const Matmul wide = b.product(), narrow = b.product(DType::bf16, DType::bf16);
  Matmul mixed = wide;
  mixed.a = b.tensor(6, 8, DType::bf16);
  const auto plan = [](const Matmul& op, Math math) { return cuda::fused_plan(op, math).product; };
  BOOST_TEST(plan(wide, Math::exact).operands == DType::f32);
  BOOST_TEST(!plan(wide, Math::exact).tf32);
  BOOST_TEST(plan(wide, Math::fast).tf32);
  BOOST_TEST(plan(wide, Math::bf16).operands == DType::bf16);
  // In f32, products of bf16 numbers are exact, so bf16 operands are allowed even in exact mode.
  BOOST_TEST(plan(narrow, Math::exact).operands == DType::bf16);
  BOOST_TEST(!plan(narrow, Math::fast).tf32);
  BOOST_TEST(plan(mixed, Math::exact).operands == DType::f32);
}

BOOST_AUTO_TEST_CASE(the_epilogue_is_fused_if_cublas_offers_it) {
  Bench b;
  const auto plan = [](const Matmul& op, Math math = Math::fast) {
    return cuda::fused_plan(op, math);
  };
  Matmul op = b.product();
  BOOST_TEST(!plan(op).rest);
  op.beta = 1;
  // No further kernel is needed, because cuBLASLt itself adds the old contents of c.
  BOOST_TEST(!plan(op).rest);

  op = b.product();
  op.bias = b.bias();
  BOOST_CHECK(plan(op).product.epilogue == Epilogue::bias);
  op.residual = b.tensor(6, 16);
  BOOST_TEST(!plan(op).rest);
  BOOST_TEST(plan(op).residual_as_c);
  op.beta = 1;  // cuBLASLt cannot add both the old contents of c and the residual
  BOOST_TEST(plan(op).rest);

  op = b.product();
  op.bias = b.bias();
  op.f = Activation::gelu_tanh;
  op.pre = b.tensor(6, 16);
  BOOST_CHECK(plan(op).product.epilogue == Epilogue::gelu_save_bias);
  // The fused GELU uses the hardware's approximation of tanh, which is not allowed in exact mode.
  BOOST_TEST(plan(op, Math::exact).rest);
  op.f = Activation::gelu;
  BOOST_TEST(plan(op).rest);

  op = b.product();
  op.f = Activation::gelu_tanh;
  op.at = b.tensor(6, 16);
  BOOST_CHECK(plan(op).product.epilogue == Epilogue::gelu_slope);

  op = b.product();
  op.f = Activation::relu;
  BOOST_CHECK(plan(op).product.epilogue == Epilogue::relu);
  op.pre = b.tensor(6, 16);
  BOOST_TEST(plan(op).rest);
}

// cuBLASLt's kernels may read a bias and an auxiliary matrix 16 bytes at a time, so an epilogue is
// fused only if these tensors are aligned to 16 bytes.
BOOST_AUTO_TEST_CASE(epilogues_read_only_tensors_aligned_to_16_bytes) {
  Bench b;
  const auto shifted = [&](std::int64_t rows, std::int64_t columns, DType type) {
    const Tensor room(*b.backend, {rows * columns + 1}, type);
    const Tensor inner = room.slice(1, rows * columns);
    return rows == 1 ? inner : inner.reshape({rows, columns});
  };
  Matmul op = b.product();
  op.bias = shifted(1, 16, DType::f32);
  BOOST_TEST(cuda::fused_plan(op, Math::fast).rest);
  Matmul narrow = b.product(DType::bf16, DType::bf16);
  narrow.bias = op.bias;  // this bias is first converted to bf16, into aligned memory
  BOOST_TEST(!cuda::fused_plan(narrow, Math::fast).rest);

  op = b.product();
  op.f = Activation::gelu_tanh;
  op.pre = shifted(6, 16, DType::f32);
  BOOST_TEST(cuda::fused_plan(op, Math::fast).rest);
  op.at = std::exchange(op.pre, Tensor());
  BOOST_TEST(cuda::fused_plan(op, Math::fast).rest);
  BOOST_CHECK_NO_THROW((*b.backend)(op));
}

BOOST_AUTO_TEST_CASE(other_epilogues_are_a_plain_f32_product_and_a_kernel) {
  Bench b;
  const cuda::ProductPlan plan =
      // There is no fused product of f32 operands with a bf16 result.
      cuda::fused_plan(b.product(DType::f32, DType::bf16), Math::exact);
  BOOST_TEST(plan.rest);
  BOOST_TEST(plan.product.result == DType::f32);
  BOOST_CHECK(plan.product.epilogue == Epilogue::none);
  Matmul empty = {.a = b.tensor(6, 0), .b = b.tensor(0, 16), .c = b.tensor(6, 16)};
  BOOST_TEST(cuda::fused_plan(empty, Math::fast).rest);
}

BOOST_AUTO_TEST_CASE(plans_differ_by_everything_that_matters) {
  Bench b;
  const auto key = [](const Matmul& op, Math math) { return cuda::fused_plan(op, math).product; };
  const Matmul op = b.product();
  Matmul turned = {.a = b.tensor(8, 6), .b = op.b, .transpose_a = true, .c = op.c};
  Matmul biased = op;
  biased.bias = b.bias();
  BOOST_CHECK(key(op, Math::fast) == key(b.product(), Math::fast));
  BOOST_CHECK(key(op, Math::fast) != key(op, Math::exact));
  BOOST_CHECK(key(op, Math::fast) != key(turned, Math::fast));
  BOOST_CHECK(key(op, Math::fast) != key(biased, Math::fast));
}

BOOST_AUTO_TEST_CASE(shared_memory_depends_on_the_compute_capability) {
  constexpr std::size_t kib = 1024;
  BOOST_TEST(cuda::shared_per_block(8, 0) == 163 * kib);
  BOOST_TEST(cuda::shared_per_block(8, 6) == 99 * kib);
  BOOST_TEST(cuda::shared_per_block(8, 7) == 163 * kib);
  BOOST_TEST(cuda::shared_per_block(8, 9) == 99 * kib);
  BOOST_TEST(cuda::shared_per_block(9, 0) == 227 * kib);
  BOOST_TEST(cuda::shared_per_block(10, 0) == 227 * kib);
  BOOST_TEST(cuda::shared_per_block(12, 0) == 99 * kib);
  BOOST_TEST(cuda::shared_per_block(13, 0) == 99 * kib);  // an unknown compute capability
}

BOOST_AUTO_TEST_CASE(ranks_of_one_machine_take_its_devices_in_turn) {
  const char* const variable = "OMPI_COMM_WORLD_LOCAL_RANK";
  const char* const before = std::getenv(variable);
  const std::string kept = before ? before : "";
  const auto device = [&](const char* rank, int devices) {
    ::setenv(variable, rank, 1);
    return cuda::own_device(devices);
  };
  BOOST_TEST(device("0", 4) == 0);
  BOOST_TEST(device("3", 4) == 3);
  BOOST_TEST(device("5", 4) == 1);
  BOOST_TEST(device("5", 1) == 0);
  BOOST_TEST(device("none", 4) == 0);
  if (before) {
    ::setenv(variable, kept.c_str(), 1);
  } else {
    ::unsetenv(variable);
  }
}

BOOST_AUTO_TEST_CASE(uploads_of_any_size_arrive_and_wrap_around_the_ring) {
  const auto memory = emulator::device_memory(std::size_t{1} << 30);
  cuda::Stream stream;
  cuda::Uploads uploads(stream, *memory);
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : {1u, 1000u, 65536u, 65537u, 524288u, 5'000'001u}) {
      std::vector<unsigned char> from(size), back(size);
      for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<unsigned char>(i * 31 + size);
      void* const block = memory->allocate(size);
      uploads.upload(block, from.data(), size);
      stream.download(back.data(), block, size);
      memory->release(block, size);
      BOOST_TEST((from == back));
    }
  }
}

BOOST_AUTO_TEST_CASE(running_out_of_memory_reports_the_request_and_the_memory_in_use) {
  Bench b;
  const Tensor live = b.tensor(1024, 1024);
  const std::string told = refusal([&] { b.tensor(65536, 65536); });
  BOOST_TEST(told.starts_with("cuda memory is used up: requested 17179869184 bytes with 4194304 "
                              "in use (peak 4194304)"),
             told);
  BOOST_TEST(told.ends_with("cached"), told);
}

BOOST_AUTO_TEST_SUITE_END()
