// Runs a fuzz target without a fuzzer: `replay CORPUS_FOLDER COUNT`. The target is executed on
// every file of the corpus, then on COUNT inputs that are made from these files by random edits.
// The edits are the same in every run. If the target defines LLVMFuzzerCustomMutator, it makes the
// edits, as it does under libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

/// Default mutator. It is weak, so a fuzz target can replace it by its own.
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                                                     std::size_t size,
                                                                     std::size_t room, unsigned) {
  return LLVMFuzzerMutate(data, size, room);
}

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t room_to_grow = 256;  // maximum bytes by which an input may grow

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& item : std::filesystem::directory_iterator(folder)) paths.push_back(item.path());
  std::ranges::sort(paths);  // the order must not depend on the file system
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    const longhand::MappedFile file(path);
    const auto* const data = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    corpus.emplace_back(data, data + file.bytes().size());
  }
  return corpus;
}

/// Makes one random edit of `input`: changes a bit, a byte or a digit, inserts or removes bytes, or
/// inserts a piece of another file of the corpus.
void edit(Bytes& input, const std::vector<Bytes>& corpus, longhand::Rng& rng) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::ptrdiff_t>(rng.below(static_cast<std::uint32_t>(bound)));
  };
  const auto any_byte = [&] { return static_cast<std::uint8_t>(rng.below(256)); };
  const auto place = input.begin() + below(input.size() + 1);
  switch (rng.below(6)) {
    case 0:
      if (place != input.end()) *place ^= static_cast<std::uint8_t>(1u << rng.below(8));
      break;
    case 1:
      if (place != input.end()) *place = any_byte();
      break;
    case 2:
      input.insert(place, 1 + rng.below(8), any_byte());
      break;
    case 3:
      input.erase(place, place + std::min<std::ptrdiff_t>(input.end() - place, 1 + below(8)));
      break;
    case 4: {  // changes a digit, because lengths, shapes and offsets are written in digits
      const auto digit =
          std::find_if(place, input.end(), [](int c) { return c >= '0' && c <= '9'; });
      if (digit != input.end()) *digit = static_cast<std::uint8_t>('0' + rng.below(10));
      break;
    }
    default: {
      const Bytes& other = corpus[static_cast<std::size_t>(below(corpus.size()))];
      const auto begin = other.begin() + below(other.size() + 1);
      input.insert(place, begin,
                   begin + std::min<std::ptrdiff_t>(other.end() - begin, 1 + below(40)));
    }
  }
}

// The corpus and the random generator that LLVMFuzzerMutate uses. They are global because
// libFuzzer's interface has no arguments for them.
const std::vector<Bytes>* corpus_at_work = nullptr;
longhand::Rng* rng_at_work = nullptr;

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room) {
  Bytes input(data, data + size);
  for (std::uint32_t edits = 1 + rng_at_work->below(4); edits > 0; --edits) {
    edit(input, *corpus_at_work, *rng_at_work);
  }
  if (input.size() > room) input.resize(room);
  std::ranges::copy(input, data);
  return input.size();
}

int main(int count_of_arguments, char** arguments) try {
  LONGHAND_CHECK(count_of_arguments == 3, "usage: replay CORPUS_FOLDER COUNT");
  const std::vector<Bytes> corpus = read_corpus(arguments[1]);
  LONGHAND_CHECK(!corpus.empty(), arguments[1], ": expected inputs, got an empty folder");
  for (const Bytes& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  const std::uint64_t runs = std::strtoull(arguments[2], nullptr, 10);
  corpus_at_work = &corpus;
  for (std::uint64_t run = 0; run < runs; ++run) {
    longhand::Rng rng(1, longhand::Purpose::test, run);
    rng_at_work = &rng;
    Bytes input = corpus[rng.below(static_cast<std::uint32_t>(corpus.size()))];
    const std::size_t size = input.size();
    input.resize(size + room_to_grow);
    input.resize(LLVMFuzzerCustomMutator(input.data(), size, input.size(), rng.below(1u << 30)));
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::cout << corpus.size() << " corpus files and " << runs << " edited inputs: no finding\n";
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
