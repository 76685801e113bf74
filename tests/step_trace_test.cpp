// Tests the trace of a training step: its inputs and results, stored in a file so that other
// programs can repeat the step.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/run/config.h"
#include "autograd/tape.h"
#include "core/contract/optimizer.h"
#include "core/npy.h"
#include "nn/input.h"
#include "nn/losses.h"
#include "nn/training/step_trace.h"
#include "tests/program.h"

namespace step_trace_test {

using namespace longhand;

const std::string small = "--layers 2 --width 16 --steps 5 --evaluate-samples 0 --threads 2 ";

/// The arrays of a file as numbers on the host.
class Arrays {
 public:
  explicit Arrays(const std::string& path) : file_(path, ""), backend_(make_reference_backend()) {}

  Tensor tensor(const std::string& name) const {
    return load_tensor(*backend_, file_.arrays(), name);
  }
  std::vector<double> operator[](const std::string& name) const {
    return tensor(name).to_doubles();
  }
  std::vector<std::int32_t> ints(const std::string& name) const { return tensor(name).to_ints(); }
  double number(const std::string& name) const { return tensor(name).item(); }
  bool has(const std::string& name) const { return file_.arrays().find(name) != nullptr; }
  /// The names that begin with `beginning`, each without this prefix.
  std::vector<std::string> under(const std::string& beginning) const {
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : file_.arrays().entries()) {
      if (entry.name.starts_with(beginning)) names.push_back(entry.name.substr(beginning.size()));
    }
    return names;
  }
  bool same(const std::string& name, const Arrays& other) const {
    const SafetensorsEntry& a = file_.arrays().at(name);
    const SafetensorsEntry& b = other.file_.arrays().at(name);
    return a.shape == b.shape && a.type == b.type && std::ranges::equal(a.bytes, b.bytes);
  }

 private:
  ArrayFile file_;
  std::shared_ptr<Backend> backend_;
};

/// Recomputes the step's update entry by entry in f64, by the formula of core/contract/optimizer.h.
void replay(const Arrays& step) {
  const double beta1 = step.number("beta1"), beta2 = step.number("beta2");
  const double t = step.number("step"), factor = step.number("factor");
  // Adam's second moment has a relative error of at most seven roundings of 6e-8 each. The clipping
  // factor and its product with the gradient are rounded once each, and squaring doubles both
  // errors: four roundings. The square, its product with 1 - beta2 and the sum are rounded once
  // each: three roundings.
  const auto near = [](double found, double wanted, double size, const std::string& what) {
    BOOST_TEST(std::abs(found - wanted) <= 5e-7 * size + 1e-30,
               what << ' ' << found << ' ' << wanted);
  };
  double squares = 0;
  for (const std::string& name : step.under("gradients.")) {
    const auto g = step["gradients." + name];
    const auto before = step["parameters.before." + name], after = step["parameters.after." + name];
    const auto m = step["optimizer.before." + name + ".m"],
               v = step["optimizer.before." + name + ".v"];
    const auto m_after = step["optimizer.after." + name + ".m"];
    const auto v_after = step["optimizer.after." + name + ".v"];
    const double rate = step.number("rates." + name), decay = step.number("decays." + name);
    for (std::size_t i = 0; i < g.size(); ++i) {
      squares += g[i] * g[i];
      const double scaled = factor * g[i];
      const double m_now = beta1 * m[i] + (1 - beta1) * scaled;
      const double v_now = beta2 * v[i] + (1 - beta2) * scaled * scaled;
      const double change = rate * (m_now / (1 - std::pow(beta1, t))) /
                            (std::sqrt(v_now / (1 - std::pow(beta2, t))) + step.number("epsilon"));
      near(m_after[i], m_now, std::abs(m[i]) + std::abs(scaled), name + ".m");
      near(v_after[i], v_now, v_now, name + ".v");
      near(after[i], before[i] * (1 - rate * decay) - change, std::abs(before[i]) + rate, name);
    }
  }
  const double norm = step.number("norm"), clip = step.number("clip");
  BOOST_TEST(norm == std::sqrt(squares), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(factor == (clip > 0 ? std::min(1.0, clip / norm) : 1.0),
             boost::test_tools::tolerance(1e-6));
}

/// Checks that a forward and backward pass, computed from the trace alone, gives the same bits as
/// training.
void repeat_gradients(const Arrays& step, const app::Config& config) {
  const auto backend = make_cpu_backend({.threads = 1});
  nn::Decoder model(*backend, config.model(*config.task()), config.training().seed);
  for (const nn::Parameter& p : model.parameters().all()) {
    p.value().assign(step["parameters.before." + p.name()]);
  }
  std::string batch;
  std::size_t shown = 0;
  model.watch = [&](const std::string& name, const Tensor& x) {
    ++shown;
    BOOST_TEST((x.to_doubles() == step[batch + "activations." + name]), batch << name);
  };
  for (std::int64_t place = 0; place < 2; ++place) {
    batch = nn::batch_prefix(place);
    const nn::Batch read{.tokens = step.ints(batch + "tokens"),
                         .lengths = step.ints(batch + "lengths"),
                         .targets = step.ints(batch + "targets")};
    Tape tape;
    nn::Loss loss;
    {
      const Recording recording(tape);
      loss = model.loss_of(read);
    }
    BOOST_TEST(loss.value.value().item() == step.number(batch + "loss"));
    const Tensor share = Tensor::from(*backend, {1}, DType::f32, step[batch + "share"]);
    tape.backward(loss.value, share);
  }
  BOOST_TEST(shown > 20u);
  for (const nn::Parameter& p : model.parameters().all()) {
    BOOST_TEST((p.var().grad().to_doubles() == step["gradients." + p.name()]), p.name());
  }
}

/// Checks that the operation Adam, applied to the values in the trace, gives the same bits as
/// training.
void repeat_update(const Arrays& step) {
  const auto backend = make_cpu_backend({.threads = 1});
  for (const std::string& name : step.under("gradients.")) {
    const auto on = [&](const std::string& array) {
      const std::vector<double> values = step[array];
      return Tensor::from(*backend, {std::ssize(values)}, DType::f32, values);
    };
    const Tensor w = on("parameters.before." + name), m = on("optimizer.before." + name + ".m"),
                 v = on("optimizer.before." + name + ".v");
    (*backend)(Adam{.parameters = {w},
                    .gradients = {on("gradients." + name)},
                    .m = {m},
                    .v = {v},
                    .decay = {step.number("decays." + name)},
                    .now = on("now"),
                    .beta1 = step.number("beta1"),
                    .beta2 = step.number("beta2"),
                    .epsilon = step.number("epsilon"),
                    .factor = on("factor")});
    BOOST_TEST((w.to_doubles() == step["parameters.after." + name]), name);
    BOOST_TEST((m.to_doubles() == step["optimizer.after." + name + ".m"]), name);
    BOOST_TEST((v.to_doubles() == step["optimizer.after." + name + ".v"]), name);
  }
}

}  // namespace step_trace_test

