// The code of the pages of docs/course. Each page has a function here that contains and runs the
// code of the page. The tests compare the code with that of the page, and what it prints with what
// the page shows.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <sstream>

#include "apps/book/markdown_page.h"
#include "longhand.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/paths.h"

BOOST_AUTO_TEST_SUITE(course_test)

using namespace longhand;

namespace {

void number_page() {
  double w = 0;               // the number that learns
  const double x = 2, t = 6;  // for the input 2 the output must be 6
  for (int step = 1; step <= 5; ++step) {
    const double y = w * x;  // forward
    const double loss = (y - t) * (y - t);
    const double dy = 2 * (y - t);  // backward
    const double dw = dy * x;
    w = w - 0.1 * dw;  // downhill
    std::cout << "step " << step << "  loss " << loss << "  dw " << dw << "  w " << w << '\n';
  }

  const auto loss_at = [&](double weight) { return (weight * x - t) * (weight * x - t); };
  const double h = 0.001;
  std::cout << "quotient " << (loss_at(h) - loss_at(-h)) / (2 * h) << '\n';

  const auto backend = make_reference_backend();
  const auto tensor = [&](double value) {
    return Tensor::from(*backend, {1}, DType::f64, std::vector{value});
  };
  const Var weight(tensor(0), /*wants_grad=*/true);
  const Var input(tensor(x)), target(tensor(t));

  for (int step = 1; step <= 5; ++step) {
    Tape tape;
    Var loss;
    {
      const Recording recording(tape);  // while it exists, operations are recorded
      const Var error = weight * input - target;
      loss = error * error;
    }
    tape.backward(loss);
    const double dw = weight.grad().item();
    weight.clear_grad();
    weight.value().assign(std::vector{weight.value().item() - 0.1 * dw});
    std::cout << "step " << step << "  loss " << loss.value().item() << "  dw " << dw << "  w "
              << weight.value().item() << '\n';
  }

  double fast = 0;
  for (int step = 1; step <= 4; ++step) {
    fast = fast - 0.3 * 2 * (fast * x - t) * x;
    std::cout << "w " << fast << "  w - 3 = " << fast - 3 << '\n';
  }
}

void neuron_page() {
  const double x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  double w[2] = {}, b = 0;
  const auto neuron = [&](const double* row) {
    const double z = w[0] * row[0] + w[1] * row[1] + b;
    return 1 / (1 + std::exp(-z));
  };

  const auto train = [&](const std::vector<double>& t) {
    w[0] = w[1] = b = 0;
    for (int step = 1; step <= 500; ++step) {
      double loss = 0, dw[2] = {}, db = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const double y = neuron(x[i]);
        loss += (y - t[i]) * (y - t[i]) / 4;
        const double dy = 2 * (y - t[i]) / 4;
        const double dz = dy * y * (1 - y);
        dw[0] += dz * x[i][0];
        dw[1] += dz * x[i][1];
        db += dz;
      }
      if (step == 1) std::cout << "dw " << dw[0] << ' ' << dw[1] << "  db " << db << '\n';
      if (step == 1 || step == 500) std::cout << "step " << step << "  loss " << loss << '\n';
      w[0] -= 4 * dw[0];
      w[1] -= 4 * dw[1];
      b -= 4 * db;
    }
    for (const auto& row : x) std::cout << row[0] << ' ' << row[1] << " -> " << neuron(row) << '\n';
  };

  train({0, 1, 1, 1});

  const auto backend = make_reference_backend();
  const auto tensor = [&](const Shape& shape, const std::vector<double>& values) {
    return Tensor::from(*backend, shape, DType::f64, values);
  };
  const Var rows(tensor({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}));
  const Var weight(tensor({1, 2}, {0, 0}), true), bias(tensor({1}, {0}), true);
  Tape tape;
  {
    const Recording recording(tape);
    const Var z = matmul(rows, weight, {.transpose_b = true, .bias = bias});
    const Var y = activate(Activation::sigmoid, z);
    tape.backward(squared_error(y, tensor({4, 1}, {0, 1, 1, 1})));
  }
  const std::vector<double> dw = weight.grad().to_doubles();
  std::cout << "dw " << dw[0] << ' ' << dw[1] << "  db " << bias.grad().item() << '\n';

