#include "cuda/emulator/watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "cuda/device_facts.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/emulator/symbols.h"

// The begin and end of the section in which the compiler lists the addresses of all kernels. It
// makes this list because of the attribute in the macro __global__ (cuda/emulator/device.h).
extern "C" const std::uintptr_t __start___patchable_function_entries[];
extern "C" const std::uintptr_t __stop___patchable_function_entries[];

namespace longhand::emulator::watch {
namespace {

constexpr std::size_t lanes = 32, most_threads = 1024;
constexpr std::uint16_t several = 0xffff;
// Number of bytes of device memory that are watched.
constexpr std::size_t watched_bytes = std::size_t{1} << 30;
constexpr std::size_t least_shared = cuda::shared_per_block(8, 6);

/// True while a thread of a kernel runs. Only then are accesses watched. Host code that is compiled
/// with the kernels also calls the __tsan functions below, even while the Watch object is created.
constinit bool running = false;
/// The end of the running thread's stack.
constinit std::uintptr_t stack_end = 0;

/// The last accesses to a word or a byte. Times are values of one counter, which is incremented
/// when any block begins or passes a barrier. Each time therefore belongs to one block.
struct Cell {
  // `written` and `read` are the times of the last write and of the last read. Only one block reads
  // at the time `read`. `read_before` is the time of the last read by any other block.
  std::uint32_t written = 0, read = 0, read_before = 0;
  // The threads that made the last write (`writer`) and the last read (`reader`). `reader` is
  // `several` if more than one thread has read at the time `read`.
  std::uint16_t writer = 0, reader = 0;
  // For the last write and the last read: number of __syncwarp() calls of the accessing warp since
  // the block's last barrier.
  std::uint16_t writer_time = 0, reader_time = 0;
  // Warp of the last read. `several` if more than one warp has read at the time `read`.
  std::uint16_t reader_warp = 0;
  bool atomic = false;
  std::uint32_t coming = 0;  // time when a pending asynchronous copy was issued, or 0
  // In the record of a word: time of the last access to single bytes of the word.
  std::uint32_t in_bytes = 0;
};

/// The records of the last accesses (Cell) to a range of memory: one record for each 4-byte word
/// and one for each byte.
class Plane {
 public:
  Plane(std::uintptr_t begin, std::size_t size)
      : begin_(begin), size_(size), words_(room(size / 4 + 1)), bytes_(room(size)) {}
  bool has(std::uintptr_t at) const { return at - begin_ < size_; }
  Cell& word(std::uintptr_t at) { return words_[(at - begin_) / 4]; }
  Cell& byte(std::uintptr_t at) { return bytes_[at - begin_]; }

 private:
  static Cell* room(std::size_t cells) {
    void* const range = mmap(nullptr, cells * sizeof(Cell), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LONGHAND_CHECK(range != MAP_FAILED,
                   "emulator: cannot reserve an address range to record memory accesses");
    return static_cast<Cell*>(range);
  }
  std::uintptr_t begin_;
  std::size_t size_;
  Cell *words_, *bytes_;
};

/// A set of accesses to memory. For each of several blocks, it contains all accesses that the block
/// made before a certain time. This time is the value of the block's element. The key is the time
/// when the block began.
using Clock = std::map<std::uint32_t, std::uint32_t>;

/// All data about the resident block in one place (slot) of the scheduler.
struct Slot {
  std::uint64_t number = 0;  // number of the block in the grid
  Region shared, room;
  std::unique_ptr<Plane> of_shared;
  Plane* of_statics = nullptr;
  std::uintptr_t statics = 0;  // thread_begin() of the OS thread that runs the block
  // `time` is the block's current time, a value of the counter of times (see Cell). `block` is the
  // time when the block began.
  std::uint32_t time = 1, block = 1;
  std::array<std::uint16_t, most_threads / lanes> warp_time{};
  std::array<std::uint32_t, most_threads> fenced{};  // time of each thread's last fence
  // `clock`: the accesses of other blocks that happened before all accesses of this block at its
  // current time. `arriving`: the accesses that the block's next barrier adds to `clock`.
  Clock clock, arriving;
  // For each thread: the accesses that are recorded in the flags that the thread has read since its
  // last fence. A flag is a word by which a block signals its progress to other blocks.
  std::array<Clock, most_threads> seen;
  bool any_seen = false;
};

/// All data about the running launch and about all launches so far.
struct Watch {
  Symbols symbols = read_symbols();
  // For the static variables of all kernels: the offset of the first variable from thread_begin(),
  // and the number of bytes from the first variable to the end of the last one.
  std::uintptr_t first_static = symbols.variables.front().begin;
  std::size_t bytes_of_statics =
      symbols.variables.back().begin + symbols.variables.back().size - first_static;
  // Key: the address of the first static variable, which differs between OS threads.
  std::unordered_map<std::uintptr_t, Plane> planes_of_statics;
  Plane of_device{reinterpret_cast<std::uintptr_t>(device_begin()), watched_bytes};
  std::unordered_map<std::uintptr_t, Kernel> kernels;

