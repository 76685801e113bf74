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

/// Path of the MPI plug-in: the value of $LONGHAND_MPI_PLUGIN or, if this is not set,
/// liblonghand_mpi.so in the program's folder or in ../lib/longhand relative to that folder. No
/// value if there is no such file.
std::optional<std::string> find_mpi_plugin();

}  // namespace longhand::nn
