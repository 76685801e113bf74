#pragma once

#include <cstddef>

/// What the plug-in for MPI (mpi/) gives the program that loads it: plain C, so that neither sees
/// the other's libraries.
extern "C" {

struct LonghandRanks {
  int version;  // longhand_ranks_version, of the plug-in
  int rank, size;
  int any_thread;  // whether `exchange` may be called by any thread, one at a time
  /// Transport::exchange. 0, or not and why in `error`, of so many characters.
  int (*exchange)(int peer, const void* send, std::size_t send_bytes, void* receive,
                  std::size_t receive_bytes, char* error, std::size_t error_size);
  /// Takes leave of the others, which do the same.
  void (*finish)();
};

/// Joins the ranks that were started together; the plug-in's one symbol. Null, and why in `error`,
/// where that fails.
using LonghandConnect = const LonghandRanks*(char* error, std::size_t error_size);
}

inline constexpr int longhand_ranks_version = 2;
inline constexpr const char* longhand_connect_symbol = "longhand_connect";
