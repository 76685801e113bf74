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
#include <semaphore>
#include <span>
#include <thread>
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

constexpr std::size_t lanes = 32;
// number of bytes after a block's shared memory that must stay unchanged
constexpr std::size_t shared_slack = 64;
// number of unused bytes before and after shared memory, in which the race detector (watch.h)
// reports accesses out of bounds
constexpr std::size_t shared_guard = std::size_t{64} << 10;
constexpr std::size_t most_shared = std::size_t{228} << 10;
// In Order::interleaved, at most most_resident blocks are resident. On average, a block runs for
// turns_of_a_block turns before another block continues.
constexpr std::size_t most_resident = 4;
constexpr std::uint64_t turns_of_a_block = 4;
// A turn of a block is idle if all its threads stay in loops that wait for other blocks. A block
// that has had some_idle_turns idle turns runs again only if all resident blocks have had at least
// as many and no new block can start. If all of them have had most_idle_turns, the launch fails.
constexpr int some_idle_turns = 2, most_idle_turns = 16;

struct Thread {
  enum class State { ready, at_barrier, at_warp, in_loop, ended };
  State state = State::ended;
  Index3 index;
  Site site{"", 0};
  unsigned mask = 0;
  void* payload = nullptr;
  const void* finish = nullptr;
};

/// A place (slot) for one resident block, with the block's threads and shared memory. When the
/// block ends, another block can start in this place.
struct Block {
  std::size_t slot = 0;
  Index3 index;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Thread> threads;
  std::vector<Copies> copies;  // one per thread
  std::size_t current = 0;
  std::size_t at_barrier = 0, ended = 0;
  std::vector<unsigned> waiting_lanes;  // per warp, a mask of the lanes that wait for other lanes
  std::vector<std::byte> room = std::vector<std::byte>(most_shared + 2 * shared_guard);
  std::vector<std::uint64_t> order;  // the order in which the threads run in this turn
  bool resident = false;
  // number of turns in which all threads of this block only waited in loops; becomes 0 as soon as
  // a thread of any block does anything else
  int idle_turns = 0;

  std::span<std::byte> shared(std::size_t bytes) {
    return std::span(room).subspan(shared_guard, bytes + shared_slack);
  }
};

/// The complete state of the current launch, which the functions of scheduler.h use.
struct Machine {
  std::mutex one_launch;
  Order order = Order::forward;
  std::mt19937_64 random;

  Launch launch;
  void (*kernel)(void*) = nullptr;
  void* arguments = nullptr;
  Block* block = nullptr;                      // the block that runs
  std::vector<std::unique_ptr<Block>> blocks;  // the places for resident blocks
  std::vector<std::uint64_t> pending;          // numbers of blocks not yet started, next one last
  std::size_t residents = 0;                   // number of blocks that may be resident
  std::exception_ptr error;

  std::span<std::byte> shared() { return block->shared(launch.shared_bytes); }
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
  Block& b = *m.block;
  try {
    m.kernel(m.arguments);
    copies().end();
  } catch (...) {
    m.error = std::current_exception();
  }
  b.threads[b.current].state = Thread::State::ended;
}

/// Switches to the scheduler until this thread is ready again.
void wait(Thread::State state) {
  Block& b = *machine().block;
  b.threads[b.current].state = state;
  b.fibers[b.current]->wait();
  thread_index = b.threads[b.current].index;
}

std::string doing(const Thread& t) {
  const std::string name = text("thread ", text_of(t.index));
  switch (t.state) {
    case Thread::State::at_barrier:
      return text(name, " waits at the barrier of ", text_of(t.site));
    case Thread::State::at_warp:
      return text(name, " waits at the warp operation of ", text_of(t.site));
    case Thread::State::in_loop:
      return text(name, " waits in the loop of ", text_of(t.site));
    case Thread::State::ended:
      return text(name, " has returned");
    default:
      return text(name, " runs");
  }
}

