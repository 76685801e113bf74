#include "cuda/device_facts.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>

namespace longhand::cuda {

std::string text_of(const DeviceFacts& facts) {
  constexpr double gibibyte = 1u << 30;
  std::ostringstream out;
  out << facts.name << ", compute capability " << facts.major << '.' << facts.minor << ", "
      << facts.multiprocessors << " multiprocessors, " << std::fixed << std::setprecision(1)
      << static_cast<double>(facts.memory) / gibibyte << " GiB";
  if (facts.free > 0) out << " (" << static_cast<double>(facts.free) / gibibyte << " free)";
  return out.str();
}

int own_device(int devices) {
  // Each variable contains the number of this rank among the ranks of its machine. The first is set
  // by Open MPI, the second by MPICH and Intel MPI, and the third by Slurm.
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr) continue;
    const char* const end = value + std::strlen(value);
    int rank = 0;
    const auto [stop, error] = std::from_chars(value, end, rank);
    if (error == std::errc() && stop == end && rank >= 0) return rank % devices;
  }
  return 0;
}

}  // namespace longhand::cuda
