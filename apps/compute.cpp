#include "apps/compute.h"

#include <limits>

#include "core/npy.h"
#include "core/quote.h"

namespace longhand::app {

void ComputeSettings::declare(nn::Options& list) {
  list.text("backend", backend, "backend: reference, cpu or cuda", "NAME",
            {"reference", "cpu", "cuda"})
      .common = true;
  list.integer("threads", options.threads, 0, 1024, threads_help).common = true;
  list.choice_of("math", options.math, {Math::exact, Math::fast, Math::bf16, Math::portable},
                 math_help, "MODE")
      .common = true;
}

std::vector<CliFlag> compute_options(std::string backend) {
  ComputeSettings settings{.backend = std::move(backend), .options = {}};
  nn::Options list;
  settings.declare(list);
  std::vector<CliFlag> flags;
  for (const nn::OptionSpec& option : list.all()) {
    flags.push_back({option.name, option.placeholder, option.help, option.default_value});
  }
  flags.push_back({"seed", "N", "seed of the random numbers", "1"});
  return flags;
}

ComputeSettings compute_from(const Arguments& arguments) {
  ComputeSettings settings;
  nn::Options list("--");
  settings.declare(list);
  try {
    for (const nn::BoundOption& option : list.all()) option.assign(arguments.word(option.name));
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    wrong_usage(error.what());
  }
  return settings;
}

const std::string& array_file_from(const Arguments& arguments, std::string_view option,
                                   bool several) {
  const std::string& file = arguments.word(option);
  if (several && file.ends_with(".npy")) {
    wrong_usage(shown_flag(option),
                ": expected a name that ends in .npz or .safetensors, because several arrays are "
                "written, got ",
                quote(file));
  }
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
