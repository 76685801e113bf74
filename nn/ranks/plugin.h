#pragma once

#include <cstddef>

/// Interface of the MPI plug-in (mpi/) in plain C, so that the program and the plug-in do not
/// depend on each other's libraries.
extern "C" {

struct LonghandRanks {
  int version;  // the plug-in's longhand_ranks_version
  int rank, size;
  int any_thread;  // 1 if any thread may call `exchange`, but only one at a time
  /// Implements Transport::exchange. Returns 0 for success. On failure, writes a message of at most
  /// error_size characters to `error`.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  /// Leaves the group of ranks. All ranks must call this function.
  void (*finish)();
};

/// The type of the only function that the plug-in exports. The function joins the ranks that were
/// started together. If it fails, it returns null and writes a message to `error`.
using LonghandConnect = const LonghandRanks*(char* error, std::size_t error_size);
}

inline constexpr int longhand_ranks_version = 2;
inline constexpr const char* longhand_connect_symbol = "longhand_connect";
