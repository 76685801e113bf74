#include "nn/gpt_neox.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>

#include "autograd/tape.h"
#include "core/error.h"

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

// Golden files by tests/golden/gpt_neox.py: what transformers computes for a ragged batch.
BOOST_AUTO_TEST_SUITE(gpt_neox_test)

namespace {

const fs::path golden = fs::path(LONGHAND_TEST_DATA) / "golden";

struct Golden {
  SafetensorsFile file;
  DecoderConfig config;
  Batch batch;

  explicit Golden(const std::string& name)
      : file(SafetensorsFile::open(golden / ("gpt_neox_" + name + ".safetensors"))),
        config(gpt_neox_config(file.metadata().at("config"), name)) {
    batch.tokens = file.to_i32("golden.tokens");
    batch.lengths = file.to_i32("golden.lengths");
    batch.targets = file.to_i32("golden.targets");
  }
  std::vector<double> values(const std::string& name) const {
    const auto bytes = file.at(name).bytes;
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return {floats.begin(), floats.end()};
  }
};

/// The largest difference, relative to the largest entry expected.
double distance(const std::vector<double>& expected, const std::vector<double>& got) {
  BOOST_REQUIRE(expected.size() == got.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(expected[i] - got[i]);
    worst = difference <= worst ? worst : difference;  // NaN gets through
  }
  return largest > 0 ? worst / largest : worst;
}

/// Rows of a projection in Hugging Face's order.
std::vector<double> their_rows(const std::vector<double>& ours, const HeadList& heads) {
  const auto rows = gpt_neox_rows(heads);
  const std::size_t width = ours.size() / rows.size();
  std::vector<double> theirs(ours.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t j = 0; j < width; ++j) {
      theirs[static_cast<std::size_t>(rows[r]) * width + j] = ours[r * width + j];
    }
  }
  return theirs;
}

