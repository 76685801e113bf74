// Tests the commands eval and generate with array files as input (tokens) and as output.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/backend.h"
#include "core/npy.h"
#include "core/tensor_file.h"
#include "tests/program.h"

namespace array_commands_test {

using namespace longhand;

/// Loads the arrays of a file into host memory.
class HostArrays {
 public:
  explicit HostArrays(const std::string& path, const std::string& single = "x")
      : file_(path, single), backend_(make_reference_backend()) {}

  Shape shape(const std::string& name) const { return file_.arrays().at(name).shape; }
  std::vector<double> operator[](const std::string& name) const {
    return load_tensor(*backend_, file_.arrays(), name).to_doubles();
  }
  std::vector<std::int32_t> ints(const std::string& name) const {
    return file_.arrays().to_i32(name);
  }

 private:
  ArrayFile file_;
  std::shared_ptr<Backend> backend_;
};

struct Commands : Program {
  std::shared_ptr<Backend> host = make_reference_backend();

  void train(const std::string& flags) const {
    const Outcome done = (*this)("train " + flags +
                                 " --layers 1 --width 16 --steps 4 --evaluate-samples 0 --quiet "
                                 "--threads 1 --out r");
    BOOST_REQUIRE_MESSAGE(done.status == 0, done.err);
  }
  void write(const std::string& name, const std::string& array, const Shape& shape,
             const std::vector<std::int32_t>& values) const {
    save_arrays(path(name), std::vector<NamedTensor>{{array, Tensor::from(*host, shape, values)}});
  }
};

}  // namespace array_commands_test

BOOST_FIXTURE_TEST_SUITE(array_commands_test, array_commands_test::Commands)

using namespace array_commands_test;

BOOST_AUTO_TEST_CASE(generate_reads_tokens_and_writes_the_predicted_ones) {
  train("--task flip-flop --task.instructions 8");
  const Json typed = json("generate r --prompt w1i0r --tokens 3 --json");
  std::vector<std::int32_t> prompt, said;
  for (const Json& token : typed["prompt_tokens"].elements()) {
    prompt.push_back(static_cast<std::int32_t>(token.integer()));
  }
  for (const Json& token : typed["tokens"].elements()) {
    said.push_back(static_cast<std::int32_t>(token.integer()));
  }
  const auto n = std::ssize(prompt);
  write("p.npy", "x", {n}, prompt);
  write("p.npz", "tokens", {1, n}, prompt);
  write("p.safetensors", "tokens", {n}, prompt);
  for (const char* file : {"p.npy", "p.npz", "p.safetensors"}) {
    const Json read = json(
        text("generate r --token-file ", file, " --tokens 3 --json --out o.npz --logits l.npz"));
    BOOST_TEST(read["tokens"] == typed["tokens"]);
    BOOST_TEST(read["log_probabilities"] == typed["log_probabilities"]);
    const HostArrays out(path("o.npz")), logits(path("l.npz"));
    BOOST_TEST((out.ints("tokens") == said));
    BOOST_TEST((out.ints("lengths") == std::vector<std::int32_t>{3}));
    BOOST_TEST((out.ints("prompt_tokens") == prompt));
    const std::vector<double> probabilities = out["log_probabilities"];
    for (std::size_t i = 0; i < 3; ++i) {
      BOOST_TEST(probabilities[i] == typed["log_probabilities"][i].number());
    }
    BOOST_TEST(logits.shape("logits")[0] == n);
    BOOST_TEST((logits.ints("tokens") == prompt));
  }
  BOOST_TEST((*this)("generate r --token-file p.npy --tokens 3 --out o.npy").status == 0);
  BOOST_TEST((HostArrays(path("o.npy")).shape("x") == Shape{1, 3}));
  refuses(2, "generate r --prompt w1 --token-file p.npy", "--prompt and --token-file");
  refuses(2, "generate r", "--prompt");
  write("bad.npy", "x", {2}, {0, 99});
  refuses(1, "generate r --token-file bad.npy", "expected tokens from 0 to ");
  write("none.npz", "other", {1}, {0});
  refuses(1, "generate r --token-file none.npz", "expected an array \"tokens\"");
  write("empty.npy", "x", {0}, {});
  refuses(1, "generate r --token-file empty.npy", "expected at least one token, got none");
  save_arrays(
      path("floats.npy"),
      std::vector<NamedTensor>{{"x", Tensor::from(*host, {1}, DType::f32, std::vector{1.})}});
  refuses(1, "generate r --token-file floats.npy", "floats.npy: tensor \"tokens\"");
  std::ofstream(folder / "text.npy") << "no array";
  refuses(1, "generate r --token-file text.npy", "not a NumPy array");
}

