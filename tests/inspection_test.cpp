#include "apps/run/inspection.h"

#include <cmath>
#include <vector>
#include "tests/check.h"

#include "tasks/text_vocabulary.h"

BOOST_AUTO_TEST_SUITE(inspection_test)

using namespace longhand;

// look_inside() returns the attention weights that `longhand inspect` draws. Multiplied by the
// values v, they must give the outputs of the heads, also with a window, a temperature and another
// scale of the scores.
BOOST_AUTO_TEST_CASE(drawn_weights_reproduce_the_outputs_of_the_heads) {
  const auto backend = make_reference_backend();
  constexpr std::int64_t width = 12, n = 7, window = 3;
  nn::Decoder model(
      *backend,
      {.vocabulary = 5,
       .width = width,
       .layers = 2,
       .mixers = nn::parse_layers(
           "softmax:2{score_scale=0.7,window=3,temper=position,beta=1.6},fal:1", width),
       .inner = 8,
       .deviation = 0.8},
      3, {DType::f64});
  const std::vector<std::int32_t> tokens{0, 3, 1, 4, 4, 2, 0};
  std::map<std::string, std::vector<double>> seen;
  model.watch = [&](const std::string& name, const Tensor& x) {
    if (is_float(x.dtype())) seen[name] = x.to_doubles();
  };
  const nn::Input input = nn::make_input(*backend, tokens);
  model.features(input);
  model.watch = {};

  const auto views = app::look_inside(model, input);
  BOOST_TEST(views.size() == 6);
  double worst = 0, spread = 0;
  for (const app::HeadView& view : views) {
    if (view.weights.empty()) continue;
    const std::string layer = "blocks." + std::to_string(view.layer) + ".mixing.";
    const auto& qkv = seen.at(layer + "projection");
    const auto& heads = seen.at(layer + "heads");
    // A row of the projection contains q and k of the two softmax heads, and then their v.
    constexpr std::int64_t each = width / 3, values = 2 * 2 * each;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double p = view.weights[static_cast<std::size_t>(i * n + j)];
        const bool visible = j <= i && j > i - window;
        BOOST_TEST((p > 0) == visible);
        if (visible) {
          spread =
              std::max(spread, std::abs(p - 1.0 / static_cast<double>(std::min(i + 1, window))));
        }
      }
      for (std::int64_t c = view.head * each; c < (view.head + 1) * each; ++c) {
        double y = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          y += view.weights[static_cast<std::size_t>(i * n + j)] *
               qkv[static_cast<std::size_t>(j * 3 * width + values + c)];
        }
        worst = std::max(worst, std::abs(y - heads[static_cast<std::size_t>(i * width + c)]));
      }
    }
  }
  BOOST_TEST(worst < 1e-12);
  // The weights must not be uniform: the temperature would have no effect on uniform weights.
  BOOST_TEST(spread > 0.1);
}

// Each kind of mixer has two heads with different weights, so the test fails if a head is drawn
// with the parameters of the other head.
BOOST_AUTO_TEST_CASE(drawn_weights_of_every_kind_reproduce_the_outputs_of_both_heads) {
  const auto backend = make_reference_backend();
  constexpr std::int64_t width = 12, each = width / 2, values = 2 * width;
  const std::vector<std::int32_t> tokens{0, 3, 1, 4, 4, 2, 0};
  const auto n = std::ssize(tokens);
  for (const char* kind :
       {"softmax:2", "ssmax:2", "fox:2", "sink:2", "alibi:2", "stick:2", "stick:2{forgets=1}",
        "entmax:2", "entmax:2{forgets=1}", "tra:2{head_norm=none}", "sigmoid:2"}) {
    nn::Decoder model(*backend,
                      {.vocabulary = 5,
                       .width = width,
                       .layers = 1,
                       .mixers = nn::parse_layers(kind, width),
                       .inner = 8,
                       .deviation = 0.8},
                      3, {DType::f64});
    std::map<std::string, std::vector<double>> seen;
    model.watch = [&](const std::string& name, const Tensor& x) {
      if (is_float(x.dtype())) seen[name] = x.to_doubles();
    };
    const nn::Input input = nn::make_input(*backend, tokens);
    model.features(input);
    model.watch = {};
    const auto& projection = seen.at("blocks.0.mixing.projection");
    const auto& heads = seen.at("blocks.0.mixing.heads");
    const std::int64_t columns = std::ssize(projection) / n;

    const auto views = app::look_inside(model, input);
    BOOST_TEST_REQUIRE(views.size() == 2u, kind);
    double worst = 0, difference = 0;
    for (const app::HeadView& view : views) {
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t c = view.head * each; c < (view.head + 1) * each; ++c) {
          double y = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            y += view.weights[static_cast<std::size_t>(i * n + j)] *
                 projection[static_cast<std::size_t>(j * columns + values + c)];
          }
          worst = std::max(worst, std::abs(y - heads[static_cast<std::size_t>(i * width + c)]));
        }
      }
    }
    for (std::size_t i = 0; i < views[0].weights.size(); ++i) {
      difference = std::max(difference, std::abs(views[0].weights[i] - views[1].weights[i]));
    }
    BOOST_TEST(worst < 1e-12, kind << ": " << worst);
    BOOST_TEST(difference > 1e-3, kind << ": both heads have the same weights");
  }
}

BOOST_AUTO_TEST_CASE(token_labels_are_visible) {
  const tasks::ByteVocabulary bytes;
  const auto label = [&](char c) { return app::token_label(bytes, static_cast<unsigned char>(c)); };
  BOOST_TEST(label('a') == "a");
  BOOST_TEST(label(' ') == "\u00b7");
  BOOST_TEST(label('\n') == "\u21b5");
  BOOST_TEST(label('\t') == "\u21e5");
  BOOST_TEST(label('\x01') == "\\x01");
  BOOST_TEST(label('\xff') == "\\xff");
  BOOST_TEST(app::token_label(tasks::WordVocabulary({" a\nb"}), 0) == "\u00b7a\u21b5b");
  /// A vocabulary whose tokens have no text. A model may have more tokens than its tokenizer, and
  /// the additional ones have no text.
  struct Silent final : tasks::Vocabulary {
    std::int32_t size() const override { return 9; }
    std::string text(std::int32_t) const override { return {}; }
    std::optional<std::int32_t> find(std::string_view) const override { return {}; }
    std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  };
  BOOST_TEST(app::token_label(Silent(), 7) == "#7");
}

BOOST_AUTO_TEST_SUITE_END()
