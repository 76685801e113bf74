#include "apps/book/live_pages.h"

#include <cstdint>

#include "apps/run/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"

namespace longhand::app::book {
namespace {

constexpr std::size_t largest_model = 1U << 20;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    // A group of three bytes has four digits of six bits each.
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      result += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
    }
  }
  return result;
}

}  // namespace

std::span<const LivePage> live_pages() {
  static const std::vector<LivePage> pages{
      {.name = "flip_flop",
       .title = "Flip-Flop, trained in this page",
       .summary = "Four attention mechanisms learn the same task side by side. See which of them "
                  "still answer right in texts eight times as long as those of the training.",
       .chapters = {"math/fal", "math/rules"}},
      {.name = "chains",
       .title = "Chains and ChaCAL",
       .summary = "Move gamma, and see how one layer of attention follows a chain of references "
                  "down to a value.",
       .chapters = {"math/chacal", "math/chain_depth"}},
      {.name = "tape",
       .title = "Backpropagation by hand",
       .summary = "Walk the tape of eleven numbers record by record, and compare every derivative "
                  "with its difference quotient.",
       .chapters = {"math/tape", "course/number", "course/neuron"}},
      {.name = "attention",
       .title = "Attention at work",
       .summary = "Type a text, and see what sixteen heads of a small model of text look at and "
                  "what it expects next.",
       .chapters = {"math/attention", "course/attention", "course/gpt"},
       .scripts = {"text_model"}},
  };
  return pages;
}

std::string text_model_script(const std::filesystem::path& run) {
  const RunFolder folder(run);
  LONGHAND_CHECK(
      folder.config().kind().name == "text" && folder.config().text("task.tokenizer") == "bytes",
      run.string(), ": expected a run of the task text with bytes as tokens");
  std::string ini = "[task]\nname = typed\n[model]\n";
  for (const auto& [key, value] : folder.config().settings()) {
    if (key.starts_with("model.")) ini += text(key.substr(6), " = ", value, '\n');
  }
  const std::filesystem::path file =
      folder.checkpoints() / nn::checkpoint_name(find_step(folder, {})) / "model.safetensors";
  const Json model{{"ini", ini}, {"parameters", base64(read_text(file, largest_model))}};
  return "const textModel = " + model.dump() + ";\n";
}

}  // namespace longhand::app::book
