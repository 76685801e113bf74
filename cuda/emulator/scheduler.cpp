#include "cuda/emulator/scheduler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/emulator/copies.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/watch.h"

namespace longhand::emulator {

Index3 thread_index, block_index, block_size, grid_size;

namespace {

constexpr int lanes = 32;
// bytes after a block's shared memory that must stay unchanged
constexpr std::size_t shared_slack = 64;
// unused bytes before and after shared memory, where the watch detects accesses out of bounds
constexpr std::size_t shared_guard = std::size_t{64} << 10;
constexpr std::size_t most_shared = std::size_t{228} << 10;

struct Thread {
  enum class State { ready, at_barrier, at_warp, ended };
  State state = State::ended;
  Index3 index;
  Site site{"", 0};
  unsigned mask = 0;
  void* payload = nullptr;
  const void* finish = nullptr;
};

/// The complete state of the current launch, which the functions of the header use.
struct Machine {
  std::mutex one_launch;
  Order order = Order::forward;
  std::mt19937_64 random;

  Launch launch;
  void (*kernel)(void*) = nullptr;
  void* arguments = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Thread> threads;
  std::vector<Copies> copies;  // one per thread
  std::size_t current = 0;
  std::size_t at_barrier = 0;
  std::vector<unsigned> waiting_lanes;  // per warp, the mask of lanes that wait at a warp operation
  std::exception_ptr error;
  std::vector<std::byte> room = std::vector<std::byte>(most_shared + 2 * shared_guard);

