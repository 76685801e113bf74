// Fuzz target for chat templates. The input is used in three ways: as the Jinja text of a template,
// as a tokenizer_config.json that contains such a text, and as every message of a conversation. A
// template must be recognized or refused. The conversation contains an answer of the assistant and
// ends with a message of the user. The prompt that a published template writes for this
// conversation must contain the assistant's answer.
#include <vector>

#include "core/utf8.h"
#include "nn/text/chat_template.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/scratch_file.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  done_or_refused([&] { nn::ChatTemplate(nn::ChatTemplate::recognize(input, source)); });
  folder.write("tokenizer_config.json", input);
  done_or_refused(
      [&] {
        const std::string jinja = nn::ChatTemplate::jinja_of(folder.path());
        if (!jinja.empty()) nn::ChatTemplate::recognize(jinja, folder.path().string());
      },
      folder.path().string());
  if (find_broken_utf8(input) != std::string_view::npos) return 0;
  using Role = nn::ChatMessage::Role;
  for (const char* name : {"chatml", "smollm2", "qwen2", "llama3", "llama3.2", "gemma"}) {
    const nn::ChatTemplate known(name);
    const std::string words(input), said = known.answer(words);
    for (const bool has_system : {false, true}) {
      std::vector<nn::ChatMessage> messages;
      if (has_system) messages.push_back({Role::system, words});
      messages.push_back({Role::user, words});
      messages.push_back({Role::assistant, words});
      messages.push_back({Role::user, words});
      const std::string prompt = known.prompt(messages);
      require(prompt.find(said) != std::string::npos, "what was said stands in the prompt");
      require(prompt.find(known.end_of_turn()) != std::string::npos, "turns have an end");
    }
  }
  return 0;
}
