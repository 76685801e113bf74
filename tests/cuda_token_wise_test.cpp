#include <cmath>
#include <limits>
#include "tests/check.h"

#include "autograd/catalog/heads.h"
#include "autograd/tolerance.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/heads.h"
#include "core/contract/loss.h"
#include "core/contract/optimizer.h"
#include "core/contract/rearrange.h"
#include "core/contract/reduce.h"
#include "core/contract/rope.h"
#include "core/contract/softmax.h"
#include "core/contract/triangle.h"
#include "core/segments.h"
#include "cuda/emulator/backend.h"

BOOST_AUTO_TEST_SUITE(cuda_token_wise_test)

using namespace longhand;
using catalog::Case;

// Tests the token-wise CUDA kernels. The small cases that all operations share (autograd/catalog)
// do not reach every path of these kernels. The tests below use every row length that has a
// separate kernel, work that is divided among blocks and combined, addresses that are not multiples
// of 16 bytes, and indices out of range. No bit may depend on the order of threads.

namespace {

using Attributes = std::map<std::string, std::string>;

/// Compares an op's results on the emulated device with the reference, and returns them.
tolerance::Results expect_reference(const std::string& name, const Case& drawn, DType type) {
  const catalog::Operation& operation = catalog::find(name);
  const auto reference = make_reference_backend();
  tolerance::Results got;
  const auto used =
      tolerance::Standard(operation, {drawn}, *reference)
          .compare(type, tolerance::unit(operation, type, Math::exact),
                   [&](const Case& values, const tolerance::Results&) {
                     got = tolerance::run(operation, values, *make_emulated_cuda_backend(), type);
                     return got;
                   });
  BOOST_TEST_CONTEXT(name << ", " << type << ": " << used.where) { BOOST_TEST(used.used <= 1.0); }
  return got;
}

/// Calls body() twice, each time with another order of threads than the default.
template <class Body>
void in_other_orders(Body&& body) {
  for (const auto order : {emulator::Order::backward, emulator::Order::interleaved}) {
    emulator::set_order(order, 5);
    body();
  }
  emulator::set_order(emulator::Order::forward);
}

/// Compares an op with the reference in bf16 and f32, and checks that the order of threads changes
/// no bit of the f32 results.
void expect_agreement(const std::string& name, const Case& drawn) {
  expect_reference(name, drawn, DType::bf16);
  const auto got = expect_reference(name, drawn, DType::f32);
  const catalog::Operation& operation = catalog::find(name);
  const auto values = tolerance::rounded(operation, drawn, DType::f32);
  in_other_orders([&] {
    const auto again = tolerance::run(operation, values, *make_emulated_cuda_backend(), DType::f32);
    BOOST_TEST((again == got), name << " depends on the order of threads");
  });
}

// Row lengths for which different kernels are used: rows that fit in a warp's registers with one or
// several accesses per lane, rows that are read entry by entry, and longer rows. With some lengths
// all rows are aligned to 16 bytes, and with others they are not.
const std::int64_t row_lengths[] = {200, 600, 1023, 2056, 1301};

/// Draws 170 parameters with their gradients and moments. These are more tensors than fit in the
/// small table that a kernel has as its argument. Some tensors are empty, some are views that are
/// not on 16-byte boundaries, and one is so long that several blocks process it.
void draw_tensors(Adam& op, Backend& backend, bool bf16_moments) {
  Rng rng(8, Purpose::test);
  const bool plain = backend.name() == "reference";
  for (int k = 0; k < 170; ++k) {
    const std::int64_t size = k == 90 ? 17001 : k % 7 * 3;
    const auto tensor = [&](double deviation, DType type, bool positive) {
      catalog::HostTensor values = catalog::normals(rng, {size + 1}, deviation);
      for (double& value : values.values) {
        if (positive) value = value * value;
        value = static_cast<float>(bf16(static_cast<float>(value)));
      }
      const DType stored = plain ? DType::f32 : type;
      return Tensor::from(backend, {size + 1}, stored, values.values).slice(k % 2, size);
    };
    op.parameters.push_back(tensor(1, DType::f32, false));
    op.gradients.push_back(tensor(0.1, DType::f32, false));
    op.m.push_back(tensor(0.1, bf16_moments && k % 4 < 2 ? DType::bf16 : DType::f32, false));
    op.v.push_back(tensor(0.3, bf16_moments && k % 3 == 0 ? DType::bf16 : DType::f32, true));
    op.decay.push_back(k % 2 * 0.1);
  }
}

/// Returns the gradient norm, the clipping factor, and the parameters after a step of Adam and a
/// step of SGD.
std::vector<double> stepped(Backend& backend, bool bf16_moments) {
  Adam op;
  op.now = Tensor::from(backend, {3}, DType::f32, adam_now(0.01, 3));
  GlobalNorm norm;
  norm.largest = 0.5;
  norm.norm = Tensor(backend, {1}, DType::f32);
  norm.factor = Tensor::from(backend, {1}, DType::f32, std::vector<double>{1});
  draw_tensors(op, backend, bf16_moments);
  SquareSums squares{.tensors = op.gradients, .sums = {}};
  std::int64_t pieces = 0;
  for (const Tensor& x : op.gradients) pieces += SquareSums::pieces(x.size());
  norm.squares = Tensor(backend, {pieces}, DType::f32);
  std::int64_t at = 0;
  for (const Tensor& x : op.gradients) {
    squares.sums.push_back(norm.squares.slice(at, SquareSums::pieces(x.size())));
    at += squares.sums.back().size();
  }
  backend(squares);
  backend(norm);
  op.factor = norm.factor;
  backend(op);
  Sgd sgd{.parameters = op.parameters,
          .gradients = op.gradients,
          .velocities = {},
          .decay = op.decay,
          .rate = op.now.slice(0, 1),
          .factor = op.factor};
  for (const Tensor& w : op.parameters) {
    sgd.velocities.push_back(Tensor(backend, {w.size() + 1}, DType::f32).slice(0, w.size()));
    backend(Copy{.x = w, .y = sgd.velocities.back()});
  }
  backend(sgd);
  std::vector<double> all{norm.norm.item(), norm.factor.item()};
  for (const Tensor& w : op.parameters) {
    for (const double value : w.to_doubles()) all.push_back(value);
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(norms_take_rows_of_any_length) {
  Rng rng(1, Purpose::test);
  for (const std::int64_t n : row_lengths) {
    const Case c{{{"x", catalog::normals(rng, {9, n}, 2, 1)},
                  {"gain", catalog::normals(rng, {n}, 0.5, 1)},
                  {"bias", catalog::normals(rng, {n})}}};
    expect_agreement("layer_norm", c);
    Case without = c;
    without.inputs.erase("bias");
    expect_agreement("rms_norm", without);
  }
  // 2300 rows are more than all threads can process at once in the backward pass.
  expect_reference(
      "layer_norm",
      {{{"x", catalog::normals(rng, {2300, 4})}, {"gain", catalog::normals(rng, {4})}}, {}},
      DType::f32);
}

BOOST_AUTO_TEST_CASE(softmax_takes_rows_of_any_length) {
  Rng rng(2, Purpose::test);
  for (const std::int64_t n : row_lengths) {
    expect_agreement("softmax", {{{"x", catalog::normals(rng, {3, n}, 2)}}, {}});
    expect_agreement("softmax", {{{"x", catalog::normals(rng, {2, 3, n}, 2)}}, {{"causal", "1"}}});
    expect_agreement("argmax", {{{"x", catalog::integers(rng, {9, n}, 0, 90)}}, {}});
  }
}

BOOST_AUTO_TEST_CASE(reductions_take_rows_of_any_length) {
  Rng rng(3, Purpose::test);
  for (const Shape& shape : {Shape{9, 1024}, Shape{9, 2048}, Shape{2, 1301}, Shape{2, 17004}}) {
    const Case c{{{"x", catalog::normals(rng, shape)}}, {}};
    for (const char* name : {"row_sum", "row_max", "smallest", "square_sum", "nonfinite"}) {
      expect_agreement(name, c);
    }
  }
  for (const Shape& shape : {Shape{900, 8}, Shape{400, 130}, Shape{3, 512}}) {
    expect_agreement("column_sum", {{{"x", catalog::normals(rng, shape)}}, {}});
  }
}

BOOST_AUTO_TEST_CASE(nan_is_found_at_any_position) {
  const auto backend = make_emulated_cuda_backend();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t n : {40, 1500, 17000}) {
    std::vector<double> values(static_cast<std::size_t>(n), 3);
    values[static_cast<std::size_t>(n) - 7] = nan;
    const Tensor x = Tensor::from(*backend, {1, n}, DType::f32, values);
    const Tensor y(*backend, {1}, DType::f32);
    for (const auto reduction : {Reduction::sum, Reduction::largest, Reduction::smallest}) {
      (*backend)(Reduce{.reduction = reduction, .x = x, .y = y});
      BOOST_TEST(std::isnan(y.item()), name_of(reduction) << " of " << n);
    }
    (*backend)(Reduce{.reduction = Reduction::nonfinite, .x = x, .y = y});
    BOOST_TEST(y.item() == 1);
    const Tensor p = empty_like(x);
    (*backend)(Softmax{.x = x, .y = p});
    BOOST_TEST(std::isnan(p.to_doubles()[0]));
  }
}

BOOST_AUTO_TEST_CASE(a_row_of_minus_infinities_has_no_softmax_and_one_among_others_no_part) {
  const auto backend = make_emulated_cuda_backend();
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(2 * 50, -infinity);
  values[50 + 20] = values[50 + 30] = 1;
  const Tensor x = Tensor::from(*backend, {2, 50}, DType::f32, values), y = empty_like(x);
  (*backend)(Softmax{.x = x, .y = y});
  std::vector<double> expected(100, 0);
  expected[70] = expected[80] = 0.5;
  BOOST_TEST((y.to_doubles() == expected));

  const Tensor targets = Tensor::from(*backend, {1, 1}, std::vector<std::int32_t>{20});
  const Tensor loss(*backend, {1}, DType::f32), total = empty_like(loss), hits = empty_like(loss);
  const Tensor log_sum(*backend, {1, 1}, DType::f32);
  (*backend)(CrossEntropy{.logits = x.slice(1, 1),
                          .targets = targets,
                          .loss = loss,
                          .hits = hits,
                          .log_sum = log_sum,
                          .total = total});
  BOOST_TEST(loss.item() == std::log(2.0), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(hits.item() == 1);
}

BOOST_AUTO_TEST_CASE(losses_take_any_number_of_classes_and_choices) {
  Rng rng(4, Purpose::test);
  const auto choices = [&](std::int64_t rows, int groups, int classes) {
    return Case{{{"logits", catalog::normals(rng, {rows, groups * classes}, 2)},
                 {"targets", catalog::integers(rng, {rows, groups}, -1, classes - 1)},
                 {"weights", catalog::uniforms(rng, {rows, groups}, 0, 2)}},
                {{"groups", std::to_string(groups)}}};
  };
  expect_agreement("cross_entropy", choices(40, 16, 8));
  expect_agreement("cross_entropy", choices(300, 2, 3));
  expect_agreement("cross_entropy", choices(9, 3, 40));
  expect_agreement("cross_entropy", choices(10, 1, 1303));
  expect_agreement("cross_entropy", choices(10, 1, 1304));
  expect_agreement("cross_entropy", choices(3, 1, 4104));
  expect_agreement("cross_entropy", choices(2, 1, 5001));
  // 4400 rows are more than all thread blocks can process at once.
  expect_reference("cross_entropy", choices(4400, 1, 33), DType::f32);
  expect_agreement("binary_cross_entropy", {{{"logits", catalog::normals(rng, {40, 64}, 3)},
                                             {"targets", catalog::uniforms(rng, {40, 64}, 0, 1)},
                                             {"weights", catalog::uniforms(rng, {40, 64}, 0, 2)}},
                                            {}});
}

BOOST_AUTO_TEST_CASE(embeddings_add_up_the_rows_of_any_vocabulary) {
  Rng rng(5, Purpose::test);
  const auto backend = make_emulated_cuda_backend();
  // The gradients are small integers, so that their sums are exact.
  const auto expect_sums = [&](std::int64_t vocabulary, std::int64_t n,
                               const catalog::HostTensor& drawn) {
    const std::vector<std::int32_t> host(drawn.values.begin(), drawn.values.end());
    const auto rows = static_cast<std::int64_t>(host.size());
    const std::vector<double> values = catalog::integers(rng, {rows, n}, -8, 8).values;
    std::vector<double> expected(static_cast<std::size_t>(vocabulary * n), 0);
    for (std::int64_t i = 0; i < rows * n; ++i) {
      const std::int64_t at = host[static_cast<std::size_t>(i / n)] * n + i % n;
      expected[static_cast<std::size_t>(at)] += values[static_cast<std::size_t>(i)];
    }
    const Tensor ids = Tensor::from(*backend, {rows}, host);
    const Tensor dtable(*backend, {vocabulary, n}, DType::f32);
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor dy = Tensor::from(*backend, {rows, n}, type, values);
      const auto expect = [&] {
        (*backend)(EmbeddingBackward{.ids = ids, .dy = dy, .dtable = dtable});
        BOOST_TEST((dtable.to_doubles() == expected), vocabulary << " ids, " << type);
      };
      expect();
      in_other_orders(expect);
    }
  };
  expect_sums(20, 72, catalog::integers(rng, {700}, 0, 19));
  // With larger vocabularies, rows are sorted by id, and the sorted rows are summed in pieces. The
  // following cases have rare and frequent ids, one id in all rows, and runs of equal ids that end
  // where a piece ends.
  expect_sums(300, 40, catalog::integers(rng, {2100}, 0, 299));
  expect_sums(1000, 7, catalog::integers(rng, {1200}, 5, 9));
  expect_sums(200, 136, catalog::constant({500}, 199));
  catalog::HostTensor steps = catalog::constant({320}, 0);
  for (std::size_t i = 0; i < steps.values.size(); ++i) {
    steps.values[i] = 250.0 - static_cast<double>(i / 32);
  }
  expect_sums(251, 8, steps);
}

BOOST_AUTO_TEST_CASE(gradients_of_embeddings_are_added_to_existing_ones) {
  const auto backend = make_emulated_cuda_backend();
  const Tensor dy =
      Tensor::from(*backend, {3, 2}, DType::f32, std::vector<double>{1, 2, 3, 4, 5, 6});
  const Tensor ids = Tensor::from(*backend, {3}, std::vector<std::int32_t>{1, 0, 1});
  for (const std::int64_t vocabulary : {2, 400}) {
    std::vector<double> expected(static_cast<std::size_t>(2 * vocabulary), 10);
    const Tensor dtable = Tensor::from(*backend, {vocabulary, 2}, DType::f32, expected);
    (*backend)(EmbeddingBackward{.ids = ids, .dy = dy, .dtable = {dtable, true}});
    expected[0] += 3;
    expected[1] += 4;
    expected[2] += 6;
    expected[3] += 8;
    BOOST_TEST((dtable.to_doubles() == expected));
  }
}

BOOST_AUTO_TEST_CASE(an_index_out_of_range_gives_nan_and_touches_nothing) {
  const auto backend = make_emulated_cuda_backend();
  const auto ints = [&](std::vector<std::int32_t> values, const Shape& shape) {
    return Tensor::from(*backend, shape, values);
  };
  const Tensor x = Tensor::from(*backend, {2, 2}, DType::f32, std::vector<double>{1, 2, 3, 4});
  const Tensor y = empty_like(x);
  const auto expect = [&](std::vector<bool> nans) {
    const std::vector<double> values = y.to_doubles();
    for (std::size_t i = 0; i < nans.size(); ++i) BOOST_TEST(std::isnan(values[i]) == nans[i]);
  };
  (*backend)(Embedding{.table = x, .ids = ints({2, -1}, {2}), .y = y});
  expect({true, true, true, true});
  (*backend)(Gather{.x = x, .index = ints({0, 2, -1, 1}, {2, 2}), .y = y});
  expect({false, true, true, false});
  const Tensor table = rope_table(*backend, DType::f32, 3, std::vector<double>{1});
  (*backend)(
      Rope{.x = x, .positions = ints({2, 3}, {2}), .table = table, .width = 2, .dims = 2, .y = y});
  expect({false, false, true, true});

  for (const std::int64_t vocabulary : {2, 400}) {
    const Tensor dtable(*backend, {vocabulary, 2}, DType::f32);
    const auto last = static_cast<std::int32_t>(vocabulary);
    (*backend)(EmbeddingBackward{.ids = ints({last, -1}, {2}), .dy = x, .dtable = dtable});
    BOOST_TEST(
        (dtable.to_doubles() == std::vector<double>(static_cast<std::size_t>(2 * vocabulary), 0)));
  }

  const Tensor loss(*backend, {1}, DType::f32), total = empty_like(loss);
  const Tensor log_sum(*backend, {2, 1}, DType::f32);
  const Tensor targets = ints({0, 2}, {2, 1});
  (*backend)(CrossEntropy{
      .logits = x, .targets = targets, .loss = loss, .log_sum = log_sum, .total = total});
  BOOST_TEST(std::isnan(loss.item()));
}

BOOST_AUTO_TEST_CASE(a_gradient_can_be_written_over_the_logits) {
  const auto backend = make_emulated_cuda_backend();
  Rng rng(6, Purpose::test);
  const Tensor logits =
      Tensor::from(*backend, {7, 12}, DType::f32, catalog::normals(rng, {7, 12}).values);
  const Tensor apart = empty_like(logits);
  const Tensor targets = Tensor::from(*backend, {7, 4}, std::vector<std::int32_t>(28, 2));
  const Tensor loss(*backend, {1}, DType::f32), total = empty_like(loss);
  const Tensor log_sum(*backend, {7, 4}, DType::f32);
  (*backend)(CrossEntropy{.logits = logits,
                          .targets = targets,
                          .groups = 4,
                          .loss = loss,
                          .log_sum = log_sum,
                          .total = total});
  CrossEntropyBackward backward{.logits = logits,
                                .targets = targets,
                                .groups = 4,
                                .log_sum = log_sum,
                                .total = total,
                                .dloss = loss,
                                .dlogits = apart};
  (*backend)(backward);
  backward.dlogits = logits;
  (*backend)(backward);
  BOOST_TEST((logits.to_doubles() == apart.to_doubles()));
}

BOOST_AUTO_TEST_CASE(systems_are_solved_in_tiles_and_panels) {
  Rng rng(7, Purpose::test);
  // If `upper` is 0, the system is solved from the first row to the last; if it is 1, from the last
  // to the first.
  for (const char* upper : {"0", "1"}) {
    catalog::HostTensor a = catalog::normals(rng, {70, 70}, 0.05);
    for (std::size_t i = 0; i < 70; ++i) a.values[i * 71] = 1.5;
    expect_agreement("solve_triangular",
                     {{{"a", a}, {"b", catalog::normals(rng, {70, 67})}}, {{"upper", upper}}});
  }
}

BOOST_AUTO_TEST_CASE(many_tensors_of_mixed_types_are_stepped_together) {
  const auto reference = make_reference_backend();
  const auto device = make_emulated_cuda_backend();
  for (const bool bf16_moments : {false, true}) {
    const std::vector<double> expected = stepped(*reference, bf16_moments);
    const std::vector<double> got = stepped(*device, bf16_moments);
    BOOST_REQUIRE(expected.size() == got.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(expected[i] - got[i]) / (1 + std::abs(expected[i])));
    }
    BOOST_TEST(worst < 2e-6);
  }
}

BOOST_AUTO_TEST_CASE(a_non_finite_number_stops_every_later_step) {
  for (const auto& backend :
       {make_reference_backend(), make_cpu_backend({.threads = 1}), make_emulated_cuda_backend()}) {
    const auto numbers = [&](std::vector<double> values) {
      return Tensor::from(*backend, {std::ssize(values)}, DType::f32, values);
    };
    const double infinity = std::numeric_limits<double>::infinity();
    const Tensor factor = numbers({1}), norm = numbers({0});
    const auto factor_after = [&](double gradient, double loss) {
      const Tensor squares = numbers({0});
      (*backend)(SquareSums{.tensors = {numbers({3, gradient})}, .sums = {squares}});
      (*backend)(GlobalNorm{.squares = squares,
                            .largest = 1,
                            .norm = norm,
                            .factor = factor,
                            .losses = numbers({1, loss})});
      return factor.item();
    };
    BOOST_TEST(factor_after(4, 1) == 0.2f);
    BOOST_TEST(factor_after(4, std::nan("")) == 0);
    BOOST_TEST(factor_after(4, 1) == 0);
    factor.assign(std::vector<double>{1});
    BOOST_TEST(factor_after(4, 1) == 0.2f);
    BOOST_TEST(factor_after(infinity, 1) == 0);
    BOOST_TEST(norm.item() == infinity);

    const Tensor w = numbers({1, -2}), m = numbers({0.5, 0.25}), v = numbers({0.5, 0.75});
    (*backend)(Adam{.parameters = {w},
                    .gradients = {numbers({infinity, 1})},
                    .m = {m},
                    .v = {v},
                    .decay = {0.1},
                    .now = numbers({0.1, 1, 1}),
                    .factor = factor});
    BOOST_TEST(w.to_doubles() == std::vector<double>({1, -2}));
    BOOST_TEST(m.to_doubles() == std::vector<double>({0.5, 0.25}));
    BOOST_TEST(v.to_doubles() == std::vector<double>({0.5, 0.75}));
  }
}

BOOST_AUTO_TEST_CASE(reads_of_16_bytes_are_aligned_to_16) {
  const auto backend = make_emulated_cuda_backend();
  Rng rng(9, Purpose::test);
  const Tensor whole =
      Tensor::from(*backend, {9, 4}, DType::bf16, catalog::normals(rng, {9, 4}).values);
  const Tensor x = whole.slice(1, 8).reshape({4, 8});  // x begins 8 bytes after a 16-byte boundary
  const Tensor apart = empty_like(x);
  (*backend)(Copy{.x = x, .y = apart});
  const auto softmax = [&](const Tensor& from) {
    const Tensor y = empty_like(from);
    (*backend)(Softmax{.x = from, .y = y});
    return y.to_doubles();
  };
  const auto sums = [&](const Tensor& from) {
    const Tensor y(*backend, {8}, DType::f32);
    (*backend)(ColumnSum{.x = from, .y = y});
    return y.to_doubles();
  };
  const auto swapped = [&](const Tensor& from) {
    const Tensor y(*backend, {1, 2, 2, 8}, DType::bf16);
    const Steps along{.along = {32, 8, 16, 1}};
    (*backend)(Rearrange{.shape = y.shape(),
                         .x = from.reshape({1, 2, 2, 8}),
                         .from = along,
                         .y = y,
                         .to = row_major(y.shape())});
    return y.to_doubles();
  };
  const std::vector<double> a = softmax(x), b = softmax(apart);
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(std::abs(a[i] - b[i]) <= 0.01 * b[i]);
  BOOST_TEST((swapped(x) == swapped(apart)));
  const std::vector<double> c = sums(x), d = sums(apart);
  for (std::size_t i = 0; i < c.size(); ++i) BOOST_TEST(std::abs(c[i] - d[i]) < 1e-5);
}

BOOST_AUTO_TEST_CASE(append_puts_new_tokens_after_the_cached_ones) {
  const auto backend = make_emulated_cuda_backend();
  for (const auto& [from, to] :
       {std::pair(DType::f32, DType::bf16), std::pair(DType::bf16, DType::f32)}) {
    for (const std::int64_t width : {3, 8}) {
      const std::int64_t columns = 2 * width;
      const std::vector<std::int32_t> brought{2, 0, 1}, begins{0, 5, 9}, held{4, 2, 3};
      std::vector<double> values;
      for (std::int64_t i = 0; i < 3 * columns; ++i) values.push_back(static_cast<double>(i + 1));
      const Tensor x = Tensor::from(*backend, {3, columns}, from, values);
      const Tensor cache = Tensor::zeros(*backend, {12, 8 + columns}, to);
      (*backend)(Append{.x = {x, 0, 2, width},
                        .from = Segments(*backend, brought),
                        .y = {cache, 8, 2, width},
                        .to = Segments(*backend, begins, held)});
      std::vector<double> expected(static_cast<std::size_t>(12 * (8 + columns)), 0);
      const std::int64_t rows[] = {2, 3, 11};
      for (std::int64_t t = 0; t < 3; ++t) {
        for (std::int64_t j = 0; j < columns; ++j) {
          expected[static_cast<std::size_t>(rows[t] * (8 + columns) + 8 + j)] =
              values[static_cast<std::size_t>(t * columns + j)];
        }
      }
      BOOST_TEST((cache.to_doubles() == expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_mix_of_types_is_filled_copied_and_looked_up) {
  const auto backend = make_emulated_cuda_backend();
  for (const std::int64_t columns : {3, 16}) {
    const Shape shape{2, columns};
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<double>(i));
    const std::vector<double> sevens(values.size(), 7.0);
    for (const DType from : {DType::u8, DType::i32, DType::bf16, DType::f32}) {
      const Tensor filled(*backend, shape, from);
      (*backend)(Fill{.value = 7, .y = filled});
      BOOST_TEST((filled.to_doubles() == sevens));
      const Tensor x = Tensor::from(*backend, shape, from, values);
      for (const DType to : {DType::bf16, DType::f32}) {
        const Tensor y(*backend, shape, to);
        (*backend)(Copy{.x = x, .y = y});
        BOOST_TEST_CONTEXT(from << " to " << to) { BOOST_TEST((y.to_doubles() == values)); }
      }
    }
    const Tensor table = Tensor::from(*backend, shape, DType::bf16, values);
    const Tensor wide_table = Tensor::from(*backend, shape, DType::f32, values);
    const Tensor ids = Tensor::from(*backend, {2}, std::vector<std::int32_t>{0, 1});
    const Tensor rows(*backend, shape, DType::f32), moved(*backend, shape, DType::f32);
    const Tensor narrow_rows(*backend, shape, DType::bf16);
    (*backend)(Embedding{.table = table, .ids = ids, .y = rows});
    (*backend)(Embedding{.table = wide_table, .ids = ids, .y = narrow_rows});
    BOOST_TEST((rows.to_doubles() == values));
    BOOST_TEST((narrow_rows.to_doubles() == values));
    const Tensor ones = Tensor::from(*backend, {columns}, DType::f32, std::vector(columns, 1.0));
    (*backend)(AddBias{.x = table, .bias = ones, .residual = table, .y = narrow_rows});
    std::vector<double> doubled;
    for (const double value : values) doubled.push_back(2 * value + 1);
    BOOST_TEST((narrow_rows.to_doubles() == doubled));
    // A stride of 0 along the first axis repeats the first row.
    Steps repeated_row;
    repeated_row.along[1] = 1;
    (*backend)(Rearrange{
        .shape = shape, .x = table, .from = repeated_row, .y = {moved}, .to = row_major(shape)});
    std::vector<double> expected(values.begin(), values.begin() + columns);
    expected.insert(expected.end(), values.begin(), values.begin() + columns);
    BOOST_TEST((moved.to_doubles() == expected));

    const Tensor square = Tensor::from(*backend, {columns, columns}, DType::bf16,
                                       std::vector<double>(columns * columns, 3.0));
    const Tensor lower(*backend, {columns, columns}, DType::bf16);
    (*backend)(Triangle{.x = square, .y = {lower}});
    const std::vector<double> got = lower.to_doubles();
    for (std::int64_t i = 0; i < columns * columns; ++i) {
      const double of_triangle = i % columns <= i / columns ? 3 : 0;
      BOOST_TEST(got[static_cast<std::size_t>(i)] == of_triangle);
    }
  }
}

// The wider a head is, the more threads of a warp work on one row of its state.
BOOST_AUTO_TEST_CASE(the_delta_rule_takes_heads_of_any_width) {
  Rng rng(11, Purpose::test);
  for (const auto& [width, v_width] :
       {std::pair(40, 100), std::pair(200, 200), std::pair(300, 300)}) {
    Case c = catalog::head_case(rng, {.lengths = {3}, .width = width, .v_width = v_width});
    c.inputs["beta"] = catalog::uniforms(rng, {3, 1}, 0.1, 0.9);
    c.inputs["decay"] = catalog::uniforms(rng, {3, 1}, -0.7, 0);
    expect_reference("delta", c, DType::f32);
  }
}

BOOST_AUTO_TEST_CASE(rotations_may_overwrite_their_input) {
  Rng rng(10, Purpose::test);
  const auto backend = make_emulated_cuda_backend();
  const std::vector<double> values = catalog::normals(rng, {5, 48}).values;
  const Tensor positions = Tensor::from(*backend, {5}, std::vector<std::int32_t>{0, 3, 1, 4, 2});
  const Tensor table = rope_table(*backend, DType::f32, 5, std::vector<double>{1, 0.5, 0.25, 0.1});
  for (const bool interleaved : {false, true}) {
    const Tensor x = Tensor::from(*backend, {5, 48}, DType::f32, values), y = empty_like(x);
    Rope op{.x = x,
            .positions = positions,
            .table = table,
            .first_column = 4,
            .heads = 2,
            .width = 12,
            .dims = 8,
            .interleaved = interleaved,
            .y = y};
    (*backend)(op);
    op.y = x;
    (*backend)(op);
    BOOST_TEST((x.to_doubles() == y.to_doubles()));
    op.inverse = true;
    (*backend)(op);
    const std::vector<double> back = x.to_doubles();
    for (std::size_t i = 0; i < back.size(); ++i) BOOST_TEST(std::abs(back[i] - values[i]) < 1e-5);
  }
}

BOOST_AUTO_TEST_SUITE_END()
