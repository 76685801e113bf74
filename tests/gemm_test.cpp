#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/cpu/gemm/gemm.h"
#include "core/cpu/gemm/kernels.h"
#include "core/dtype.h"
#include "core/error.h"
#include "tests/tile_probe.h"

BOOST_AUTO_TEST_SUITE(gemm_test)

// Tests the matrix product c = alpha a b with every instruction set of this machine against sums in
// f64.
//
// The error of an entry of c has the following bound. f32 operands are rounded with relative errors
// of at most u_a (for a) and u_b (for b). These are 0 with Math::exact, 2^-8 with Math::bf16, and
// 2^-16 with Math::fast, which splits a number into a high and a low bf16 part. Math::fast also
// omits the product of the two low parts, which is an error of 2^-16. The k products of an entry
// are summed in f32 (u = 2^-24) in any order. By Cauchy and Schwarz,
//   |error| <= |alpha| |a_row| |b_col| (u_a + u_b + u_a u_b + (k + 2) u),
// where |a_row| and |b_col| are the Euclidean norms of the row of a and the column of b. The bound
// also includes a few u for the terms of the epilogue, and the rounding to the type of c.

using namespace longhand;
using namespace longhand::cpu;

namespace {

/// A matrix of f32 or bf16 within a larger array. The other entries of the array are NaN and must
/// not be read.
struct Matrix {
  std::vector<float> f32;
  std::vector<bf16> half;
  DType type;
  std::int64_t rows, cols, ld, batch, stride;

  Matrix(std::int64_t r, std::int64_t c, std::int64_t count, DType t, std::int64_t extra,
         unsigned seed)
      : type(t),
        rows(r),
        cols(c),
        ld(c + extra),
        batch(count),
        stride(r * (c + extra) + 3 * extra) {
    const auto total = static_cast<std::size_t>(stride * count + 1);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    t == DType::f32 ? f32.assign(total, nan) : half.assign(total, bf16(nan));
    std::uint32_t state = seed * 2654435761u + 12345u;
    for (std::int64_t p = 0; p < count; ++p) {
      for (std::int64_t i = 0; i < r; ++i) {
        for (std::int64_t j = 0; j < c; ++j) {
          state = state * 1664525u + 1013904223u;
          put(p, i, j, static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
        }
      }
    }
  }
  std::size_t index(std::int64_t p, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(p * stride + i * ld + j);
  }
  void put(std::int64_t p, std::int64_t i, std::int64_t j, float value) {
    type == DType::f32 ? void(f32[index(p, i, j)] = value)
                       : void(half[index(p, i, j)] = bf16(value));
  }
  double get(std::int64_t p, std::int64_t i, std::int64_t j) const {
    return type == DType::f32 ? f32[index(p, i, j)] : static_cast<float>(half[index(p, i, j)]);
  }
  const void* data() const {
    return type == DType::f32 ? static_cast<const void*>(f32.data()) : half.data();
  }
  GemmOperand operand(bool transposed = false) const {
    return {
        .data = data(), .type = type, .ld = ld, .batch_stride = stride, .transposed = transposed};
  }
  GemmResult result() {
    return {.data = const_cast<void*>(data()), .type = type, .ld = ld, .batch_stride = stride};
  }
  /// All bytes of the array. Comparing them also detects writes outside the matrix.
  std::vector<std::byte> bytes() const {
    const auto* from = static_cast<const std::byte*>(data());
    return {from, from + (f32.size() * 4 + half.size() * 2)};
  }
};

struct Case {
  std::int64_t m, n, k, batch = 1;
  bool ta = false, tb = false;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  std::int64_t extra = 0;  // unused columns of each array after the columns of its matrix
  float alpha = 1, beta = 0;
  Math math = Math::exact;
  bool bias = false, pre = false, residual = false, at = false;
  std::optional<Activation> f = {};
};

std::string text_of(const Case& t) {
  return text(t.m, " x ", t.n, " x ", t.k, " batch ", t.batch, t.ta ? " A^T" : "",
              t.tb ? " B^T" : "", " ", t.a, " ", t.b, " ", t.c, " +", t.extra, " alpha ", t.alpha,
              " beta ", t.beta, " ", name_of(t.math), t.bias ? " bias" : "", t.pre ? " pre" : "",
              t.residual ? " residual" : "", t.at ? " at" : "", " f ",
              t.f ? name_of(*t.f) : std::string_view("none"));
}

double value(Activation f, double x) {
  return with_formula(f, [&](auto formula) { return formula.value(x); });
}
double derivative(Activation f, double x) {
  return with_formula(f, [&](auto formula) { return formula.derivative(x); });
}

/// Relative error of a product a b that comes from rounding a and b. With relative errors u_a of a
/// and u_b of b it is
///   u_a + u_b + u_a u_b.
/// In fast mode, a number is the sum of a high and a low bf16 part, and u_a u_b is replaced by the
/// error of omitting the product of the low parts.
double rounding(const Case& t) {
  if (t.math == Math::exact) return 0;
  const double each = t.math == Math::bf16 ? 0x1p-8 : 0x1p-16;
  const double a = t.a == DType::f32 ? each : 0, b = t.b == DType::f32 ? each : 0;
  return a + b + (t.math == Math::bf16 ? a * b : a > 0 && b > 0 ? each : 0);
}

double type_unit(DType type) { return type == DType::bf16 ? 0x1p-8 : 0x1p-24; }

/// True if |got - want| <= bound. NaN agrees with NaN only, and an infinity with itself only.
bool agree(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= bound;  // this comparison is false for NaN
}

Matrix left(const Case& t) {
  return {t.ta ? t.k : t.m, t.ta ? t.m : t.k, t.batch, t.a, t.extra, 1};
}
Matrix right(const Case& t) {
  return {t.tb ? t.n : t.k, t.tb ? t.k : t.n, t.batch, t.b, t.extra, 2};
}

/// The expected results of a test case and the norms in its error bounds, which are the same for
/// all kernels. `sums` is the product of the matrices a and b in f64, [batch, m, n]. `rows` are the
/// squared norms of the rows of a, [batch, m]. `columns` are the squared norms of the columns of b,
/// [batch, n].
struct Products {
  std::vector<double> sums, rows, columns;