  Kernel* kernel = nullptr;
  std::size_t shared_bytes = 0;
  // one entry per static variable; 1 if the launch has accessed the variable
  std::vector<char> touched = std::vector<char>(symbols.variables.size());
  std::string fault;

  // If LONGHAND_WATCH_GOES_ON is set in the environment, each fault is printed once and the kernel
  // continues.
  bool goes_on = std::getenv("LONGHAND_WATCH_GOES_ON") != nullptr;
  std::set<std::string> reported;

  std::vector<std::unique_ptr<Slot>> slots;
  Slot* slot = nullptr;  // data about the block of the running thread
  std::size_t thread = 0;
  std::uintptr_t code = 0;  // address of the accessing code, for addr2line -e PROGRAM
  // `time` is the current value of the counter of times (see Cell), and `launch` is its value when
  // the launch began.
  std::uint32_t time = 1, launch = 1;
  // Accesses before the time `since` cannot race with the current access. If the current access is
  // to shared memory, this is the time when the block began. For device memory, it is the time when
  // the launch began.
  std::uint32_t since = 1;
  // Each time since the launch began belongs to one block (see Cell). Entry i identifies the block
  // of the time launch + i by the time when this block began.
  std::vector<std::uint32_t> block_at;
  // Key: the address of a flag, a word by which a block signals its progress to other blocks.
  // Value: the accesses that happened before the flag was stored.
  std::unordered_map<std::uintptr_t, Clock> flags;

  Watch() {
    for (const auto* at = __start___patchable_function_entries;
         at != __stop___patchable_function_entries; ++at) {
      kernel_at(*at);
    }
  }
  static const Symbol& symbol_at(const std::vector<Symbol>& all, std::uintptr_t at) {
    const auto after = std::ranges::upper_bound(all, at, {}, &Symbol::begin);
    LONGHAND_CHECK(after != all.begin(),
                   "emulator: an address belongs to no symbol of the program");
    return *std::prev(after);
  }
  Kernel& kernel_at(std::uintptr_t at) {
    const Symbol& symbol = symbol_at(symbols.functions, at);
    Kernel& found = kernels[symbol.begin];
    if (found.name.empty()) found.name = readable_name(symbol.name);
    return found;
  }

  void report(const char* what, std::uintptr_t at, const std::string& more = {}) {
    if (!fault.empty()) return;
    std::string place = "device memory";
    if (slot->of_shared->has(at)) {
      place = text("shared memory, byte ", static_cast<std::int64_t>(at - slot->shared.begin));
    }
    if (slot->of_statics->has(at)) {
      place = readable_name(symbol_at(symbols.variables, at - slot->statics).name);
    }
    std::string found =
        text(kernel->name, ", block ", slot->number, ", thread ", thread, ": ", what,
             at == 0 ? "" : text(" (", place, ")"), more, ", code ", code - symbols.moved);
    if (!goes_on) {
      fault = std::move(found);
    } else if (reported.insert(text(kernel->name, what, code)).second) {
      std::fprintf(stderr, "%s\n", found.c_str());
    }
  }

