#pragma once

#include <cstddef>

/// Interface of the MPI plug-in (mpi/) in plain C, so that the program and the plug-in do not see
/// each other's libraries.
extern "C" {

struct LonghandRanks {
  int version;  // longhand_ranks_version of the plug-in
  int rank, size;
  int any_thread;  // 1 if any thread may call `exchange`, one at a time
  /// Implements Transport::exchange. Returns 0, or another value with a message of at most
  /// error_size characters in `error`.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  /// Leaves the group of ranks; all ranks do.
  void (*finish)();
};

/// The type of the plug-in's one symbol, which joins the ranks that were started together. Returns
/// null with a message in `error` if that fails.
using LonghandConnect = const LonghandRanks*(char* error, std::size_t error_size);
}

inline constexpr int longhand_ranks_version = 2;
inline constexpr const char* longhand_connect_symbol = "longhand_connect";