  std::span<std::byte> shared() {
    return std::span(room).subspan(shared_guard, launch.shared_bytes + shared_slack);
  }
};

Machine& machine() {
  static Machine the_one;
  return the_one;
}

std::string text_of(Index3 index) {
  if (index.y == 0 && index.z == 0) return text(index.x);
  return text('(', index.x, ',', index.y, ',', index.z, ')');
}

std::string where(const Machine& m) {
  return text("kernel launched at ", text_of(m.launch.site), ", block ", text_of(block_index));
}

void run_thread(void*) {
  Machine& m = machine();
  try {
    m.kernel(m.arguments);
    copies().end();
  } catch (...) {
    m.error = std::current_exception();
  }
  m.threads[m.current].state = Thread::State::ended;
}

/// Switches to the scheduler until this thread is ready again.
void wait(Thread::State state) {
  Machine& m = machine();
  m.threads[m.current].state = state;
  m.fibers[m.current]->wait();
}

std::string doing(const Machine& m, std::size_t i) {
  const Thread& t = m.threads[i];
  const std::string name = text("thread ", text_of(t.index));
  switch (t.state) {
    case Thread::State::at_barrier:
      return text(name, " waits at the barrier of ", text_of(t.site));
    case Thread::State::at_warp:
      return text(name, " waits at the warp operation of ", text_of(t.site));
    case Thread::State::ended:
      return text(name, " has returned");
    default:
      return text(name, " runs");
  }
}

/// Called if no thread can continue. Throws an Error that names a waiting thread and one that it
/// waits for.
[[noreturn]] void fail_stuck(const Machine& m) {
  std::size_t waiting = 0;
  while (m.threads[waiting].state == Thread::State::ended) ++waiting;
  const Thread& t = m.threads[waiting];
  std::size_t other = 0;
  for (std::size_t i = 0; i < m.threads.size(); ++i) {
    const Thread& o = m.threads[i];
    if (t.state == Thread::State::at_warp &&
        (i / lanes != waiting / lanes || (t.mask >> (i % lanes) & 1) == 0)) {
      continue;  // thread `waiting` does not wait for this lane
    }
    if (o.state != t.state || o.site.line != t.site.line) other = i;
  }
  fail(where(m), ": ", doing(m, waiting), ", ", doing(m, other));
}

/// Chooses the order of `count` threads or blocks for one pass over them.
void arrange(Machine& m, std::vector<std::uint64_t>& order, std::uint64_t count) {
  order.resize(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (m.order == Order::backward) std::reverse(order.begin(), order.end());
  if (m.order == Order::shuffled) std::shuffle(order.begin(), order.end(), m.random);
}

void run_block(Machine& m) {
  const std::size_t count = m.threads.size();
  for (std::size_t i = 0; i < count; ++i) {
    m.threads[i] = {.state = Thread::State::ready,
                    .index = {static_cast<unsigned>(i) % block_size.x,
                              static_cast<unsigned>(i) / block_size.x % block_size.y,
                              static_cast<unsigned>(i) / block_size.x / block_size.y}};
    m.copies[i].begin();
    m.fibers[i]->start(&run_thread, nullptr);
  }
  m.at_barrier = 0;
  m.waiting_lanes.assign((count + lanes - 1) / lanes, 0);
  std::memset(m.shared().data(), 0xff, m.shared().size());  // NaN in every float type
  watch::begin_block();
  std::vector<std::uint64_t> order;
  for (std::size_t ended = 0; ended < count;) {
    ended = 0;
    bool ran = false;
    arrange(m, order, count);
    for (const std::uint64_t i : order) {
      if (m.threads[i].state == Thread::State::ready) {
        ran = true;
        m.current = i;
        thread_index = m.threads[i].index;
        watch::run_thread(i, m.fibers[i]->stack_end());
        m.fibers[i]->resume();
        watch::run_none();
        LONGHAND_CHECK(watch::fault().empty(), where(m), ": ", watch::fault());
        if (m.error) std::rethrow_exception(std::exchange(m.error, nullptr));
      }
      ended += m.threads[i].state == Thread::State::ended;
    }
    if (!ran && ended < count) fail_stuck(m);
  }
  const auto slack = m.shared().last(shared_slack);
  LONGHAND_CHECK(std::ranges::all_of(slack, [](std::byte b) { return b == std::byte{0xff}; }),
                 where(m), ": wrote past its ", m.launch.shared_bytes, " bytes of shared memory");
}

}  // namespace

std::string text_of(Site site) {
  const char* name = std::strrchr(site.file, '/');
  return text(name ? name + 1 : site.file, ':', site.line);
}

void set_order(Order order, std::uint64_t seed) {
  machine().order = order;
  machine().random.seed(seed);
}

void run_grid(const Launch& launch, void (*kernel)(void*), void* arguments) {
  Machine& m = machine();
  std::lock_guard lock(m.one_launch);
  const Access access;
  m.launch = launch;
  m.kernel = kernel;
  m.arguments = arguments;
  grid_size = launch.grid;
  block_size = launch.block;
  const std::size_t count = std::size_t{block_size.x} * block_size.y * block_size.z;
  m.threads.assign(count, {});
  if (m.copies.size() < count) m.copies.resize(count);
  while (m.fibers.size() < count) m.fibers.push_back(std::make_unique<Fiber>());
  LONGHAND_CHECK(launch.shared_bytes <= most_shared, "emulator: expected at most ", most_shared,
                 " bytes of shared memory per block, got ", launch.shared_bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(m.room.data());
  watch::begin_launch({begin + shared_guard, launch.shared_bytes}, {begin, m.room.size()},
                      launch.kernel);
  std::vector<std::uint64_t> order;
  arrange(m, order, std::uint64_t{grid_size.x} * grid_size.y * grid_size.z);
  for (const std::uint64_t i : order) {
    block_index = {static_cast<unsigned>(i % grid_size.x),
                   static_cast<unsigned>(i / grid_size.x % grid_size.y),
                   static_cast<unsigned>(i / grid_size.x / grid_size.y)};
    run_block(m);
  }
  watch::end_launch();
  LONGHAND_CHECK(watch::fault().empty(), where(m), ": ", watch::fault());
}

void block_barrier(Site site) {
  block_together(
      nullptr, [](void* const*, int) {}, site);
}

void block_together(void* payload, FinishBlock finish, Site site) {
  Machine& m = machine();
  Thread& self = m.threads[m.current];
  self.site = site;
  self.payload = payload;
  self.finish = reinterpret_cast<const void*>(finish);
  if (++m.at_barrier < m.threads.size()) {
    wait(Thread::State::at_barrier);
    thread_index = m.threads[m.current].index;
    return;
  }
  m.at_barrier = 0;
  std::vector<void*> payloads;
  for (Thread& t : m.threads) {
    if (t.site.line != site.line || t.finish != self.finish) {
      fail_in_kernel(
          text("threads meet at different barriers: ", text_of(site), " and ", text_of(t.site)));
    }
    payloads.push_back(t.payload);
    t.state = Thread::State::ready;
  }
  watch::barrier();
  finish(payloads.data(), static_cast<int>(payloads.size()));
}

void warp_together(unsigned mask, void* payload, Finish finish, Site site) {
  Machine& m = machine();
  const std::size_t first = m.current / lanes * lanes;
  if ((mask >> (m.current - first) & 1) == 0) {
    fail_in_kernel(text(text_of(site), ": the lane is not in its own mask"));
  }
  if (m.threads.size() - first < lanes && mask >> (m.threads.size() - first) != 0) {
    fail_in_kernel(text(text_of(site), ": the mask has lanes that do not exist"));
  }
  Thread& self = m.threads[m.current];
  self.site = site;
  self.mask = mask;
  self.payload = payload;
  self.finish = reinterpret_cast<const void*>(finish);
  // The operation of each lane is compared with that of a lane that arrived earlier. Therefore, if
  // no comparison fails, all waiting lanes are at the same operation.
  unsigned& waiting = m.waiting_lanes[first / lanes];
  if (const unsigned earlier = waiting & mask; earlier != 0) {
    const Thread& t = m.threads[first + static_cast<std::size_t>(std::countr_zero(earlier))];
    if (t.site.line != site.line || t.mask != mask || t.finish != self.finish) {
      fail_in_kernel(text("lanes of a warp meet at different operations or with different masks: ",
                          text_of(site), " and ", text_of(t.site)));
    }
  }
  waiting |= 1u << (m.current - first);
  if ((waiting & mask) != mask) {
    wait(Thread::State::at_warp);
    thread_index = m.threads[m.current].index;
    return;
  }
  waiting &= ~mask;
  std::array<void*, lanes> payloads{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    Thread& t = m.threads[first + lane];
    payloads[lane] = t.payload;
    t.state = Thread::State::ready;
  }
  finish(payloads.data());
}

void* shared_bytes() { return machine().shared().data(); }

bool in_shared_memory(const void* address, std::size_t bytes) {
  Machine& m = machine();
  const auto begin = reinterpret_cast<std::uintptr_t>(m.shared().data());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= begin && at + bytes <= begin + m.launch.shared_bytes;
}

Copies& copies() {
  Machine& m = machine();
  return m.copies[m.current];
}

void fail_in_kernel(const std::string& message) {
  fail(where(machine()), ", thread ", text_of(thread_index), ": ", message);
}

}  // namespace longhand::emulator
