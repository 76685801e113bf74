#include "nn/ranks/nccl.h"

#include <dlfcn.h>

#include <array>
#include <vector>

#include "nn/ranks/device_plugin.h"
#include "nn/ranks/plugin_file.h"

namespace longhand::nn {
namespace {

using Words = std::array<char, 512>;

class NcclTransport final : public DeviceTransport {
 public:
  explicit NcclTransport(const LonghandDeviceRanks& devices) : devices_(devices) {}
  ~NcclTransport() override { devices_.leave(); }
  void exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
                std::size_t receive_bytes) override {
    Words error{};
    if (devices_.exchange(peer, send, send_bytes, receive, receive_bytes, error.data(),
                          error.size()) != 0) {
      throw RankLost(text("rank ", peer, "'s device cannot be reached: ", error.data()));
    }
  }

 private:
  const LonghandDeviceRanks& devices_;
};

const LonghandDeviceRanks& load(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  LONGHAND_CHECK(library, "ranks: ", file, " cannot be loaded: ", ::dlerror());
  auto* const self =
      reinterpret_cast<LonghandDeviceRanksOf*>(::dlsym(library, longhand_device_ranks_symbol));
  LONGHAND_CHECK(self, "ranks: ", file, ": expected a plug-in of longhand, got another library");
  const LonghandDeviceRanks& devices = *self();
  LONGHAND_CHECK(devices.version == longhand_device_ranks_version, "ranks: ", file,
                 ": expected version ", longhand_device_ranks_version, ", got ", devices.version);
  return devices;
}

}  // namespace

std::optional<std::string> find_nccl_plugin() {
  return find_plugin("LONGHAND_NCCL_PLUGIN", "liblonghand_nccl.so");
}

std::unique_ptr<DeviceTransport> connect_nccl(Communicator& ranks) {
  std::optional<std::string> file;
  ranks.together([&] { file = find_nccl_plugin(); });
  if (ranks.any(!file)) return nullptr;
  const LonghandDeviceRanks* devices = nullptr;
  Words error{};
  std::vector<std::byte> id;
  ranks.together([&] {
    devices = &load(*file);
    id.resize(devices->id_bytes);
    if (ranks.rank() > 0) return;
    LONGHAND_CHECK(devices->make_id(id.data(), error.data(), error.size()) == 0,
                   "ranks: ", error.data());
  });
  id = ranks.gather(std::span<const std::byte>(id));
  // `id` now contains one id per rank, in the order of ranks. Only the id of rank 0 is kept.
  id.resize(devices->id_bytes);
  ranks.together([&] {
    LONGHAND_CHECK(
        devices->join(id.data(), ranks.rank(), ranks.size(), error.data(), error.size()) == 0,
        "ranks: ", error.data());
  });
  return std::make_unique<NcclTransport>(*devices);
}

}  // namespace longhand::nn
