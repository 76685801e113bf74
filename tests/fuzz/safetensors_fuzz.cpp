// Fuzz target: parses any bytes as a safetensors file. They are refused, or the tensors lie within
// the input without gaps between them, and each has as many bytes as its shape requires.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/safetensors.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

void check(const SafetensorsFile& file, std::span<const std::byte> input) {
  const std::byte* next = input.data() + input.size();
  for (const auto& entry : file.entries()) next = std::min(next, entry.bytes.data());
  for (const auto& entry : file.entries()) {
    require(entry.bytes.data() == next, "tensors lie side by side");
    next += entry.bytes.size();
    require(next <= input.data() + input.size(), "a tensor ends inside the file");
    if (entry.dtype) {
      require(entry.bytes.size() ==
                  static_cast<std::size_t>(entry.shape.size()) * size_of(*entry.dtype),
              "a tensor has the bytes its shape asks for");
    }
    require(file.find(entry.name) == &entry, "a tensor is found by its name");
    done_or_refused([&] { (void)file.at(entry.name); });
    done_or_refused([&] {
      require(file.to_i32(entry.name).size() == static_cast<std::size_t>(entry.shape.size()),
              "one integer an element");
    });
  }
  require(next == input.data() + input.size(), "the last tensor ends the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  done_or_refused([&] { check(SafetensorsFile::parse(input, source), input); });
  return 0;
}

/// Mutates an input. For three inputs in four, changes only the JSON header and corrects the stored
/// length of the header. Without this correction, almost all inputs would be refused because of the
/// length, and the rest of the parser would hardly be tested.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  std::uint64_t length = 0;
  if (size >= sizeof length) std::memcpy(&length, data, sizeof length);
  // Uses libFuzzer's own mutations for one input in four, for inputs without a complete header, and
  // for inputs of the corpus that are larger than the buffer.
  if (size > room || size < sizeof length || length > size - sizeof length || seed % 4 == 0) {
    return LLVMFuzzerMutate(data, size, room);
  }
  std::uint8_t* const header = data + sizeof length;
  const std::size_t tail = size - sizeof length - length;
  const std::vector<std::uint8_t> tensors(header + length, header + length + tail);
  length = mutate_json_input(header, length, room - sizeof length - tail, seed / 4);
  std::memcpy(data, &length, sizeof length);
  std::ranges::copy(tensors, header + length);
  return sizeof length + length + tail;
}
