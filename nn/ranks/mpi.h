#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// True if mpirun or srun started this process, even as the only rank.
bool ranks_asked_for();

/// Connects the ranks that were started together with this process. Throws an Error if the plug-in
/// is missing, or if the launcher and MPI report different numbers of ranks.
std::unique_ptr<Transport> connect_mpi();

/// Path of the MPI plug-in, if the plug-in exists: $LONGHAND_MPI_PLUGIN, or the file in the
/// program's folder or in ../lib/longhand relative to that folder.
std::optional<std::string> find_mpi_plugin();

}  // namespace longhand::nn
