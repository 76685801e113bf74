// Fuzz target: reads any bytes as a .npy and as a .npz file of NumPy. They are refused, or no array
// is larger than the file. Arrays that are read as batches of tokens are consistent: their lengths
// add up to the number of tokens, and every token is in the vocabulary.
#include <algorithm>

#include "apps/run/token_arrays.h"
#include "core/npy.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/scratch_file.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"input.npy", "input.npz"}) {
    const auto file = folder.write(name, input);
    done_or_refused(
        [&] {
          const ArrayFile opened(file, "tokens");
          for (const auto& entry : opened.arrays().entries()) {
            require(entry.bytes.size() <= size, "an array is no larger than the file");
          }
        },
        file.string());
    constexpr std::int32_t vocabulary = 100;
    done_or_refused(
        [&] {
          for (const nn::Batch& batch : app::read_token_batches(file, vocabulary)) {
            std::int64_t sum = 0;
            for (const std::int32_t length : batch.lengths) sum += length;
            require(sum == std::ssize(batch.tokens), "lengths add up to the tokens");
            for (const std::int32_t token : batch.tokens) {
              require(token >= 0 && token < vocabulary, "a token is of the vocabulary");
            }
            require(batch.targets.size() % batch.tokens.size() == 0, "targets go with tokens");
          }
        },
        file.string());
  }
  return 0;
}
