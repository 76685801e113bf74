#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// The plug-in's file, where there is one: $LONGHAND_NCCL_PLUGIN, next to the program, or
/// ../lib/longhand from there.
std::optional<std::string> find_nccl_plugin();

/// The devices of these ranks, by NCCL: all ranks call it, after each has made its backend. Null
/// where there is no plug-in: what lies on devices then goes through the host's memory.
std::unique_ptr<DeviceTransport> connect_nccl(Communicator& ranks);

}  // namespace longhand::nn