  explicit Products(const Case& t) {
    const Matrix a = left(t), b = right(t);
    const auto k = static_cast<std::size_t>(t.k);
    std::vector<double> x, y;  // x: the rows of a, concatenated; y: the columns of b, concatenated
    for (std::int64_t p = 0; p < t.batch; ++p) {
      x.clear();
      y.clear();
      for (std::int64_t i = 0; i < t.m; ++i) {
        for (std::int64_t l = 0; l < t.k; ++l) x.push_back(t.ta ? a.get(p, l, i) : a.get(p, i, l));
      }
      for (std::int64_t j = 0; j < t.n; ++j) {
        for (std::int64_t l = 0; l < t.k; ++l) y.push_back(t.tb ? b.get(p, j, l) : b.get(p, l, j));
      }
      const auto product = [k](const double* row, const double* column) {
        return std::inner_product(row, row + k, column, 0.0);
      };
      const auto m = static_cast<std::size_t>(t.m), n = static_cast<std::size_t>(t.n);
      for (std::size_t i = 0; i < m; ++i) {
        const double* const row = x.data() + i * k;
        rows.push_back(product(row, row));
        for (std::size_t j = 0; j < n; ++j) sums.push_back(product(row, y.data() + j * k));
      }
      for (std::size_t j = 0; j < n; ++j) {
        const double* const column = y.data() + j * k;
        columns.push_back(product(column, column));
      }
    }
  }
};

/// The matrices of a test case: operands and results.
struct Operands {
  Matrix a, b, c, residual, at, pre, bias;

