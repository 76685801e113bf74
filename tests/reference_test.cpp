#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/matmul.h"
#include "core/contract/rearrange.h"
#include "core/contract/reduce.h"
#include "core/contract/rope.h"
#include "core/contract/triangle.h"
#include "tests/reference_fixture.h"
#include "tests/refusal.h"

// Compares elementwise, product, layout and index operations of the reference backend with numbers
// that were computed by PyTorch in f64 or by hand.
using namespace longhand;

BOOST_FIXTURE_TEST_SUITE(reference_test, Reference)

BOOST_AUTO_TEST_CASE(fill_and_copy_convert_types) {
  const Tensor bytes(run, {2}, DType::u8);
  run(Fill{.value = 200, .y = bytes});
  check_values(bytes, {200, 200});
  const Tensor y = blank({2}, DType::f32);
  run(Copy{.x = f64({2}, {0.1, -3}), .y = y});
  check_values(y, {static_cast<double>(0.1f), -3}, 0);
  run(Copy{.x = ints({2}, {7, -8}), .y = y});
  check_values(y, {7, -8}, 0);
}

BOOST_AUTO_TEST_CASE(scale_multiplies_by_a_number) {
  const Tensor a = f64({3}, {1, -2, 0.5});
  check_target(*this, Scale{.x = a, .alpha = -2, .y = {}}, &Scale::y, {3}, {-2, 4, -1});
}

BOOST_AUTO_TEST_CASE(binary_operations_combine_two_tensors) {
  using C = Combination;
  const Tensor a = f64({4}, {1, -2, 0.5, 0}), b = f64({4}, {4, -2, 0, infinity});
  const auto combined = [&](C f, const Values& expected) {
    check_target(*this, Combine{.f = f, .a = a, .b = b, .y = {}}, &Combine::y, {4}, expected);
  };
  combined(C::sum, {5, -4, 0.5, infinity});
  combined(C::difference, {-3, 0, 0.5, -infinity});
  combined(C::quotient, {0.25, 1, infinity, 0});
  combined(C::largest, {4, -2, 0.5, infinity});
  combined(C::smallest, {1, -2, 0, 0});
  combined(C::less, {1, 0, 0, 1});
  combined(C::less_or_equal, {1, 1, 0, 1});
  combined(C::equal, {0, 1, 0, 0});
  combined(C::kept, {1, -2, 0, 0});
  combined(C::dropped, {0, 0, 0.5, 0});
  const Tensor y = f64({2}, {3, -1});
  run(Combine{.f = C::product, .a = f64({2}, {2, 4}), .b = y, .y = y});  // in place: y is b
  check_values(y, {6, -4});
  const Tensor nan = f64({2}, {NAN, 1}), other = f64({2}, {1, NAN});
  for (const C f : {C::largest, C::smallest}) {
    run(Combine{.f = f, .a = nan, .b = other, .y = y});
    for (const double value : y.to_doubles()) BOOST_TEST(std::isnan(value));
  }
}

BOOST_AUTO_TEST_CASE(operands_are_broadcast_to_a_common_shape) {
  const Tensor column = f64({2, 1}, {10, 20}), row = f64({3}, {1, 2, 3});
  check_target(*this, Combine{.a = column, .b = row, .y = {}}, &Combine::y, {2, 3},
               {11, 12, 13, 21, 22, 23});
  check_target(*this,
               Combine{.f = Combination::difference,
                       .a = f64({2, 1, 2}, {1, 2, 3, 4}),
                       .b = f64({2, 1}, {10, 20}),
                       .y = {}},
               &Combine::y, {2, 2, 2}, {-9, -8, -19, -18, -7, -6, -17, -16});
}

