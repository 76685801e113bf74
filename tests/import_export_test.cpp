// Tests the commands import and export. The tests execute the program as a user does.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/safetensors.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/refusal.h"
#include "tests/small_tokenizer.h"

namespace import_export_test {

using namespace longhand;
namespace fs = std::filesystem;

struct Fixture {
  Program longhand;

  /// Writes a model of tests/golden as a folder in Hugging Face's format.
  void folder(const std::string& name, const std::string& golden) const {
    const fs::path file = fs::path(test_data) / "golden" / (golden + ".safetensors");
    fs::create_directories(longhand.path(name));
    fs::copy_file(file, longhand.path(name + "/model.safetensors"));
    std::ofstream(longhand.path(name + "/config.json"))
        << SafetensorsFile::open(file).metadata().at("config");
  }
  void same_weights(const std::string& one, const std::string& other) const {
    const auto ours = SafetensorsFile::open(longhand.path(one + "/model.safetensors"));
    const auto theirs = SafetensorsFile::open(longhand.path(other + "/model.safetensors"));
    for (const SafetensorsEntry& entry : ours.entries()) {
      const SafetensorsEntry& same = theirs.at(entry.name);
      BOOST_TEST(
          std::equal(entry.bytes.begin(), entry.bytes.end(), same.bytes.begin(), same.bytes.end()),
          entry.name);
    }
  }
};

}  // namespace import_export_test

BOOST_FIXTURE_TEST_SUITE(import_export_test, Fixture)

BOOST_AUTO_TEST_CASE(an_imported_folder_is_a_run_and_exports_unchanged) {
  for (const std::string golden :
       {"gpt2_tied", "gpt2_separate", "gpt_neox_sequential", "gpt_neox_odd"}) {
    const std::string family = golden.substr(0, golden.rfind('_'));
    folder(golden, golden);
    const Json made = longhand.json("import " + golden + " --out run-" + golden + " --json");
    BOOST_TEST(longhand.json("describe run-" + golden + " --json")["state"] == "imported");
    BOOST_TEST(made["rows"][0]["family"] == family);
    BOOST_TEST(made["rows"][0]["vocabulary"] == 11);
    const Json said =
        longhand.json("generate run-" + golden + " --prompt '3 1 4' --tokens 5 --json");
    BOOST_TEST(said["tokens"].size() == 5u);
    const Json back = longhand.json("export run-" + golden + " --out back-" + golden + " --json");
    BOOST_TEST(back["family"] == family);
    same_weights("back-" + golden, golden);
  }
}

BOOST_AUTO_TEST_CASE(an_export_names_the_tokens_that_end_a_text) {
  const auto json = [&](const std::string& file) {
    return Json::parse(contents(longhand.path(file))).value();
  };
  folder("model", "llama_tied");
  Json config = json("model/config.json");
  config["eos_token_id"] = {3, 7};
  std::ofstream(longhand.path("model/config.json")) << config.dump();
  std::ofstream(longhand.path("model/tokenizer.json")) << small_tokenizer_that_begins();
  longhand.json("import model --out several --json");
  longhand.json("export several --out several-back --json");
  for (const char* const file :
       {"several-back/config.json", "several-back/generation_config.json"}) {
    BOOST_TEST((json(file)["eos_token_id"] == Json{3, 7}), file);
    BOOST_TEST(json(file)["bos_token_id"] == 2, file);
  }
  // As in the library transformers, the tokens that end a text are those of generation_config.json
  // if this file exists.
  std::ofstream(longhand.path("model/generation_config.json")) << R"({"eos_token_id": 5})";
  longhand.json("import model --out one --json");
  longhand.json("export one --out one-back --json");
  BOOST_TEST(json("one-back/config.json")["eos_token_id"] == 5);
  longhand.refuses(1, "export one --out one-back", "expected a folder without a model");
  std::ofstream(longhand.path("model/generation_config.json")) << R"({"eos_token_id": "five"})";
  longhand.refuses(1, "import model --out other", "generation_config.json: eos_token_id");
}