  train({0, 1, 1, 0});
}

void layer_page() {
  const std::vector<double> x = {1, 2}, b = {0, 0, 1}, dy = {1, 0, -2};
  const std::vector<double> w = {1, 0, 0, 1, 1, -1};  // one row for each of three neurons
  double dx[2] = {};
  for (std::size_t j = 0; j < 3; ++j) {
    double y = b[j];
    for (std::size_t k = 0; k < 2; ++k) y += w[2 * j + k] * x[k];
    for (std::size_t k = 0; k < 2; ++k) dx[k] += dy[j] * w[2 * j + k];
    std::cout << "y " << y << "  dw " << dy[j] * x[0] << ' ' << dy[j] * x[1] << '\n';
  }
  std::cout << "dx " << dx[0] << ' ' << dx[1] << '\n';

  const auto backend = make_reference_backend();
  const auto tensor = [&](const Shape& shape, const std::vector<double>& values) {
    return Tensor::from(*backend, shape, DType::f64, values);
  };
  const auto print = [](const char* name, const Tensor& values) {
    std::cout << name;
    for (const double value : values.to_doubles()) std::cout << ' ' << value;
    std::cout << '\n';
  };
  const Var row(tensor({1, 2}, x), true), weight(tensor({3, 2}, w), true);
  Tape tape;
  {
    const Recording recording(tape);
    const Var y = matmul(row, weight, {.transpose_b = true, .bias = tensor({3}, b)});
    print("y", y.value());
    tape.backward(y, tensor({1, 3}, dy));
  }
  print("dw", weight.grad());
  print("dx", row.grad());

  const Tensor rows = tensor({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  const Tensor targets = tensor({4, 1}, {0, 1, 1, 0});  // 1 if the inputs differ
  const auto train = [&](std::optional<Activation> f) {
    nn::Parameters parameters(*backend, {.type = DType::f64}, /*seed=*/1);
    const nn::Scope scope(parameters);
    const nn::Linear first(scope / "first", 2, 4), second(scope / "second", 4, 1);
    const auto model = [&] { return second(first(rows, {.f = f}), {.f = Activation::sigmoid}); };
    const auto optimizer = nn::make_optimizer(parameters, nn::SgdOptions{.momentum = 0});
    for (int step = 1; step <= 1000; ++step) {
      Tape steps;
      Var loss;
      {
        const Recording recording(steps);
        loss = squared_error(model(), targets);
      }
      steps.backward(loss);
      optimizer->prepare(/*rate=*/2, step);
      optimizer->step(loss.value());  // w = w - rate * dw for each parameter, then clears dw
      if (step % 500 == 0) {
        std::cout << "step " << step << "  loss " << loss.value().item() << '\n';
      }
    }
    print("outputs", model().value());
  };

  train(Activation::tanh);

  train({});
}

void classifier_page() {
  const std::vector<double> logits = {1, 2, 0};
  const int t = 1;  // the right class
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (int c = 0; c < 3; ++c) {
    const double p = std::exp(logits[c]) / sum;
    std::cout << "class " << c << "  p " << p << "  dx " << p - (c == t) << '\n';
  }
  std::cout << "loss " << std::log(sum) - logits[t] << '\n';

  const auto backend = make_reference_backend();
  const Var x(Tensor::from(*backend, {1, 3}, DType::f64, logits), true);
  Tape tape;
  {
    const Recording recording(tape);
    const Var loss = cross_entropy(x, Tensor::from(*backend, {1, 1}, std::vector{t}));
    std::cout << "loss " << loss.value().item() << '\n';
    tape.backward(loss);
  }
  for (const double dx : x.grad().to_doubles()) std::cout << "dx " << dx << '\n';

  Rng rng(1);
  const double centres[3][2] = {{0, 2}, {2, -1}, {-2, -1}};
  std::vector<double> places;
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 60; ++i) {
    classes.push_back(i % 3);
    for (const double centre : centres[i % 3]) places.push_back(centre + rng.normal());
  }
  const Tensor points = Tensor::from(*backend, {60, 2}, DType::f64, places);
  const Tensor targets = Tensor::from(*backend, {60, 1}, classes);

  nn::Parameters parameters(*backend, {.type = DType::f64}, /*seed=*/1);
  const nn::Linear layer(nn::Scope(parameters) / "layer", 2, 3, true, nn::constant(0));
  const auto optimizer = nn::make_optimizer(parameters, nn::AdamOptions{});
  const Tensor hits(*backend, {1}, DType::f64);  // receives the share of right predictions
  for (int step = 1; step <= 100; ++step) {
    Tape steps;
    Var loss;
    {
      const Recording recording(steps);
      loss = cross_entropy(layer(points), targets, {.hits = hits});
    }
    steps.backward(loss);
    optimizer->prepare(/*rate=*/0.1, step);
    optimizer->step(loss.value());
    if (step == 1 || step % 50 == 0) {
      std::cout << "step " << step << "  loss " << loss.value().item() << "  right "
                << 100 * hits.item() << "%\n";
    }
  }

  const std::vector<double> larger = {1001, 1002, 1000};
  const Var p = softmax(Tensor::from(*backend, {1, 3}, DType::f64, larger));
  for (const double one : p.value().to_doubles()) std::cout << "p " << one << '\n';
  std::cout << "exp(1002) = " << std::exp(1002.0) << '\n';
}

void attention_page() {
  // Token 0 is an a and asks for c, token 1 is a b and asks for a, token 2 is a c and asks for b.
  const std::vector<double> q = {0, 0, 6, 6, 0, 0, 0, 6, 0};
  const std::vector<double> k = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<double> v = {10, 20, 40};

  for (int i = 0; i < 3; ++i) {
    double weights[3] = {}, sum = 0, y = 0;
    for (int j = 0; j <= i; ++j) {  // token i sees itself and the tokens before it
      double s = 0;
      for (int c = 0; c < 3; ++c) s += q[3 * i + c] * k[3 * j + c];
      weights[j] = std::exp(s / std::sqrt(3));
      sum += weights[j];
    }
    std::cout << "token " << i << " ";
    for (int j = 0; j <= i; ++j) {
      y += weights[j] / sum * v[j];
      std::cout << " P" << j << ' ' << weights[j] / sum;
    }
    std::cout << "  y " << y << '\n';
  }

  const auto backend = make_reference_backend();
  const auto tensor = [&](const Shape& shape, const std::vector<double>& values) {
    return Tensor::from(*backend, shape, DType::f64, values);
  };
  const Segments sequence(*backend, std::vector{3});  // one sequence of three tokens
  const HeadVars keys = all_columns(tensor({3, 3}, k), 1),
                 values = all_columns(tensor({3, 1}, v), 1);
  const HeadVars queries = all_columns(tensor({3, 3}, q), 1);
  const Var y = attention({.q = queries, .k = keys, .queries = sequence}, values);
  for (const double one : y.value().to_doubles()) std::cout << "y " << one << '\n';

  const Var learned(tensor({3, 3}, std::vector<double>(9)), /*wants_grad=*/true);
  for (int step = 1; step <= 200; ++step) {
    Tape tape;
    Var read, loss;
    {
      const Recording recording(tape);
      const HeadVars asked = all_columns(learned, 1);
      read = attention({.q = asked, .k = keys, .queries = sequence}, values);
      loss = squared_error(read, tensor({3, 1}, {10, 10, 20}));
    }
    tape.backward(loss);
    std::vector<double> numbers = learned.value().to_doubles();
    const std::vector<double> dq = learned.grad().to_doubles();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= 0.1 * dq[i];
    learned.value().assign(numbers);
    learned.clear_grad();
    if (step == 1 || step % 100 == 0) {
      std::cout << "step " << step << "  loss " << loss.value().item() << "  y";
      for (const double one : read.value().to_doubles()) std::cout << ' ' << one;
      std::cout << '\n';
    }
  }

  const Var all =
      attention({.q = queries, .k = keys, .queries = sequence, .causal = false}, values);
  for (const double one : all.value().to_doubles()) std::cout << "y " << one << '\n';
}

void block_page() {
  const std::vector<double> row = {1, 2, 3, 6};
  double mean = 0, variance = 0;
  for (const double x : row) mean += x / 4;
  for (const double x : row) variance += (x - mean) * (x - mean) / 4;
  for (const double x : row) std::cout << (x - mean) / std::sqrt(variance + 1e-5) << '\n';

  const auto backend = make_reference_backend();
  for (const bool residual : {false, true}) {
    nn::Parameters parameters(*backend, {.type = DType::f64}, /*seed=*/1);
    const Var x(Tensor::from(*backend, {1, 4}, DType::f64, row), true);
    Tape tape;
    {
      const Recording recording(tape);
      Var h = x;
      for (int i = 0; i < 30; ++i) {
        const nn::Linear layer(nn::Scope(parameters) / i, 4, 4, true, nn::normal(0.2));
        const Var y = layer(h, {.f = Activation::tanh});
        h = residual ? h + y : y;
      }
      tape.backward(sum(h));
    }
    std::cout << (residual ? "with" : "without") << " residual: dx " << x.grad().to_doubles()[0]
              << '\n';
  }

  constexpr std::int64_t width = 8, heads = 2;
  struct Block {
    nn::Scope at;
    nn::LayerNorm norm1{at / "norm1", width, 1e-5}, norm2{at / "norm2", width, 1e-5};
    nn::Linear qkv{at / "qkv", width, 3 * width}, out{at / "out", width, width};
    nn::Linear up{at / "up", width, 4 * width}, down{at / "down", 4 * width, width};

    Var operator()(const Var& x, const Segments& sequences) const {
      const Var all = qkv(norm1(x));  // queries, keys and values side by side
      const HeadVars q{all, 0, heads, width / heads}, k{all, width, heads, width / heads};
      const HeadVars v{all, 2 * width, heads, width / heads};
      const Var h = x + out(attention({.q = q, .k = k, .queries = sequences}, v));
      return h + down(up(norm2(h), {.f = Activation::gelu}));
    }
  };

  nn::Parameters parameters(*backend, {.type = DType::f64}, /*seed=*/1);
  const Block block{nn::Scope(parameters) / "block"};
  Rng rng(1);
  std::vector<double> numbers;
  for (int i = 0; i < 4 * width; ++i) numbers.push_back(rng.normal());
  const auto result = [&] {
    const Tensor x = Tensor::from(*backend, {4, width}, DType::f64, numbers);
    return block(x, Segments(*backend, std::vector{4})).value().to_doubles();
  };
  const auto largest_change = [&](const std::vector<double>& a, const std::vector<double>& b,
                                  std::int64_t token) {
    double largest = 0;
    for (std::int64_t i = token * width; i < (token + 1) * width; ++i) {
      largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
  };

  const std::vector<double> before = result();
  numbers[2 * width] += 1;  // changes token 2
  const std::vector<double> after = result();
  for (std::int64_t token = 0; token < 4; ++token) {
    std::cout << "token " << token << "  change " << largest_change(before, after, token) << '\n';
  }

  for (const nn::Parameter& parameter : parameters.all()) {
    if (parameter.layer() != "block.out" && parameter.layer() != "block.down") continue;
    parameter.value().assign(std::vector<double>(parameter.value().to_doubles().size()));
  }
  std::cout << "token 0  y - x = " << largest_change(result(), numbers, 0) << '\n';
}

void gpt_page() {
  const std::string text =
      "peter piper picked a peck of pickled peppers. "
      "a peck of pickled peppers peter piper picked. ";
  const std::vector<std::int32_t> tokens(text.begin(), text.end());
  constexpr std::int64_t width = 16, heads = 2, context = 16, characters = 128;

  class Gpt final : public nn::Model {
   public:
    explicit Gpt(Backend& backend) : Model(backend, /*seed=*/1, {.type = DType::f64}) {}
    Var logits(const nn::Input& input) const {
      Var x = letters(input.ids) + positions(input.positions);
      const Var all = qkv(norm1(x));
      const HeadVars q{all, 0, heads, width / heads}, k{all, width, heads, width / heads};
      const HeadVars v{all, 2 * width, heads, width / heads};
      x = x + out(attention({.q = q, .k = k, .queries = input.segments}, v));
      x = x + down(up(norm2(x), {.f = Activation::gelu}));
      return last(norm3(x));
    }
    nn::Loss loss(const nn::PlacedBatch& batch) override {
      return nn::cross_entropy(logits(batch.input), batch);
    }

   private:
    nn::Embedding letters{scope() / "letters", characters, width, nn::normal(0.1)};
    nn::Embedding positions{scope() / "positions", context, width, nn::normal(0.1)};
    nn::LayerNorm norm1{scope() / "norm1", width, 1e-5}, norm2{scope() / "norm2", width, 1e-5};
    nn::Linear qkv{scope() / "qkv", width, 3 * width}, out{scope() / "out", width, width};
    nn::Linear up{scope() / "up", width, 4 * width}, down{scope() / "down", 4 * width, width};
    nn::LayerNorm norm3{scope() / "norm3", width, 1e-5};
    nn::Linear last{scope() / "last", width, characters};
  };

  const auto pieces = [&](Rng& rng) {
    nn::Batch batch;
    for (int i = 0; i < 4; ++i) {
      const auto begin = rng.below(static_cast<std::uint32_t>(tokens.size() - context));
      const std::span piece = std::span(tokens).subspan(begin, context + 1);
      batch.append(piece.first(context), piece.last(context));  // targets: the next characters
    }
    return batch;
  };

  const auto print = [](const nn::StepReport& report) {
    if (report.step == 1 || report.step % 150 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << '\n';
    }
  };
  const auto backend = make_reference_backend();
  Gpt model(*backend);
  std::cout << model.parameters().count() << " parameters\n";
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, pieces),
              {.steps = 600, .schedule = {.peak = 0.01, .warm_up = 10}}, {.report = print})
      .run();

  using Choice = std::function<std::int32_t(const std::vector<double>& logits)>;
  const auto write = [&](const Choice& choose) {
    std::vector<std::int32_t> line(tokens.begin(), tokens.begin() + 6);  // "peter "
    while (line.size() < 46) {
      const std::span seen = std::span(line).last(std::min<std::size_t>(line.size(), context));
      const Tensor logits = model.logits(nn::make_input(*backend, seen)).value();
      line.push_back(choose(logits.slice(logits.rows() - 1, 1).to_doubles()));
    }
    std::cout << std::string(line.begin(), line.end()) << '\n';
  };
  write([](const std::vector<double>& logits) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  });

  Rng rng(3);
  write([&](const std::vector<double>& logits) {
    double sum = 0;
    for (const double x : logits) sum += std::exp(x / 1.5);
    double left = rng.uniform() * sum;  // a point among intervals of the lengths exp(x / 1.5)
    std::int32_t chosen = 0;
    while ((left -= std::exp(logits[chosen] / 1.5)) > 0) ++chosen;
    return chosen;
  });
}