  std::uint32_t next_time() {
    block_at.push_back(slot->block);
    return ++time;
  }

  std::uint16_t warp() const { return static_cast<std::uint16_t>(thread / lanes); }
  std::uint16_t warp_time() const { return slot->warp_time[warp()]; }
  bool of_other_block(std::uint32_t when) const { return block_at[when - launch] != slot->block; }
  /// True if the current access cannot race with an earlier access, because both are of the same
  /// thread, or because a barrier, __syncwarp() or a flag orders them. The earlier access was made
  /// by thread `other` at time `when`, after warp_when calls of __syncwarp() since its block's last
  /// barrier.
  bool before(std::uint32_t when, std::size_t other, std::uint16_t warp_when) const {
    if (when == slot->time) {
      return other == thread || (other / lanes == warp() && warp_when < warp_time());
    }
    return when < since || known(when);
  }
  /// True if an access at the time `when`, an earlier time of this launch, happens before the
  /// current access.
  bool known(std::uint32_t when) const {
    if (!of_other_block(when)) return true;
    const auto last = slot->clock.find(block_at[when - launch]);
    return last != slot->clock.end() && when < last->second;
  }

  void check_written(const Cell& c, bool atomic, std::uintptr_t at) {
    if (c.coming >= slot->block) report("an access while a copy is on its way", at);
    if (c.atomic && atomic) return;
    if (!before(c.written, c.writer, c.writer_time)) {
      report("a race with a write", at, text(" of thread ", c.writer));
    }
  }
  void check_read(const Cell& c, std::uintptr_t at) {
    bool ordered = before(c.read, c.reader, c.reader_time);
    if (c.read == slot->time && c.reader == several) {
      ordered = c.reader_warp == warp() && c.reader_time < warp_time();
    }
    if (c.read_before >= since && c.read_before != slot->time && !known(c.read_before)) {
      ordered = false;
    }
    if (!ordered) report("a race with a read", at, text(" of thread ", c.reader));
  }
  void note_write(Cell& c, bool atomic) const {
    c.written = slot->time;
    c.writer = static_cast<std::uint16_t>(thread);
    c.writer_time = warp_time();
    c.atomic = atomic;
  }
  void note_read(Cell& c) const {
    const auto self = static_cast<std::uint16_t>(thread);
    if (c.read != slot->time) {
      if (c.read >= launch && of_other_block(c.read)) c.read_before = c.read;
      c.read = slot->time;
      c.reader = self;
      c.reader_warp = warp();
    } else if (c.reader_warp != warp()) {
      c.reader = c.reader_warp = several;
    } else if (c.reader != self) {
      c.reader = c.reader_time == warp_time() ? several : self;
    }
    c.reader_time = warp_time();
  }

  void touch(Cell& c, bool write, bool atomic, std::uintptr_t at) {
    check_written(c, atomic, at);
    if (write) {
      check_read(c, at);
      note_write(c, atomic);
    } else {
      note_read(c);
    }
  }

  Plane* plane_of(std::uintptr_t at, std::size_t bytes) {
    if (slot->of_shared->has(at)) {
      const Region shared = slot->shared;
      if (at < shared.begin || at + bytes > shared.begin + shared.size) {
        report("an access outside of shared memory", at);
        return nullptr;
      }
      return slot->of_shared.get();
    }
    if (of_device.has(at)) return &of_device;
    if (!slot->of_statics->has(at)) return nullptr;  // the thread's own memory
    return plane_of_static(at - slot->statics, bytes);
  }
  /// The records of accesses (Plane) to the static variable at offset `at` from thread_begin(),
  /// where the thread_local variables begin. Returns nullptr if there is no such variable.
  Plane* plane_of_static(std::uintptr_t at, std::size_t bytes) {
    const auto& all = symbols.variables;
    const auto after = std::ranges::upper_bound(all, at, {}, &Symbol::begin);
    if (after == all.begin()) return nullptr;
    const Symbol& variable = *std::prev(after);
    if (at + bytes > variable.begin + variable.size) {
      if (at < variable.begin + variable.size) {
        report("an access past the end", at + slot->statics);
      }
      return nullptr;  // not a variable of a kernel, but of the emulator
    }
    touched[static_cast<std::size_t>(std::prev(after) - all.begin())] = 1;
    return slot->of_statics;
  }

