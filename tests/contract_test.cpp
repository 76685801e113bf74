#include <string>
#include "tests/check.h"

#include "core/backend.h"
#include "core/contract/combine.h"
#include "core/contract/dropout.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/loss.h"
#include "core/contract/matmul.h"
#include "core/contract/norm.h"
#include "core/contract/optimizer.h"
#include "core/contract/rearrange.h"
#include "core/contract/rope.h"
#include "core/contract/triangle.h"
#include "core/error.h"
#include "tests/refusal.h"

namespace contract_test {

// Tests the errors that every backend reports before it computes anything.
using namespace longhand;

struct Fixture {
  std::shared_ptr<Backend> owner = make_reference_backend();
  Backend& run = *owner;

  Tensor f32(const Shape& shape) const { return Tensor::zeros(run, shape, DType::f32); }
  Tensor f64(const Shape& shape) const { return Tensor::zeros(run, shape, DType::f64); }
  Tensor i32(const Shape& shape) const { return Tensor::zeros(run, shape, DType::i32); }

  template <class Op>
  void refused(const Op& op, const std::string& message) const {
    BOOST_TEST(refusal([&] { run(op); }) == message);
  }

  LayerNorm layer_norm() const {
    return {.x = f32({2, 64}),
            .gain = f32({64}),
            .bias = f32({64}),
            .y = f32({2, 64}),
            .mean = f32({2}),
            .rstd = f32({2})};
  }
};

}  // namespace contract_test

BOOST_FIXTURE_TEST_SUITE(contract_test, Fixture)

BOOST_AUTO_TEST_CASE(a_wrong_shape_type_or_backend_is_named) {
  LayerNorm op = layer_norm();
  BOOST_CHECK_NO_THROW(run(op));
  op.gain = f32({63});
  refused(op, "layer_norm: gain: expected [64] f32, got [63] f32");
  op.gain = f64({64});
  refused(op, "layer_norm: gain: expected [64] f32, got [64] f64");
  op.gain = {};
  refused(op, "layer_norm: gain: expected [64] f32, got none");
  op = layer_norm();
  op.x = {};
  refused(op, "layer_norm: x: expected a tensor, got none");
  op.x = i32({2, 64});
  refused(op, "layer_norm: x: expected a float type, got i32");

  const auto other = make_reference_backend();
  op = layer_norm();
  op.y = Tensor::zeros(*other, {2, 64}, DType::f32);
  refused(op, "layer_norm: y: expected the backend of x (reference), got another (reference)");
}

BOOST_AUTO_TEST_CASE(an_optional_argument_can_be_omitted_but_must_be_valid) {
  LayerNorm op = layer_norm();
  op.bias = {};
  BOOST_CHECK_NO_THROW(run(op));
  op.bias = f32({1, 64});
  refused(op, "layer_norm: bias: expected [64] f32, got [1, 64] f32");
}

BOOST_AUTO_TEST_CASE(outputs_share_memory_only_where_the_contract_allows_it) {
  LayerNorm op = layer_norm();
  op.y = op.x;
  refused(op, "layer_norm: y: expected memory of its own, got memory shared with x");
  op = layer_norm();
  op.rstd = op.mean;
  refused(op, "layer_norm: rstd: expected memory of its own, got memory shared with mean");

  const Tensor all = f32({3, 2});
  BOOST_CHECK_NO_THROW(run(Scale{.x = all, .alpha = 2, .y = all}));
  refused(Scale{.x = all.slice(0, 2), .alpha = 2, .y = all.slice(1, 2)},
          "scale: y: expected memory of its own, got memory shared with x");
  BOOST_CHECK_NO_THROW(run(Scale{.x = all.slice(0, 1), .alpha = 2, .y = all.slice(1, 1)}));

  const Tensor a = f32({2, 2}), b = f32({2, 2});
  BOOST_CHECK_NO_THROW(run(SolveTriangular{.a = a, .b = b, .unit = true, .y = b}));
  refused(SolveTriangular{.a = a, .b = b, .unit = true, .y = a},
          "solve_triangular: y: expected memory of its own, got memory shared with a");
}

