#include "nn/models/hugging_face.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include "tests/check.h"

#include "core/error.h"
#include "nn/models/decode.h"
#include "tests/golden.h"
#include "tests/recorded.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(hugging_face_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

// Compares longhand's results with those of the Python library transformers. The scripts in
// tests/golden, such as gpt2.py, ran this library and stored its results in files. The batches have
// sequences of different lengths.

namespace {

#if defined(__aarch64__) || defined(__clang__)
// GCC 12 on arm64 and clang 14 on x86-64 do not support the standard name _Float16 in C++.
using Half = __fp16;
#else
using Half = _Float16;
#endif

constexpr const char* models[] = {
    "gpt_neox_parallel", "gpt_neox_sequential", "gpt_neox_odd", "gpt2_tied",      "gpt2_separate",
    "llama_tied",        "llama_biased",        "qwen2_tied",   "qwen2_windowed", "gemma3_tied"};

struct Golden {
  SafetensorsFile file;
  ForeignConfig foreign;
  Batch batch;

  explicit Golden(const std::string& name)
      : file(open_golden(name)),
        foreign(parse_config(file.metadata().at("config"), name)),
        batch(batch_in(file)) {}
  /// Number of tensors in the file that are weights of the model.
  std::int64_t parameters() const {
    return std::ranges::count_if(file.entries(), [](const SafetensorsEntry& entry) {
      return !entry.name.starts_with("golden.") && !entry.name.starts_with("gradient.");
    });
  }
  std::unique_ptr<Weights> weights() const {
    return weights_of(SafetensorsParts(SafetensorsFile::open(file.name())));
  }
  std::unique_ptr<Decoder> decoder(Backend& backend, DType type = DType::f32) const {
    auto model = std::make_unique<Decoder>(backend, foreign.config, 0, Storage{type});
    read_tensors(*weights(), foreign.family->tensors(*model));
    return model;
  }
  std::vector<double> values(const std::string& name) const { return floats_in(file, name); }
};

void agrees_with_transformers(Backend& backend, DType type, double tolerance) {
  for (const std::string name : models) {
    const Golden expected(name);
    const auto decoder = expected.decoder(backend, type);
    const Input input = make_input(backend, expected.batch.tokens, expected.batch.lengths);
    const Var logits = decoder->logits(decoder->features(input));
    double worst_gradient = 0;
    const double of_logits =
        distance(expected.values("golden.logits"), logits.value().to_doubles());
    BOOST_TEST(of_logits < tolerance, name << ": logits: " << of_logits);
    Tape tape;
    const Loss loss = recorded(tape, [&] { return decoder->loss_of(expected.batch); });
    tape.backward(loss.value);
    const double of_loss =
        distance(expected.values("golden.loss"), loss.value.value().to_doubles());
    BOOST_TEST(of_loss < tolerance, name << ": loss: " << of_loss);
    const auto tensors = expected.foreign.family->tensors(*decoder);
    BOOST_TEST(std::ssize(tensors) == expected.parameters());
    for (const Exchange& tensor : tensors) {
      const auto gradient = to_theirs(tensor, tensor.piece(tensor.ours.var().grad()).to_doubles());
      const double difference = distance(expected.values("gradient." + tensor.names[0]), gradient);
      BOOST_TEST(difference < tolerance, name << " " << tensor.names[0] << ": " << difference);
      worst_gradient = std::max(worst_gradient, difference);
    }
    // With the option --log_level=message, prints a row of the table in docs/guide/hugging_face.md.
    BOOST_TEST_MESSAGE("| " << name << " | " << backend.name() << ", " << type << " | " << of_logits
                            << " | " << of_loss << " | " << worst_gradient << " |");
  }
}

/// A temporary folder with a function to write files.
struct Folder : TemporaryFolder {
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
  }
};

/// A tensor to be written to a safetensors file. `type` is the name of its element type, and
/// `bytes` are its numbers in this type.
struct Written {
  std::string name, type;
  Shape shape;
  std::string bytes;
};

