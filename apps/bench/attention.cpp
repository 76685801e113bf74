#include <algorithm>
#include <array>
#include <cmath>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "core/contract/attention.h"
#include "core/contract/chacal.h"
#include "core/contract/delta.h"
#include "core/contract/deltaformer.h"
#include "core/contract/elementwise.h"
#include "core/contract/fal.h"

namespace longhand::app::attention_benchmark {
namespace {

/// A batch of `sequences` sequences whose lengths are spread evenly from `shortest` to `longest`.
struct Shapes {
  std::int64_t sequences, heads, shortest, longest, width;

  std::vector<std::int32_t> lengths() const {
    std::vector<std::int32_t> all;
    for (std::int64_t s = 0; s < sequences; ++s) {
      // 7919 is prime. Every length is therefore used before one repeats, unless the number of
      // lengths is a multiple of 7919.
      const std::int64_t step = s * 7919 % (longest - shortest + 1);
      all.push_back(static_cast<std::int32_t>(shortest + step));
    }
    return all;
  }
};

/// The default shapes, in order: narrow heads, many short sequences, a language model, one very
/// wide head, batches of the sorting task with sequences of many lengths, one long document.
constexpr std::array shapes{Shapes{32, 4, 1024, 1024, 16}, Shapes{64, 8, 128, 128, 64},
                            Shapes{8, 12, 1024, 1024, 64}, Shapes{4, 1, 1024, 1024, 768},
                            Shapes{1024, 16, 5, 41, 64},   Shapes{1, 4, 16384, 16384, 64}};

/// An attention mechanism to be timed: its name, and functions that run its forward and its
/// backward pass on tensors of one shape.
struct Mechanism {
  const char* name;
  std::function<void()> forward, backward;
};

struct Tensors {
  Tensors(Backend& b, const Shapes& s, DType type, std::uint64_t seed) : segments(b, s.lengths()) {
    const Shape all{segments.tokens(), s.heads * s.width};
    const auto heads = [&](const Tensor& x) { return Heads{x, 0, s.heads, s.width}; };
    q = heads(random_tensor(b, all, type, seed));
    k = heads(random_tensor(b, all, type, seed + 1));
    v = heads(random_tensor(b, all, type, seed + 2));
    dy = heads(random_tensor(b, all, type, seed + 3));
    y = heads(empty_like(q.data));
    mean = heads(empty_like(q.data));
    dq = heads(empty_like(q.data));
    dk = heads(empty_like(q.data));
    dv = heads(empty_like(q.data));
    // `positive` has no negative entry, and `against` has no positive entry. If they are used as
    // queries and keys, no product of a query and a key is positive. A FAL head searches for a key
    // with a positive product, so it reads every key and finds none.
    against = heads(empty_like(q.data));
    b(Activate{Activation::relu, q.data, against.data});
    positive = against;
    against = heads(empty_like(q.data));
    b(Scale{.x = positive.data, .alpha = -1, .y = against.data});
    log_sum = Tensor(b, {segments.tokens(), s.heads}, DType::f32);
    match = Tensor(b, {segments.tokens(), s.heads}, DType::i32);
    gamma = Tensor::from(b, {1}, DType::f32, std::vector{0.9});
    dgamma = Tensor(b, {1}, DType::f32);
    scores = {q, k, segments, segments, 1 / std::sqrt(static_cast<double>(s.width))};
    const Shape by_head{segments.tokens(), s.heads};
    more.multiplier = random_tensor(b, by_head, DType::f32, seed + 4);
    more.decay = random_tensor(b, by_head, DType::f32, seed + 5);
    sink = random_tensor(b, {s.heads}, DType::f32, seed + 6);
    pull = Tensor(b, by_head, DType::f32);
    b(Fill{.value = -0.1, .y = pull});
    dpull = empty_like(pull);
    beta = empty_like(pull);
    b(Fill{.value = 1, .y = beta});
    decay = empty_like(pull);
    b(Fill{.value = -0.05, .y = decay});
    error = Tensor(b, {segments.tokens(), s.heads * s.width}, DType::f32);
    dbeta = empty_like(pull);
    ddecay = empty_like(pull);
  }

