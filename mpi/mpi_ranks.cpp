// Plug-in with which ranks communicate through MPI. The program loads this plug-in if mpirun or
// srun started the program. The interface is declared in nn/ranks/plugin.h.
#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <string>
#include <thread>

#include "nn/ranks/plugin.h"

namespace {

constexpr int tag = 1;

int told(int status, const char* doing, char* error, std::size_t size) {
  if (status == MPI_SUCCESS) return 0;
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  MPI_Error_string(status, words.data(), &length);
  std::snprintf(error, size, "MPI: %s: %s", doing, words.data());
  return 1;
}

/// True if this machine has more ranks than cores. A rank that occupies a core while it waits then
/// keeps another rank from computing.
bool crowded() {
  static const bool more = [] {
    MPI_Comm machine = MPI_COMM_NULL;
    int here = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) ==
        MPI_SUCCESS) {
      MPI_Comm_size(machine, &here);
      MPI_Comm_free(&machine);
    }
    return here > sysconf(_SC_NPROCESSORS_ONLN);
  }();
  return more;
}

/// The thread that called longhand_connect(). It has no other work while it waits for another rank.
std::thread::id first_thread;

/// MPI occupies a whole core while it waits. This class lets a waiting thread sleep instead.
/// first_thread, which called longhand_connect(), sleeps only if it has waited for 5 ms, for
/// example while another rank evaluates. All other threads sleep at once, so that first_thread can
/// compute in the meantime.
class Patience {
 public:
  void wait() const {
    using namespace std::chrono;
    const auto waited = steady_clock::now() - start_;
    if (std::this_thread::get_id() != first_thread) {
      std::this_thread::sleep_for(waited < milliseconds(100) ? microseconds(20)
                                                             : microseconds(200));
    } else if (waited < milliseconds(5)) {
      if (crowded()) sched_yield();
    } else {
      std::this_thread::sleep_for(waited < milliseconds(100) ? microseconds(50)
                                                             : microseconds(1000));
    }
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Makes short sleeps of this thread end on time; by default they last 50 microseconds longer.
void wake_on_time() {
  thread_local const bool set = prctl(PR_SET_TIMERSLACK, 1000UL) == 0;
  static_cast<void>(set);
}

int exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
             std::size_t receive_bytes, char* error, std::size_t error_size) {
  if (send_bytes > INT_MAX || receive_bytes > INT_MAX) {
    std::snprintf(error, error_size, "MPI: expected messages of less than 2 GiB");
    return 1;
  }
  wake_on_time();
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (told(MPI_Irecv(receive, static_cast<int>(receive_bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                     &requests[0]),
           "receiving", error, error_size) ||
      told(MPI_Isend(send, static_cast<int>(send_bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                     &requests[1]),
           "sending", error, error_size)) {
    return 1;
  }
  std::array<MPI_Status, 2> states{};
  Patience patience;
  for (int done = 0;;) {
    if (told(MPI_Testall(2, requests.data(), &done, states.data()), "exchanging", error,
             error_size)) {
      return 1;
    }
    if (done) break;
    patience.wait();
  }
  int count = 0;
  MPI_Get_count(&states[0], MPI_BYTE, &count);
  if (static_cast<std::size_t>(count) == receive_bytes) return 0;
  std::snprintf(error, error_size, "MPI: expected %zu bytes from rank %d, got %d", receive_bytes,
                peer, count);
  return 1;
}

void finish() { MPI_Finalize(); }

}  // namespace

extern "C" const LonghandRanks* longhand_connect(char* error, std::size_t error_size) {
  first_thread = std::this_thread::get_id();
  static LonghandRanks ranks{longhand_ranks_version, 0, 1, 0, exchange, finish};
  int given = 0;
  // Only one thread at a time calls MPI: the thread that computes or, while it computes, a thread
  // in the background.
  if (told(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given), "starting", error,
           error_size)) {
    return nullptr;
  }
  ranks.any_thread = given >= MPI_THREAD_SERIALIZED ? 1 : 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  crowded();  // all ranks must call this function, because its first call is collective
  return &ranks;
}
