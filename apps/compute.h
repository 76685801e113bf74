#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "core/backend.h"

namespace longhand::app {

/// The flags of all commands that compute: --backend, --threads, --math, --seed.
std::vector<CliFlag> compute_options(std::string backend = "cpu");

BackendOptions backend_options(const Arguments& arguments);
/// The backend selected by --backend, --threads and --math.
std::shared_ptr<Backend> backend_from(const Arguments& arguments);
/// The file to which an option writes arrays. Throws UsageError unless the file's extension selects
/// an array format.
const std::string& array_file_from(const Arguments& arguments, std::string_view option);
std::uint64_t seed_from(const Arguments& arguments);

}  // namespace longhand::app
