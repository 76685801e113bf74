// Fuzz target: parses any bytes as a tokenizer.json. They are refused by a one-line Error, or the
// tokenizer encodes a text: every id that it returns is in the vocabulary, the range of bytes of
// every token is within the text, and the tokens can be decoded.
#include <vector>

#include "core/utf8.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

void check(const nn::Tokenizer& tokenizer, std::string_view text) {
  nn::Encoder encoder(tokenizer);
  std::vector<nn::TokenId> ids;
  std::size_t before = 0;
  encoder.encode(text, {.around = true, .ranges = true}, [&](auto some, auto ranges) {
    require(some.size() == ranges.size(), "each id has a range");
    for (const nn::ByteRange range : ranges) {
      require(before <= range.end && range.begin <= range.end, "ranges are in order");
      require(range.end <= text.size(), "a range lies in the text");
      before = range.end;
    }
    ids.insert(ids.end(), some.begin(), some.end());
  });
  for (const nn::TokenId id : ids) {
    require(id < tokenizer.size() && tokenizer.parts().tokens.has(id), "an id is a token");
  }
  require(ids == encoder.encode(text), "the ids are the same with and without ranges");
  require(find_broken_utf8(tokenizer.decode(ids)) == std::string::npos, "decoded text is UTF-8");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  done_or_refused([&] {
    const nn::Tokenizer tokenizer = nn::parse_tokenizer_json(input, source);
    check(tokenizer,
          "ab  abc e\u0301 123 \n\n<s> \u2581x\u65e5\U0001f600's "
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    if (find_broken_utf8(input) == std::string::npos) check(tokenizer, input);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  return mutate_json_input(data, size, room, seed);
}
