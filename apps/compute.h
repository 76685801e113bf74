#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "core/backend.h"

namespace longhand::app {

/// The flags of every command that computes: --backend, --threads, --math, --seed.
std::vector<Option> compute_options(std::string backend = "cpu");

BackendOptions backend_options(const Arguments& arguments);
/// The backend selected by these flags.
std::shared_ptr<Backend> backend_from(const Arguments& arguments);
/// The file in which an option has arrays written; wrong usage unless its name says in which form.
const std::string& array_file_from(const Arguments& arguments, std::string_view option);
std::uint64_t seed_from(const Arguments& arguments);

}  // namespace longhand::app
