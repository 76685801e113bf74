// Fuzz target for the body of a request to `serve --model`. The first byte chooses a chat or a
// completion. An accepted request has values within the limits, whatever the body contains.
#include "apps/serve/completion_request.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool is_chat = data[0] % 2 == 0;
  done_or_refused(
      [&] {
        const app::CompletionRequest read =
            app::read_completion_request(body, {.is_chat = is_chat, .most = 7});
        require(read.is_chat == is_chat, "the body cannot change the address");
        require(is_chat ? !read.messages.empty() : read.messages.empty(), "messages are of a chat");
        require(read.most >= 1, "at least one token is generated");
        require(read.sampling.temperature >= 0 && read.sampling.top_p <= 1, "sampling is valid");
        for (const std::string& stop : read.stops) require(!stop.empty(), "a stop has text");
        for (const std::int32_t token : read.prompt_tokens) require(token >= 0, "a token is valid");
      },
      "");
  return 0;
}
