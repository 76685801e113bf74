// Fuzz target: parses any bytes as the index of a model that is divided into several safetensors
// files. They are refused, or all files in the index are in the folder of the index.
#include <filesystem>
#include <set>

#include "core/safetensors_index.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  done_or_refused([&] {
    const SafetensorsIndex index = SafetensorsIndex::parse(text, source);
    require(!index.files.empty() && index.files.size() <= SafetensorsIndex::max_files,
            "there are files, and not too many");
    const std::set<std::string> names(index.files.begin(), index.files.end());
    require(names.size() == index.files.size(), "each file is listed once");
    for (const std::string& name : index.files) {
      const auto there = (std::filesystem::path("/folder") / name).lexically_normal();
      require(there.parent_path() == "/folder" && there.filename() == name &&
                  name.find('\0') == std::string::npos,
              "a file lies in the index's folder");
    }
    std::set<std::string_view> tensors;
    for (const auto& [tensor, file] : index.tensors) {
      require(tensors.insert(tensor).second, "each tensor is in one file");
      require(file < index.files.size(), "a tensor's file is in the list");
    }
    require(!index.total || *index.total >= 0, "a total is no negative number");
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  return mutate_json_input(data, size, room, seed);
}
