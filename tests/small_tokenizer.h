#pragma once

#include <string>

#include "core/json.h"
#include "tests/golden.h"
#include "tests/replaced.h"

namespace longhand {

/// The tokenizer.json of a byte-level tokenizer with 319 tokens, including the special tokens of
/// the chat templates.
inline std::string small_tokenizer() { return golden_json("chat_templates")["tokenizer"].dump(); }

/// small_tokenizer() with one change: it adds <|begin_of_text|> (token 2) before each text.
inline std::string small_tokenizer_that_begins() {
  return replaced(small_tokenizer(), R"("post_processor":null)",
                  R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":)"
                  R"({"id":"<|begin_of_text|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
                  R"("pair":[],"special_tokens":{"<|begin_of_text|>":{"id":"<|begin_of_text|>",)"
                  R"("ids":[2],"tokens":["<|begin_of_text|>"]}}})");
}

}  // namespace longhand