BOOST_FIXTURE_TEST_SUITE(step_trace_test, Program)

using namespace step_trace_test;

BOOST_AUTO_TEST_CASE(the_printed_data_of_a_step_equals_that_of_training) {
  std::ofstream(folder / "book.txt") << std::string(500, 'a') + "b c d e f g\n";
  for (const char* flags :
       {"--task flip-flop --task.instructions 8 --batch 6", "--task sorting --batch 4 --parts 2",
        "--task flip-flop --batch 8 --parts 2 --accumulation 2 --set 40 --heads softmax:2",
        "--task sorting --batch-tokens 120 --accumulation 2",
        "--task addition --batch 4 --position-ids random",
        "--task text --text book.txt --task.length 16 --batch 4", "--task boxes --batch 4"}) {
    BOOST_TEST_CONTEXT(flags) {
      std::filesystem::remove_all(folder / "r");
      const Outcome trained =
          (*this)(text("train --quiet ", small, flags, " --dump-step 4 --out r"));
      BOOST_TEST(trained.status == 0, trained.err);
      BOOST_TEST((*this)("data r --step 4 --out of-run.npz").status == 0);
      const Outcome made =
          (*this)(text("data ", small, flags, " --step 4 --out of-flags.safetensors"));
      BOOST_TEST(made.status == 0, made.err);
      const Arrays trace(path("r/step-4.npz")), run(path("of-run.npz")),
          by_flags(path("of-flags.safetensors"));
      const auto names = run.under("");
      BOOST_TEST(names.size() >= 4u);
      for (const std::string& name : names) {
        BOOST_TEST(run.same(name, trace), name);
        BOOST_TEST(run.same(name, by_flags), name);
      }
      BOOST_TEST(by_flags.under("").size() == names.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(the_data_of_a_step_is_printed_as_text_and_json) {
  const std::string flags = "data --task reversal --task.length 2-2 --batch 2 --step 1";
  const Json told = json(flags + " --json");
  BOOST_TEST(told["step"].integer() == 1);
  BOOST_REQUIRE(told["batches"].size() == 1u);
  const Json& batch = told["batches"][0];
  BOOST_TEST(batch["lengths"].size() == 2u);
  BOOST_TEST(batch["targets"].size() == batch["tokens"].size());
  const Outcome words = (*this)(flags);
  BOOST_TEST(words.status == 0);
  BOOST_TEST(std::ranges::count(words.out, '\n') == 3);
  BOOST_TEST(words.out.starts_with("batch 0: 2 sequences, "));
  BOOST_TEST(contains(words.out, "\" wants 2: "));
  refuses(2, "data --task reversal --step 0", "--step");
  refuses(2, "data --task reversal --steps 3 --step 4", "--step");
  refuses(2, "data --task reversal --step 1 --mask", "--mask: cannot be combined with --step");
  refuses(2, "data --task reversal --out x.npz", "--out: expected a folder; .npz and");
  refuses(2, "data --task reversal --step 1 --out x.npy", "because several arrays are written");
  refuses(1, "data nothing-here --step 1", "expected a run folder");
}

BOOST_AUTO_TEST_CASE(a_step_can_be_repeated_from_its_trace) {
  const std::string flags = small +
                            "--task flip-flop --task.instructions 8 --batch 8 --accumulation 2 "
                            "--decay 0.1 --clip 0.5 --warm-up 2 --heads softmax:1,fal:1 ";
  BOOST_TEST((*this)("train --quiet " + flags + "--out plain").status == 0);
  const Outcome traced =
      (*this)("train --quiet " + flags + "--dump-step 4 --out r --dump-out t.safetensors");
  BOOST_TEST(traced.status == 0, traced.err);
  BOOST_TEST(checkpoint("plain", 5) == checkpoint("r", 5));  // writing the trace changes nothing
  const Arrays step(path("t.safetensors"));
  replay(step);
  BOOST_TEST(step.number("factor") < 1);
  const Json line = metrics("r")[3];
  BOOST_TEST(step.number("step") == 4);
  BOOST_TEST(step.number("rate") == line["rate"].number());
  BOOST_TEST(step.number("norm") == line["gradient_norm"].number());
  BOOST_TEST(step.number("loss") == line["loss"].number(), boost::test_tools::tolerance(1e-12));

  const app::Config config = app::Config::read(path("r/config.ini"));
  repeat_gradients(step, config);
  repeat_update(step);
}

BOOST_AUTO_TEST_CASE(tracing_changes_no_bit_with_recomputation_or_several_parts) {
  for (const char* flags : {"--task sorting --batch 4 --recompute 1",
                            "--task flip-flop --batch 8 --parts 4 --moments bf16 --beta2 0.98"}) {
    BOOST_TEST_CONTEXT(flags) {
      for (const char* run : {"a", "b"}) std::filesystem::remove_all(folder / run);
      const Outcome a = (*this)(text("train --quiet ", small, flags, " --out a"));
      BOOST_TEST(a.status == 0, a.err);
      const Outcome b = (*this)(text("train --quiet ", small, flags, " --out b --dump-step 2"));
      BOOST_TEST(b.status == 0, b.err);
      BOOST_TEST(checkpoint("a", 5) == checkpoint("b", 5));
      BOOST_TEST(Arrays(path("b/step-2.npz")).has("batches.0.activations.logits"));
    }
  }
}

BOOST_AUTO_TEST_CASE(tracing_changes_no_bit_with_many_classes) {
  app::Config config("sorting");
  config.set("model.layers", "1");
  config.set("model.width", "16");
  nn::DecoderConfig shape = config.model(*config.task());
  shape.vocabulary = nn::many_classes + 5;
  shape.outputs = {shape.vocabulary};
  const nn::Batch batch{.tokens = {1, 4000, 7, 9}, .lengths = {4}, .targets = {4000, 7, -1, 3}};
  const auto backend = make_cpu_backend({.threads = 1});
  std::vector<std::vector<double>> before;
  std::int64_t logits = 0;
  for (const bool watched : {false, true}) {
    nn::Decoder model(*backend, shape, 3);
    if (watched) {
      model.watch = [&](const std::string& name, const Tensor& x) {
        if (name == "logits") logits += x.size();
      };
    }
    Tape tape;
    nn::Loss loss;
    {
      const Recording recording(tape);
      loss = model.loss_of(batch);
    }
    tape.backward(loss.value);
    std::vector<std::vector<double>> found{{loss.value.value().item()}};
    for (const nn::Parameter& p : model.parameters().all()) {
      found.push_back(p.var().grad().to_doubles());
    }
    if (watched) BOOST_TEST((found == before));
    before = std::move(found);
  }
  BOOST_TEST(logits == 4 * shape.vocabulary);
}

BOOST_AUTO_TEST_CASE(impossible_dumps_are_refused) {
  const std::string flags = "train --quiet --task reversal " + small;
  refuses(2, flags + "--dump-step 6 --out r", "--dump-step: expected a step from 1 to 5, got 6");
  refuses(2, flags + "--dump-step 0 --out r", "--dump-step");
  refuses(2, flags + "--dump-out x.npz --out r", "--dump-out needs --dump-step");
  refuses(2, flags + "--dump-step 1 --dump-out x.txt --out r", "ends in .npz or .safetensors");
  BOOST_TEST(!std::filesystem::exists(folder / "r"));
  BOOST_TEST((*this)(flags + "--out r").status == 0);
  refuses(1, "train --resume r --dump-step 2", "expected a step after 5, got 2");
  // A missing folder is reported before the step is executed, so the run keeps its checkpoint.
  BOOST_TEST((*this)(flags + "--dump-step 3 --dump-out no/x.npz --out s").status == 1);
  BOOST_TEST((*this)("train --resume s --dump-step 4 --quiet").status == 0);
  BOOST_TEST(std::filesystem::exists(folder / "s/step-4.npz"));
  BOOST_TEST(checkpoint("r", 5) == checkpoint("s", 5));
  BOOST_TEST((*this)("check s").status == 0);
}

BOOST_AUTO_TEST_SUITE_END()