  /// DeltaFormer in two steps: the operation DeltaFormer computes new values from the keys and
  /// values, and softmax attention reads the new values.
  Mechanism deltaformer(Backend& b) const {
    const auto more_of = [](const Heads& x) {
      return Heads{empty_like(x.data), 0, x.heads, x.width};
    };
    const Heads left = more_of(v), read = more_of(v), dleft = more_of(v), dk_too = more_of(k),
                dk_asked = more_of(k);
    const Tensor gain = empty_like(pull), dgain = empty_like(pull), logs = empty_like(log_sum);
    b(Fill{.value = -0.5, .y = gain});
    return {"deltaformer",
            [=, this, &b] {
              b(DeltaFormer{.q = k,
                            .k = k,
                            .v = v,
                            .queries = segments,
                            .keys = segments,
                            .scale = scores.scale,
                            .gain = gain,
                            .y = left,
                            .log_denominator = logs,
                            .read = read});
              b(Attention{scores, SoftmaxRule{{}, log_sum}, left, y});
            },
            [=, this, &b] {
              b(AttentionBackward{
                  scores, SoftmaxGradient{{}, y, log_sum}, left, dy, {dq}, {dk}, {dleft}});
              b(DeltaFormerBackward{.q = k,
                                    .k = k,
                                    .queries = segments,
                                    .keys = segments,
                                    .scale = scores.scale,
                                    .gain = gain,
                                    .log_denominator = logs,
                                    .y = left,
                                    .read = read,
                                    .dy = dleft,
                                    .dq = {dk_asked},
                                    .dk = {dk_too},
                                    .dv = {dv},
                                    .dgain = {dgain}});
            }};
  }

  std::vector<Mechanism> mechanisms(Backend& b) const {
    const auto fal = [this, &b](const char* name, const Heads& query, const Heads& key) {
      return Mechanism{
          name,
          [=, this, &b] {
            b(Fal{query, key, v, segments, segments, y, match});
          },
          [=, this, &b] {
            b(FalBackward{query, key, v, segments, segments, match, dy, {dq}, {dk}, {dv}});
          }};
    };
    const auto attend = [this, &b](const char* name, const Scores& own, const AttentionRule& rule,
                                   const AttentionGradient& gradient,
                                   const ScoreTargets& targets = {}) {
      return Mechanism{name,
                       [=, this, &b] {
                         b(Attention{own, rule, v, y});
                       },
                       [=, this, &b] {
                         b(AttentionBackward{own, gradient, v, dy, {dq}, {dk}, {dv}, targets});
                       }};
    };
    const SoftmaxRule softmax{.log_denominator = log_sum};
    const SoftmaxGradient softmax_gradient{.y = y, .log_denominator = log_sum};
    const auto scored = [&](const char* name, Tensor Scores::*part,
                            Target ScoreTargets::*gradient) {
      Scores own = scores;
      own.*part = more.*part;
      ScoreTargets wanted;
      wanted.*gradient = empty_like(more.*part);
      return attend(name, own, softmax, softmax_gradient, wanted);
    };
    // The queries are relu(q) and the keys -relu(q) of standard normal values q, so no score is
    // positive. The mean of relu(q) is 0.4, so the mean score is about -0.16 times the width of a
    // head. At such scores stick-breaking attention assigns little weight to every key.
    Scores opposed = scores;
    opposed.q = positive;
    opposed.k = against;
    opposed.scale = 1;
    return {attend("softmax", scores, softmax, softmax_gradient),
            {"chacal",
             [this, &b] {
               b(Chacal{scores, {}, v, gamma, {}, y, log_sum});
             },
             [this, &b] {
               b(ChacalBackward{
                   scores, {}, v, y, dy, gamma, log_sum, {dq}, {dk}, {dv}, {}, {}, dgamma});
             }},
            deltaformer(b),
            scored("softmax, tau", &Scores::multiplier, &ScoreTargets::multiplier),
            scored("softmax, shift", &Scores::decay, &ScoreTargets::decay),
            attend("softmax, sink", scores, SoftmaxRule{sink, log_sum},
                   SoftmaxGradient{sink, y, log_sum, empty_like(sink)}),
            attend("stick", scores, StickBreakingRule{}, StickBreakingGradient{y}),
            attend("stick, nothing taken", opposed, StickBreakingRule{}, StickBreakingGradient{y}),
            attend("tra", scores, TraRule{pull, log_sum}, TraGradient{pull, y, {}, log_sum, dpull}),
            attend("entmax", scores, EntmaxRule{log_sum, mean}, EntmaxGradient{log_sum, mean}),
            attend("sigmoid", scores, SigmoidRule{}, SigmoidGradient{}),
            fal("fal", q, k),
            fal("fal without a match", positive, against),
            {"delta",
             [this, &b] {
               b(Delta{q, k, v, segments, scores.scale, beta, decay, {}, y, error});
             },
             [this, &b] {
               b(DeltaBackward{q,
                               k,
                               dy,
                               segments,
                               scores.scale,
                               beta,
                               decay,
                               error,
                               {dq},
                               {dk},
                               {dv},
                               dbeta,
                               ddecay});
             }}};
  }