BOOST_AUTO_TEST_CASE(elementwise_arguments_agree_in_shape_and_type) {
  refused(Combine{.a = f32({2, 3}), .b = f32({3, 2}), .y = f32({2, 3})},
          "combine: b: expected a shape that broadcasts with [2, 3], got [3, 2]");
  refused(Combine{.a = f32({2}), .b = f32({2, 1}), .y = f32({2})},
          "combine: y: expected [2, 2] f32, got [2] f32");
  refused(Combine{.a = f64({2}), .b = f32({2}), .y = f64({2})},
          "combine: b: expected [2] f64, got [2] f32");
  const Tensor row = f32({1, 3});
  refused(Combine{.a = row, .b = f32({2, 1}), .y = row},
          "combine: y: expected [2, 3] f32, got [1, 3] f32");
  refused(Gate{.x = f32({2, 3}), .y = f32({2, 1})},
          "gate: x: expected an even number of columns, got [2, 3]");
  refused(AddBias{.x = f64({2, 3}), .bias = f32({3}), .residual = {}, .y = f64({2, 3})},
          "add_bias: bias: expected [3] f64, got [3] f32");
  refused(Copy{.x = f32({2}), .y = i32({2})}, "copy: y: expected f32 or a float type, got i32");
  refused(Fill{.value = 0.5, .y = i32({2})}, "fill: value: expected a value of type i32, got 0.5");
}

BOOST_AUTO_TEST_CASE(matmul_refuses_shapes_that_do_not_match) {
  const Tensor a = f32({4, 3}), b = f32({3, 5}), c = f32({4, 5});
  BOOST_CHECK_NO_THROW(run(Matmul{.a = a, .b = b, .c = c}));
  refused(Matmul{.a = a, .b = f32({4, 5}), .c = c},
          "matmul: b: expected [3, 5] f32, got [4, 5] f32");
  refused(Matmul{.a = a, .b = f64({3, 5}), .c = c},
          "matmul: b: expected [3, 5] f32, got [3, 5] f64");
  refused(Matmul{.a = a, .b = b, .c = f32({5, 4})},
          "matmul: c: expected [4, 5] f32, got [5, 4] f32");
  refused(Matmul{.a = a, .b = b, .bias = f32({4}), .c = c},
          "matmul: bias: expected [5] f32, got [4] f32");
  refused(Matmul{.a = a, .b = f32({2, 3, 5}), .c = c},
          "matmul: b: expected one matrix, or a batch of matrices if `a` is a batch, got "
          "[2, 3, 5] for `a` of shape [4, 3]");
  refused(Matmul{.a = f32({2, 4, 3}), .b = f32({3, 3, 5}), .c = f32({2, 4, 5})},
          "matmul: b: expected [2, 3, 5] f32, got [3, 3, 5] f32");
  refused(Matmul{.a = a, .b = b, .at = f32({4, 5}), .c = c},
          "matmul: f: expected an activation, because the operand `at` requires one, got none");
  refused(Matmul{.a = a, .b = b, .residual = c, .c = c},
          "matmul: c: expected memory of its own, got memory shared with residual");
}

BOOST_AUTO_TEST_CASE(rope_heads_lie_within_the_columns) {
  Rope op{.x = f32({2, 8}),
          .positions = i32({2}),
          .table = f32({5, 4}),
          .heads = 2,
          .width = 4,
          .dims = 4,
          .y = f32({2, 8})};
  BOOST_CHECK_NO_THROW(run(op));
  op.first_column = 1;
  refused(op,
          "rope: heads: expected heads that end within the columns of x, whose shape is [2, 8], "
          "got 2 heads of 4 columns each, the first from column 1");
  op.first_column = 0;
  op.dims = 3;
  refused(op, "rope: dims: expected an even number up to 4, got 3");
  op.dims = 2;
  refused(op, "rope: table: expected [5, 2] f32, got [5, 4] f32");
}

BOOST_AUTO_TEST_CASE(indices_are_i32_and_in_range) {
  Embedding op{.table = f32({3, 2}), .ids = i32({4}), .y = f32({4, 2})};
  BOOST_CHECK_NO_THROW(run(op));
  op.ids = f32({4});
  refused(op, "embedding: ids: expected [4] i32, got [4] f32");
  op.ids = Tensor::from(run, {4}, std::vector<std::int32_t>{0, 1, 3, 0});
  refused(op, "embedding: ids: expected 0 to 2, got 3 at index 2");
  refused(Gather{.x = f32({2, 3}), .index = i32({3, 1}), .y = f32({2, 1})},
          "gather: index: expected [2, 1] i32, got [3, 1] i32");
}