/// Called if no thread of the block can continue. Throws an Error that names a waiting thread and a
/// thread that it waits for.
[[noreturn]] void fail_stuck(const Machine& m, const Block& b) {
  std::size_t waiting = 0;
  while (b.threads[waiting].state == Thread::State::ended) ++waiting;
  const Thread& t = b.threads[waiting];
  std::size_t other = 0;
  for (std::size_t i = 0; i < b.threads.size(); ++i) {
    const Thread& o = b.threads[i];
    if (t.state == Thread::State::at_warp &&
        (i / lanes != waiting / lanes || (t.mask >> (i % lanes) & 1) == 0)) {
      continue;  // thread `waiting` does not wait for this lane
    }
    if (o.state != t.state || o.site.line != t.site.line) other = i;
  }
  fail(where(m), ": ", doing(t), ", ", doing(b.threads[other]));
}

/// Called if all resident blocks wait in loops. Throws an Error that names one waiting thread of
/// each resident block.
[[noreturn]] void fail_waiting(const Machine& m) {
  std::string waiting;
  for (const auto& b : m.blocks) {
    if (!b->resident) continue;
    const auto thread = std::ranges::find(b->threads, Thread::State::in_loop, &Thread::state);
    waiting += text("; block ", text_of(b->index), ": ", doing(*thread));
  }
  fail("kernel launched at ", text_of(m.launch.site), ": all resident blocks wait, and ",
       m.pending.size(), " other blocks cannot start", waiting);
}

