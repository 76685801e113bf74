#include "core/contract/dropout.h"
#include "core/contract/elementwise.h"
#include "core/contract/loss.h"
#include "core/contract/norm.h"
#include "core/contract/optimizer.h"
#include "core/contract/softmax.h"
#include "tests/reference_fixture.h"

// Compares norms, softmax, losses and optimizers of the reference backend with numbers that were
// computed by PyTorch in f64 or by hand.
using namespace longhand;

BOOST_FIXTURE_TEST_SUITE(reference_rows_test, Reference)

BOOST_AUTO_TEST_CASE(layer_norm_forward_and_backward) {
  const Tensor x = f64({2, 4}, x_values), gain = f64({4}, {1, 0.5, -2, 1.5});
  const Tensor y = blank({2, 4}), mean = blank({2}), rstd = blank({2});
  run(LayerNorm{.x = x,
                .gain = gain,
                .bias = f64({4}, {0.1, 0.2, 0.3, 0.4}),
                .epsilon = 1e-3,
                .y = y,
                .mean = mean,
                .rstd = rstd});
  check_values(y, {0.1, -0.554548702331645, -2.28702412227993, 0.723378015284991, 0.178909125342171,
                   0.791818440066285, -0.33127300273737, -1.96727376026514});
  check_values(mean, {0.5, -0.4});
  check_values(rstd, {0.862341374093309, 0.789091253421713});
  const LayerNormBackward backward{.x = x,
                                   .gain = gain,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .dy = f64({2, 4}, dy_values),
                                   .dx = {},
                                   .dgain = {},
                                   .dbias = {}};
  check_target(*this, backward, &LayerNormBackward::dx, {2, 4},
               {0.161689007642495, -0.793495543300002, -1.23703062493244, 1.86883716058995,
                -0.559009244270995, -0.336407879163457, 0.979509880609499, -0.0840927571750474});
  check_target(*this, backward, &LayerNormBackward::dgain, {4},
               {0.00789091253421712, 1.10963976637142, 0.00774151391630579, -0.673557067743743});
  check_target(*this, backward, &LayerNormBackward::dbias, {4}, {1.1, -0.2, -0.75, 2.7});
}

BOOST_AUTO_TEST_CASE(rms_norm_forward_and_backward) {
  const Tensor x = f64({2, 4}, x_values), gain = f64({4}, {1, 0.5, -2, 1.5});
  const Tensor y = blank({2, 4}), rstd = blank({2});
  run(RmsNorm{.x = x, .gain = gain, .offset = 1, .epsilon = 1e-3, .y = y, .rstd = rstd});
  check_values(y, {0.791869643646358, -1.48475558183692, -1.58373928729272, 1.48475558183692,
                   -0.451498072671716, 1.24161969984722, 0, -4.51498072671716});
  check_values(rstd, {0.791869643646358, 0.752496787786193});
  const RmsNormBackward backward{.x = x,
                                 .gain = gain,
                                 .rstd = rstd,
                                 .dy = f64({2, 4}, dy_values),
                                 .offset = 1,
                                 .dx = {},
                                 .dgain = {}};
  check_target(*this, backward, &RmsNormBackward::dx, {2, 4},
               {1.26175905713003, 0.211048342671934, -1.48588833156231, 3.47637787298777,
                0.0301787004501456, 0.779799297229795, 0.752496787786193, 0.354304121769094});
  check_target(*this, backward, &RmsNormBackward::dgain, {4},
               {0.373359918189593, 0.743242467248417, 0.395934821823179, -0.0763901380112677});
}

BOOST_AUTO_TEST_CASE(softmax_forward_and_backward) {
  const Tensor x = f64({2, 4}, x_values), y = blank({2, 4});
  run(Softmax{.x = x, .y = y});
  check_values(y, {0.144102841299985, 0.025041318995112, 0.645824128858803, 0.1850317108461,
                   0.153197651625599, 0.621247111792811, 0.206795199346775, 0.0187600372348155});
  check_target(*this, SoftmaxBackward{.y = y, .dy = f64({2, 4}, dy_values), .dx = {}},
               &SoftmaxBackward::dx, {2, 4},
               {0.0485480115236028, -0.0291255990835339, -0.266791004012125, 0.247368591572056,
                0.0140894768876724, 0.18138506856631, -0.208455914810489, 0.0129813693565066});
}

