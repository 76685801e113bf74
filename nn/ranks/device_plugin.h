#pragma once

#include <cstddef>

/// What the plug-in for NCCL (nccl/) gives the program that loads it: plain C, as
/// nn/ranks/plugin.h. Functions return 0, or not and why in `error`, of so many characters.
extern "C" {

struct LonghandDeviceRanks {
  int version;  // longhand_device_ranks_version, of the plug-in
  std::size_t id_bytes;
  /// Rank 0 makes it; all join with the same.
  int (*make_id)(void* id, char* error, std::size_t error_size);
  /// On the device that is this thread's.
  int (*join)(const void* id, int rank, int size, char* error, std::size_t error_size);
  /// DeviceTransport::exchange.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  void (*leave)();
};

/// The plug-in's one symbol.
using LonghandDeviceRanksOf = const LonghandDeviceRanks*();
}

inline constexpr int longhand_device_ranks_version = 1;
inline constexpr const char* longhand_device_ranks_symbol = "longhand_device_ranks";
