// Tests models whose matrices stay in blocks: the command quantize, --weights and LoRA. The tests
// execute the program as a user does.
#include "core/safetensors.h"
#include "tests/paths.h"
#include "tests/program.h"

namespace quantize_command_test {

using namespace longhand;
namespace fs = std::filesystem;

/// A run of a small Llama on characters, trained for a few steps.
struct Fixture {
  Program longhand;

  Fixture() {
    std::ofstream text(longhand.path("text.txt"));
    for (int i = 0; i < 200; ++i) text << "the cat sat on the mat " << i << ". ";
    text.close();
    longhand.json(
        "train --task text --text text.txt --task.length 32 --width 64 --inner 128 --layers 2 "
        "--heads softmax:2 --norm rms --order sequential --gated 1 --activation silu "
        "--feed-forward-bias 0 --attention-bias 0 --out-bias 0 --steps 20 --batch 4 "
        "--evaluate-samples 0 --quiet --out run --json");
  }
  std::string said(const std::string& words) const {
    const std::string flags = " --prompt 'the cat' --tokens 12 --temperature 0 --math exact --json";
    return longhand.json("generate " + words + flags)["text"].string();
  }
  std::string model(const std::string& run, int step = 0) const {
    return longhand.path(text(run, "/checkpoints/step-", step, "/model.safetensors"));
  }
};

}  // namespace quantize_command_test

BOOST_FIXTURE_TEST_SUITE(quantize_command_test, Fixture)

BOOST_AUTO_TEST_CASE(a_quantized_run_answers_as_the_run_whose_weights_are_rounded_when_loaded) {
  const Json made = longhand.json("quantize run --type q8_0 --out small --json")["rows"][0];
  BOOST_TEST(made["type"] == "q8_0");
  BOOST_TEST(made["matrices"].integer() >= 8);
  BOOST_TEST(said("small") == said("run --weights q8_0"));
  BOOST_TEST(said("small --weights f32") == said("small"));
  BOOST_TEST(longhand("check small").status == 0);
  BOOST_TEST(longhand.json("describe small --json")["state"] == "quantized");
  BOOST_TEST(3 * fs::file_size(model("small")) < fs::file_size(model("run", 20)));
  // The exported file stores the same blocks, and it can be read without decoding them.
  longhand.json("export small --gguf small.gguf --type q8_0 --json");
  BOOST_TEST(said("small.gguf --weights file") == said("small.gguf"));
  longhand.json("import small.gguf --weights file --out again --json");
  BOOST_TEST(said("again") == said("small.gguf --weights file"));
  BOOST_TEST(fs::file_size(model("again")) < fs::file_size(model("small")) + 4096);
}

BOOST_AUTO_TEST_CASE(lora_trains_beside_matrices_in_blocks_and_resumes_bit_for_bit) {
  longhand.json("quantize run --type q4_0 --out small --json");
  const std::string flags =
      "--from small --text text.txt --weights file --lora 2 --batch 2 "
      "--checkpoint-every 2 --evaluate-samples 0 --quiet --json";
  longhand.json("train " + flags + " --steps 4 --out whole");
  fs::copy(longhand.path("whole"), longhand.path("half"), fs::copy_options::recursive);
  fs::remove_all(fs::path(model("half", 4)).parent_path());
  longhand.json("train --resume half --quiet --json");
  BOOST_TEST((contents(model("whole", 4)) == contents(model("half", 4))));
  // The matrices have the bytes of `small`.
  const auto before = SafetensorsFile::open(model("small"));
  const auto after = SafetensorsFile::open(model("whole", 4));
  std::size_t blocks = 0;
  for (const SafetensorsEntry& entry : before.entries()) {
    if (entry.dtype != DType::u8) continue;
    const SafetensorsEntry& same = after.at(entry.name);
    BOOST_TEST(
        std::equal(entry.bytes.begin(), entry.bytes.end(), same.bytes.begin(), same.bytes.end()));
    ++blocks;
  }
  BOOST_TEST(blocks >= 8u);
  // LoRA matrices stay numbers if the other matrices are rounded.
  BOOST_TEST(said("whole --weights q8_0").size() > 0u);
  longhand.json("export whole --gguf tuned.gguf --json");
  BOOST_TEST(said("tuned.gguf").size() > 0u);
  longhand.json("export whole --adapter --out adapter --json");
  BOOST_TEST(fs::exists(longhand.path("adapter/adapter_model.safetensors")));
  // All parameters can be trained if --weights file is omitted, because the blocks are decoded.
  longhand.json(
      "train --from small --text text.txt --steps 1 --batch 2 --evaluate-samples 0 "
      "--quiet --out full --json");
}

BOOST_AUTO_TEST_CASE(wrong_types_and_damaged_files_are_refused) {
  longhand.refuses(2, "quantize run --type q3 --out small", "--type: expected ");
  longhand.refuses(2, "quantize --type q8_0 --out small", "expected one run folder");
  longhand.refuses(2, "generate run --weights q9 --prompt a", "--weights: expected f32, bf16, ");
  longhand.json("quantize run --type q8_0 --out small --json");
  longhand.refuses(1, "quantize run --type q8_0 --out small", "the folder already holds a run");
  longhand.refuses(1, "train --from small --text text.txt --weights file --steps 1 --out x",
                   "--lora trains matrices that are added to them");
  std::string bytes = contents(model("small"));
  bytes[bytes.size() - 100] ^= 1;
  std::ofstream(model("small"), std::ios::binary) << bytes;
  longhand.refuses(1, "generate small --prompt a", "damaged");
}

BOOST_AUTO_TEST_SUITE_END()
