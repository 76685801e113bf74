// Tests training that starts from the parameters of another run. The tests execute the program as a
// user does.
#include <cmath>

#include "core/safetensors.h"
#include "nn/training/parts.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace finetune_test {

using namespace longhand;
namespace fs = std::filesystem;

struct Fixture {
  Program longhand;

  Fixture() {
    longhand.json(
        "train --task flip-flop --task.instructions 8 --heads softmax:1,fal:1 --width 8 --layers 2 "
        "--steps 3 --evaluate_samples 2 --quiet --json --out first");
  }
  /// The names of the tensors in which two checkpoints differ.
  static std::vector<std::string> changed(const SafetensorsFile& a, const SafetensorsFile& b) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : a.entries()) {
      const auto other = b.at(entry.name).bytes;
      if (!std::equal(entry.bytes.begin(), entry.bytes.end(), other.begin(), other.end())) {
        names.push_back(entry.name);
      }
    }
    return names;
  }
};

}  // namespace finetune_test

BOOST_FIXTURE_TEST_SUITE(finetune_test, Fixture)

BOOST_AUTO_TEST_CASE(a_run_can_start_from_a_copy_of_another_runs_weights) {
  const Json made = longhand.json(
      "train --from first --task.instructions 6 --steps 4 --rate 1e-2 --keep 9 --checkpoint_every "
      "2 --evaluate_samples 2 --quiet --json --out second");
  BOOST_TEST(made["step"] == 4);
  BOOST_TEST(changed(longhand.model("first", 3), longhand.model("second", 0)).empty());
  BOOST_TEST(!changed(longhand.model("first", 3), longhand.model("second", 4)).empty());
  const std::string ini = contents(longhand.path("second/config.ini"));
  for (const char* line : {"instructions = 6\n", "steps = 4\n", "rate = 1e-2\n", "width = 8\n",
                           "heads = softmax:1,fal:1\n", "batch = 32\n"}) {
    BOOST_TEST(contains(ini, line));
  }
  BOOST_TEST(ini.find("first") == std::string::npos);

  // The run `third` repeats the training of `second`, and is resumed from its checkpoint after half
  // of the steps. It ends with the same bits. The run `first`, from which both started, is deleted
  // before `third` is resumed.
  longhand.json(
      "train --from first --from-step 3 --task.instructions 6 --steps 4 --rate 1e-2 --keep 9 "
      "--checkpoint_every 2 --evaluate_samples 2 --quiet --json --out third");
  fs::remove_all(longhand.path("first"));
  longhand.json("train --resume third --from-step 2 --quiet --json");
  BOOST_TEST(changed(longhand.model("second", 4), longhand.model("third", 4)).empty());
  longhand.json("eval second --samples 2 --json");
}

BOOST_AUTO_TEST_CASE(an_invalid_source_run_is_refused_in_one_line_and_leaves_no_files) {
  longhand.refuses(1, "train --from nowhere --out second", "expected a run folder");
  longhand.refuses(1, "train --from first --from-step 2 --out second", "no checkpoint of step 2");
  longhand.refuses(1, "train --from first --out first", "already holds a run");
  longhand.refuses(2, "train --from first --config first/config.ini --out second", "--config");
  longhand.refuses(2, "train --from first --resume first", "--from");
  longhand.refuses(2, "train --from-step 3 --task flip-flop", "--from-step");
  longhand.refuses(1, "train --from first --layers 3 --out second", "blocks.2.norm1.weight");
  longhand.refuses(1, "train --from first --layers 1 --out second", "the model has no such");
  longhand.refuses(1, "train --from first --task chains --out second", "expected F32 [");
  longhand.refuses(2, "train --from first --task nothing --out second", "--task");
  longhand.refuses(1, "train --from first --train nothing,embedding --out second",
                   "\"nothing\", which matches no parameter");
  BOOST_TEST(!fs::exists(longhand.path("second")));
}