void checked_page() {
  struct State {
    double w = 0, b = 0;
    bool operator==(const State&) const = default;
  };
  const auto next = [](const State& s, std::uint64_t seed, std::uint64_t step) {
    const double x = Rng(seed, Purpose::own, step).normal(), t = 3 * x + 1;
    const double dy = 2 * (s.w * x + s.b - t);
    return State{s.w - 0.1 * dy * x, s.b - 0.1 * dy};
  };
  std::cout << ((0.1 + 0.2) + 0.3 == 0.1 + (0.2 + 0.3) ? "equal" : "different") << '\n';
  struct Line {
    State state;
    std::string hash;
  };
  using Record = std::vector<Line>;
  const auto hash_after = [](const Record& record, const State& s) {
    Sha256 hash;
    if (!record.empty()) hash.add(record.back().hash);
    hash.add(std::as_bytes(std::span(&s, 1)));
    return hash.finish();
  };
  const auto append = [&](Record& record, const State& s) {
    record.push_back({s, hash_after(record, s)});
  };
  const auto train = [&](Record record, std::uint64_t seed) {
    if (record.empty()) append(record, State{});
    while (record.size() <= 20) append(record, next(record.back().state, seed, record.size()));
    return record;
  };
  const Record honest = train({}, /*seed=*/1);
  std::cout << "w " << honest.back().state.w << "  b " << honest.back().state.b << '\n';
  const auto step_holds = [&](const Record& record, std::uint64_t step) {
    return record[step].state == next(record[step - 1].state, /*seed=*/1, step);
  };
  const auto verify = [&](const Record& record) {
    Record chain;
    for (const Line& line : record) {
      append(chain, line.state);
      if (chain.back().hash != line.hash) {
        return "the chain breaks at step " + std::to_string(chain.size() - 1);
      }
    }
    if (record[0].state != State{}) return std::string("state 0 is not that of the seed");
    for (std::uint64_t step = 1; step < record.size(); ++step) {
      if (!step_holds(record, step)) return "step " + std::to_string(step) + " is false";
    }
    return std::string("valid");
  };
  std::cout << "honest: " << verify(honest) << '\n';
  Record careless = honest;
  careless[7].state.w += 0.001;
  std::cout << "changed state: " << verify(careless) << '\n';

  Record chained;
  for (const Line& line : careless) append(chained, line.state);
  std::cout << "new hashes: " << verify(chained) << '\n';

  const Record trained_on = train(Record(chained.begin(), chained.begin() + 8), /*seed=*/1);
  std::cout << "trained on: " << verify(trained_on) << '\n';
  Rng rng(2);
  int found = 0;
  for (int verifier = 0; verifier < 1000; ++verifier) {
    std::vector<std::uint64_t> steps;
    for (std::uint64_t step = 1; step <= 20; ++step) steps.push_back(step);
    rng.shuffle(steps.begin(), steps.end());
    bool holds = true;
    for (int i = 0; i < 4; ++i) holds = holds && step_holds(trained_on, steps[i]);
    if (!holds) ++found;
  }
  std::cout << found << " of 1000 found it; expected " << 1000 * 4 / 20 << '\n';
  Record head_start;
  append(head_start, State{2, 0});
  std::cout << "head start: " << verify(train(head_start, /*seed=*/1)) << '\n';
}

