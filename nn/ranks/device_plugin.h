#pragma once

#include <cstddef>

/// Interface of the NCCL plug-in (nccl/) in plain C, like nn/ranks/plugin.h. Functions return 0, or
/// another value with a message of at most error_size characters in `error`.
extern "C" {

struct LonghandDeviceRanks {
  int version;  // longhand_device_ranks_version of the plug-in
  std::size_t id_bytes;
  /// Rank 0 creates an id, and all ranks join with it.
  int (*make_id)(void* id, char* error, std::size_t error_size);
  /// Joins on the calling thread's current device.
  int (*join)(const void* id, int rank, int size, char* error, std::size_t error_size);
  /// Implements DeviceTransport::exchange.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  void (*leave)();
};

/// The type of the plug-in's one symbol.
using LonghandDeviceRanksOf = const LonghandDeviceRanks*();
}

inline constexpr int longhand_device_ranks_version = 1;
inline constexpr const char* longhand_device_ranks_symbol = "longhand_device_ranks";