BOOST_AUTO_TEST_CASE(activations_and_their_derivatives) {
  struct Row {
    Activation f;
    Values y, dx;
  };
  const std::vector<Row> rows{
      {Activation::identity, {-3, -0.5, 0.25, 2}, {1, 2, -1, 0.5}},
      {Activation::relu, {0, 0, 0.25, 2}, {0, 0, -1, 0.5}},
      {Activation::gelu,
       {-0.00404969409489031, -0.154268769362993, 0.149676581420731, 1.95449973610364},
       {-0.0119456472041839, 0.265009750687674, -0.695373354883636, 0.542615900539098}},
      {Activation::gelu_tanh,
       {-0.00363739208177299, -0.154285990174856, 0.149675350701685, 1.95459769408777},
       {-0.0115841666309696, 0.265260192930715, -0.69535409515106, 0.543049628311809}},
      {Activation::silu,
       {-0.1422776195327, -0.188770334399073, 0.14054412522145, 1.76159415595576},
       {-0.0881041060151696, 0.520077625394696, -0.623710021570198, 0.545392124392448}},
      {Activation::sigmoid,
       {0.0474258731775668, 0.377540668798145, 0.562176500885798, 0.880797077977882},
       {0.0451766597309121, 0.470007424403189, -0.246134082737598, 0.0524967927017533}},
      {Activation::tanh,
       {-0.99505475368673, -0.46211715726001, 0.244918662403709, 0.964027580075817},
       {0.00986603716544017, 1.57289546593185, -0.940014848806378, 0.0353254124265822}},
      {Activation::square, {9, 0.25, 0.0625, 4}, {-6, -2, -0.5, 2}},
  };
  const Tensor x = f64({4}, {-3, -0.5, 0.25, 2}), dy = f64({4}, {1, 2, -1, 0.5});
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(name_of(row.f)) {
      const Tensor y = blank({4});
      run(Activate{.f = row.f, .x = x, .y = y});
      check_values(y, row.y);
      check_target(*this, ActivateBackward{.f = row.f, .x = x, .dy = dy, .dx = {}},
                   &ActivateBackward::dx, {4}, row.dx);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_gate_multiplies_the_halves_of_each_row) {
  const Tensor x = f64({2, 4}, x_values), y = blank({2, 2});
  run(Gate{.f = Activation::silu, .x = x, .y = y});
  check_values(y, {0.622459331201855, -0.208781380148727, 0, -1.98068667877111});
  const Values dx{1.4799223746053,    -0.00236968315675784, 0.311229665600927, 0.139187586765818, 0,
                  -0.573820183858434, -0.255334489913005,   0.206321529038657};
  GateBackward backward{
      .f = Activation::silu, .x = x, .dy = f64({2, 2}, {1, -0.5, 2, 0.25}), .dx = {}};
  check_target(*this, backward, &GateBackward::dx, {2, 4}, dx);
  backward.dx = x;  // in place: the gradient overwrites x
  run(backward);
  check_values(x, dx);
}

BOOST_AUTO_TEST_CASE(bias_and_residual_are_optional) {
  const Tensor x = f64({2, 2}, {1, 2, 3, 4}), y = blank({2, 2});
  const Tensor bias = f64({2}, {10, 20}), residual = f64({2, 2}, {0.5, 0.25, -1, -2});
  run(AddBias{.x = x, .bias = bias, .residual = residual, .y = y});
  check_values(y, {11.5, 22.25, 12, 22});
  run(AddBias{.x = x, .bias = bias, .residual = {}, .y = y});
  check_values(y, {11, 22, 13, 24});
  run(AddBias{.x = x, .bias = {}, .residual = residual, .y = y});
  check_values(y, {1.5, 2.25, 2, 2});
}

BOOST_AUTO_TEST_CASE(matmul_transposes_either_side) {
  const Tensor a = f64({2, 3}, {1, 2, -1, 0.5, -3, 2}), at = f64({3, 2}, {1, 0.5, 2, -3, -1, 2});
  const Tensor b = f64({3, 2}, {2, -1, 0, 1.5, 1, 4}), bt = f64({2, 3}, {2, 0, 1, -1, 1.5, 4});
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Tensor c = blank({2, 2});
      run(Matmul{.a = transpose_a ? at : a,
                 .b = transpose_b ? bt : b,
                 .transpose_a = transpose_a,
                 .transpose_b = transpose_b,
                 .c = c});
      check_values(c, {1, -2, 3, 3});
    }
  }
}

