#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Path of the NCCL plug-in: the value of $LONGHAND_NCCL_PLUGIN or, if this is not set,
/// liblonghand_nccl.so in the program's folder or in ../lib/longhand relative to that folder. No
/// value if there is no such file.
std::optional<std::string> find_nccl_plugin();

/// Connects the ranks' devices through NCCL. Every rank must call this function after it has
/// created its backend. Returns null if any rank has no plug-in. In this case, ranks exchange
/// tensors on devices through host memory.
std::unique_ptr<DeviceTransport> connect_nccl(Communicator& ranks);

}  // namespace longhand::nn