BOOST_AUTO_TEST_CASE(eval_writes_the_predictions_for_each_sample) {
  train("--task sorting --task.numbers 20");
  for (const char* reading : {"forced", "decoded"}) {
    const Json told = json(
        text("eval r --on train --samples 30 --reading ", reading, " --out o.npz --logits --json"));
    const HostArrays out(path("o.npz"));
    const auto lengths = out.ints("train.asked_lengths"), said = out.ints("train.said"),
               wanted = out.ints("train.wanted");
    BOOST_TEST(lengths.size() == 30u);
    BOOST_TEST(said.size() == wanted.size());
    for (const Json& row : told["rows"]) {
      const auto scores = out["train.scores." + row["metric"].string()];
      BOOST_TEST(scores.size() == 30u);
      if (row["metric"] != "sequences") continue;
      double sum = 0;
      for (const double score : scores) sum += score;
      BOOST_TEST(sum / 30 == row["value"].number(), boost::test_tools::tolerance(1e-12));
    }
    const Shape shape = out.shape("train.logits");
    BOOST_TEST(shape[0] == std::ssize(said));
    if (reading != std::string_view("forced")) continue;
    const auto logits = out["train.logits"];
    for (std::size_t i = 0; i < said.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * shape[1];
      BOOST_TEST(std::max_element(row, row + shape[1]) - row == said[i]);
    }
  }
  refuses(2, "eval r --logits", "--logits needs --out");
  refuses(2, "eval r --out o.npy", "because several arrays are written, got \"o.npy\"");
  refuses(2, "eval r --sweep length=2..3 --out o.npz", "--out");
  refuses(1, "eval r --on train --samples 2 --out no/o.npz", "no/o.npz");
}

BOOST_AUTO_TEST_CASE(eval_scores_tokens_from_a_file) {
  train("--task flip-flop --task.instructions 8 --batch 4 --accumulation 2");
  BOOST_TEST((*this)("data r --step 2 --out step.npz").status == 0);
  const Json told = json("eval r --token-file step.npz --out o.npz --logits --json");
  const HostArrays out(path("o.npz"));
  const auto targets = out.ints("targets"), said = out.ints("said");
  const auto losses = out["losses"], logits = out["logits"];
  const Shape shape = out.shape("logits");
  BOOST_TEST(shape[0] == std::ssize(targets));
  double sum = 0;
  int counted = 0, right = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    BOOST_TEST(std::isnan(losses[i]) == (targets[i] < 0));
    if (targets[i] < 0) continue;
    ++counted;
    right += said[i] == targets[i];
    sum += losses[i];
    double exponentials = 0;
    const std::size_t row = i * static_cast<std::size_t>(shape[1]);
    for (std::int64_t c = 0; c < shape[1]; ++c) exponentials += std::exp(logits[row + c]);
    BOOST_TEST(losses[i] == std::log(exponentials) - logits[row + targets[i]],
               boost::test_tools::tolerance(1e-6));
  }
  BOOST_TEST(counted > 0);
  for (const Json& row : told["rows"]) {
    if (row["metric"] == "loss")
      BOOST_TEST(row["value"].number() == sum / counted, boost::test_tools::tolerance(1e-9));
    if (row["metric"] == "tokens") BOOST_TEST(row["count"].integer() == counted);
  }
  // Without an array of targets, the target of each token is the next token of its row. The last
  // token of a row has no target (-1).
  write("t.npy", "x", {2, 3}, {0, 1, 2, 2, 1, 0});
  BOOST_TEST((*this)("eval r --token-file t.npy --out t.npz").status == 0);
  BOOST_TEST(
      (HostArrays(path("t.npz")).ints("targets") == std::vector<std::int32_t>{1, 2, -1, 1, 0, -1}));
  refuses(2, "eval r --token-file t.npy --samples 3", "--samples: cannot be combined with");
  refuses(1, "eval r --token-file missing.npy", "missing.npy");
  const auto both = [&](const char* name, const Shape& shape_of, std::vector<std::int32_t> values) {
    save_arrays(path("b.npz"),
                std::vector<NamedTensor>{
                    {"tokens", Tensor::from(*host, {3}, std::vector<std::int32_t>{0, 1, 2})},
                    {name, Tensor::from(*host, shape_of, values)}});
  };
  both("lengths", {2}, {1, 1});
  refuses(1, "eval r --token-file b.npz", "expected lengths that add up to the 3 tokens");
  both("lengths", {2}, {3, 0});
  refuses(1, "eval r --token-file b.npz", "above 0, got 0");
  both("targets", {2}, {1, 1});
  refuses(1, "eval r --token-file b.npz", "expected shape [3, choices]");
  both("targets", {3}, {1, 1, 1000});
  refuses(1, "eval r --token-file b.npz", "targets: expected classes below");
  both("head", {1}, {7});
  refuses(1, "eval r --token-file b.npz", "head: expected a number from 0 to 0, got 7");
  save_arrays(path("w.npz"),
              std::vector<NamedTensor>{
                  {"tokens", Tensor::from(*host, {1}, std::vector<std::int32_t>{0})},
                  {"targets", Tensor::from(*host, {1}, std::vector<std::int32_t>{0})},
                  {"weights", Tensor::from(*host, {1}, DType::f32, std::vector{std::nan("")})}});
  refuses(1, "eval r --token-file w.npz", "\"weights\": expected weights of 0 or more, got nan");
}

BOOST_AUTO_TEST_SUITE_END()
