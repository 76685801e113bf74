#include "nn/ranks/mpi.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "nn/ranks/plugin.h"
#include "nn/ranks/plugin_file.h"

namespace longhand::nn {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* const value = std::getenv(variable);
  if (!value) return std::nullopt;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Number of ranks that mpirun or srun started; no value if it is unknown.
std::optional<int> ranks_started() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto size = number_in(variable)) return size;
  }
  // The batch script of a Slurm job also counts as one task, but it is not started by srun. A
  // single task therefore does not show that srun started this process.
  const auto tasks = number_in("SLURM_STEP_NUM_TASKS");
  if (tasks && *tasks > 1 && number_in("SLURM_PROCID")) return tasks;
  return std::nullopt;
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const LonghandRanks& ranks) : ranks_(ranks) {}
  ~MpiTransport() override { ranks_.finish(); }
  int rank() const override { return ranks_.rank; }
  int size() const override { return ranks_.size; }
  bool serves_any_thread() const override { return ranks_.any_thread != 0; }
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    std::array<char, 512> error{};
    if (ranks_.exchange(peer, send.data(), send.size(), receive.data(), receive.size(),
                        error.data(), error.size()) != 0) {
      throw RankLost(text("rank ", peer, " cannot be reached: ", error.data()));
    }
  }

 private:
  const LonghandRanks& ranks_;
};

}  // namespace

bool ranks_asked_for() { return ranks_started() || number_in("PMIX_RANK"); }

std::optional<std::string> find_mpi_plugin() {
  return find_plugin("LONGHAND_MPI_PLUGIN", "liblonghand_mpi.so");
}

std::unique_ptr<Transport> connect_mpi() {
  const auto file = find_mpi_plugin();
  LONGHAND_CHECK(file,
                 "ranks: expected liblonghand_mpi.so next to the program, got none: the program "
                 "was built without -DLONGHAND_MPI=ON");
  // MPI's own plug-ins look up MPI's symbols among all loaded libraries. This requires RTLD_GLOBAL.
  void* const library = ::dlopen(file->c_str(), RTLD_NOW | RTLD_GLOBAL);
  LONGHAND_CHECK(library, "ranks: ", *file, " cannot be loaded: ", ::dlerror());
  auto* const connect =
      reinterpret_cast<LonghandConnect*>(::dlsym(library, longhand_connect_symbol));
  LONGHAND_CHECK(connect, "ranks: ", *file,
                 ": expected a plug-in of longhand, got another library");
  std::array<char, 512> error{};
  const LonghandRanks* const ranks = connect(error.data(), error.size());
  LONGHAND_CHECK(ranks, "ranks: ", error.data());
  LONGHAND_CHECK(ranks->version == longhand_ranks_version, "ranks: ", *file, ": expected version ",
                 longhand_ranks_version, ", got ", ranks->version);
  const int started = ranks_started().value_or(ranks->size);
  LONGHAND_CHECK(ranks->size == started, "ranks: ", started, " ranks were started, but MPI finds ",
                 ranks->size, ": expected a launcher that MPI knows (mpirun, or srun --mpi=pmix)");
  return std::make_unique<MpiTransport>(*ranks);
}

}  // namespace longhand::nn