  void access(std::uintptr_t at, std::size_t bytes, bool write, bool atomic = false) {
    if (!running) return;
    Plane* const plane = plane_of(at, bytes);
    if (plane == nullptr) return;
    const bool shared_one = plane != &of_device;
    const std::uint32_t block = slot->block;
    since = shared_one ? block : launch;
    if (at % 4 == 0 && bytes % 4 == 0) {
      for (std::size_t i = 0; i < bytes; i += 4) {
        Cell& c = plane->word(at + i);
        bool there = c.written >= block;
        if (c.in_bytes >= since) {
          bool all = true;
          for (std::size_t j = 0; j < 4; ++j) {
            Cell& part = plane->byte(at + i + j);
            check_written(part, atomic, at + i);
            if (write) check_read(part, at + i);
            all = all && part.written >= block;
          }
          there = there || all;
        }
        if (shared_one && !write && !there) report("a read of what no thread has written", at + i);
        touch(c, write, atomic, at + i);
      }
      return;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
      Cell &word = plane->word(at + i), &c = plane->byte(at + i);
      word.in_bytes = slot->time;
      check_written(word, atomic, at + i);
      if (write) check_read(word, at + i);
      if (shared_one && !write && word.written < block && c.written < block) {
        report("a read of what no thread has written", at + i);
      }
      touch(c, write, atomic, at + i);
    }
  }
  /// Processes a volatile access. A store makes the word a flag if the storing thread has executed
  /// a fence since its block's last barrier. The flag then records all accesses that happened
  /// before this barrier. If another thread reads the flag and then executes a fence and a barrier,
  /// the recorded accesses happen before everything that the other thread's block does after its
  /// own barrier. All other volatile accesses are checked like accesses that are not volatile.
  void volatile_access(std::uintptr_t at, std::size_t bytes, bool write) {
    if (!running) return;
    if (write && slot->fenced[thread] == slot->time) {
      Clock& known_by_readers = flags[at] = slot->clock;
      known_by_readers[slot->block] = slot->time;
      return;
    }
    const auto flag = flags.find(at);
    if (write || flag == flags.end()) return access(at, bytes, write);
    slot->any_seen = true;
    Clock& seen = slot->seen[thread];
    for (const auto& [of_block, when] : flag->second) {
      seen[of_block] = std::max(seen[of_block], when);
    }
  }
  void aligned(std::uintptr_t at, std::size_t bytes, bool write) {
    if (running && at % bytes != 0) report("an access off its boundary", at);
    access(at, bytes, write);
  }
};

/// The only Watch. It is created by the first launch and never destroyed, because static
/// destructors still call the __tsan functions below.
constinit Watch* the_watch = nullptr;
Watch& watch() {
  if (the_watch == nullptr) the_watch = new Watch;
  return *the_watch;
}
std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void begin_launch(std::size_t shared_bytes, const void* kernel) {
  Watch& w = watch();
  w.kernel = &w.kernel_at(number(kernel));
  w.shared_bytes = shared_bytes;
  ++w.kernel->launches;
  w.launch = ++w.time;
  w.block_at.assign(1, 0);
  w.flags.clear();
  std::ranges::fill(w.touched, 0);
  w.fault.clear();
}

void end_launch() {
  Watch& w = watch();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < w.touched.size(); ++i) {
    if (w.touched[i] != 0) bytes += w.symbols.variables[i].size;
  }
  w.kernel->static_bytes = std::max(w.kernel->static_bytes, bytes);
  w.kernel->dynamic_bytes = std::max(w.kernel->dynamic_bytes, w.shared_bytes);
  if (bytes + w.shared_bytes > least_shared && w.fault.empty()) {
    w.fault = text(w.kernel->name, ": ", w.shared_bytes, " bytes of dynamic and ", bytes,
                   " of static shared memory, more than ", least_shared);
  }
}

void begin_block(std::size_t slot, Region shared, Region room, std::uint64_t number) {
  Watch& w = watch();
  while (w.slots.size() <= slot) w.slots.push_back(std::make_unique<Slot>());
  Slot& s = *w.slots[slot];
  w.slot = &s;
  if (!s.of_shared || s.room.begin != room.begin || s.room.size != room.size) {
    s.of_shared = std::make_unique<Plane>(room.begin, room.size);
  }
  s.statics = thread_begin(w.symbols);
  const std::uintptr_t first = s.statics + w.first_static;
  s.of_statics = &w.planes_of_statics.try_emplace(first, first, w.bytes_of_statics).first->second;
  s.number = number;
  s.shared = shared;
  s.room = room;
  s.block = w.time + 1;
  s.time = w.next_time();
  s.clock.clear();
  s.arriving.clear();
  s.warp_time.fill(0);
  s.fenced.fill(0);
  if (s.any_seen) s.seen.fill({});
  s.any_seen = false;
}
void run_thread(std::size_t slot, std::size_t thread, const void* end) {
  Watch& w = watch();
  stack_end = number(end);
  w.slot = w.slots[slot].get();
  w.thread = thread;
  running = true;
}
void run_none() { running = false; }
const std::string& fault() { return watch().fault; }

void barrier() {
  Watch& w = watch();
  Slot& s = *w.slot;
  s.time = w.next_time();
  s.warp_time.fill(0);
  for (const auto& [block, when] : s.arriving) s.clock[block] = std::max(s.clock[block], when);
  s.arriving.clear();
}
void warp_barrier() {
  Watch& w = watch();
  ++w.slot->warp_time[w.warp()];
}
void fence() {
  Watch& w = watch();
  Slot& s = *w.slot;
  s.fenced[w.thread] = s.time;
  for (const auto& [block, when] : s.seen[w.thread]) {
    s.arriving[block] = std::max(s.arriving[block], when);
  }
  s.seen[w.thread].clear();
}
void atomic(const void* address, std::size_t bytes) {
  watch().access(number(address), bytes, true, true);
}
void read(const void* address, std::size_t bytes) { watch().access(number(address), bytes, false); }
void copy_issued(const void* to, std::size_t bytes) {
  Watch& w = watch();
  w.access(number(to), bytes, true);
  for (std::size_t i = 0; i < bytes; i += 4) {
    w.slot->of_shared->word(number(to) + i).coming = w.slot->time;
  }
}
void copy_arrived(const void* to, std::size_t bytes) {
  Watch& w = watch();
  for (std::size_t i = 0; i < bytes; i += 4) {
    w.slot->of_shared->word(number(to) + i).coming = 0;
  }
  w.access(number(to), bytes, true);
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const auto& [_, kernel] : watch().kernels) all.push_back(kernel);
  return all;
}

}  // namespace longhand::emulator::watch