/// Returns the bytes of a safetensors file with these tensors. They may have any element type, also
/// types that longhand's own writer does not know.
std::string safetensors(const std::vector<Written>& tensors) {
  std::string header = "{", data;
  for (const Written& t : tensors) {
    std::string shape;
    for (const std::int64_t extent : t.shape.extents()) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    header += text(header.size() > 1 ? "," : "", '"', t.name, "\":{\"dtype\":\"", t.type,
                   "\",\"shape\":[", shape, "],\"data_offsets\":[", data.size(), ',',
                   data.size() + t.bytes.size(), "]}");
    data += t.bytes;
  }
  header += '}';
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

template <class T, class Convert>
std::string bytes_of(const std::vector<double>& values, Convert convert) {
  std::string bytes;
  for (const double value : values) {
    const T x = convert(value);
    bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  return bytes;
}

/// The weights in a file of tests/golden, converted to the element type `type`.
std::vector<Written> weights_of(const Golden& golden_file, const std::string& type) {
  std::vector<Written> tensors;
  for (const SafetensorsEntry& entry : golden_file.file.entries()) {
    if (entry.name.starts_with("golden.") || entry.name.starts_with("gradient.")) continue;
    const auto values = golden_file.values(entry.name);
    std::string bytes;
    if (type == "F32") {
      bytes = bytes_of<float>(values, [](double x) { return static_cast<float>(x); });
    } else if (type == "F64") {
      bytes = bytes_of<double>(values, [](double x) { return x; });
    } else if (type == "BF16") {
      bytes = bytes_of<bf16>(values, [](double x) { return bf16(static_cast<float>(x)); });
    } else {  // the type is F16
      bytes = bytes_of<Half>(values, [](double x) { return static_cast<Half>(x); });
    }
    tensors.push_back({entry.name, type, entry.shape, bytes});
  }
  return tensors;
}

std::vector<double> logits_of(Decoder& decoder, const Batch& batch) {
  const Input input = make_input(decoder.backend(), batch.tokens, batch.lengths);
  return decoder.logits(decoder.features(input)).value().to_doubles();
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_loss_and_every_gradient_are_those_of_transformers) {
  // The library transformers computed the expected results in f32. They have rounding errors, so
  // even exact results differ from them.
  agrees_with_transformers(*make_reference_backend(), DType::f64, 2e-5);
  agrees_with_transformers(*make_reference_backend(), DType::f32, 2e-5);
  agrees_with_transformers(*make_cpu_backend({.threads = 2, .math = Math::exact}), DType::f32,
                           4e-5);
}

BOOST_AUTO_TEST_CASE(an_export_imports_as_the_same_model) {
  const auto backend = make_reference_backend();
  for (const std::string name : models) {
    const Golden expected(name);
    const auto decoder = expected.decoder(*backend);
    const Folder folder;
    BOOST_TEST(export_model(*decoder, folder / "out") == expected.foreign.family->type);
    const auto again = import_model(folder / "out", *backend);
    BOOST_TEST(logits_of(*again, expected.batch) == logits_of(*decoder, expected.batch));
    const DecoderConfig &before = expected.foreign.config, &after = again->config();
    BOOST_TEST(text_of(after.mixers) == text_of(before.mixers));
    BOOST_TEST((after.order == before.order));
    BOOST_TEST((after.positions == before.positions));
    BOOST_TEST((after.start == before.start));
    BOOST_TEST((after.activation == before.activation));
    BOOST_TEST(after.epsilon == before.epsilon);
    BOOST_TEST(after.longest == before.longest);
    BOOST_TEST(after.deviation == before.deviation);
    // The tensors in the exported file must have the same bytes as in the original file.
    const auto file = SafetensorsFile::open(folder / "out" / "model.safetensors");
    BOOST_TEST(std::ssize(file.entries()) == expected.parameters());
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto& original = expected.file.at(entry.name);
      BOOST_TEST(original.shape == entry.shape);
      BOOST_TEST(std::equal(entry.bytes.begin(), entry.bytes.end(), original.bytes.begin(),
                            original.bytes.end()),
                 name << " " << entry.name);
    }
    expect_refusal([&] { export_model(*decoder, folder / "out"); },
                   "expected a folder without a model");
  }
}

BOOST_AUTO_TEST_CASE(both_forms_of_a_configuration_agree) {
  for (const std::string name :
       {"llama_tied", "llama_biased", "qwen2_tied", "qwen2_windowed", "gemma3_tied"}) {
    const Golden golden_file(name);
    const DecoderConfig old =
        parse_config(golden_file.file.metadata().at("config_v4"), name).config;
    const DecoderConfig& now = golden_file.foreign.config;
    BOOST_TEST(text_of(old.mixers) == text_of(now.mixers));
    BOOST_TEST(old.epsilon == now.epsilon);
    BOOST_TEST(old.tied == now.tied);
    BOOST_TEST((old.projection_bias == now.projection_bias && old.mixing_bias == now.mixing_bias));
  }
  BOOST_TEST(text_of(Golden("qwen2_windowed").foreign.config.mixers) ==
             "softmax:3x8;softmax:3x8{window=4}");
}

BOOST_AUTO_TEST_CASE(greedy_decoding_agrees_with_transformers) {
  const auto backend = make_cpu_backend({.threads = 1, .math = Math::exact});
  for (const std::string name :
       {"llama_tied", "llama_biased", "qwen2_tied", "qwen2_windowed", "gemma3_tied"}) {
    const Golden expected(name);
    const auto decoder = expected.decoder(*backend);
    const std::vector<std::int32_t> prompt(
        expected.batch.tokens.begin(), expected.batch.tokens.begin() + expected.batch.lengths[0]);
    const auto said = generate(*decoder, {&prompt, 1}, {.most = 64});
    BOOST_TEST(said[0] == expected.file.to_i32("golden.said"), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(configurations_describe_the_golden_models) {
  const Golden tied("gpt2_tied"), separate("gpt2_separate"), neox("gpt_neox_sequential");
  const auto heads = [](const Golden& model) {
    return dynamic_cast<const SoftmaxHeads&>(*model.foreign.config.mixers.front().front());
  };
  BOOST_TEST(tied.foreign.config.tied);
  BOOST_TEST(tied.foreign.config.inner == 64);  // n_inner is null in the file, so inner = 4 * width
  BOOST_TEST((tied.foreign.config.activation == Activation::gelu_tanh));
  BOOST_TEST(heads(tied).scores.scale == 0);
  BOOST_TEST(!separate.foreign.config.tied);
  BOOST_TEST(heads(separate).scores.scale == 1);
  BOOST_TEST((separate.foreign.config.activation == Activation::gelu));
  BOOST_TEST(heads(neox).rope.share == 0.5);
  BOOST_TEST(heads(neox).rope.base == 500.0);
  BOOST_TEST((neox.foreign.config.order == Order::sequential));
}

BOOST_AUTO_TEST_CASE(weights_of_any_float_type_and_with_either_kind_of_names_are_read) {
  const auto backend = make_reference_backend();
  for (const std::string name : {"gpt2_tied", "gpt_neox_parallel"}) {
    const Golden expected(name);
    const auto exact = logits_of(*expected.decoder(*backend), expected.batch);
    for (const auto& [type, tolerance] :
         {std::pair("F32", 0.0), {"F64", 0.0}, {"F16", 4e-3}, {"BF16", 4e-2}}) {
      const Folder folder;
      folder.put("config.json", expected.file.metadata().at("config"));
      std::vector<Written> tensors = weights_of(expected, type);
      // The tensors of gpt2_tied have other names, those of the first GPT-2 files that were
      // published.
      if (name == "gpt2_tied") {
        for (Written& t : tensors) t.name = t.name.substr(std::string("transformer.").size());
        // Early GPT-2 files also contain a tensor h.0.attn.bias, which the model does not need.
        tensors.push_back({"h.0.attn.bias", "U8", {2}, "ab"});
      }
      folder.put("model.safetensors", safetensors(tensors));
      const auto model = import_model(folder.path(), *backend);
      BOOST_TEST_CONTEXT(name << " " << type) {
        const double far = distance(exact, logits_of(*model, expected.batch));
        BOOST_TEST(far <= tolerance);
        BOOST_TEST((far > 0) == (tolerance > 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_half_precision_number_is_read_exactly) {
  const auto backend = make_reference_backend();
  const Parameters parameters(*backend, {DType::f64}, 0);
  Parameters mine(*backend, {DType::f64}, 0);
  const Parameter all = mine.add("all", {1 << 16}, constant(0), false);
  std::string bytes;
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    bytes.append(reinterpret_cast<const char*>(&half), 2);
  }
  const std::string file = safetensors({{"all", "F16", {1 << 16}, bytes}});
  const auto weights = nn::weights_of(
      SafetensorsParts(SafetensorsFile::parse(std::as_bytes(std::span(file)), "memory")));
  read_tensors(*weights, std::vector<Exchange>{{all, {"all"}}});
  const auto values = all.value().to_doubles();
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    Half same;
    std::memcpy(&same, &half, sizeof same);
    const auto expected = static_cast<double>(same);
    if (std::isnan(expected)) {
      BOOST_REQUIRE(std::isnan(values[bits]));
    } else {
      BOOST_REQUIRE_EQUAL(values[bits], expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_are_read_by_their_index) {
  const auto backend = make_reference_backend();
  for (const std::string name : {"gpt2_separate", "gpt_neox_sequential"}) {
    const Golden expected(name);
    const Folder folder;
    folder.put("config.json", expected.file.metadata().at("config"));
    const std::vector<Written> tensors = weights_of(expected, "F32");
    std::vector<Written> shards[2];
    std::string map;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      shards[i % 2].push_back(tensors[i]);
      map += text(i ? "," : "", '"', tensors[i].name, "\":\"shard-", i % 2, ".safetensors\"");
    }
    folder.put("shard-0.safetensors", safetensors(shards[0]));
    folder.put("shard-1.safetensors", safetensors(shards[1]));
    const auto with_map = [&](const std::string& entries) {
      folder.put("model.safetensors.index.json", "{\"weight_map\":{" + entries + "}}");
    };
    with_map(map);
    const auto model = import_model(folder.path(), *backend);
    BOOST_TEST(logits_of(*model, expected.batch) ==
               logits_of(*expected.decoder(*backend), expected.batch));

    const auto refuses = [&](const std::string& message) {
      expect_refusal([&] { import_model(folder.path(), *backend); }, message);
    };
    with_map(map + ",\"x\":\"../shard-0.safetensors\"");
    refuses(
        "\"x\": expected the name of a file in the same folder, got "
        "\"\\\"../shard-0.safetensors\\\"\"");
    with_map(map + ",\"x\":3");
    refuses("\"x\": expected the name of a file in the same folder, got \"3\"");
    with_map(map + ",\"x\":\"gone.safetensors\"");
    refuses("gone.safetensors");
    with_map("");
    refuses("expected a weight_map, an object that maps tensor names to files");
    // Writes an index file that assigns a tensor to the wrong file, then one that omits the tensor.
    const std::string first = text('"', tensors[0].name, "\":\"shard-0");
    BOOST_REQUIRE(map.starts_with(first));
    with_map(text('"', tensors[0].name, "\":\"shard-1", map.substr(first.size())));
    refuses("shard-1.safetensors: has no tensor \"" + tensors[0].name + "\", which");
    with_map(map.substr(map.find(',') + 1));
    refuses("has no tensor \"" + tensors[0].name);
    folder.put("model.safetensors.index.json", "{");
    refuses("expected a JSON object");
  }
}

BOOST_AUTO_TEST_CASE(models_without_a_hugging_face_format_are_not_exported) {
  const auto backend = make_reference_backend();
  const Folder folder;
  const auto refuses = [&](auto change, const std::string& message) {
    DecoderConfig config{.vocabulary = 5,
                         .width = 8,
                         .layers = 2,
                         .mixers = parse_layers("softmax:2", 8),
                         .inner = 8};
    change(config);
    expect_refusal([&] { export_model(Decoder(*backend, config, 0), folder / "out"); }, message);
  };
  refuses([](auto& c) { c.mixers = parse_layers("softmax:1,fal:1", 8); },
          "expected softmax heads of one width in all layers, got softmax:1x4,fal:1x4");
  refuses([](auto& c) { c.mixers = parse_layers("softmax:2;softmax:1", 8); }, "got softmax:2x4;");
  refuses([](auto& c) { c.mixers = parse_layers("softmax:1x4", 8); },
          "add up to 8, the width of the model, got softmax:1x4");
  refuses([](auto& c) { c.outputs = {5, 5}; }, "one output layer");
  refuses([](auto& c) { set_option(c.mixers, "window", "3"); }, "got a window of 3");
  refuses([](auto& c) { set_option(c.mixers, "temper", "position"); },
          "without the option \"temper\", got heads with this option");
  refuses([](auto& c) { c.norm = NormKind::rms; }, "no Hugging Face family matches this model");
  refuses([](auto& c) { c.gated = true; }, "feed forwards with biases and without gates");
  refuses([](auto& c) { c.mixers = parse_layers("softmax:2/1", 8); }, "got softmax:2/1x4");
  refuses([](auto& c) { c.positions = Positions::none; }, "gpt_neox: expected rotary positions");
  refuses([](auto& c) { c.tied = true; }, "gpt_neox: expected an output layer that is not tied");
  refuses([](auto& c) { set_option(c.mixers, "score_scale", "1"); },
          "gpt_neox: expected a score scale of 1/sqrt(width)");
  refuses([](auto& c) { c.activation = Activation::tanh; }, "activation tanh has no name");
  refuses([](auto& c) { c.mixers = parse_layers("softmax:2", c.width = 6); },
          "rounded up to an even number, is at most the width of a head, 3; got 3 rotated entries");
  const auto gpt2 = [&](auto change, const std::string& message) {
    refuses(
        [&](auto& c) {
          c.positions = Positions::learned;
          c.order = Order::sequential;
          change(c);
        },
        message);
  };
  gpt2([](auto& c) { c.order = Order::parallel; }, "gpt2: expected blocks in sequential order");
  gpt2([](auto& c) { c.mixing_bias = false; }, "gpt2: expected biases");
  gpt2([](auto& c) { c.output_bias = true; },
       "gpt2: expected an output layer without a bias, got one with a bias");
  gpt2([](auto& c) { set_option(c.mixers, "score_scale", "2"); },
       "gpt2: expected a score scale of 1/sqrt(width) or 1");
  BOOST_TEST(!fs::exists(folder / "out"));
}

BOOST_AUTO_TEST_CASE(heads_of_other_kinds_load_the_same_weights) {
  // GPT-2's weights are loaded into a model with ChaCAL heads. With gamma 0, ChaCAL is standard
  // attention, so both models have the same outputs.
  const auto backend = make_reference_backend();
  const Golden expected("gpt2_separate");
  DecoderConfig config = expected.foreign.config;
  config.mixers = parse_layers("chacal:3;softmax:1,chacal:1,softmax:1", config.width,
                               {{"gamma", "0"}, {"score_scale", "1"}});
  Decoder chained(*backend, config, 0);
  read_tensors(*expected.weights(), expected.foreign.family->tensors(chained));
  const auto plain = logits_of(*expected.decoder(*backend), expected.batch);
  BOOST_TEST(distance(plain, logits_of(chained, expected.batch)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_wrong_configuration_is_refused_in_one_line) {
  const std::string neox =
      R"("model_type":"gpt_neox","vocab_size":5,"hidden_size":8,"num_hidden_layers":1,)"
      R"("intermediate_size":8,"num_attention_heads":2)";
  const std::string gpt2 = R"("model_type":"gpt2","n_embd":8,"n_head":2)";
  const auto parse = [](const std::string& fields) {
    return parse_config(fields, "c.json").config;
  };
  BOOST_TEST(text_of(parse("{" + neox + "}").mixers) == "softmax:2x4{rope_share=0.25}");
  BOOST_TEST(parse("{" + gpt2 + "}").vocabulary == 50257);
  const auto refuses = [&](const std::string& good, const std::string& more,
                           const std::string& message) {
    expect_refusal([&] { parse("{" + good + more + "}"); }, message);
  };
  expect_refusal([&] { parse("{"); }, "c.json: expected JSON");
  expect_refusal([&] { parse("[]"); }, "c.json: expected a JSON object");
  expect_refusal([&] { parse(R"({"model_type":"bert"})"); },
                 "model_type: expected gemma3_text, gpt2, gpt_neox, llama or qwen2, got \"bert\"");
  const std::string llama =
      R"("model_type":"llama","vocab_size":5,"hidden_size":8,"num_hidden_layers":2,)"
      R"("intermediate_size":8,"num_attention_heads":2)";
  BOOST_TEST(text_of(parse("{" + llama + "}").mixers) == "softmax:2x4");
  BOOST_TEST(text_of(parse("{" + llama + R"(,"head_dim":6,"num_key_value_heads":1})").mixers) ==
             "softmax:2/1x6");
  refuses(llama, R"(,"num_key_value_heads":3)", "num_key_value_heads: expected a divisor of 2");
  refuses(llama, R"(,"head_dim":3)", "head_dim: expected an even number");
  refuses(llama, R"(,"num_hidden_layers":1000000)", "num_hidden_layers: expected at most 1000");
  refuses(llama, R"(,"rope_scaling":{"type":"yarn"})", "rope_type: expected default or llama3");
  refuses(llama, R"(,"rope_parameters":{"rope_type":"llama3","high_freq_factor":1})",
          "0 < low_freq_factor < high_freq_factor");
  refuses(llama, R"(,"quantization_config":{})", "quantization_config: expected none");
  const std::string qwen = llama + R"(,"model_type":"qwen2")";
  refuses(qwen, R"(,"layer_types":["full_attention"])",
          "layer_types: expected one type for each of 2");
  refuses(qwen, R"(,"layer_types":["full_attention","chunked"])",
          "layer_types: expected full_attention or sliding_attention");
  refuses(qwen, R"(,"layer_types":["full_attention","sliding_attention"])",
          "sliding_window: expected an integer");
  refuses(neox, R"(,"hidden_act":"swish")", "hidden_act: expected gelu");
  refuses(neox, R"(,"vocab_size":"5")", "vocab_size: expected an integer");
  refuses(neox, R"(,"num_attention_heads":3)", "num_attention_heads: expected a divisor of 8");
  refuses(neox, R"(,"tie_word_embeddings":true)", "tie_word_embeddings: expected false");
  refuses(neox, R"(,"rope_parameters":{"rope_type":"yarn"})", "rope_type: expected default");
  refuses(neox, R"(,"rope_scaling":{"type":"linear"})", "rope_scaling: expected none");
  refuses(gpt2, R"(,"n_head":3)", "n_head: expected a divisor of 8 (n_embd), got 3");
  refuses(gpt2, R"(,"n_layer":0)", "n_layer: expected an integer from 1 to 1e9, got \"0\"");
  refuses(gpt2, R"(,"activation_function":"mish")", "activation_function: expected gelu");
  refuses(gpt2, R"(,"scale_attn_by_inverse_layer_idx":true)", "expected false, got true");
  refuses(gpt2, R"(,"layer_norm_epsilon":"small")", "layer_norm_epsilon: expected a number");
}

BOOST_AUTO_TEST_CASE(weights_of_another_model_are_refused_naming_the_tensor) {
  const auto backend = make_reference_backend();
  const Golden neox("gpt_neox_parallel"), gpt2("gpt2_tied");
  const auto refuses = [&](const Golden& file, auto change, const std::string& message) {
    DecoderConfig config = file.foreign.config;
    change(config);
    const Decoder other(*backend, config, 0);
    expect_refusal([&] { read_tensors(*file.weights(), file.foreign.family->tensors(other)); },
                   message);
  };
  refuses(
      neox, [](auto& c) { c.inner = 32; },
      "tensor \"gpt_neox.layers.0.mlp.dense_h_to_4h.weight\": expected [32, 16], got [48, 16]");
  refuses(
      neox, [](auto& c) { c.layers = 3; }, "gpt_neox.layers.2.input_layernorm.weight");
  refuses(
      gpt2, [](auto& c) { c.inner = 32; },
      "tensor \"transformer.h.0.mlp.c_fc.weight\": expected [16, 32], got [16, 64]");
  refuses(
      gpt2, [](auto& c) { c.longest = 15; }, "\"transformer.wpe.weight\": expected [15, 16]");
  refuses(
      gpt2, [](auto& c) { c.tied = false; }, "has no tensor \"lm_head.weight\"");
}

BOOST_AUTO_TEST_CASE(a_configuration_larger_than_its_weights_allocates_no_memory) {
  const auto backend = make_reference_backend();
  const Golden file("gpt2_tied");
  const Folder folder;
  folder.put("model.safetensors", safetensors(weights_of(file, "F32")));
  for (const char* field : {"vocab_size", "n_positions", "n_layer"}) {
    const std::string good = file.file.metadata().at("config");
    const std::string huge = text("\"", field, "\": 1000000000, ");
    std::string json = good;
    const std::size_t at = json.find(text("\"", field, "\""));
    json.replace(at, json.find(',', at) - at + 2, huge);
    folder.put("config.json", json);
    expect_refusal([&] { import_model(folder.path(), *backend); },
                   std::string_view(field) == "n_layer"
                       ? "n_layer: expected at most 1000, got 1000000000"
                       : "parameters, as the configuration says");
  }
  folder.put("config.json", std::string(2 << 20, ' '));
  expect_refusal([&] { import_model(folder.path(), *backend); }, "expected at most 1048576 bytes");
  fs::remove(folder / "config.json");
  expect_refusal([&] { import_model(folder.path(), *backend); }, "config.json: cannot be read");
}

BOOST_AUTO_TEST_SUITE_END()