BOOST_AUTO_TEST_CASE(an_imported_model_can_be_trained_with_heads_of_another_kind) {
  for (const std::string golden : {"gpt2_separate", "gpt_neox_parallel"}) {
    folder(golden, golden);
    const std::string heads = golden == "gpt2_separate" ? "'softmax:3;chacal:3'" : "chacal:2";
    longhand.json("import " + golden + " --out run-" + golden + " --heads " + heads +
                  " --gamma 0.25 --learned_gamma head --task.length 12 --steps 2 --batch 2 "
                  "--evaluate_samples 3 --json");
    // gamma is the sigmoid of a parameter. The imported weights do not contain this parameter, so
    // it starts at ln(1/3), where gamma is 0.25 as set by --gamma.
    const auto imported = SafetensorsFile::open(
        longhand.path("run-" + golden + "/checkpoints/step-0/model.safetensors"));
    const SafetensorsEntry& logits = imported.at("blocks.1.mixing.gamma_logit");
    BOOST_REQUIRE(!logits.bytes.empty());
    for (std::size_t at = 0; at < logits.bytes.size(); at += sizeof(float)) {
      float logit = 0;
      std::memcpy(&logit, logits.bytes.data() + at, sizeof logit);
      BOOST_TEST(std::abs(logit - std::log(1.0f / 3)) < 1e-6f, golden << ": " << logit);
    }
    const Json trained = longhand.json("train --resume run-" + golden + " --quiet --json");
    BOOST_TEST(trained["finished"] == true);
    const std::string metrics = contents(longhand.path("run-" + golden + "/metrics.jsonl"));
    BOOST_TEST(contains(metrics, "\"gamma 1."));
  }
}

BOOST_AUTO_TEST_CASE(invalid_imports_and_exports_are_refused_and_leave_no_files) {
  longhand.refuses(1, "import nope.gguf --out other", "nope.gguf: expected a folder with a ");
  longhand.refuses(1, "import nope.gguf", "but there is no such file or folder");
  for (const char* const form : {".gguf", ".safetensors"}) {
    longhand.refuses(2, std::string("export absent --out x") + form, "--out: expected a folder");
  }
  folder("theirs", "gpt2_tied");
  longhand.refuses(2, "import theirs", "--out");
  longhand.refuses(2, "import --out run", "one folder");
  longhand.refuses(1, "import nowhere --out run", "but there is no such file or folder");
  longhand.refuses(1, "import theirs --out run --task flip-flop",
                   "expected the model's vocabulary of 11 tokens, got a vocabulary of 5");
  longhand.refuses(2, "import theirs --out run --task nothing", "--task");
  longhand.refuses(1, "import theirs --out run --width 32", "wte.weight\": expected [11, 32]");
  longhand.refuses(2, "import theirs --out run --gamma 2", "--gamma");
  std::ofstream(longhand.path("theirs/config.json")) << R"({"model_type": "t5"})";
  longhand.refuses(1, "import theirs --out run",
                   "expected gemma3_text, gpt2, gpt_neox, llama or qwen2, got \"t5\"");
  BOOST_TEST(!fs::exists(longhand.path("run")));

  const auto trained = longhand(
      "train --task flip-flop --task.instructions 8 --heads fal:2 "
      "--width 8 --layers 1 --steps 1 --evaluate_samples 2 --out run");
  BOOST_REQUIRE_EQUAL(trained.status, 0);
  longhand.refuses(1, "export run --out out", "expected softmax heads of one width");
  longhand.refuses(2, "export run", "--out");
  longhand.refuses(1, "export nowhere --out out", "expected a run folder");
  BOOST_TEST(!fs::exists(longhand.path("out")));
  folder("again", "gpt2_tied");
  longhand.refuses(1, "import again --out run", "already holds a run");
}

BOOST_AUTO_TEST_CASE(damaged_and_non_finite_weights_are_reported_on_import) {
  folder("theirs", "gpt2_tied");
  const auto file = SafetensorsFile::open(longhand.path("theirs/model.safetensors"));
  std::vector<std::vector<std::byte>> values;
  std::vector<SafetensorsItem> items;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.dtype) values.emplace_back(entry.bytes.begin(), entry.bytes.end());
  }
  std::size_t at = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.dtype) continue;
    auto& bytes = values[at++];
    if (entry.name.ends_with("wte.weight")) {
      // A float of four bytes 0xff is NaN. This makes the first three numbers NaN.
      for (std::size_t i = 0; i < 3 * 4; ++i) bytes[i] = std::byte{0xff};
    }
    items.push_back({entry.name, *entry.dtype, entry.shape,
                     [&bytes](const SafetensorsItem::Give& give) { give(bytes); }});
  }
  write_safetensors(longhand.path("theirs/model.safetensors"), items);
  const auto outcome = longhand("import theirs --out run");
  BOOST_TEST(outcome.status == 0);
  BOOST_TEST(outcome.err ==
             "longhand import: warning: 3 entries of 1 tensors are NaN or infinite, the first in "
             "embedding.weight\n");

  std::string bytes = contents(longhand.path("theirs/model.safetensors"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(longhand.path("theirs/model.safetensors"), std::ios::binary) << bytes;
  longhand.refuses(1, "import theirs --out other", "damaged: expected data with the checksum");
  BOOST_TEST(!fs::exists(longhand.path("other")));
}

BOOST_AUTO_TEST_SUITE_END()