  Segments segments;
  Heads q, k, v, dy, y, mean, dq, dk, dv, positive, against;
  Tensor sink, log_sum, match, gamma, dgamma, pull, dpull, beta, decay, error, dbeta, ddecay;
  Scores scores, more;
};

void run(const Arguments& arguments, Backend& backend, Report& report) {
  const double budget = budget_from(arguments);
  const DType type = type_from(arguments);
  std::vector<Shapes> wanted(shapes.begin(), shapes.end());
  if (arguments.given("size")) {
    wanted.clear();
    for (const std::string& words : arguments.words("size")) {
      const auto n = parse_sizes(words, 5);
      if (n[2] > n[3]) wrong_usage("--size: expected SHORTEST <= LONGEST, got '", words, "'");
      if (n[3] >> 31 != 0) wrong_usage("--size: expected LONGEST below 2^31, got '", words, "'");
      wanted.push_back({n[0], n[1], n[2], n[3], n[4]});
    }
  }
  std::vector<std::string> chosen;
  if (arguments.given("mechanism")) chosen = arguments.words("mechanism");
  report.set("math", name_of(backend.options().math));
  report.set("dtype", name_of(type));
  for (const Shapes& s : wanted) {
    const Tensors tensors(backend, s, type, seed_from(arguments));
    double pairs = 0;
    for (const std::int32_t n : s.lengths()) pairs += 0.5 * n * (n + 1.0);
    double softmax = 0;
    const std::vector<Mechanism> all = tensors.mechanisms(backend);
    for (const std::string& name : chosen) {
      if (std::ranges::find(all, name, &Mechanism::name) == all.end()) {
        wrong_usage("--mechanism: there is no mechanism '", name, "'");
      }
    }
    for (const Mechanism& m : all) {
      // The first mechanism, softmax, is always timed, because the column "of softmax" contains
      // the times divided by the time of softmax.
      if (!chosen.empty() && &m != &all.front() &&
          std::ranges::find(chosen, m.name) == chosen.end()) {
        continue;
      }
      backend.memory().drop_cached();
      backend.memory().reset_peak();
      const std::size_t before = backend.memory().use().live;
      const Timing forward = measure(backend, budget / 2, m.forward);
      const Timing backward = measure(backend, budget, m.backward);
      const double both = forward.median + backward.median;
      const double least = forward.least + backward.least;
      if (softmax == 0) softmax = least;
      report.add({{"mechanism", m.name},
                  {"sequences", s.sequences},
                  {"heads", s.heads},
                  {"shortest", s.shortest},
                  {"longest", s.longest},
                  {"width", s.width},
                  {"forward_ms", 1e3 * forward.median},
                  {"backward_ms", 1e3 * backward.median},
                  {"both_ms", 1e3 * both},
                  {"best_ms", 1e3 * least},
                  {"gflops", 14 * pairs * static_cast<double>(s.heads * s.width) / least / 1e9},
                  {"of_softmax", least / softmax},
                  {"scratch_bytes", backend.memory().use().peak - before}});
    }
  }
}

const RegisterBenchmark benchmark{
    {.name = "attention",
     .summary = "softmax and other attention, ChaCAL, FAL and the delta rule, forward and backward",
     .sizes = "SEQUENCES,HEADS,SHORTEST,LONGEST,WIDTH",
     .columns = {{"mechanism", "mechanism"},
                 {"sequences", "sequences"},
                 {"heads", "heads"},
                 {"longest", "longest"},
                 {"width", "width"},
                 {"forward_ms", "forward ms", "%.2f"},
                 {"backward_ms", "backward ms", "%.2f"},
                 {"best_ms", "best ms", "%.2f"},
                 {"gflops", "GFLOP/s", "%.1f"},
                 {"of_softmax", "of softmax", "%.2f"},
                 {"scratch_bytes", "scratch bytes", "%.0f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::attention_benchmark