BOOST_AUTO_TEST_CASE(only_the_named_parameters_are_trained) {
  const auto outcome = longhand(
      "train --from first --train 'blocks.1.mixing,*norm1.bias' --steps 4 --rate 1e-2 --keep 9 "
      "--checkpoint_every 2 --evaluate_samples 2 --out second");
  BOOST_TEST(outcome.status == 0);
  BOOST_TEST(contains(outcome.err,
                      "# trains 6 of 28 tensors, 304 of 1568 numbers: blocks.*.norm1.bias, "
                      "blocks.*.mixing.projection.weight, blocks.*.mixing.projection.bias, "
                      "blocks.*.mixing.out.weight, blocks.*.mixing.out.bias\n"));
  const std::vector<std::string> expected{"blocks.0.norm1.bias",
                                          "blocks.1.mixing.out.bias",
                                          "blocks.1.mixing.out.weight",
                                          "blocks.1.mixing.projection.bias",
                                          "blocks.1.mixing.projection.weight",
                                          "blocks.1.norm1.bias"};
  std::vector<std::string> learned =
      changed(longhand.model("second", 0), longhand.model("second", 4));
  std::ranges::sort(learned);
  BOOST_TEST(learned == expected, boost::test_tools::per_element());
  // Only the trained tensors have moments in the optimizer's state.
  const auto moments =
      SafetensorsFile::open(longhand.path("second/checkpoints/step-4/optimizer.safetensors"));
  BOOST_TEST(moments.entries().size() == 2 * expected.size());

  const auto whole = contents(longhand.path("second/checkpoints/step-4/model.safetensors"));
  longhand.json("train --resume second --from-step 2 --quiet --json");
  BOOST_TEST(contents(longhand.path("second/checkpoints/step-4/model.safetensors")) == whole);
}

BOOST_AUTO_TEST_CASE(only_lora_adapters_are_trained_and_can_be_exported_merged_or_alone) {
  longhand.json(
      "train --task flip-flop --task.instructions 8 --heads softmax:2/1 --width 8 --layers 2 "
      "--norm rms --order sequential --gated 1 --activation silu --attention_bias 0 "
      "--feed_forward_bias 0 --steps 1 --evaluate_samples 2 --quiet --json --out base");
  const auto outcome = longhand(
      "train --from base --lora 2 --lora-alpha 4 --lora-targets query,value,up --steps 4 --rate "
      "1e-2 --keep 9 --checkpoint_every 2 --evaluate_samples 2 --moments bf16 --beta2 0.99 "
      "--recompute 1 --out tuned");
  BOOST_TEST(outcome.status == 0, outcome.err);
  BOOST_TEST(contains(outcome.err, "# trains 12 of "));
  const auto base = longhand.model("base", 1), begun = longhand.model("tuned", 0),
             ended = longhand.model("tuned", 4);
  for (const SafetensorsEntry& entry : base.entries()) {
    for (const SafetensorsFile* file : {&begun, &ended}) {
      BOOST_TEST(std::ranges::equal(entry.bytes, file->at(entry.name).bytes), entry.name);
    }
  }
  for (const std::string& name : changed(begun, ended)) {
    BOOST_TEST(contains(name, ".lora."));
  }
  BOOST_TEST(changed(begun, ended).size() == 12u);

  const auto whole = contents(longhand.path("tuned/checkpoints/step-4/model.safetensors"));
  longhand.json("train --resume tuned --from-step 2 --quiet --json");
  BOOST_TEST(contents(longhand.path("tuned/checkpoints/step-4/model.safetensors")) == whole);

  // The export merges the adapters into the weights. The exported model has no adapters and
  // generates the same tokens.
  BOOST_TEST(longhand.json("export tuned --step 4 --out merged --json")["family"] == "llama");
  longhand.json("import merged --task flip-flop --task.instructions 8 --out again --json");
  const auto said = [&](const std::string& run) {
    return longhand.json("generate " + run + " --prompt w1i0r1i1 --tokens 6 --json");
  };
  const Json ours = said("tuned --step 4"), theirs = said("again");
  BOOST_TEST(ours["tokens"].size() == 6u);
  BOOST_TEST((ours["tokens"] == theirs["tokens"]));
  BOOST_TEST(longhand.json("export tuned --step 4 --adapter --out adapter --json")["family"] ==
             "llama");
  const auto adapter = SafetensorsFile::open(longhand.path("adapter/adapter_model.safetensors"));
  BOOST_TEST(adapter.entries().size() == 12u);
  longhand.refuses(1, "export base --adapter --out other", "without");
  longhand.refuses(1, "train --from tuned --lora 0 --out other", "the model has no such parameter");
  longhand.refuses(1, "train --from tuned --lora 3 --out other", "lora");
  longhand.refuses(2, "train --from base --lora 2 --lora-targets all --out other",
                   "--lora-targets");
  longhand.refuses(2, "train --from base --moments bf16 --out other", "beta2");
  BOOST_TEST(!fs::exists(longhand.path("other")));
  // A run with adapters can itself be the start of another training.
  longhand.json("train --from tuned --steps 1 --evaluate_samples 2 --quiet --json --out more");
  BOOST_TEST(changed(ended, longhand.model("more", 0)).empty());
}

