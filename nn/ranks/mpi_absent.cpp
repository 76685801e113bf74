// Replaces mpi.cpp and nccl.cpp in a static program, which cannot load plug-ins.
#include "nn/ranks/mpi.h"
#include "nn/ranks/nccl.h"

namespace longhand::nn {

bool ranks_asked_for() { return false; }

std::optional<std::string> find_mpi_plugin() { return std::nullopt; }

std::unique_ptr<Transport> connect_mpi() {
  fail("ranks: this program is linked statically and cannot load MPI");
}

std::optional<std::string> find_nccl_plugin() { return std::nullopt; }

std::unique_ptr<DeviceTransport> connect_nccl(Communicator& /*ranks*/) { return nullptr; }

}  // namespace longhand::nn
