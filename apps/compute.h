#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "core/backend.h"
#include "nn/options.h"

namespace longhand::app {

inline constexpr std::string_view threads_help =
    "threads; 0: one per core, or OMP_NUM_THREADS with OpenMP";
inline constexpr std::string_view math_help =
    "matrix products: exact, fast, bf16 or portable; exact: f32; fast: less exact; "
    "portable: f32, same on all CPUs";

/// A backend and its options. declare() adds a description of each member to a list. The section
/// [compute] of config.ini and the command-line flags are generated from this list.
struct ComputeSettings {
  std::string backend = "cpu";
  BackendOptions options;

  void declare(nn::Options& list);
  std::shared_ptr<Backend> make() const { return make_backend(backend, options); }
};

/// The flags of all commands that compute: --backend, --threads, --math, --seed.
std::vector<CliFlag> compute_options(std::string backend = "cpu");

ComputeSettings compute_from(const Arguments& arguments);
/// The name of the file to which an option writes arrays. Throws UsageError unless the file's
/// extension selects an array format, which must have room for several arrays if `several` is true.
const std::string& array_file_from(const Arguments& arguments, std::string_view option,
                                   bool several = false);
std::uint64_t seed_from(const Arguments& arguments);

}  // namespace longhand::app