BOOST_AUTO_TEST_CASE(lora_adapters_can_be_trained_with_bf16_matrices) {
  const std::string tuned =
      "train --from first --lora 2 --lora-targets query,output --weights bf16 --steps 4 --rate "
      "1e-2 --keep 9 --checkpoint_every 2 --evaluate_samples 2 ";
  longhand.json(tuned + "--quiet --json --out tuned");
  const auto begun = longhand.model("tuned", 0), ended = longhand.model("tuned", 4);
  const auto first = longhand.model("first", 3);
  for (const SafetensorsEntry& entry : begun.entries()) {
    const bool added = entry.name.find(".lora.") != std::string::npos;
    const bool matrix = entry.shape.rank() >= 2 && !added;
    BOOST_TEST((entry.dtype == (matrix ? DType::bf16 : DType::f32)), entry.name);
    const bool kept = std::ranges::equal(entry.bytes, ended.at(entry.name).bytes);
    BOOST_TEST(kept == !added, entry.name);
    if (!matrix && !added) {
      BOOST_TEST(std::ranges::equal(entry.bytes, first.at(entry.name).bytes), entry.name);
    }
  }
  const auto whole = contents(longhand.path("tuned/checkpoints/step-4/model.safetensors"));
  longhand.json("train --resume tuned --from-step 2 --quiet --json");
  BOOST_TEST(contents(longhand.path("tuned/checkpoints/step-4/model.safetensors")) == whole);
  longhand.json("eval tuned --samples 2 --json");

  // The losses are within 2% of those of a training with f32 matrices. They differ because bf16
  // rounds the matrices.
  longhand.json(
      "train --from first --lora 2 --lora-targets query,output --steps 4 --rate 1e-2 "
      "--evaluate_samples 2 --quiet --json --out wide");
  const auto losses = [&](const std::string& run) {
    std::vector<double> all;
    for (const Json& line : longhand.metrics(run)) {
      if (line.contains("loss")) all.push_back(line["loss"].number());
    }
    return all;
  };
  const auto shorter = losses("tuned"), wide = losses("wide");
  BOOST_TEST(shorter.size() == 4u);
  BOOST_TEST(shorter != wide);
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(std::abs(shorter[i] / wide[i] - 1) < 0.02);

  longhand.refuses(2, "train --from first --weights bf16 --out other",
                   "all parameters are trained");
  longhand.refuses(1, "train --from first --weights bf16 --train blocks.0.mixing --out other",
                   "which cannot be trained in bf16");
  longhand.refuses(2, "train --from first --lora 2 --weights f16 --out other", "--weights");
  BOOST_TEST(!fs::exists(longhand.path("other")));
}

BOOST_AUTO_TEST_CASE(patterns_match_parameters_and_their_parents) {
  using nn::matches_part;
  const std::string name = "blocks.12.mixing.out.weight";
  for (const char* pattern :
       {"*", "blocks", "blocks.12", "blocks.*.mixing", "blocks.1*", "*.weight", "*mixing*",
        "blocks.12.mixing.out.weight", "*.out", "b*o*t"}) {
    BOOST_TEST(matches_part(name, pattern), pattern);
  }
  for (const char* pattern : {"", "block", "blocks.1", "mixing", "*.bias", "blocks.*.norm1",
                              "blocks.12.mixing.out.weight.", "weight", "blocks.*.weigh", "."}) {
    BOOST_TEST(!matches_part(name, pattern), pattern);
  }
  // The time to match a pattern grows at most like the length of the pattern times the length of
  // the text.
  BOOST_TEST(!matches_part(std::string(5000, 'a'), text(std::string(2000, '*'), "b")));
  std::string stars;
  for (int i = 0; i < 300; ++i) stars += "*a";
  BOOST_TEST(!matches_part(std::string(5000, 'a'), stars + "b"));
}

BOOST_AUTO_TEST_SUITE_END()