// The compiler inserts calls of the following functions before each access to memory.
namespace watch = longhand::emulator::watch;
namespace {

/// Stores the address of the accessing code in the Watch, for reports, and returns the Watch.
watch::Watch& watch_of(void* code) {
  watch::the_watch->code = reinterpret_cast<std::uintptr_t>(code) - 1;
  return *watch::the_watch;
}

/// True if a kernel runs and the address is not on the thread's own stack.
bool watched(const void* at, const void* frame) {
  const auto begin = reinterpret_cast<std::uintptr_t>(frame);
  return watch::running && watch::number(at) - begin >= watch::stack_end - begin;
}

}  // namespace
#define LONGHAND_WATCH \
  if (watched(at, __builtin_frame_address(0))) watch_of(__builtin_return_address(0))

extern "C" {
#define LONGHAND_WATCHED_SIZE(size)                                                            \
  void __tsan_read##size(void* at) { LONGHAND_WATCH.aligned(watch::number(at), size, false); } \
  void __tsan_write##size(void* at) { LONGHAND_WATCH.aligned(watch::number(at), size, true); } \
  void __tsan_volatile_read##size(void* at) {                                                  \
    LONGHAND_WATCH.volatile_access(watch::number(at), size, false);                            \
  }                                                                                            \
  void __tsan_volatile_write##size(void* at) {                                                 \
    LONGHAND_WATCH.volatile_access(watch::number(at), size, true);                             \
  }
