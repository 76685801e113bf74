#include "cuda/products.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/formulas.h"
#include "cuda/device.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/fused_sum.h"
#include "cuda/emulator/give.h"
#include "cuda/emulator/memory.h"

namespace longhand::cuda {
namespace {

using Epilogue = Product::Epilogue;

/// Rounds to TF32's 10 fraction bits as the tensor cores do, by truncation.
float to_tf32(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000u);
}

float read(const void* data, DType type, std::int64_t i) {
  return type == DType::bf16 ? static_cast<float>(static_cast<const bf16*>(data)[i])
                             : static_cast<const float*>(data)[i];
}

void write(void* data, DType type, std::int64_t i, float value) {
  if (type == DType::bf16) {
    static_cast<bf16*>(data)[i] = bf16(value);
  } else {
    static_cast<float*>(data)[i] = value;
  }
}

/// Reads one matrix of an operand and returns it as floats, [rows, columns]. If `transpose` is
/// true, the operand contains the matrix as [columns, rows]. If p.tf32 is true, the entries are
/// rounded to tf32.
std::vector<float> operand(const Product& p, const void* data, std::int64_t first,
                           std::int64_t rows, std::int64_t columns, bool transpose) {
  std::vector<float> x(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value =
          read(data, p.operands, first + (transpose ? j * rows + i : i * columns + j));
      x[static_cast<std::size_t>(i * columns + j)] = p.tf32 ? to_tf32(value) : value;
    }
  }
  return x;
}

using Matrix = std::span<const float>;

/// Returns a [m, k] times b [k, n], summed in f32.
std::vector<float> multiply_plainly(const Product& p, Matrix a, Matrix b) {
  std::vector<float> result(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t i = 0; i < p.m; ++i) {
    const auto row = std::span(result).subspan(static_cast<std::size_t>(i * p.n));
    for (std::int64_t l = 0; l < p.k; ++l) {
      const float left = a[static_cast<std::size_t>(i * p.k + l)];
      for (std::int64_t j = 0; j < p.n; ++j) {
        row[static_cast<std::size_t>(j)] += left * b[static_cast<std::size_t>(l * p.n + j)];
      }
    }
  }
  return result;
}

/// Returns a [m, k] times b [k, n]. The sums are computed by the chosen model of tensor cores
/// (fused_sum.h). Returns an empty vector if an entry of a or b is not finite.
std::vector<float> multiply_on_tensor_cores(const Product& p, Matrix a, Matrix b) {
  const emulator::TensorCoreModel model = emulator::model_of(emulator::tensor_cores());
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n);
  const auto k = static_cast<std::size_t>(p.k);
  const auto group = static_cast<std::size_t>(p.tf32 ? model.tf32_group : model.bf16_group);
  std::vector<emulator::Parts> left(m * k), columns(n * k);
  for (std::size_t i = 0; i < m * k; ++i) left[i] = emulator::parts_of(a[i]);
  for (std::size_t l = 0; l < k; ++l) {
    for (std::size_t j = 0; j < n; ++j) columns[j * k + l] = emulator::parts_of(b[l * n + j]);
  }
  for (const auto& all : {left, columns}) {
    for (const emulator::Parts& one : all) {
      if (one.exponent == emulator::exponent_of_infinity) return {};
    }
  }
  std::vector<float> result(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    const auto row = std::span<const emulator::Parts>(left).subspan(i * k, k);
    for (std::size_t j = 0; j < n; ++j) {
      const auto column = std::span<const emulator::Parts>(columns).subspan(j * k, k);
      float& sum = result[i * n + j];
      for (std::size_t l = 0; l < k; l += group) {
        const std::size_t count = std::min(group, k - l);
        sum = emulator::fused_sum(model.bits, sum, row.subspan(l, count), column.subspan(l, count));
      }
    }
  }
  return result;
}

std::vector<float> multiply_matrices(const Product& p, Matrix a, Matrix b) {
  const bool on_tensor_cores = p.tf32 || p.operands == DType::bf16;
  if (on_tensor_cores && emulator::tensor_cores() != emulator::TensorCores::plain) {
    std::vector<float> result = multiply_on_tensor_cores(p, a, b);
    if (!result.empty()) return result;
  }
  return multiply_plainly(p, a, b);
}