struct Page {
  std::string name, title;
  void (*run)();
};

/// The pages in reading order.
const std::vector<Page> pages{{"number", "A number that learns", number_page},
                              {"neuron", "A neuron", neuron_page},
                              {"layer", "A layer", layer_page},
                              {"classifier", "The loss of a classifier", classifier_page},
                              {"attention", "Attention", attention_page},
                              {"block", "A block", block_page},
                              {"gpt", "A GPT", gpt_page},
                              {"checked", "A training that others can check", checked_page}};

std::string text_of(const Page& page) {
  return contents(std::filesystem::path(test_data) / "../docs/course" / (page.name + ".md"));
}

/// All blocks of a page of this kind, one after another.
std::string joined_blocks(const std::string& page, std::string_view kind) {
  std::string all;
  for (const std::string& block : app::book::blocks_of(page, kind)) all += block;
  return all;
}

/// Runs the code of a page and returns what it prints.
std::string printed(const Page& page) {
  struct Captured {
    std::ostringstream out;
    std::streambuf* before = std::cout.rdbuf(out.rdbuf());
    ~Captured() { std::cout.rdbuf(before); }
  } captured;
  page.run();
  return captured.out.str();
}

/// The lines of a text that are not empty, without the first `indent` characters.
std::vector<std::string> lines_of(const std::string& text, std::size_t indent) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line.substr(std::min(line.size(), indent)));
  }
  return lines;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The numbers with a decimal point that occur in a text.