LONGHAND_WATCHED_SIZE(1)
LONGHAND_WATCHED_SIZE(2)
LONGHAND_WATCHED_SIZE(4)
LONGHAND_WATCHED_SIZE(8)
LONGHAND_WATCHED_SIZE(16)
#define LONGHAND_WATCHED_UNALIGNED(size)                   \
  void __tsan_unaligned_read##size(void* at) {             \
    LONGHAND_WATCH.access(watch::number(at), size, false); \
  }                                                        \
  void __tsan_unaligned_write##size(void* at) {            \
    LONGHAND_WATCH.access(watch::number(at), size, true);  \
  }
LONGHAND_WATCHED_UNALIGNED(2)
LONGHAND_WATCHED_UNALIGNED(4)
LONGHAND_WATCHED_UNALIGNED(8)
LONGHAND_WATCHED_UNALIGNED(16)
void __tsan_read_range(void* at, std::size_t bytes) {
  LONGHAND_WATCH.access(watch::number(at), bytes, false);
}
void __tsan_write_range(void* at, std::size_t bytes) {
  LONGHAND_WATCH.access(watch::number(at), bytes, true);
}
// Atomic operations of host code, which are not watched. The atomic operations of kernels are
// functions of the emulator (cuda/emulator/device.h).
#define LONGHAND_WATCHED_ATOMICS(bits)                                                             \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int) {    \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t x, int) { \
    __atomic_store_n(at, x, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                \
  std::uint##bits##_t __tsan_atomic##bits##_exchange(volatile std::uint##bits##_t* at,             \
                                                     std::uint##bits##_t x, int) {                 \
    return __atomic_exchange_n(at, x, __ATOMIC_SEQ_CST);                                           \
  }                                                                                                \
  std::uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile std::uint##bits##_t* at,            \
                                                      std::uint##bits##_t x, int) {                \
    return __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  std::uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile std::uint##bits##_t* at,            \
                                                      std::uint##bits##_t x, int) {                \
    return __atomic_fetch_sub(at, x, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile std::uint##bits##_t* at,              \
                                                    std::uint##bits##_t* old,                      \
                                                    std::uint##bits##_t x, int, int) {             \
    return __atomic_compare_exchange_n(at, old, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile std::uint##bits##_t* at,                \
                                                  std::uint##bits##_t* old, std::uint##bits##_t x, \
                                                  int, int) {                                      \
    return __atomic_compare_exchange_n(at, old, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
  }
LONGHAND_WATCHED_ATOMICS(8)
LONGHAND_WATCHED_ATOMICS(32)
LONGHAND_WATCHED_ATOMICS(64)
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}

// Code that is compiled with -fsanitize=bounds,alignment calls these functions when it finds an
// error.
void __ubsan_handle_out_of_bounds(void*, std::uintptr_t) {
  if (watch::running)
    watch_of(__builtin_return_address(0)).report("an index out of bounds of an array", 0);
}
void __ubsan_handle_type_mismatch_v1(void*, std::uintptr_t at) {
  if (watch::running)
    watch_of(__builtin_return_address(0)).report("an access off its boundary", at);
}
}
