#include "nn/layers/lora.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include "tests/check.h"

#include "autograd/low_rank.h"
#include "autograd/tolerance.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"
#include "nn/mixers/fal.h"
#include "nn/models/peft.h"
#include "tests/composed_twin.h"
#include "tests/golden.h"
#include "tests/recorded.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(lora_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

namespace {

/// A small Llama of tests/golden with LoRA adapters. If `with_values` is true, the adapters have
/// the trained values that tests/golden/peft_lora.py stored. Otherwise they have no effect.
struct Adapted {
  SafetensorsFile base = open_golden("llama_biased"), lora = open_golden("llama_lora");
  std::unique_ptr<Decoder> model;

  explicit Adapted(Backend& backend, DType type = DType::f32, bool with_values = true) {
    const ForeignConfig foreign = parse_config(base.metadata().at("config"), "golden");
    DecoderConfig config = foreign.config;
    config.lora = {
        .rank = 3, .alpha = 7, .targets = parse_lora_targets("query,value,output,gate,down")};
    model = std::make_unique<Decoder>(backend, config, 1, Storage{.type = type});
    read_tensors(*weights_of(SafetensorsParts(open_golden("llama_biased"))),
                 foreign.family->tensors(*model));
    if (with_values) {
      read_tensors(*weights_of(SafetensorsParts(open_golden("llama_lora"))),
                   adapter_tensors(*model));
    }
  }
  Batch batch() const { return batch_in(base); }
  std::vector<double> logits() const {
    const Input input =
        make_input(model->backend(), base.to_i32("golden.tokens"), base.to_i32("golden.lengths"));
    return model->logits(model->features(input)).value().to_doubles();
  }
  std::vector<double> expected(const char* name) const { return floats_in(lora, name); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_lora_operation_has_the_gradients_of_separate_operations) {
  check_composed("low_rank", [](const catalog::Call& c) -> std::vector<catalog::Output> {
    return {{"z", low_rank_composed(
                      c.in("y"), c.in("x"), c.in("a"), c.in("b"),
                      {.first_column = c.integer("first_column"), .scale = c.number("scale")})}};
  });
}

BOOST_AUTO_TEST_CASE(
    a_model_with_an_adapter_begins_as_it_was_and_agrees_with_peft_once_it_learned) {
  for (const auto& [backend, type, tolerance] :
       {std::tuple{make_reference_backend(), DType::f64, 2e-6},
        std::tuple{make_cpu_backend({.math = Math::exact}), DType::f32, 2e-5}}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const Adapted fresh(*backend, type, false);
      BOOST_TEST(distance(fresh.expected("golden.plain"), fresh.logits()) < tolerance);
      const Adapted learned(*backend, type);
      BOOST_TEST(distance(learned.expected("golden.logits"), learned.logits()) < tolerance);
      learned.model->merge_adapters();
      BOOST_TEST(learned.model->adapters().empty());
      BOOST_TEST(distance(learned.expected("golden.logits"), learned.logits()) < tolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_adapter_has_the_gradient_of_the_loss) {
  const auto backend = make_reference_backend();
  const Adapted adapted(*backend, DType::f64);
  const auto loss = [&] { return adapted.model->loss_of(adapted.batch()); };
  backpropagate([&] { return loss().value; });
  const std::vector<Exchange> all = adapter_tensors(*adapted.model);
  BOOST_TEST(all.size() == 2u * 2u * 5u);  // matrices a and b of five projections in two layers
  for (const Exchange& tensor : all) {
    const Tensor value = tensor.ours.value();
    const std::vector<double> gradient = tensor.ours.var().grad().to_doubles();
    const std::vector<double> at = value.to_doubles();
    const std::size_t entry = at.size() / 2;
    const auto moved = [&](double by) {
      std::vector<double> there = at;
      there[entry] += by;
      value.assign(there);
      const double result = loss().value.value().item();
      value.assign(at);
      return result;
    };
    const double h = 1e-4, quotient = (moved(h) - moved(-h)) / (2 * h);
    BOOST_TEST_CONTEXT(tensor.names[0]) {
      BOOST_TEST(std::abs(quotient) > 1e-7);
      BOOST_TEST(gradient[entry] == quotient, boost::test_tools::tolerance(1e-5));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_adapter_is_written_in_the_format_of_peft) {
  const auto backend = make_cpu_backend();
  const Adapted adapted(*backend);
  const TemporaryFolder folder;
  BOOST_TEST(export_adapter(*adapted.model, folder / "adapter") == "llama");
  const auto written = SafetensorsFile::open(folder / "adapter" / "adapter_model.safetensors");
  std::size_t theirs = 0;
  for (const SafetensorsEntry& entry : adapted.lora.entries()) {
    if (entry.name.starts_with("golden.")) continue;
    ++theirs;
    const SafetensorsEntry& ours = written.at(entry.name);
    BOOST_TEST((ours.shape == entry.shape));
    BOOST_TEST(std::ranges::equal(ours.bytes, entry.bytes), entry.name);
  }
  BOOST_TEST(written.entries().size() == theirs);
  const Json config =
      Json::parse(read_text(folder / "adapter" / "adapter_config.json", 1 << 16)).value();
  const Json expected = Json::parse(adapted.lora.metadata().at("adapter_config")).value();
  for (const auto& [key, value] : expected.members()) BOOST_TEST((config[key] == value), key);

  BOOST_TEST(contains(refusal([&] { export_model(*adapted.model, folder / "model"); }),
                      "adapters are merged"));
  // The folder already contains an adapter, which must not be overwritten.
  BOOST_CHECK_THROW(export_adapter(*adapted.model, folder / "adapter"), Error);
}

BOOST_AUTO_TEST_CASE(target_modules_name_the_adapted_modules_and_no_others) {
  const auto backend = make_cpu_backend();
  const auto targets = [&](const char* model, const char* adapted) {
    DecoderConfig config = parse_config(open_golden(model).metadata().at("config"), model).config;
    config.lora = {.rank = 2, .targets = parse_lora_targets(adapted)};
    const TemporaryFolder folder;
    export_adapter(Decoder(*backend, config, 1), folder / "adapter");
    const std::string json = read_text(folder / "adapter" / "adapter_config.json", 1 << 16);
    return Json::parse(json).value()["target_modules"].dump();
  };
  BOOST_TEST(targets("gpt2_tied", "output") == R"(["attn.c_proj"])");
  BOOST_TEST(targets("gpt2_tied", "down") == R"(["mlp.c_proj"])");
  BOOST_TEST(targets("gpt2_tied", "output,down") == R"(["c_proj"])");
  BOOST_TEST(targets("gpt_neox_parallel", "output,down") == R"(["dense","dense_4h_to_h"])");
  BOOST_TEST(targets("llama_biased", "query,up") == R"(["q_proj","up_proj"])");
}

BOOST_AUTO_TEST_CASE(every_kind_of_block_and_mixer_takes_adapters) {
  const auto backend = make_cpu_backend();
  DecoderConfig config{.vocabulary = 7, .width = 8, .layers = 2, .mixers = {}, .inner = 12};
  config.mixers = {{heads_of<SoftmaxHeads>(1, 4), heads_of<FalHeads>(1, 4)}};
  config.lora = {.rank = 2, .targets = parse_lora_targets("key,output,up,down")};
  Batch batch{.tokens = {1, 2, 3, 4, 5}, .lengths = {5}, .targets = {2, 3, 4, 5, 6}};
  const Decoder plain_made(
      *backend,
      [&] {
        DecoderConfig plain = config;
        plain.lora = {};
        return plain;
      }(),
      3);
  Decoder with(*backend, config, 3);
  BOOST_TEST(with.adapters().size() == 2u * (2 + 1 + 1 + 1));
  BOOST_TEST(with.parameters().count() ==
             plain_made.parameters().count() +
                 2 * 2 * (2 * (8 + 4) + (8 + 8) + (8 + 12) + (12 + 8)));
  backpropagate([&] { return with.loss_of(batch).value; });
  for (const Decoder::Adapter& adapter : with.adapters()) {
    BOOST_TEST_CONTEXT(adapter.lora.a.name()) {
      const bool fal = adapter.lora.a.name().find("mixing.1") != std::string::npos;
      BOOST_TEST(static_cast<bool>(adapter.lora.b.var().grad()));
      const auto gradient = adapter.lora.b.var().grad().to_doubles();
      const bool any = std::ranges::any_of(gradient, [](double g) { return g != 0; });
      BOOST_TEST((any || fal));  // FAL heads have no gradient if no score is positive
    }
  }
  for (const char* wrong : {"gate", "query,gate"}) {
    config.lora.targets = parse_lora_targets(wrong);
    BOOST_TEST(contains(refusal([&] { Decoder(*backend, config, 3); }),
                        "query, key, value, output, up or down"));
  }
  BOOST_CHECK_THROW(parse_lora_targets("queries"), Error);
  BOOST_CHECK_THROW(parse_lora_targets(""), Error);
  BOOST_TEST(parse_lora_targets("up,up,key").size() == 2u);
}

BOOST_AUTO_TEST_CASE(adapters_of_fused_projections_are_refused_by_name) {
  const auto backend = make_cpu_backend();
  DecoderConfig config =
      parse_config(open_golden("gpt2_tied").metadata().at("config"), "golden").config;
  config.lora = {.rank = 2, .targets = parse_lora_targets("query")};
  const Decoder decoder(*backend, config, 1);
  BOOST_TEST(contains(refusal([&] { adapter_tensors(decoder); }),
                      "got query, which is a part of transformer.h.0.attn.c_attn.weight"));
  config.lora.targets = parse_lora_targets("output,down");
  const Decoder others(*backend, config, 1);
  BOOST_TEST(adapter_tensors(others)[0].names[0] ==
             "base_model.model.transformer.h.0.attn.c_proj.lora_A.weight");
}

BOOST_AUTO_TEST_SUITE_END()