void multiply(const Product& p, const ProductOperands& x) {
  const emulator::Access access;
  const auto epilogue = [&](float z, std::int64_t i, std::int64_t j) {
    const std::int64_t at = i * p.n + j;
    switch (p.epilogue) {
      case Epilogue::none:
        return z;
      case Epilogue::bias:
        return z + read(x.bias, p.result, j);
      case Epilogue::relu:
        return formula::Relu::value(z);
      case Epilogue::relu_bias:
        return formula::Relu::value(z + read(x.bias, p.result, j));
      case Epilogue::gelu:
        return formula::GeluTanh::value(z);
      case Epilogue::gelu_bias:
        return formula::GeluTanh::value(z + read(x.bias, p.result, j));
      case Epilogue::gelu_save:
        write(x.aux, p.result, at, z);
        return formula::GeluTanh::value(z);
      case Epilogue::gelu_save_bias:
        z += read(x.bias, p.result, j);
        write(x.aux, p.result, at, z);
        return formula::GeluTanh::value(z);
      default:
        return z * formula::GeluTanh::derivative(read(x.aux, p.result, at));
    }
  };
  for (std::int64_t matrix = 0; matrix < p.batch; ++matrix) {
    const auto a = operand(p, x.a, matrix * p.m * p.k, p.m, p.k, p.transpose_a);
    const auto b = operand(p, x.b, matrix * p.k * p.n, p.k, p.n, p.transpose_b);
    const std::vector<float> result = multiply_matrices(p, a, b);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        const std::int64_t at = (matrix * p.m + i) * p.n + j;
        float z = x.alpha * result[static_cast<std::size_t>(i * p.n + j)];
        if (x.beta != 0) z += x.beta * read(x.c, p.result, at);
        write(x.d, p.result, at, epilogue(z, matrix * p.m + i, j));
      }
    }
  }
}

/// True if the product has an epilogue, a bf16 result or an added matrix c. If such a product is
/// refused, the backend can use a plain product instead.
bool fused(const Product& p, const ProductOperands& x) {
  return p.epilogue != Epilogue::none || p.result != DType::f32 || x.beta != 0;
}

/// Decides at random which fused products are refused (refuse_products).
struct Refusals {
  double share = 0;
  std::mt19937_64 random;
  bool refuse() { return std::uniform_real_distribution<>(0, 1)(random) < share; }
};
Refusals refusals;
std::set<std::string> products_seen;

}  // namespace

std::string kind_of(const Product& p, const ProductOperands& x) {
  constexpr const char* names[] = {"none",      "bias",      "relu",           "relu_bias", "gelu",
                                   "gelu_bias", "gelu_save", "gelu_save_bias", "gelu_slope"};
  return text(p.operands, p.tf32 ? " as tf32" : "", " to ", p.result, ", epilogue ",
              names[static_cast<int>(p.epilogue)], x.beta != 0 ? ", plus c" : "");
}

struct Products::State {
  Stream& stream;
};

Products::Products(Stream& stream, MemorySource&) : state_(new State{stream}) {}
Products::~Products() = default;

bool Products::run(const Product& p, const ProductOperands& x) {
  LONGHAND_CHECK(p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0,
                 "cuBLASLt: expected m, n, k and batch of at least 1, got an empty product");
  LONGHAND_CHECK(p.operands == DType::bf16 || p.result == DType::f32,
                 "cuBLASLt: expected an f32 result for f32 operands, got ", p.result);
  LONGHAND_CHECK(on_16_bytes(static_cast<const char*>(x.bias), static_cast<const char*>(x.aux)),
                 "cuBLASLt: expected a bias and an auxiliary matrix that are aligned to 16 bytes");
  const bool refused = fused(p, x) && refusals.refuse();
  products_seen.insert(text(refused ? "refused " : "", kind_of(p, x)));
  if (refused) return false;
  give(state_->stream, [p, x] { multiply(p, x); });
  return true;
}

}  // namespace longhand::cuda

namespace longhand::emulator {

void refuse_products(double share, std::uint64_t seed) {
  cuda::refusals.share = share;
  cuda::refusals.random.seed(seed);
}

const std::set<std::string>& seen_products() { return cuda::products_seen; }

}  // namespace longhand::emulator
