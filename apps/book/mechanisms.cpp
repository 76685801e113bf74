#include "apps/book/mechanisms.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "autograd/catalog/catalog.h"
#include "core/backend.h"
#include "core/error.h"

namespace longhand::app::book {
namespace {

using catalog::Case;
using catalog::HostTensor;

constexpr std::int64_t tokens = 12, width = 4;
constexpr std::uint64_t example_seed = 5;

struct Kind {
  Mechanism facts;
  std::string_view operation;
  std::function<void(Case&)> edit;
};

HostTensor filled(const Shape& shape, const std::function<double(std::int64_t)>& value) {
  HostTensor tensor{shape, {}};
  for (std::int64_t i = 0; i < shape[0]; ++i) tensor.values.push_back(value(i));
  return tensor;
}

/// Sets the input `name` of the example. The input has one number per token, because the example
/// has only one head.
void by_token(Case& example, const std::string& name,
              const std::function<double(std::int64_t)>& value) {
  example.inputs[name] = filled({tokens, 1}, value);
}

void keep(Case& /*example*/) {}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {{"softmax",
        "Softmax attention",
        "attention",
        "softmax",
        "Every key before the query, and its own, has a share; the shares sum to 1.",
        {}},
       "attention",
       keep},
      {{"alibi",
        "ALiBi",
        "forgetting",
        "alibi",
        "The same scores less a constant for each step back: far keys fade, whatever they hold.",
        {}},
       "attention",
       [](Case& e) {
         by_token(e, "shift", [](std::int64_t i) { return -0.25 * static_cast<double>(i); });
       }},
      {{"fox",
        "Forgetting attention (FoX)",
        "forgetting",
        "fox",
        "Tokens decide how much of what came before them is forgotten. Here token 6 forgets nearly "
        "all: "
        "look at the queries after it.",
        {}},
       "attention",
       [](Case& e) { by_token(e, "shift", [](std::int64_t i) { return i >= 6 ? -4.0 : 0.0; }); }},
      {{"ssmax",
        "Scalable softmax (SSMax)",
        "attention",
        "ssmax",
        "Scores times ln of how many keys there are: later queries choose more sharply.",
        {}},
       "attention",
       [](Case& e) {
         by_token(e, "tau", [](std::int64_t i) { return std::log(static_cast<double>(i) + 1); });
       }},
      {{"sink",
        "Softmax with a sink",
        "attention",
        "sink",
        "One more score, 0, without a value: a query that finds nothing reads nothing. Rows sum to "
        "less "
        "than 1.",
        {}},
       "attention",
       [](Case& e) {
         e.inputs["sink"] = {{1}, {0.0}};
       }},
      {{"entmax",
        "Entmax",
        "rules",
        "entmax",
        "Keys far below the best have a weight of exactly 0, not a small one.",
        {}},
       "entmax_attention",
       keep},
      {{"stick",
        "Stick-breaking attention",
        "rules",
        "stick",
        "From the query back, each key takes a part of what the nearer ones have left. The query's "
        "own key "
        "has none.",
        {}},
       "stick_attention",
       keep},
      {{"tra",
        "Threshold relative attention",
        "rules",
        "tra",
        "Keys with a negative score are not there, and distance counts only the keys that are.",
        {}},
       "tra_attention",
       [](Case& e) { by_token(e, "pull", [](std::int64_t) { return -1.0; }); }},
      {{"fal",
        "First-After-Last",
        "fal",
        "fal",
        "The last earlier key with a positive score decides; what is read is the value after it. "
        "One entry a "
        "row, not a share: its size is the score.",
        {}},
       "fal",
       keep},
      {{"chacal",
        "ChaCAL",
        "chacal",
        "chacal",
        "What a key holds is itself what that token has read: chains of references are followed to "
        "their "
        "beginning, so that weight gathers on early tokens.",
        {}},
       "chacal",
       [](Case& e) {
         e.inputs["gamma"] = {{1}, {0.9}};
       }},
      {{"delta",
        "Gated DeltaNet",
        "delta",
        "delta",
        "A memory of fixed size: each token replaces part of what is held for its key. Weights may "
        "be negative, "
        "here orange.",
        {}},
       "delta",
       [](Case& e) {
         by_token(e, "beta", [](std::int64_t) { return 1.0; });
         by_token(e, "decay", [](std::int64_t) { return -0.05; });
       }}};
  return all;
}

Case example() {
  Rng rng(example_seed, Purpose::test);
  Case example;
  for (const char* name : {"q", "k"}) {
    example.inputs[name] = catalog::normals(rng, {tokens, width}, 1.4);
  }
  // All mechanisms use the same keys. The keys have length 1, because the delta rule requires it.
  HostTensor& keys = example.inputs["k"];
  for (std::int64_t i = 0; i < tokens; ++i) {
    double square = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const double key = keys.values[static_cast<std::size_t>(i * width + j)];
      square += key * key;
    }
    for (std::int64_t j = 0; j < width; ++j) {
      keys.values[static_cast<std::size_t>(i * width + j)] /= std::sqrt(square);
    }
  }
  HostTensor one_hot = catalog::constant({tokens, tokens}, 0);
  for (std::int64_t i = 0; i < tokens; ++i) {
    one_hot.values[static_cast<std::size_t>(i * tokens + i)] = 1;
  }
  example.inputs["v"] = one_hot;
  example.inputs["lengths"] = {{1}, {static_cast<double>(tokens)}};
  example.attributes["scale"] = "1";
  return example;
}

}  // namespace