BOOST_AUTO_TEST_CASE(the_epilogue_of_matmul_adds_bias_activation_residual_and_the_old_c) {
  const Tensor a = f64({2, 3}, {1, 2, -1, 0.5, -3, 2}), b = f64({3, 2}, {2, -1, 0, 1.5, 1, 4});
  const Tensor c = f64({2, 2}, {10, 20, 30, 40}), pre = blank({2, 2});
  run(Matmul{.a = a,
             .b = b,
             .alpha = 0.5,
             .bias = f64({2}, {0.1, -0.2}),
             .f = Activation::gelu,
             .pre = pre,
             .residual = f64({2, 2}, {1, 2, 3, 4}),
             .c = c,
             .beta = 2});
  check_values(pre, {0.6, -1.2, 1.6, 1.3});
  check_values(c, {21.43544812935, 41.8619163957339, 64.5123211332807, 85.1741593700387});

  const Tensor dz = f64({2, 2}, {10, 20, 30, 40});
  run(Matmul{.a = a,
             .b = b,
             .alpha = 0.5,
             .f = Activation::gelu,
             .at = f64({2, 2}, {0.3, -0.7, 1.2, -2.0}),
             .c = dz,
             .beta = 2});
  check_values(dz, {20.3661638834136, 39.9766141011337, 61.6769303936372, 79.8721522983827});
}