std::vector<std::string> decimals_of(const std::string& text) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    std::size_t end = i, point = text.npos;
    for (; end < text.size(); ++end) {
      const bool is_point = text[end] == '.' && point == text.npos && end + 1 < text.size() &&
                            is_digit(text[end + 1]);
      if (is_point) point = end;
      if (!is_point && !is_digit(text[end])) break;
    }
    if (point != text.npos) numbers.push_back(text.substr(i, end - i));
    i = end;
  }
  return numbers;
}

/// The page without its blocks of code.
std::string prose_of(const std::string& page) {
  std::string prose;
  bool code = false;
  for (const std::string& line : lines_of(page, 0)) {
    if (line.starts_with("```")) code = !code;
    if (!code) prose += line + "\n";
  }
  return prose;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_code_of_each_page_is_that_of_its_function) {
  const std::string test = contents(std::filesystem::path(test_data) / "course_test.cpp");
  for (const Page& page : pages) {
    const std::string begin = "\nvoid " + page.name + "_page() {\n";
    const std::size_t at = test.find(begin);
    BOOST_REQUIRE(at != test.npos);
    const std::size_t from = at + begin.size();
    const auto tested = lines_of(test.substr(from, test.find("\n}\n", from) - from), 2);
    const auto shown = lines_of(joined_blocks(text_of(page), "cpp"), 0);
    BOOST_TEST_INFO_SCOPE("docs/course/" << page.name << ".md");
    BOOST_TEST(shown == tested, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(each_page_begins_with_its_diagram) {
  for (const Page& page : pages) {
    const std::string all = text_of(page);
    const std::size_t picture = all.find("](" + page.name + ".svg)\n");
    BOOST_TEST(picture < all.find("\n## "), "docs/course/" << page.name << ".md");
  }
}

BOOST_AUTO_TEST_CASE(each_page_shows_what_its_code_prints) {
  for (const Page& page : pages) {
    const std::string shown = joined_blocks(text_of(page), "output");
    BOOST_TEST_INFO_SCOPE("docs/course/" << page.name << ".md");
    BOOST_TEST(!shown.empty());
    BOOST_TEST(lines_of(shown, 0) == lines_of(printed(page), 0), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(numbers_in_the_text_are_numbers_of_the_code_or_its_output) {
  for (const Page& page : pages) {
    const std::string all = text_of(page);
    const auto known = decimals_of(joined_blocks(all, "cpp") + joined_blocks(all, "output"));
    for (const std::string& number : decimals_of(prose_of(all))) {
      BOOST_TEST(std::ranges::count(known, number) > 0,
                 "docs/course/" << page.name << ".md: no code prints " << number);
    }
  }
  const std::vector<std::string> expected{"0.5", "12.25"};
  BOOST_TEST(decimals_of("-0.5 and 3 of 12.25.") == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_page_leads_to_the_next_and_has_a_hidden_answer) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::string page = text_of(pages[i]), name = pages[i].name;
    BOOST_TEST(page.starts_with("# " + pages[i].title + "\n"), name);
    BOOST_TEST((page.find("](../math/") != page.npos), name);
    BOOST_TEST((page.find("<details><summary>Answer</summary>") != page.npos), name);
    if (i + 1 == pages.size()) continue;
    const std::string next = "Next: [" + pages[i + 1].title + "](" + pages[i + 1].name + ".md)";
    BOOST_TEST((page.find(next) != page.npos), name << ": " << next);
  }
}

BOOST_AUTO_TEST_SUITE_END()
