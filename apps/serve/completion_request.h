#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/sampling.h"
#include "nn/text/chat_template.h"

namespace longhand::app {

/// A request for a completion, in the form of OpenAI's interface.
struct CompletionRequest {
  bool is_chat = false;
  std::vector<nn::ChatMessage> messages = {};  // empty unless the request is a chat
  // The prompt of a completion, as text or as tokens.
  std::string prompt = {};
  std::vector<std::int32_t> prompt_tokens = {};

  std::int64_t most = 0;  // maximum number of new tokens
  nn::Sampling sampling = {};
  std::optional<std::uint64_t> seed = {};
  std::vector<std::string> stops = {};  // texts before which the completion ends
  bool streams = false;        // true: the parts of the text are sent as they are generated
  bool streams_usage = false;  // true: a stream ends with the numbers of tokens
};

/// Reads the body of a request. `otherwise` has the values of fields that the body omits. Throws an
/// Error if the body is malformed, or asks for something that this program does not do, such as
/// several completions. Unknown fields are ignored.
CompletionRequest read_completion_request(std::string_view body, CompletionRequest otherwise);

}  // namespace longhand::app