BOOST_AUTO_TEST_CASE(matmul_supports_batches) {
  const Tensor a = f64({2, 2, 3}, {1, 2, -1, 0.5, -3, 2, 3, 5, -1, 2, -5, 5});
  const Tensor b = f64({3, 2}, {2, -1, 0, 1.5, 1, 4}), c = blank({2, 2, 2});
  run(Matmul{.a = a, .b = b, .c = c});
  check_values(c, {1, -2, 3, 3, 5, 0.5, 9, 10.5});
  const Tensor bs = f64({2, 3, 2}, {2, -1, 0, 1.5, 1, 4, 1, -2, -1, 0.5, 0, 3});
  run(Matmul{.a = a, .b = bs, .c = c});
  check_values(c, {1, -2, 3, 3, -2, -6.5, 7, 8.5});
  const Tensor none = blank({2, 2});
  run(Matmul{.a = blank({2, 0}), .b = blank({0, 2}), .c = none});
  check_values(none, {0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(column_sums_and_row_reductions) {
  const Tensor x = f64({2, 4}, x_values);
  check_target(*this, ColumnSum{.x = x, .alpha = 2, .y = {}}, &ColumnSum::y, {4},
               {0.4, -0.3, 4, -3.3});
  const auto reduce = [&](Reduction reduction, const Tensor& of) {
    const Tensor y = blank({of.rows()});
    run(Reduce{.reduction = reduction, .x = of, .y = y});
    return y;
  };
  check_values(reduce(Reduction::sum, x), {2, -1.6});
  check_values(reduce(Reduction::largest, x), {2, 1.1});
  check_values(reduce(Reduction::smallest, x), {-1.25, -2.4});
  check_values(reduce(Reduction::square_sum, x), {6.375, 7.06});
  check_values(reduce(Reduction::nonfinite, f64({2, 2}, {infinity, NAN, 1, -infinity})), {2, 1});
  const Tensor empty = blank({1, 0});
  check_values(reduce(Reduction::sum, empty), {0});
  check_values(reduce(Reduction::largest, empty), {-infinity});
  check_values(reduce(Reduction::smallest, empty), {infinity});
  for (const Reduction r : {Reduction::sum, Reduction::largest, Reduction::smallest}) {
    BOOST_TEST(std::isnan(reduce(r, f64({1, 3}, {1, NAN, 2})).item()));
  }
}

BOOST_AUTO_TEST_CASE(rope_rotates_pairs_and_its_inverse_restores_them) {
  const std::vector<double> frequencies{1.0, 0.1};
  const Values half{-1.41335252078005, 0.728592151605854, -2.82885748174147, 4.4123863698251};
  const Values side{-1.27223251272018, -1.83886498514102, 1.68392864073146, 4.70790657648644};
  for (const bool interleaved : {false, true}) {
    const Values& turned = interleaved ? side : half;
    // There are two heads with five columns each, four of which are rotated. One more column in
    // front belongs to no head.
    const Values x_row{-7, 1, 2, 3, 4, 9, 1, 2, 3, 4, 8};
    Rope op{.x = f64({1, 11}, x_row),
            .positions = ints({1}, {3}),
            .table = rope_table(run, DType::f64, 4, frequencies),
            .first_column = 1,
            .heads = 2,
            .width = 5,
            .dims = 4,
            .interleaved = interleaved,
            .y = {}};
    check_target(*this, op, &Rope::y, {1, 11},
                 {-7, turned[0], turned[1], turned[2], turned[3], 9, turned[0], turned[1],
                  turned[2], turned[3], 8});
    op.y = op.x;  // rotates in place, then back in place
    run(op);
    op.inverse = true;
    run(op);
    check_values(op.x, x_row);
    op.positions = ints({1}, {4});
    BOOST_CHECK_THROW(run(op), Error);
  }
}

BOOST_AUTO_TEST_CASE(embedding_and_gather_read_and_add_back) {
  const Tensor table = f64({3, 2}, {1, 2, 3, 4, 5, 6}), ids = ints({4}, {2, 0, 2, 1});
  const Tensor y = blank({4, 2});
  run(Embedding{.table = table, .ids = ids, .y = y});
  check_values(y, {5, 6, 1, 2, 5, 6, 3, 4});
  check_target(*this, EmbeddingBackward{.ids = ids, .dy = f64({4, 2}, dy_values), .dtable = {}},
               &EmbeddingBackward::dtable, {4, 2}, {0.25, 2, -1, 0.7, 1.1, -0.2, 0, 0});

  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6}), index = ints({2, 2}, {2, 2, 0, 1});
  const Tensor picked = blank({2, 2});
  run(Gather{.x = x, .index = index, .y = picked});
  check_values(picked, {3, 3, 4, 5});
  check_target(*this, GatherBackward{.index = index, .dy = f64({2, 2}, {1, 0.5, -2, 7}), .dx = {}},
               &GatherBackward::dx, {2, 3}, {0, 0, 1.5, -2, 7, 0});
}

BOOST_AUTO_TEST_CASE(an_index_out_of_range_is_refused_before_anything_is_written) {
  const Tensor table = f64({3, 2}, {1, 2, 3, 4, 5, 6}), y = blank({2, 2});
  for (const std::int32_t bad : {3, -1}) {
    BOOST_CHECK_THROW(run(Embedding{.table = table, .ids = ints({2}, {0, bad}), .y = y}), Error);
    BOOST_CHECK_THROW(run(Gather{.x = table.slice(0, 2).reshape({1, 4}),
                                 .index = ints({1, 4}, {0, 1, 2, bad == 3 ? 4 : bad}),
                                 .y = y.reshape({1, 4})}),
                      Error);
  }
  check_values(y, {77, 77, 77, 77});
}

BOOST_AUTO_TEST_CASE(argmax_returns_the_first_of_equal_maxima) {
  const Tensor y(run, {3}, DType::i32);
  run(Argmax{.x = f64({3, 3}, {1, 5, 5, -2, -3, -4, -infinity, -infinity, 0}), .y = y});
  BOOST_TEST(y.to_ints() == (std::vector<std::int32_t>{1, 0, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(triangle_keeps_one_triangle) {
  const Tensor x = f64({1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto kept = [&](bool upper, std::int64_t diagonal, const Values& expected) {
    check_target(*this, Triangle{.x = x, .upper = upper, .diagonal = diagonal, .alpha = 2, .y = {}},
                 &Triangle::y, {1, 3, 3}, expected);
  };
  kept(false, 0, {2, 0, 0, 8, 10, 0, 14, 16, 18});
  kept(false, -1, {0, 0, 0, 8, 0, 0, 14, 16, 0});
  kept(true, 0, {2, 4, 6, 0, 10, 12, 0, 0, 18});
  kept(true, 1, {0, 4, 6, 0, 0, 12, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(solve_triangular_reads_only_one_triangle) {
  const Tensor a = f64({3, 3}, {2, 9, 9, 1, 4, 9, -1, 0.5, 0.5});
  const Values b_values{1, 2, 3, -1, 0.5, 4};
  const auto solved = [&](bool upper, bool transpose, bool unit, const Values& expected) {
    const Tensor b = f64({3, 2}, b_values), y = blank({3, 2});
    run(SolveTriangular{
        .a = a, .b = b, .upper = upper, .transpose = transpose, .unit = unit, .y = y});
    check_values(y, expected);
    run(SolveTriangular{// in place: y is b
                        .a = a,
                        .b = b,
                        .upper = upper,
                        .transpose = transpose,
                        .unit = unit,
                        .y = b});
    check_values(b, expected);
  };
  solved(false, false, false, {0.5, 1, 0.625, -0.5, 1.375, 10.5});
  solved(false, true, false, {0.6875, 5.625, 0.625, -1.25, 1, 8});
  solved(true, false, false, {2.75, 47.125, -1.5, -18.25, 1, 8});
  solved(true, true, false, {0.5, 1, -0.375, -2.5, -1.25, 35});
  solved(false, false, true, {1, 2, 2, -3, 0.5, 7.5});
}

BOOST_AUTO_TEST_CASE(entries_are_rearranged) {
  const Tensor x = f64({1, 2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  check_target(*this,  // copies with exchanged axes
               Rearrange{.shape = {1, 3, 2, 2},
                         .x = x,
                         .from = {.along = {12, 2, 6, 1}},
                         .y = {},
                         .to = row_major({1, 3, 2, 2})},
               &Rearrange::y, {1, 3, 2, 2}, {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
  check_target(*this,  // copies a slice
               Rearrange{.shape = {2, 2},
                         .x = f64({3, 2}, {0, 1, 2, 3, 4, 5}),
                         .from = {.first = 2, .along = {2, 1}},
                         .y = {},
                         .to = row_major({2, 2})},
               &Rearrange::y, {2, 2}, {2, 3, 4, 5});
  // Copies one number, 7, to both rows of column 1 of y: the step between the entries of y is 3,
  // and the step between the entries of x is 0.
  const Tensor y = f64({2, 3}, {0, 0, 0, 0, 0, 0});
  run(Rearrange{
      .shape = {2}, .x = f64({1}, {7}), .from = {}, .y = y, .to = {.first = 1, .along = {3}}});
  check_values(y, {0, 7, 0, 0, 7, 0});
}

BOOST_AUTO_TEST_CASE(f32_results_are_rounded_once) {
  // f32 cannot represent 2^24 + 1. A sum in f32 would lose the ones.
  const Tensor x = Tensor::from(run, {1, 5}, DType::f32, Values{16777216, 1, 1, 1, 1});
  const Tensor y = blank({1}, DType::f32);
  run(Reduce{.reduction = Reduction::sum, .x = x, .y = y});
  check_values(y, {16777220}, 0);
  const Tensor sum = Tensor::from(run, {1}, DType::f32, Values{0.25});
  run(Scale{.x = x.reshape({5}).slice(1, 1), .alpha = 0.1, .y = Target(sum, true)});
  check_values(sum, {static_cast<double>(0.35f)}, 0);
}

BOOST_AUTO_TEST_CASE(bf16_is_refused_by_name) {
  BOOST_TEST(refusal([&] { Tensor(run, {1}, DType::bf16); }) ==
             "reference backend: expected the type f64 or f32, got bf16");
}

BOOST_AUTO_TEST_SUITE_END()