/// Sets `order` to the order in which `count` threads of a block, or blocks of a grid, run.
void arrange(Machine& m, std::vector<std::uint64_t>& order, std::uint64_t count) {
  order.resize(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (m.order == Order::backward) std::reverse(order.begin(), order.end());
  if (m.order >= Order::shuffled) std::shuffle(order.begin(), order.end(), m.random);
}

void start_next(Machine& m, Block& b) {
  const std::uint64_t number = m.pending.back();
  m.pending.pop_back();
  b.index = {static_cast<unsigned>(number % grid_size.x),
             static_cast<unsigned>(number / grid_size.x % grid_size.y),
             static_cast<unsigned>(number / grid_size.x / grid_size.y)};
  const std::size_t count = std::size_t{block_size.x} * block_size.y * block_size.z;
  b.threads.resize(count);
  if (b.copies.size() < count) b.copies.resize(count);
  while (b.fibers.size() < count) b.fibers.push_back(std::make_unique<Fiber>());
  for (std::size_t i = 0; i < count; ++i) {
    b.threads[i] = {.state = Thread::State::ready,
                    .index = {static_cast<unsigned>(i) % block_size.x,
                              static_cast<unsigned>(i) / block_size.x % block_size.y,
                              static_cast<unsigned>(i) / block_size.x / block_size.y}};
    b.copies[i].begin();
    b.fibers[i]->start(&run_thread, nullptr);
  }
  b.resident = true;
  b.idle_turns = 0;
  b.at_barrier = b.ended = 0;
  b.waiting_lanes.assign((count + lanes - 1) / lanes, 0);
  const auto shared = b.shared(m.launch.shared_bytes);
  std::memset(shared.data(), 0xff, shared.size());  // NaN in every float type
  const auto room = reinterpret_cast<std::uintptr_t>(b.room.data());
  watch::begin_block(b.slot, {room + shared_guard, m.launch.shared_bytes}, {room, b.room.size()},
                     number);
}

void end_block(Machine& m, Block& b) {
  b.resident = false;
  const auto slack = b.shared(m.launch.shared_bytes).last(shared_slack);
  LONGHAND_CHECK(std::ranges::all_of(slack, [](std::byte at) { return at == std::byte{0xff}; }),
                 where(m), ": the block wrote past its ", m.launch.shared_bytes,
                 " bytes of shared memory");
}

/// Resumes the threads of the block that can continue, one after another. Each of them runs until
/// it waits or ends. In Order::interleaved, only a random selection of these threads runs.
void take_turn(Machine& m, Block& b) {
  m.block = &b;
  block_index = b.index;
  const std::size_t count = b.threads.size();
  arrange(m, b.order, count);
  std::size_t threads = count;
  if (m.order == Order::interleaved) threads = std::min(count, m.random() % (2 * count) + 1);
  bool ran = false, progress = false;
  for (const std::uint64_t i : std::span(b.order).first(threads)) {
    Thread& t = b.threads[i];
    if (t.state != Thread::State::ready && t.state != Thread::State::in_loop) continue;
    const bool in_loop = t.state == Thread::State::in_loop;
    ran = true;
    t.state = Thread::State::ready;
    b.current = i;
    thread_index = t.index;
    watch::run_thread(b.slot, i, b.fibers[i]->stack_end());
    b.fibers[i]->resume();
    watch::run_none();
    LONGHAND_CHECK(watch::fault().empty(), where(m), ": ", watch::fault());
    if (m.error) std::rethrow_exception(std::exchange(m.error, nullptr));
    progress = progress || !in_loop || t.state != Thread::State::in_loop;
    b.ended += t.state == Thread::State::ended;
  }
  if (b.ended == count) {
    end_block(m, b);
  } else if (!ran && threads == count) {
    fail_stuck(m, b);
  }
  if (progress) {
    for (const auto& each : m.blocks) each->idle_turns = 0;
  } else if (threads == count) {
    ++b.idle_turns;
  }
}

Block& slot(Machine& m, std::size_t i) {
  while (m.blocks.size() <= i) {
    m.blocks.push_back(std::make_unique<Block>());
    m.blocks.back()->slot = m.blocks.size() - 1;
  }
  return *m.blocks[i];
}

/// Runs the blocks one after another.
void run_in_order(Machine& m) {
  Block& b = slot(m, 0);
  while (!m.pending.empty()) {
    start_next(m, b);
    while (b.resident) {
      take_turn(m, b);
      if (b.idle_turns == most_idle_turns) fail_waiting(m);
    }
  }
}

/// Chooses what runs next: a resident block that can continue, or a free place in which the next
/// block starts. `now` is the block that has just run. Returns nullptr if all blocks have ended.
Block* choose(Machine& m, Block* now) {
  if (now && now->resident && now->idle_turns == 0 && m.random() % turns_of_a_block != 0) {
    return now;
  }
  for (const int most_idle : {some_idle_turns, most_idle_turns}) {
    std::vector<Block*> all;
    Block* free = nullptr;
    for (std::size_t i = 0; i < m.residents; ++i) {
      Block& b = slot(m, i);
      if (b.resident && b.idle_turns < most_idle) all.push_back(&b);
      if (!b.resident && !m.pending.empty()) free = &b;
    }
    if (free) all.push_back(free);
    if (!all.empty()) return all[m.random() % all.size()];
  }
  if (std::ranges::any_of(m.blocks, &Block::resident)) fail_waiting(m);
  return nullptr;
}

/// Runs interleaved blocks. There is one OS thread for each resident block, and only one of these
/// threads runs at a time. The thread that launched the kernel waits until all blocks have ended.
class Crew {
 public:
  Crew() = default;
  ~Crew() {
    quit_ = true;
    for (Member& member : members_) {
      if (!member.thread.joinable()) continue;
      member.turn.release();
      member.thread.join();
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void run(Machine& m) {
    error_ = nullptr;
    if (Block* const first = choose(m, nullptr)) {
      give_turn(m, *first);
      done_.acquire();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  struct Member {
    std::binary_semaphore turn{0};
    std::thread thread;
  };

  void give_turn(Machine& m, Block& b) {
    Member& member = members_[b.slot];
    if (!member.thread.joinable()) {
      member.thread = std::thread([this, &m, &b, &member] {
        for (;;) {
          member.turn.acquire();
          if (quit_) return;
          work(m, b);
        }
      });
    }
    member.turn.release();
  }

  /// Runs the block in the place b, and the blocks that start in this place after it, until
  /// choose() selects another place.
  void work(Machine& m, Block& b) {
    try {
      Block* next = &b;
      while (next == &b) {
        if (!b.resident) start_next(m, b);
        take_turn(m, b);
        next = choose(m, &b);
      }
      if (next) return give_turn(m, *next);
    } catch (...) {
      error_ = std::current_exception();
    }
    done_.release();
  }

  std::array<Member, most_resident> members_;
  std::binary_semaphore done_{0};
  std::exception_ptr error_;
  bool quit_ = false;
};

Crew& crew() {
  static Crew the_one;
  return the_one;
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
  m.error = nullptr;
  grid_size = launch.grid;
  block_size = launch.block;
  LONGHAND_CHECK(launch.shared_bytes <= most_shared, "emulator: expected at most ", most_shared,
                 " bytes of shared memory per block, got ", launch.shared_bytes);
  // A launch that failed did not reset `resident`.
  for (const auto& b : m.blocks) b->resident = false;
  watch::begin_launch(launch.shared_bytes, launch.kernel);
  arrange(m, m.pending, std::uint64_t{grid_size.x} * grid_size.y * grid_size.z);
  std::ranges::reverse(m.pending);
  if (m.order == Order::interleaved && m.pending.size() > 1) {
    m.residents = 2 + m.random() % (most_resident - 1);
    crew().run(m);
  } else {
    run_in_order(m);
  }
  watch::end_launch();
  LONGHAND_CHECK(watch::fault().empty(), where(m), ": ", watch::fault());
}

void let_others_run(Site site) {
  Block& b = *machine().block;
  b.threads[b.current].site = site;
  wait(Thread::State::in_loop);
}

void block_barrier(Site site) {
  block_together(
      nullptr, [](void* const*, int) {}, site);
}

void block_together(void* payload, FinishBlock finish, Site site) {
  Block& b = *machine().block;
  Thread& self = b.threads[b.current];
  self.site = site;
  self.payload = payload;
  self.finish = reinterpret_cast<const void*>(finish);
  if (++b.at_barrier < b.threads.size()) return wait(Thread::State::at_barrier);
  b.at_barrier = 0;
  std::vector<void*> payloads;
  for (Thread& t : b.threads) {
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
  Block& b = *machine().block;
  const std::size_t first = b.current / lanes * lanes;
  if ((mask >> (b.current - first) & 1) == 0) {
    fail_in_kernel(text(text_of(site), ": the lane is not in its own mask"));
  }
  if (b.threads.size() - first < lanes && mask >> (b.threads.size() - first) != 0) {
    fail_in_kernel(text(text_of(site), ": the mask has lanes that do not exist"));
  }
  Thread& self = b.threads[b.current];
  self.site = site;
  self.mask = mask;
  self.payload = payload;
  self.finish = reinterpret_cast<const void*>(finish);
  // Each lane compares its operation with the operation of one lane of its mask that waits already.
  // If none of these comparisons fails, all waiting lanes of the mask are at the same operation.
  unsigned& waiting = b.waiting_lanes[first / lanes];
  if (const unsigned earlier = waiting & mask; earlier != 0) {
    const Thread& t = b.threads[first + static_cast<std::size_t>(std::countr_zero(earlier))];
    if (t.site.line != site.line || t.mask != mask || t.finish != self.finish) {
      fail_in_kernel(text("lanes of a warp meet at different operations or with different masks: ",
                          text_of(site), " and ", text_of(t.site)));
    }
  }
  waiting |= 1u << (b.current - first);
  if ((waiting & mask) != mask) return wait(Thread::State::at_warp);
  waiting &= ~mask;
  std::array<void*, lanes> payloads{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    Thread& t = b.threads[first + lane];
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
  Block& b = *machine().block;
  return b.copies[b.current];
}

void fail_in_kernel(const std::string& message) {
  fail(where(machine()), ", thread ", text_of(thread_index), ": ", message);
}

}  // namespace longhand::emulator