  explicit Operands(const Case& t)
      : a(left(t)),
        b(right(t)),
        c(t.m, t.n, t.batch, t.c, t.extra, 3),
        residual(t.m, t.n, t.batch, t.b, t.extra, 4),
        at(t.m, t.n, t.batch, t.a, t.extra, 5),
        pre(t.m, t.n, t.batch, t.c, t.extra, 6),
        bias(1, t.n, 1, DType::f32, 0, 7) {
    if (t.beta != 0) return;
    // With beta = 0, c must not be read, so it is filled with NaN.
    for (std::int64_t p = 0; p < t.batch; ++p) {
      for (std::int64_t i = 0; i < t.m; ++i) {
        for (std::int64_t j = 0; j < t.n; ++j) {
          c.put(p, i, j, std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
  }

  Gemm gemm(const Case& t) {
    Gemm g{.m = t.m,
           .n = t.n,
           .k = t.k,
           .batch = t.batch,
           .a = a.operand(t.ta),
           .b = b.operand(t.tb),
           .c = c.result(),
           .alpha = t.alpha,
           .beta = t.beta,
           .math = t.math};
    if (t.bias) g.epilogue.bias = bias.f32.data();
    if (t.pre) g.epilogue.pre = pre.result();
    if (t.residual) g.epilogue.residual = residual.operand();
    if (t.at) g.epilogue.at = at.operand();
    g.epilogue.f = t.f;
    return g;
  }
};

/// Returns the error of c at `place` (batch, row, column), divided by the largest permitted error.
/// Returns infinity if c or the epilogue's other result, `pre`, has a larger error than permitted.
/// `old` is c before the product.
double used_bound(const Case& t, const Operands& x, const Matrix& old, const Products& products,
                  std::array<std::int64_t, 3> place) {
  const auto [p, i, j] = place;
  const double infinity = std::numeric_limits<double>::infinity(), u = 0x1p-24;
  const auto row = static_cast<std::size_t>(p * t.m + i);
  const double aa = products.rows[row];
  const double bb = products.columns[static_cast<std::size_t>(p * t.n + j)];
  const double norms = std::fabs(static_cast<double>(t.alpha)) * std::sqrt(aa * bb);
  const double product =
      static_cast<double>(t.alpha) *
      products.sums[row * static_cast<std::size_t>(t.n) + static_cast<std::size_t>(j)];
  double bound = norms * (rounding(t) + static_cast<double>(t.k + 2) * u);
  double want = product;
  if (t.at) {
    const double slope = derivative(*t.f, x.at.get(p, i, j));
    bound = bound * std::fabs(slope) + std::fabs(product) * 16 * u;
    want = product * slope;
  } else {
    if (t.bias) want += x.bias.get(0, 0, j);
    bound += 2 * u * (std::fabs(want) + 1);
    if (t.pre) {
      const double share = bound + type_unit(t.c) * std::fabs(want);
      const double got = x.pre.get(p, i, j);
      if (!agree(got, want, share)) return infinity;
    }
    if (t.f) {
      // All activations f in this file have slopes below 1.2. Evaluating f(x) has an error below
      // 16 u (|x| + 1), where u = 2^-24.
      bound = 1.2 * bound + 16 * u * (std::fabs(want) + 1);
      want = value(*t.f, want);
    }
    if (t.residual) want += x.residual.get(p, i, j);
  }
  if (t.beta != 0) want += static_cast<double>(t.beta) * old.get(p, i, j);
  bound +=
      4 * u * (std::fabs(want) + 4) + (t.c == DType::bf16 ? 0x1p-8 * (std::fabs(want) + bound) : 0);
  const double got = x.c.get(p, i, j);
  return agree(got, want, bound) ? std::fabs(got - want) / bound : infinity;
}

struct Outcome {
  double used = 0;  // the largest error of an entry of c, as a fraction of its bound
  std::vector<std::byte> c, pre;
};

Outcome run(const Case& t, const GemmKernels& kernels, ThreadPool& pool, GemmWorkspace& workspace,
            const Products* products) {
  Operands x(t);
  const Matrix old = x.c;
  gemm(x.gemm(t), kernels, pool, workspace);
  Outcome outcome{.used = 0, .c = x.c.bytes(), .pre = x.pre.bytes()};
  if (!products) return outcome;
  for (std::int64_t p = 0; p < t.batch; ++p) {
    for (std::int64_t i = 0; i < t.m; ++i) {
      for (std::int64_t j = 0; j < t.n; ++j) {
        outcome.used = std::max(outcome.used, used_bound(t, x, old, *products, {p, i, j}));
      }
      // The array's columns after the matrix c must still be NaN.
      for (std::int64_t j = t.n; j < x.c.ld; ++j) {
        if (!std::isnan(x.c.get(p, i, j))) outcome.used = std::numeric_limits<double>::infinity();
      }
    }
  }
  return outcome;
}

struct Table {
  std::string name;
  GemmKernels kernels;
  bool model = false;
};

/// Returns two tables for each instruction set of this machine: its own kernels, and kernels that
/// emulate AMX tiles (TileModel) for Math::fast and Math::bf16.
std::vector<Table> tables() {
  std::vector<Table> all;
  for (const Isa isa : supported_isas()) {
    const GemmKernels& own = kernels_for<GemmKernels>(isa);
    all.push_back({std::string(name_of(isa)), own});
    const TileProbe& tiles = kernels_for<TileProbe>(isa);
    GemmKernels model = own;
    model.format[1] = model.small[1] = &tiles.two;
    model.format[2] = model.small[2] = &tiles.one;
    all.push_back({text("tiles modelled on ", name_of(isa)), model, true});
  }
  return all;
}

struct Bench {
  ThreadPool pool{3};
  GemmWorkspace workspace;
  std::vector<Table> all = tables();

  void hold(const Case& t) {
    const Products products(t);
    for (const Table& table : all) {
      if (table.model && t.math == Math::exact) continue;
      const Outcome outcome = run(t, table.kernels, pool, workspace, &products);
      BOOST_TEST(outcome.used <= 1.0,
                 table.name << ": " << text_of(t) << ": " << outcome.used << " of the bound");
    }
  }
};

constexpr DType types[] = {DType::f32, DType::bf16};

}  // namespace

BOOST_FIXTURE_TEST_CASE(sizes_around_the_tile_size_in_every_transposition, Bench) {
  for (const std::int64_t m : {1, 2, 5, 6, 7, 13, 14, 15, 29, 33}) {
    for (const std::int64_t n : {1, 3, 8, 9, 15, 16, 17, 31, 32, 33, 65}) {
      for (const std::int64_t k : {1, 2, 7, 16, 33}) {
        for (const int layout : {0, 1, 2, 3}) {
          hold({.m = m, .n = n, .k = k, .ta = (layout & 1) != 0, .tb = (layout & 2) != 0});
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(sizes_of_zero, Bench) {
  for (const int zero : {0, 1, 2, 3}) {
    Case t{.m = zero == 0 ? 0 : 3,
           .n = zero == 1 ? 0 : 5,
           .k = zero == 2 ? 0 : 7,
           .batch = zero == 3 ? 0 : 2,
           .extra = 2};
    hold(t);
    t.beta = 0.5f;
    hold(t);
    t.bias = t.residual = true;
    t.f = Activation::gelu;
    hold(t);
  }
}

BOOST_FIXTURE_TEST_CASE(columns_of_a_larger_matrix_in_place, Bench) {
  for (const int layout : {0, 1, 2, 3}) {
    for (const std::int64_t extra : {1, 16, 37}) {
      hold({.m = 45,
            .n = 70,
            .k = 51,
            .batch = 2,
            .ta = (layout & 1) != 0,
            .tb = (layout & 2) != 0,
            .extra = extra});
    }
  }
}

BOOST_FIXTURE_TEST_CASE(several_blocks_of_rows_columns_and_k, Bench) {
  for (const int layout : {0, 1, 2, 3}) {
    const bool ta = (layout & 1) != 0, tb = (layout & 2) != 0;
    hold({.m = 500, .n = 333, .k = 777, .ta = ta, .tb = tb, .beta = -0.5f});
    hold({.m = 130, .n = 1100, .k = 401, .ta = ta, .tb = tb, .alpha = 0.25f});
    hold({.m = 9, .n = 20, .k = 9000, .ta = ta, .tb = tb, .extra = 3, .beta = 2.0f});
    hold({.m = 460, .n = 7, .k = 30, .ta = ta, .tb = tb, .c = DType::bf16});
  }
}

BOOST_FIXTURE_TEST_CASE(alpha_and_beta, Bench) {
  for (const float alpha : {1.0f, -2.5f, 0.0f}) {
    for (const float beta : {0.0f, 1.0f, -0.75f}) {
      for (const DType c : types) {
        hold({.m = 31, .n = 50, .k = 40, .c = c, .alpha = alpha, .beta = beta});
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(operands_and_results_of_either_type, Bench) {
  for (const DType a : types) {
    for (const DType b : types) {
      for (const DType c : types) {
        for (const int layout : {0, 1, 2, 3}) {
          for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
            for (const std::int64_t k : {1, 2, 33, 500}) {
              hold({.m = 19,
                    .n = 37,
                    .k = k,
                    .ta = (layout & 1) != 0,
                    .tb = (layout & 2) != 0,
                    .a = a,
                    .b = b,
                    .c = c,
                    .extra = k == 33 ? 5 : 0,
                    .math = math});
            }
          }
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(tiles_at_their_edges, Bench) {
  for (const Math math : {Math::fast, Math::bf16}) {
    for (const int layout : {0, 1, 2, 3}) {
      for (const DType type : types) {
        const bool ta = (layout & 1) != 0, tb = (layout & 2) != 0;
        const auto sized = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
          return Case{.m = m, .n = n, .k = k, .ta = ta, .tb = tb, .a = type, .math = math};
        };
        for (const std::int64_t m : {15, 16, 32, 33}) {
          for (const std::int64_t n : {16, 17, 31, 64}) {
            for (const std::int64_t k : {31, 32, 65}) hold(sized(m, n, k));
          }
        }
        // A case whose dimension k is divided into several blocks, and whose last tiles are
        // partial.
        Case blocks = sized(120, 70, 1100);
        hold(blocks);
        blocks.beta = 1;
        hold(blocks);
        blocks.alpha = 0.5f;
        blocks.extra = 7;
        hold(blocks);
        hold(sized(470, 40, 40));   // in this case, the matrix b is packed in advance
        hold(sized(33, 40, 5000));  // in this case, the sums over k are split into chunks
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(few_rows, Bench) {
  for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 8}) {
    for (const std::int64_t n : {1, 5, 63, 300}) {
      for (const std::int64_t k : {64, 77, 130}) {
        for (const int layout : {0, 1, 2, 3}) {
          for (const Math math : {Math::exact, Math::bf16}) {
            hold({.m = m,
                  .n = n,
                  .k = k,
                  .ta = (layout & 1) != 0,
                  .tb = (layout & 2) != 0,
                  .b = math == Math::bf16 && n > 60 ? DType::bf16 : DType::f32,
                  .extra = n == 63 ? 5 : 0,
                  .beta = n == 5 ? 0.5f : 0.0f,
                  .math = math,
                  .bias = n == 300});
          }
        }
      }
    }
  }
}

/// Measures the error of products with Math::fast, relative to the norm of the row of a times the
/// norm of the column of b. Math::fast stores a number in two bf16 parts, with about 16 bits.
BOOST_AUTO_TEST_CASE(fast_mode_has_a_relative_error_below_2_to_the_minus_15) {
  ThreadPool pool(2);
  GemmWorkspace workspace;
  for (const Table& table : tables()) {
    for (const std::int64_t k : {8, 64, 1000}) {
      Matrix a(64, k, 1, DType::f32, 0, 1), b(k, 64, 1, DType::f32, 0, 2);
      Matrix c(64, 64, 1, DType::f32, 0, 3);
      const Gemm g{.m = 64,
                   .n = 64,
                   .k = k,
                   .a = a.operand(),
                   .b = b.operand(),
                   .c = c.result(),
                   .math = Math::fast};
      gemm(g, table.kernels, pool, workspace);
      double worst = 0;
      for (std::int64_t i = 0; i < 64; ++i) {
        for (std::int64_t j = 0; j < 64; ++j) {
          double sum = 0, aa = 0, bb = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            sum += a.get(0, i, l) * b.get(0, l, j);
            aa += a.get(0, i, l) * a.get(0, i, l);
            bb += b.get(0, l, j) * b.get(0, l, j);
          }
          worst = std::max(worst, std::fabs(c.get(0, i, j) - sum) / std::sqrt(aa * bb));
        }
      }
      BOOST_TEST(worst < 0x1p-15, table.name << ", k = " << k << ": " << worst);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(every_epilogue, Bench) {
  for (const DType c : types) {
    for (const float beta : {0.0f, 0.5f}) {
      for (const bool bias : {false, true}) {
        for (const bool pre : {false, true}) {
          for (const bool residual : {false, true}) {
            for (const Activation f :
                 {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
              hold({.m = 37,
                    .n = 45,
                    .k = 20,
                    .b = c,
                    .c = c,
                    .extra = 3,
                    .beta = beta,
                    .bias = bias,
                    .pre = pre,
                    .residual = residual,
                    .f = f});
            }
            hold({.m = 20,
                  .n = 33,
                  .k = 600,
                  .c = c,
                  .beta = beta,
                  .bias = bias,
                  .pre = pre,
                  .residual = residual});
          }
        }
      }
      for (const Activation f : {Activation::relu, Activation::gelu, Activation::silu}) {
        hold({.m = 37,
              .n = 45,
              .k = 20,
              .a = c,
              .c = c,
              .extra = 3,
              .beta = beta,
              .at = true,
              .f = f});
        hold({.m = 9, .n = 20, .k = 5000, .c = c, .beta = beta, .at = true, .f = f});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(residual_and_at_may_be_c_itself) {
  ThreadPool pool(2);
  GemmWorkspace workspace;
  for (const Table& table : tables()) {
    for (const bool at : {false, true}) {
      Matrix a(40, 30, 1, DType::f32, 0, 1), b(30, 50, 1, DType::f32, 0, 2);
      Matrix apart(40, 50, 1, DType::f32, 0, 3), same(40, 50, 1, DType::f32, 0, 4);
      const Matrix source = same;
      Gemm g{.m = 40, .n = 50, .k = 30, .a = a.operand(), .b = b.operand(), .c = apart.result()};
      if (at) g.epilogue.f = Activation::gelu;
      (at ? g.epilogue.at : g.epilogue.residual) = source.operand();
      gemm(g, table.kernels, pool, workspace);
      g.c = same.result();
      (at ? g.epilogue.at : g.epilogue.residual) = same.operand();
      gemm(g, table.kernels, pool, workspace);
      BOOST_TEST((apart.bytes() == same.bytes()), table.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_bits) {
  const Case cases[] = {
      {.m = 700, .n = 300, .k = 500},
      {.m = 64, .n = 64, .k = 20000, .ta = true},
      {.m = 41, .n = 300, .k = 4096, .ta = true},
      {.m = 8, .n = 700, .k = 300, .tb = true},
      {.m = 1, .n = 3000, .k = 700},
      {.m = 300, .n = 1000, .k = 80, .bias = true, .f = Activation::gelu},
      {.m = 32, .n = 16, .k = 32, .batch = 50},
      {.m = 470, .n = 50, .k = 100, .math = Math::fast},
      {.m = 3, .n = 900, .k = 200, .tb = true, .math = Math::bf16},
      {.m = 470, .n = 40, .k = 600, .c = DType::bf16, .math = Math::bf16, .residual = true},
  };
  ThreadPool one(1), two(2), three(3), eight(8);
  for (const Table& table : tables()) {
    for (const Case& t : cases) {
      GemmWorkspace workspace;
      const Outcome first = run(t, table.kernels, one, workspace, nullptr);
      for (ThreadPool* pool : {&two, &three, &eight, &eight}) {
        const Outcome other = run(t, table.kernels, *pool, workspace, nullptr);
        BOOST_TEST((other.c == first.c && other.pre == first.pre),
                   table.name << ": " << text_of(t) << ": " << pool->threads() << " threads");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_result_written_past_the_caches_has_the_same_bits) {
  // The result c takes more than 16 MiB. If its rows are aligned to 64 bytes, kernels write it with
  // non-temporal stores. If it is shifted by one float, they do not. With 208 columns (n), the last
  // AVX-512 tile in each row of tiles is partial.
  for (const std::int64_t n : {64, 208}) {
    const std::int64_t m = (16 << 20) / (4 * n) + 9, k = 5;
    const Matrix a(m, k, 1, DType::f32, 0, 1), b(k, n, 1, DType::f32, 0, 2);
    const auto size = static_cast<std::size_t>(m * n);
    std::vector<float> space(size + 32);
    void* at = space.data();
    std::size_t room = space.size() * sizeof(float);
    auto* const aligned = static_cast<float*>(std::align(64, (size + 1) * sizeof(float), at, room));
    ThreadPool pool(2);
    GemmWorkspace workspace;
    for (const Table& table : tables()) {
      Gemm g{.m = m, .n = n, .k = k, .a = a.operand(), .b = b.operand(), .c = {}};
      g.math = Math::exact;
      const auto product = [&](float* c) {
        std::fill(space.begin(), space.end(), std::nanf(""));
        g.c = {.data = c, .type = DType::f32, .ld = n};
        gemm(g, table.kernels, pool, workspace);
        return std::vector<float>(c, c + size);
      };
      BOOST_TEST((product(aligned) == product(aligned + 1)), table.name << ", " << n << " columns");
    }
  }
}

BOOST_AUTO_TEST_CASE(infinities_and_nans_reach_only_the_entries_that_depend_on_them) {
  ThreadPool pool(1);
  GemmWorkspace workspace;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const Table& table : tables()) {
    for (const Math math : {Math::exact, Math::bf16}) {
      Matrix a(20, 9, 1, DType::f32, 0, 1), b(9, 40, 1, DType::f32, 0, 2);
      Matrix c(20, 40, 1, DType::f32, 0, 3);
      a.put(0, 3, 4, inf);
      a.put(0, 7, 8, nan);
      b.put(0, 4, 39, -1.0f);
      b.put(0, 4, 38, 2.0f);
      const Gemm g{.m = 20,
                   .n = 40,
                   .k = 9,
                   .a = a.operand(),
                   .b = b.operand(),
                   .c = c.result(),
                   .math = math};
      gemm(g, table.kernels, pool, workspace);
      for (std::int64_t i = 0; i < 20; ++i) {
        for (std::int64_t j = 0; j < 40; ++j) {
          if (i != 3 && i != 7) BOOST_TEST(std::isfinite(c.get(0, i, j)));
        }
        BOOST_TEST(std::isnan(c.get(0, 7, i)));
      }
      BOOST_TEST(c.get(0, 3, 39) == -inf);
      BOOST_TEST(c.get(0, 3, 38) == inf);
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  ThreadPool pool(1);
  GemmWorkspace workspace;
  Matrix a(4, 5, 1, DType::f32, 0, 1), b(5, 6, 1, DType::f32, 0, 2), c(4, 6, 1, DType::f32, 0, 3);
  const Gemm good{.m = 4, .n = 6, .k = 5, .a = a.operand(), .b = b.operand(), .c = c.result()};
  const auto refused = [&](auto change) {
    Gemm g = good;
    change(g);
    BOOST_CHECK_THROW(gemm(g, Isa::portable, pool, workspace), Error);
  };
  BOOST_CHECK_NO_THROW(gemm(good, Isa::portable, pool, workspace));
  refused([](Gemm& g) { g.a.ld = 4; });
  refused([](Gemm& g) { g.b.ld = 5; });
  refused([](Gemm& g) { g.c.ld = 5; });
  refused([](Gemm& g) { g.a.type = DType::f64; });
  refused([](Gemm& g) { g.k = -1; });
}

BOOST_AUTO_TEST_SUITE_END()