BOOST_AUTO_TEST_CASE(causal_softmax_ignores_entries_after_the_diagonal) {
  const Tensor y = blank({1, 2, 3});
  run(Softmax{.x = f64({1, 2, 3}, {1, 2, 3, 0, -1, 5}), .causal = true, .y = y});
  check_values(y, {0.268941421369995, 0.731058578630005, 0, 0.00667641251337645,
                   0.00245611490445095, 0.990867472582173});
  const Tensor tall = blank({3, 1});  // more rows than columns: the first rows see no column
  run(Softmax{.x = f64({3, 1}, {1, 2, 3}), .causal = true, .y = tall});
  check_values(tall, {0, 0, 1});
}

BOOST_AUTO_TEST_CASE(softmax_handles_huge_values_nan_and_masked_rows) {
  const Tensor y = blank({2, 2});
  run(Softmax{.x = f64({2, 2}, {1e4, 1e4, -infinity, -infinity}), .y = y});
  check_values(y, {0.5, 0.5, 0, 0});
  run(Softmax{.x = f64({2, 2}, {NAN, NAN, 0, NAN}), .y = y});
  for (const double value : y.to_doubles()) BOOST_TEST(std::isnan(value));
}

BOOST_AUTO_TEST_CASE(cross_entropy_forward_and_backward) {
  const Tensor logits = f64({2, 6}, {1, 2, 0.5, -1, 0, 3, 0.2, 0.1, 0.3, 4, 4, -2});
  const Tensor targets = ints({2, 2}, {1, 0, -1, 0}), weights = f64({2, 2}, {1, 0.5, 3, 2});
  const Tensor loss = blank({1}), hits = blank({1}), log_sum = blank({2, 2}), total = blank({1});
  CrossEntropy op{.logits = logits,
                  .targets = targets,
                  .weights = {},
                  .groups = 2,
                  .loss = loss,
                  .hits = {},
                  .log_sum = log_sum,
                  .total = total};
  run(op);
  check_values(loss, {1.74154615904037});
  check_values(total, {3});
  op.weights = weights;
  op.hits = hits;
  run(op);
  check_values(loss, {1.11030923271375});
  check_values(hits, {3 / 3.5});
  check_values(log_sum, {2.46436878410795, 3.06588390375743, 1.30194284822924, 4.69438578925573});
  check_values(total, {3.5});

  CrossEntropyBackward backward{.logits = logits,
                                .targets = targets,
                                .weights = weights,
                                .groups = 2,
                                .log_sum = log_sum,
                                .total = total,
                                .dloss = f64({1}, {3}),
                                .dlogits = {}};
  const Values dlogits{0.198191912247556,
                       -0.318401383532775,
                       0.120209471285219,
                       -0.421222360480491,
                       0.0199768382477031,
                       0.401245522232788,
                       0,
                       0,
                       0,
                       -0.858203864517117,
                       0.856081849768598,
                       0.00212201474851847};
  check_target(*this, backward, &CrossEntropyBackward::dlogits, {2, 6}, dlogits);
  backward.dlogits = logits;  // the gradient overwrites the logits
  run(backward);
  check_values(logits, dlogits);
}

BOOST_AUTO_TEST_CASE(cross_entropy_of_no_targets_is_zero_and_targets_out_of_range_are_refused) {
  const Tensor logits = f64({1, 2}, {NAN, 1}), loss = blank({1}), total = blank({1});
  const Tensor log_sum = blank({1, 1}), dlogits = blank({1, 2});
  CrossEntropy op{.logits = logits,
                  .targets = ints({1, 1}, {-1}),
                  .weights = {},
                  .loss = loss,
                  .hits = {},
                  .log_sum = log_sum,
                  .total = total};
  run(op);
  check_values(loss, {0});
  run(CrossEntropyBackward{.logits = logits,
                           .targets = op.targets,
                           .weights = {},
                           .log_sum = log_sum,
                           .total = total,
                           .dloss = f64({1}, {1}),
                           .dlogits = dlogits});
  check_values(dlogits, {0, 0});
  op.targets = ints({1, 1}, {2});
  BOOST_CHECK_THROW(run(op), Error);
}

BOOST_AUTO_TEST_CASE(binary_cross_entropy_forward_and_backward) {
  const Tensor logits = f64({4}, {2, -1, 50, -800}), targets = f64({4}, {1, 0.25, 0, 0});
  const Tensor weights = f64({4}, {1, 2, 0.5, 1}), loss = blank({1}), total = blank({1});
  run(BinaryCrossEntropy{
      .logits = logits, .targets = targets, .weights = weights, .loss = loss, .total = total});
  check_values(loss, {5.83410030801765});
  check_values(total, {4.5});
  check_target(*this,
               BinaryCrossEntropyBackward{.logits = logits,
                                          .targets = targets,
                                          .weights = weights,
                                          .total = total,
                                          .dloss = f64({1}, {2}),
                                          .dlogits = {}},
               &BinaryCrossEntropyBackward::dlogits, {4},
               {-0.0529790764542745, 0.0168368189955512, 0.222222222222222, 0});
}

