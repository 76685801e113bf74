#include "cuda/device_facts.h"

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

}  // namespace longhand::cuda
