#pragma once

#include <cstddef>

/// Interface of the NCCL plug-in (nccl/) in plain C, like nn/ranks/plugin.h. Functions return 0 for
/// success. If they fail, they write a message of at most error_size characters to `error`.
extern "C" {

struct LonghandDeviceRanks {
  int version;  // the plug-in's longhand_device_ranks_version
  std::size_t id_bytes;
  /// Creates an id for a new group of ranks. Rank 0 calls this function. All ranks then pass the id
  /// to `join`.
  int (*make_id)(void* id, char* error, std::size_t error_size);
  /// Joins the group of ranks with this id. Uses the calling thread's current CUDA device.
  int (*join)(const void* id, int rank, int size, char* error, std::size_t error_size);
  /// Implements DeviceTransport::exchange.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  void (*leave)();
};

/// The type of the only function that the plug-in exports.
using LonghandDeviceRanksOf = const LonghandDeviceRanks*();
}

inline constexpr int longhand_device_ranks_version = 1;
inline constexpr const char* longhand_device_ranks_symbol = "longhand_device_ranks";