BOOST_AUTO_TEST_CASE(global_norm_clips_only_larger_norms) {
  const Tensor a = f64({2}, {3, 0}), b = f64({1, 1}, {-4}), norm = blank({1}), factor = blank({1});
  const auto clip = [&](double largest, double expected) {
    run(Fill{.value = 1, .y = factor});
    const Tensor squares = blank({2});
    run(SquareSums{.tensors = {a, b}, .sums = {squares.slice(0, 1), squares.slice(1, 1)}});
    check_values(squares, {9, 16});
    run(GlobalNorm{.squares = squares, .largest = largest, .norm = norm, .factor = factor});
    check_values(norm, {5});
    check_values(factor, {expected});
  };
  clip(0, 1);
  clip(1, 0.2);
  clip(6, 1);
}

BOOST_AUTO_TEST_CASE(adam_decays_weights_separately_or_through_the_gradient) {
  const auto two_steps = [&](bool decoupled, const Values& w_after, const Values& m_after,
                             const Values& v_after) {
    const Tensor w = f64({3}, {1, -2, 0.5}), m = f64({3}, {0, 0, 0}), v = f64({3}, {0, 0, 0});
    Adam op{.parameters = {w},
            .gradients = {},
            .m = {m},
            .v = {v},
            .decay = {0.1},
            .now = {},
            .beta1 = 0.9,
            .beta2 = 0.99,
            .epsilon = 1e-6,
            .decoupled = decoupled,
            .factor = f64({1}, {0.5})};
    const auto step = [&](std::int64_t number, const Values& gradient) {
      const auto now = adam_now(0.01, number, op.beta1, op.beta2);
      op.now = f64({3}, {now.begin(), now.end()});
      op.gradients = {f64({3}, gradient)};
      run(op);
    };
    step(1, {0.3, -1, 2});
    step(2, {0.1, 0.5, -4});
    check_values(w, w_after);
    check_values(m, m_after);
    check_values(v, v_after);
  };
  two_steps(true, {0.979284690198019, -1.98334503244638, 0.492666584814512}, {0.0185, -0.02, -0.11},
            {0.00024775, 0.0031, 0.0499});
  two_steps(false, {0.980423548943941, -1.98384436594119, 0.493374954898799},
            {0.0374000003999984, -0.0579000001428569, -0.100599999904762},
            {0.000840760011919953, 0.00487700999854286, 0.0489787599628382});
}

BOOST_AUTO_TEST_CASE(sgd_adds_the_gradient_to_the_velocity) {
  const Tensor w = f64({2}, {1, -2}), u = f64({2}, {0.5, 0});
  Sgd op{.parameters = {w},
         .gradients = {f64({2}, {0.25, 4})},
         .velocities = {u},
         .decay = {0.1},
         .rate = f64({1}, {0.01}),
         .momentum = 0.8,
         .factor = f64({1}, {0.5})};
  run(op);  // new velocity = 0.8 velocity + 0.5 gradient + 0.1 parameter
  check_values(u, {0.625, 1.8});
  check_values(w, {0.99375, -2.018});
  op.factor = f64({1}, {0});
  run(op);
  check_values(u, {0.625, 1.8});
  check_values(w, {0.99375, -2.018});
}

BOOST_AUTO_TEST_CASE(dropout_uses_the_random_stream_of_its_name) {
  const Tensor x = f64({11}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), y = blank({11});
  const std::uint64_t seed = 0x123456789abcdef0;
  run(Dropout{.x = x,
              .rate = 0.75,
              .seed = seed,
              .index = 9,
              .step = Tensor::from(x.backend(), {1}, std::array{77}),
              .y = y});
  Rng rng(seed, Purpose::dropout, 77, 9);
  Values expected;
  for (int i = 1; i <= 11; ++i) {
    const bool dropped = rng.next() < 3u << 30;  // the threshold is rate * 2^32 for the rate 0.75
    expected.push_back(dropped ? 0 : 4 * i);
  }
  check_values(y, expected);
}

BOOST_AUTO_TEST_SUITE_END()