BOOST_AUTO_TEST_CASE(losses_check_the_shapes_of_grouped_arguments) {
  CrossEntropy op{.logits = f32({2, 6}),
                  .targets = i32({2, 3}),
                  .weights = {},
                  .groups = 3,
                  .loss = f32({1}),
                  .hits = {},
                  .log_sum = f32({2, 3}),
                  .total = f32({1})};
  BOOST_CHECK_NO_THROW(run(op));
  op.groups = 4;
  refused(op,
          "cross_entropy: logits: expected a number of columns that is divisible by 4, the number "
          "of groups, "
          "got [2, 6]");
  op.groups = 2;
  refused(op, "cross_entropy: targets: expected [2, 2] i32, got [2, 3] i32");
}

BOOST_AUTO_TEST_CASE(triangular_matrices_must_be_square) {
  refused(Triangle{.x = f32({2, 3}), .y = f32({2, 3})},
          "triangle: x: expected square matrices, got [2, 3]");
}

BOOST_AUTO_TEST_CASE(rearrange_refuses_steps_outside_its_tensors) {
  Rearrange op{.shape = {2, 3},
               .x = f32({3, 2}),
               .from = {.along = {1, 2}},
               .y = f32({2, 3}),
               .to = row_major({2, 3})};
  BOOST_CHECK_NO_THROW(run(op));
  op.from.first = 1;
  refused(op,
          "rearrange: from: expected an offset and strides that select only entries of x, whose "
          "shape is [3, 2]");
  op.from = {.along = {0, 0}};
  BOOST_CHECK_NO_THROW(run(op));
  op.to = {.along = {2, 1}};
  refused(op, "rearrange: to: expected strides that select each entry of y at most once");
  op.to = {.along = {4, 1}};
  refused(op,
          "rearrange: to: expected an offset and strides that select only entries of y, whose "
          "shape is [2, 3]");
  op.to = row_major({2, 3});
  op.y = f64({2, 3});
  refused(
      op,
      "rearrange: y: expected f64 if x is f64, otherwise f32 or bf16, got f64 for x of type f32");
  op.y = op.x;
  refused(op, "rearrange: y: expected memory of its own, got memory shared with x");
}

BOOST_AUTO_TEST_CASE(adam_names_the_wrong_entry_of_the_list) {
  Adam op{.parameters = {f32({2}), f32({3})},
          .gradients = {f32({2}), f32({2})},
          .m = {f32({2}), f32({3})},
          .v = {f32({2}), f32({3})},
          .decay = {0, 0},
          .now = f32({3})};
  refused(op, "adam: gradients[1]: expected [3] f32, got [2] f32");
  op.gradients[1] = f32({3});
  BOOST_CHECK_NO_THROW(run(op));
  op.decay = {0};
  refused(op, "adam: decay: expected 2 entries, one for each parameter, got 1");
  op.decay = {0, 0};
  op.now = f32({2});
  refused(op, "adam: now: expected [3] f32, got [2] f32");
  BOOST_CHECK_THROW(adam_now(1e-3, 0), Error);
}

BOOST_AUTO_TEST_CASE(sgd_names_the_wrong_entry_of_the_list) {
  Sgd op{.parameters = {f32({2}), f32({3})},
         .gradients = {f32({2}), f32({3})},
         .velocities = {f32({2}), f32({2})},
         .decay = {0, 0},
         .rate = f32({1})};
  refused(op, "sgd: velocities[1]: expected [3] f32, got [2] f32");
  op.velocities[1] = f32({3});
  BOOST_CHECK_NO_THROW(run(op));
  op.momentum = 1;
  refused(op, "sgd: momentum: expected 0 <= momentum < 1, got 1");
}

BOOST_AUTO_TEST_CASE(a_dropout_rate_of_one_is_refused) {
  const Tensor step = i32({1}), x = f32({2});
  Dropout op{.x = x, .rate = 0.5, .step = step, .y = f32({2})};
  BOOST_CHECK_NO_THROW(run(op));
  op.rate = 1;
  refused(op, "dropout: rate: expected 0 <= rate < 1, got 1");
  op.rate = 0.5;
  op.step = f32({1});
  refused(op, "dropout: step: expected [1] i32, got [1] f32");
}

BOOST_AUTO_TEST_CASE(backends_are_created_by_name) {
  BOOST_TEST(make_backend("reference")->name() == "reference");
  BOOST_TEST(refusal([] { make_backend("abacus"); }) ==
             "backend: expected reference, cpu or cuda, got abacus");
}

BOOST_AUTO_TEST_SUITE_END()
