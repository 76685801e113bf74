#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/backend.h"

namespace longhand::app {

/// The flags of every command that computes: --backend, --threads, --math, --seed.
std::vector<Option> compute_options(std::string backend = "cpu");

BackendOptions backend_options(const Arguments& arguments);
/// The backend those flags ask for.
std::shared_ptr<Backend> backend_from(const Arguments& arguments);
std::uint64_t seed_from(const Arguments& arguments);

}  // namespace longhand::app