void agrees_with_transformers(Backend& backend, DType type, double tolerance) {
  for (const std::string name : {"parallel", "sequential"}) {
    const Golden expected(name);
    Decoder decoder(backend, expected.config, 0, type);
    read_gpt_neox(expected.file, decoder);

    const Input input = make_input(backend, expected.batch.tokens, expected.batch.lengths);
    const Var logits = decoder.logits(decoder.features(input));
    BOOST_TEST(distance(expected.values("golden.logits"), logits.value().to_doubles()) < tolerance);

    Tape tape;
    Loss loss;
    {
      const Recording recording(tape);
      loss = decoder.loss(expected.batch);
      tape.backward(loss.value);
    }
    BOOST_TEST(distance(expected.values("golden.loss"), loss.value.value().to_doubles()) <
               tolerance);
    for (const Parameter& p : decoder.parameters().all()) {
      auto gradient = p.var().grad().to_doubles();
      if (p.name().find("query_key_value") != std::string::npos) {
        gradient = their_rows(gradient, expected.config.heads.front());
      }
      BOOST_TEST_CONTEXT(name << " " << p.name()) {
        BOOST_TEST(distance(expected.values("gradient." + p.name()), gradient) < tolerance);
      }
    }
  }
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("longhand_gpt_neox_" + std::to_string(getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

void expect(const std::function<void()>& action, const std::string& message) {
  BOOST_CHECK_EXCEPTION(action(), Error, [&](const Error& e) {
    BOOST_TEST(std::string(e.what()).find(message) != std::string::npos, e.what());
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_loss_and_every_gradient_are_those_of_transformers) {
  // transformers computed in f32; of the two sides ours in f64 is the exact one.
  agrees_with_transformers(*make_reference_backend(), DType::f64, 2e-5);
  agrees_with_transformers(*make_reference_backend(), DType::f32, 2e-5);
  agrees_with_transformers(*make_cpu_backend({.threads = 2, .math = Math::exact}), DType::f32,
                           4e-5);
}

BOOST_AUTO_TEST_CASE(an_export_imports_as_the_same_model) {
  const auto backend = make_reference_backend();
  const Golden expected("sequential");
  Decoder decoder(*backend, expected.config, 0);
  read_gpt_neox(expected.file, decoder);
  const Folder folder;
  export_gpt_neox(decoder, folder.path);
  const auto again = import_gpt_neox(folder.path, *backend);
  BOOST_TEST((again->config().heads == decoder.config().heads));
  BOOST_TEST(again->config().rope_share == 0.5);
  BOOST_TEST(again->config().rope_base == 500.0);
  BOOST_TEST((again->config().order == Order::sequential));
  BOOST_TEST((again->config().activation == Activation::gelu_tanh));
  BOOST_TEST(again->config().epsilon == 1e-3);
  for (std::size_t i = 0; i < decoder.parameters().all().size(); ++i) {
    BOOST_TEST(decoder.parameters().all()[i].value().to_doubles() ==
               again->parameters().all()[i].value().to_doubles());
  }
  // The file's rows are Hugging Face's.
  const auto file = SafetensorsFile::open(folder.path / "model.safetensors");
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto& original = expected.file.at(entry.name);
    BOOST_TEST(std::equal(entry.bytes.begin(), entry.bytes.end(), original.bytes.begin(),
                          original.bytes.end()),
               entry.name);
  }
}

BOOST_AUTO_TEST_CASE(models_without_a_hugging_face_form_are_not_exported) {
  const auto backend = make_reference_backend();
  DecoderConfig config{.vocabulary = 5, .width = 8, .layers = 1, .inner = 8};
  const Folder folder;
  const auto exported = [&](const DecoderConfig& c) {
    return [&, c] { export_gpt_neox(Decoder(*backend, c, 0), folder.path); };
  };
  config.heads = parse_layers("softmax:1,fal:1", 8);
  expect(exported(config), "expected softmax heads of one width, got softmax:1x4,fal:1x4");
  config.heads = parse_layers("softmax:1x4", 8);
  expect(exported(config), "make up the width 8, got softmax:1x4");
  config.heads = parse_layers("softmax:2", 8);
  config.outputs = {5, 5};
  expect(exported(config), "one output layer");
  BOOST_TEST(!fs::exists(folder.path));
}

BOOST_AUTO_TEST_CASE(a_wrong_configuration_is_told_in_one_line) {
  const std::string good =
      R"("model_type":"gpt_neox","vocab_size":5,"hidden_size":8,"num_hidden_layers":1,)"
      R"("intermediate_size":8,"num_attention_heads":2)";
  BOOST_TEST(gpt_neox_config("{" + good + "}", "c.json").rope_share == 0.25);
  const auto with = [&](const std::string& more) {
    return [&good, more] { gpt_neox_config("{" + good + more + "}", "c.json"); };
  };
  expect([] { gpt_neox_config("{", "c.json"); }, "c.json: expected JSON");
  expect([] { gpt_neox_config("[]", "c.json"); }, "c.json: expected a JSON object");
  expect([] { gpt_neox_config(R"({"model_type":"gpt2"})", "c.json"); },
         "model_type: expected gpt_neox, got \"gpt2\"");
  expect(with(R"(,"hidden_act":"swish")"), "hidden_act: expected gelu");
  expect(with(R"(,"vocab_size":"5")"), "vocab_size: expected an integer");
  expect(with(R"(,"num_attention_heads":3)"), "num_attention_heads: expected a divisor of 8");
  expect(with(R"(,"tie_word_embeddings":true)"), "tie_word_embeddings: expected false");
  expect(with(R"(,"rope_parameters":{"rope_type":"yarn"})"), "rope_type: expected default");
  expect(with(R"(,"rope_scaling":{"type":"linear"})"), "rope_scaling: expected none");
}

BOOST_AUTO_TEST_CASE(weights_of_another_model_are_refused_naming_the_tensor) {
  const auto backend = make_reference_backend();
  const Golden expected("parallel");
  DecoderConfig config = expected.config;
  config.inner = 32;
  const Decoder narrower(*backend, config, 0);
  expect([&] { read_gpt_neox(expected.file, narrower); },
         "tensor \"gpt_neox.layers.0.mlp.dense_h_to_4h.weight\": expected [32, 16], got [48, 16]");
  config = expected.config;
  config.layers = 3;
  const Decoder deeper(*backend, config, 0);
  expect([&] { read_gpt_neox(expected.file, deeper); }, "gpt_neox.layers.2.input_layernorm.weight");
}

BOOST_AUTO_TEST_SUITE_END()
