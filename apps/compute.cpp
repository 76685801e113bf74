#include "apps/compute.h"

#include <limits>

#include "core/npy.h"
#include "core/quote.h"

namespace longhand::app {

std::vector<CliFlag> compute_options(std::string backend) {
  return {{"backend", "NAME", "reference, cpu or cuda", std::move(backend)},
          {"threads", "N", "threads of the backend; 0: one per core", "0"},
          {"math", "MODE", "how products are computed: exact, fast or bf16", "fast"},
          {"seed", "N", "names the random numbers", "1"}};
}

BackendOptions backend_options(const Arguments& arguments) {
  const auto math = math_from_name(arguments.word("math"));
  if (!math) {
    wrong_usage("--math: expected exact, fast or bf16, got '", arguments.word("math"), "'");
  }
  return {.threads = static_cast<int>(arguments.integer("threads", 0, 1024)), .math = *math};
}

std::shared_ptr<Backend> backend_from(const Arguments& arguments) {
  const std::string& name = arguments.word("backend");
  if (name != "reference" && name != "cpu" && name != "cuda") {
    wrong_usage("--backend: expected reference, cpu or cuda, got '", name, "'");
  }
  return make_backend(name, backend_options(arguments));
}

const std::string& array_file_from(const Arguments& arguments, std::string_view option) {
  const std::string& file = arguments.word(option);
  if (!is_array_file(file)) {
    wrong_usage(shown_flag(option),
                ": expected a name that ends in .npy, .npz or .safetensors, got ", quote(file));
  }
  return file;
}

std::uint64_t seed_from(const Arguments& arguments) {
  return static_cast<std::uint64_t>(
      arguments.integer("seed", 0, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace longhand::app