std::vector<Mechanism> mechanisms() {
  const auto backend = make_reference_backend();
  std::vector<Mechanism> all;
  for (const Kind& kind : kinds()) {
    const catalog::Operation& operation = catalog::find(kind.operation);
    Case values = example();
    kind.edit(values);
    const auto knows = [&](const catalog::Attribute& a) { return a.name == "scale"; };
    if (std::ranges::none_of(operation.attributes, knows)) values.attributes.clear();
    const catalog::Call call =
        catalog::prepare(operation, values, *backend, DType::f64, /*gradients=*/false);
    const std::vector<double> y = operation.run(call).front().value.value().to_doubles();
    Mechanism mechanism = kind.facts;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const auto row = y.begin() + i * tokens;
      mechanism.weights.emplace_back(row, row + tokens);
    }
    all.push_back(std::move(mechanism));
  }
  return all;
}

std::string steps_picture(const Mechanism& mechanism, std::size_t number) {
  constexpr double cell = 34, left = 60, arcs_top = 20, row_y = 190, bars_y = 214, bar = 70;
  const std::size_t count = mechanism.weights.size();
  const double full_width = left + cell * static_cast<double>(count) + 20;
  double largest = 1e-9;
  for (const auto& row : mechanism.weights) {
    for (const double weight : row) largest = std::max(largest, std::abs(weight));
  }
  const auto centre = [&](std::size_t j) { return left + cell * (static_cast<double>(j) + 0.5); };
  std::string svg = html::open(full_width, bars_y + bar + 30);
  for (std::size_t j = 0; j < count; ++j) {
    svg += html::label(centre(j), row_y + 16, "middle", std::to_string(j));
  }
  svg += html::label(left - 14, row_y + 16, "end", "token") +
         html::label(left - 14, bars_y + bar, "end", "weight");
  for (std::size_t i = 0; i < count; ++i) {
    svg += text("<g class=\"step\" data-step=\"", i, "\"", i + 1 < count ? " hidden" : "", ">\n",
                "<circle cx=\"", html::pixels(centre(i)), "\" cy=\"", html::pixels(row_y + 12),
                "\" r=\"13\" fill=\"none\" stroke=\"var(--text)\"/>\n");
    for (std::size_t j = 0; j <= i; ++j) {
      const double weight = mechanism.weights[i][j], share = std::abs(weight) / largest;
      if (share < 1e-3) continue;
      const std::string colour = html::colour(weight < 0 ? 1 : 0);
      const double from = centre(i), to = centre(j),
                   rise = std::min(row_y - arcs_top, 12 + 0.45 * (from - to));
      if (j < i) {
        svg += text("<path d=\"M ", html::pixels(from), " ", html::pixels(row_y), " Q ",
                    html::pixels((from + to) / 2), " ", html::pixels(row_y - 2 * rise), " ",
                    html::pixels(to), " ", html::pixels(row_y), "\" fill=\"none\" stroke=\"",
                    colour, "\" stroke-width=\"", html::number(0.5 + 5 * share),
                    "\" stroke-opacity=\"", html::number(0.25 + 0.75 * share), "\"/>\n");
      }
      const double height = std::max(1.0, bar * share);
      svg += text("<rect x=\"", html::pixels(to - cell * 0.32), "\" y=\"",
                  html::pixels(bars_y + bar - height), "\" width=\"", html::pixels(cell * 0.64),
                  "\" height=\"", html::pixels(height), "\" fill=\"", colour, "\"><title>token ", j,
                  ": ", html::number(weight), "</title></rect>\n");
      svg += html::label(to, bars_y + bar + 16, "middle",
                         html::number(std::round(weight * 100) / 100));
    }
    svg += "</g>\n";
  }
  svg += html::rule(left, bars_y + bar, left + cell * static_cast<double>(count), bars_y + bar);
  svg += "</svg>\n";
  const std::string id = text("steps-", number);
  return text("<figure class=\"steps\" id=\"", id, "\"><div class=\"scroll\">", svg,
              "</div><div class=\"controls\"><button type=\"button\" data-move=\"-1\">back</button>"
              "<input type=\"range\" min=\"0\" max=\"",
              count - 1, "\" value=\"", count - 1,
              "\" aria-label=\"query\"><button type=\"button\" data-move=\"1\">on</button>"
              "<output>query ",
              count - 1, "</output></div><figcaption>", html::escape(mechanism.says),
              "</figcaption></figure>\n");
}

}  // namespace longhand::app::book
