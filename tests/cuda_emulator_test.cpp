// This file is compiled like a CUDA source file, because it contains kernels; see
// tests/CMakeLists.txt.
#include <limits>
#include <tuple>
#include "tests/check.h"

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/memory.h"
#include "cuda/launch.h"
#include "cuda/tensor_cores.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(cuda_emulator_test)

using namespace longhand;
using namespace longhand::cuda;

// Tests that the emulator detects the bugs that it is meant to detect.

namespace {

/// An array in device memory. The host writes it when it is constructed, and reads it with read().
template <class T>
class Array {
 public:
  explicit Array(std::vector<T> values)
      : bytes_(values.size() * sizeof(T)),
        memory_("test", emulator::device_memory(std::size_t{1} << 20)) {
    data_ = static_cast<T*>(memory_.allocate(bytes_));
    stream_.upload(data_, values.data(), bytes_);
  }
  ~Array() { memory_.release(data_, bytes_); }
  T* data() const { return data_; }
  Stream& stream() { return stream_; }
  std::vector<T> read() {
    std::vector<T> values(bytes_ / sizeof(T));
    stream_.download(values.data(), data_, bytes_);
    stream_.synchronize();
    return values;
  }

 private:
  std::size_t bytes_;
  CachingAllocator memory_;
  Stream stream_;
  T* data_;
};

__global__ void reverse(const int* x, int* y, bool barrier) {
  int* const shared = shared_memory<int>();
  shared[threadIdx.x] = x[threadIdx.x];
  if (barrier) __syncthreads();
  y[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void uneven_barrier() {
  if (threadIdx.x < 7) __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 7) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void uneven_shuffle(int* y) {
  if (threadIdx.x != 5) y[threadIdx.x] = __shfl_xor_sync(full_warp, 1, 1);
}

__global__ void sums(const float* x, float* y) {
  float* const scratch = shared_memory<float>();
  y[threadIdx.x] = block_sum(x[threadIdx.x], scratch);
}

__global__ void warp_words(unsigned* y) {
  const int lane = lane_index();
  y[0 * 32 + lane] = __ballot_sync(full_warp, lane % 3 == 0);
  y[1 * 32 + lane] = __shfl_down_sync(full_warp, static_cast<unsigned>(lane), 4);
  y[2 * 32 + lane] = __shfl_up_sync(full_warp, static_cast<unsigned>(lane), 4);
  y[3 * 32 + lane] = __shfl_sync(full_warp, static_cast<unsigned>(lane), 9, 8);
  y[4 * 32 + lane] = __reduce_max_sync(full_warp, static_cast<unsigned>(lane * 7 % 32));
  if (lane < 16) y[5 * 32 + lane] = __reduce_add_sync(0xffffu, 1u);
}

__global__ void past_the_end(std::size_t shared_size) { shared_memory<char>()[shared_size] = 1; }

__global__ void crooked_pack(const float* x, float* y) { store_pack(y, load_pack(x + 1)); }

enum class Mistake {
  none,
  // The asynchronous copies are not committed, so a wait for them has no effect.
  no_commit,
  no_wait,     // the wait for the asynchronous copies is missing
  no_barrier,  // the barrier after the wait for the copies is missing
  not_all,     // the wait does not include the last committed group of copies
  early_write,
  crooked,
  outside,
  from_nowhere,
  left_behind,
};

/// Copies 280 numbers of x and then 8 zeros to shared memory, and writes these 288 numbers to y in
/// reverse order. One asynchronous copy transfers 4 numbers (16 bytes). Each of the 64 threads
/// starts one copy, and the first 8 threads start a second one.
__global__ void reverse_async(const int* x, int* y, Mistake mistake) {
  int* const shared = shared_memory<int>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int half = 0; half < 2; ++half) {
    const int at = 4 * (64 * half + thread);
    if (thread < 8 || half == 0) {
      const int crooked = mistake == Mistake::crooked ? 1 : 0;
      const int outside = mistake == Mistake::outside && thread == 63 ? 512 : 0;
      const int* const from = mistake == Mistake::from_nowhere ? shared : x + at + crooked;
      copy_async(shared + at + outside, from, at < 280);
    }
    if (mistake != Mistake::no_commit) commit_copies();
  }
  if (mistake == Mistake::early_write) shared[4 * thread] = 1;
  if (mistake == Mistake::left_behind) return;
  if (mistake == Mistake::not_all) {
    wait_for_copies<1>();
  } else if (mistake != Mistake::no_wait) {
    wait_for_copies<0>();
  }
  if (mistake != Mistake::no_barrier) __syncthreads();
  for (int i = thread; i < 288; i += 64) y[i] = shared[287 - i];
  wait_for_copies<0>();
  if (mistake == Mistake::no_commit) {
    commit_copies();
    wait_for_copies<0>();
  }
}

enum class Chain { by_ticket, by_index, without_wait };

/// Each thread block has a number n and computes row n of y; a row has 64 entries. Block n waits
/// until block n - 1 has set progress[n]. Then it reads row n - 1 in reverse order, adds n to each
/// entry, and writes the sums to row n. With Chain::by_ticket, a block takes n from the counter
/// progress[0], so block n - 1 has already started. With Chain::by_index (a mistake), n is the
/// block index. Block n - 1 may then not have started, and the wait may never end. With
/// Chain::without_wait (a mistake), the block does not wait.
__global__ void chain(int* y, int* progress, Chain how) {
  __shared__ int number;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    number = how == Chain::by_index ? static_cast<int>(blockIdx.x) : atomicAdd(progress, 1);
  }
  __syncthreads();
  if (number > 0 && how != Chain::without_wait) {
    const volatile int* const before = progress + number;
    while (thread == 0 && *before == 0) let_others_run();
  }
  __syncthreads();
  y[64 * number + thread] = number + (number > 0 ? y[64 * number - 1 - thread] : thread);
  __syncthreads();
  if (thread == 0) *static_cast<volatile int*>(progress + number + 1) = 1;
}

/// Waits for a word that no thread writes.
__global__ void endless(const int* word) {
  while (*static_cast<const volatile int*>(word) == 0) let_others_run();
}

/// Stores c[0] + a[0] b[0] + a[1] b[1] + ... in c[1], using one tensor core instruction: 16
/// products of bf16, or 8 products of tf32.
__global__ void multiply_add(const float* a, const float* b, float* c, bool tf32) {
  const int pair = lane_index() % 4;
  float sums[4] = {c[0], c[0], c[0], c[0]};
  if (tf32) {
    const unsigned low = to_tf32(a[pair]), high = to_tf32(a[pair + 4]),
                   words[4] = {low, low, high, high};
    mma_tf32_16x8x8(sums, words, to_tf32(b[pair]), to_tf32(b[pair + 4]));
  } else {
    const auto two = [](const float* at) { return pack_bf16(at[0], at[1]); };
    const unsigned low = two(a + 2 * pair), high = two(a + 2 * pair + 8),
                   words[4] = {low, low, high, high};
    mma_bf16_16x8x16(sums, words, two(b + 2 * pair), two(b + 2 * pair + 8));
  }
  if (threadIdx.x == 0) c[1] = sums[0];
}

__global__ void increment(int* x) { x[threadIdx.x] += 1; }

constexpr std::uint64_t seeds = 12;

template <class... Parameters, class... Arguments>
std::string failure(void (*kernel)(Parameters...), Arguments... arguments) {
  Stream stream;
  return refusal([&] { launch(stream, 1, 64, 64 * sizeof(int), kernel, arguments...); });
}

/// A sum that is computed by one tensor core instruction, and its results on each kind of tensor
/// core. The results were computed by hand from the model in fused_sum.h.
struct Sum {
  const char* what;
  bool tf32;
  float c;
  std::vector<std::tuple<int, float, float>> products;  // index of each product, and its factors
  float plain, sm_80, sm_90;
};
constexpr float big = 4096, infinity = std::numeric_limits<float>::infinity();
const Sum cut_sums[] = {
    {"a bit below those of sm_80",
     false,
     1,
     {{0, 0x1p-25f, 1}, {1, 0x1p-25f, 1}, {2, 0x1p-25f, 1}, {3, 0x1p-25f, 1}},
     1,
     1,
     1 + 0x1p-23f},
    {"the last bit of sm_80",
     false,
     1,
     {{0, 0x1p-24f, 1}, {5, 0x1p-24f, 1}},
     1,
     1 + 0x1p-23f,
     1 + 0x1p-23f},
    {"cut", false, 1, {{9, 0x1.8p-23f, 1}}, 1 + 0x1p-22f, 1 + 0x1p-23f, 1 + 0x1p-23f},
    {"cut to zero", false, -1, {{9, 0x1.8p-23f, -1}}, -1 - 0x1p-22f, -1 - 0x1p-23f, -1 - 0x1p-23f},
    {"groups of 8 or 16", false, 1, {{0, big, big}, {8, big, -big}}, 0, 0, 1},
    {"one group", false, 1, {{0, big, big}, {7, big, -big}}, 0, 1, 1},
    {"groups of 4 or 8", true, 1, {{0, big, big}, {4, big, -big}}, 0, 0, 1},
    {"one group", true, 1, {{0, big, big}, {3, big, -big}}, 0, 1, 1},
    {"2.25 has the exponent 0 of its factors",
     false,
     0,
     {{0, 1.5f, 1.5f}, {1, 0x1p-24f, 1}, {2, 0x1p-24f, 1}, {3, 0x1p-24f, 1}, {4, 0x1p-24f, 1}},
     2.25f,
     2.25f + 0x1p-22f,
     2.25f + 0x1p-22f},
    {"subnormal", false, 0, {{0, 0x1p-100f, 0x1.8p-49f}}, 0x1p-148f, 0x1p-149f, 0x1p-149f},
    {"infinity", true, 0, {{0, infinity, 1}, {5, 1, 1}}, infinity, infinity, infinity},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_barrier_makes_the_result_depend_on_the_order_of_threads) {
  std::vector<int> x(64), zeros(64);
  for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] = 3 * i;
  const Array<int> in(x);
  Stream stream;
  for (const bool barrier : {true, false}) {
    std::vector<std::vector<int>> results;
    for (const auto order :
         {emulator::Order::forward, emulator::Order::backward, emulator::Order::shuffled}) {
      emulator::set_order(order, 1);
      Array<int> out(zeros);
      launch(stream, 1, 64, 64 * sizeof(int), &reverse, in.data(), out.data(), barrier);
      results.push_back(out.read());
    }
    emulator::set_order(emulator::Order::forward);
    const std::vector<int> expected(x.rbegin(), x.rend());
    BOOST_TEST((results[0] == expected) == barrier);
    BOOST_TEST((results[1] == results[0]) == barrier);
    BOOST_TEST((results[2] == results[0]) == barrier);
  }
}

BOOST_AUTO_TEST_CASE(barriers_and_warp_operations_that_some_threads_miss_are_reported) {
  const std::string returned = failure(&uneven_barrier);
  BOOST_TEST(contains(returned, "thread 0 waits at the barrier"));
  BOOST_TEST(contains(returned, "has returned"));
  BOOST_TEST(contains(returned, "cuda_emulator_test.cpp"));
  const std::string two = failure(&two_barriers);
  BOOST_TEST(contains(two, "threads meet at different barriers"));
  Array<int> y(std::vector<int>(64));
  const std::string lane = failure(&uneven_shuffle, y.data());
  BOOST_TEST(contains(lane, "thread 0 waits at the warp operation"));
  BOOST_TEST(contains(lane, "thread 5 has returned"));
}

BOOST_AUTO_TEST_CASE(writes_past_shared_memory_and_misaligned_packs_are_reported) {
  const std::string past = failure(&past_the_end, 64 * sizeof(int));
  BOOST_TEST(contains(past, "wrote past its 256 bytes of shared memory"));
  Array<float> x(std::vector<float>(64));
  const std::string crooked = failure(&crooked_pack, x.data(), x.data());
  BOOST_TEST(contains(crooked, "no multiple of 16"));
}

BOOST_AUTO_TEST_CASE(asynchronous_copies_arrive_only_after_a_wait) {
  std::vector<int> x(288), expected(288);
  for (int i = 0; i < 288; ++i) {
    x[static_cast<std::size_t>(i)] = 3 * i;
    expected[static_cast<std::size_t>(287 - i)] = i < 280 ? 3 * i : 0;
  }
  const Array<int> in(x);
  Stream stream;
  const auto result = [&](Mistake mistake) {
    Array<int> out(std::vector<int>(288));
    launch(stream, 1, 64, 288 * sizeof(int), &reverse_async, in.data(), out.data(), mistake);
    return out.read();
  };
  for (const auto order :
       {emulator::Order::forward, emulator::Order::backward, emulator::Order::shuffled}) {
    emulator::set_order(order, 1);
    BOOST_TEST((result(Mistake::none) == expected));
    for (const Mistake mistake :
         {Mistake::no_commit, Mistake::no_wait, Mistake::no_barrier, Mistake::not_all}) {
      BOOST_TEST_CONTEXT(static_cast<int>(mistake)) { BOOST_TEST((result(mistake) != expected)); }
    }
  }
  emulator::set_order(emulator::Order::forward);
  const auto told = [&](Mistake mistake, std::string_view what) {
    return contains(refusal([&] { result(mistake); }), what);
  };
  BOOST_TEST(told(Mistake::early_write, "while a copy was on its way"));
  BOOST_TEST(told(Mistake::crooked, "no multiple of 16"));
  BOOST_TEST(told(Mistake::outside, "where there is no shared memory"));
  BOOST_TEST(told(Mistake::from_nowhere, "where there is no device memory"));
  BOOST_TEST(told(Mistake::left_behind, "are on their way"));
}

BOOST_AUTO_TEST_CASE(sums_over_a_block_reach_every_thread) {
  std::vector<float> x(96);
  for (int i = 0; i < 96; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 17);
  const Array<float> in(x);
  Array<float> out(x);
  Stream stream;
  launch(stream, 1, 96, 32 * sizeof(float), &sums, in.data(), out.data());
  float sum = 0;
  for (const float value : x) sum += value;
  const auto got = out.read();
  for (const float value : got) BOOST_TEST(value == sum);
}

BOOST_AUTO_TEST_CASE(warp_operations_behave_as_on_a_gpu) {
  Array<unsigned> out(std::vector<unsigned>(6 * 32));
  Stream stream;
  launch(stream, 1, 32, 0, &warp_words, out.data());
  const auto y = out.read();
  for (unsigned lane = 0; lane < 32; ++lane) {
    BOOST_TEST(y[lane] == 0x49249249u);
    BOOST_TEST(y[32 + lane] == (lane < 28 ? lane + 4 : lane));
    BOOST_TEST(y[64 + lane] == (lane < 4 ? lane : lane - 4));
    BOOST_TEST(y[96 + lane] == lane / 8 * 8 + 1);
    BOOST_TEST(y[128 + lane] == 31u);
    BOOST_TEST(y[160 + lane] == (lane < 16 ? 16u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(recorded_work_runs_only_when_repeated) {
  Stream stream;
  Array<int> x(std::vector<int>(64, 1)), y(std::vector<int>(64, 2)), z(std::vector<int>(64, 3));
  stream.begin_recording();
  launch(stream, 1, 64, 64 * sizeof(int), &reverse, x.data(), y.data(), true);
  stream.copy(z.data(), y.data(), 64 * sizeof(int));
  stream.zero(y.data(), 64 * sizeof(int));
  const auto graph = stream.end_recording();
  BOOST_TEST(y.read() == std::vector<int>(64, 2));
  BOOST_TEST(z.read() == std::vector<int>(64, 3));
  graph->launch(stream);
  BOOST_TEST(y.read() == std::vector<int>(64, 0));
  BOOST_TEST(z.read() == std::vector<int>(64, 1));
  stream.zero(x.data(), 64 * sizeof(int));  // runs at once, because recording has ended
  BOOST_TEST(x.read() == std::vector<int>(64, 0));
  graph->launch(stream);
  BOOST_TEST(z.read() == std::vector<int>(64, 0));

  stream.begin_recording();
  stream.copy(y.data(), z.data(), 64 * sizeof(int));
  stream.drop_recording();
  BOOST_TEST(!stream.recording());
}

BOOST_AUTO_TEST_CASE(tensor_cores_cut_the_bits_below_the_largest_term) {
  for (const Sum& sum : cut_sums) {
    std::vector<float> a(16), b(16);
    for (const auto& [k, left, right] : sum.products) {
      a[static_cast<std::size_t>(k)] = left;
      b[static_cast<std::size_t>(k)] = right;
    }
    const Array<float> left(a), right(b);
    const auto result = [&](emulator::TensorCores arithmetic) {
      emulator::set_tensor_cores(arithmetic);
      Array<float> c({sum.c, 0});
      Stream stream;
      launch(stream, 1, 32, 0, &multiply_add, left.data(), right.data(), c.data(), sum.tf32);
      emulator::set_tensor_cores(emulator::TensorCores::plain);
      return c.read()[1];
    };
    BOOST_TEST_CONTEXT(sum.what) {
      BOOST_TEST(result(emulator::TensorCores::plain) == sum.plain);
      BOOST_TEST(result(emulator::TensorCores::sm_80) == sum.sm_80);
      BOOST_TEST(result(emulator::TensorCores::sm_90) == sum.sm_90);
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_wait_for_one_another) {
  constexpr int blocks = 12;
  std::vector<int> expected;
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < 64; ++i) {
      const int before = block == 0 ? i : expected[static_cast<std::size_t>(64 * block - 1 - i)];
      expected.push_back(block + before);
    }
  }
  const auto result = [&](Chain how) {
    Array<int> y(std::vector<int>(expected.size())), progress(std::vector<int>(blocks + 1));
    Stream stream;
    launch(stream, blocks, 64, 0, &chain, y.data(), progress.data(), how);
    return y.read();
  };
  // By default, the emulator runs thread blocks in order, one after another. The results are then
  // right even without a wait.
  BOOST_TEST(result(Chain::without_wait) == expected);
  BOOST_TEST(result(Chain::by_index) == expected);
  int wrong = 0, stuck = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto interleaved = [&](Chain how) {
      emulator::set_order(emulator::Order::interleaved, seed);
      return result(how);
    };
    BOOST_TEST(interleaved(Chain::by_ticket) == expected);
    wrong += interleaved(Chain::without_wait) != expected;
    const std::string found = refusal([&] { interleaved(Chain::by_index); });
    stuck += contains(found, "all resident blocks wait, and") &&
             contains(found, "thread 0 waits in the loop of cuda_emulator_test.cpp");
  }
  emulator::set_order(emulator::Order::forward);
  BOOST_TEST(wrong > 0);
  BOOST_TEST(stuck > 0);
  Array<int> word(std::vector<int>{0});
  BOOST_TEST(contains(failure(&endless, word.data()), "all resident blocks wait"));
}

BOOST_AUTO_TEST_CASE(deferred_work_is_done_when_the_host_waits) {
  int early = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const emulator::DeferredWork deferred(seed);
    Array<int> x(std::vector<int>(64, 1));
    Stream stream;
    Event uploaded;
    uploaded.record(x.stream());
    stream.wait(uploaded);
    launch(stream, 1, 64, 0, &increment, x.data());
    std::vector<int> got(64);
    stream.download(got.data(), x.data(), 64 * sizeof(int));
    early += got == std::vector<int>(64, 2);
    stream.synchronize();
    BOOST_TEST(got == std::vector<int>(64, 2));
  }
  BOOST_TEST(early < static_cast<int>(seeds) / 2);
}

BOOST_AUTO_TEST_CASE(streams_run_in_any_order_that_events_permit) {
  const auto result = [&](std::uint64_t seed, bool wait) {
    const emulator::DeferredWork deferred(seed);
    Array<int> x(std::vector<int>(64, 1));
    Stream other;
    Event incremented;
    x.stream().synchronize();
    for (int i = 0; i < 5; ++i) launch(x.stream(), 1, 64, 0, &increment, x.data());
    incremented.record(x.stream());
    if (wait) other.wait(incremented);
    std::vector<int> got(64);
    other.download(got.data(), x.data(), 64 * sizeof(int));
    other.synchronize();
    return got.front();
  };
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    BOOST_TEST(result(seed, true) == 6);
    wrong += result(seed, false) != 6;
  }
  BOOST_TEST(wrong > 0);
}

BOOST_AUTO_TEST_CASE(deferred_uploads_read_pinned_memory_late) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const emulator::DeferredWork deferred(seed);
    const auto memory = emulator::device_memory(1 << 20);
    Stream stream;
    PinnedMemory pinned(1);
    auto* const block = static_cast<std::byte*>(memory->allocate(1));
    std::byte got{};
    *pinned.data() = std::byte{1};
    stream.upload(block, pinned.data(), 1);
    *pinned.data() = std::byte{2};  // a mistake: the upload may not have read this byte yet
    stream.download(&got, block, 1);
    stream.synchronize();
    wrong += got != std::byte{1};
    memory->release(block, 1);
  }
  BOOST_TEST(wrong > 0);
}

BOOST_AUTO_TEST_CASE(deferred_work_uses_memory_before_its_next_owner) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const emulator::DeferredWork deferred(seed);
    CachingAllocator memory("test", emulator::device_memory(std::size_t{1} << 20));
    Stream stream;
    const auto kept = static_cast<int*>(memory.allocate(256));
    std::vector<int> got(64);
    void* const first = memory.allocate(256);
    stream.zero(first, 256);
    stream.copy(kept, first, 256);
    memory.release(first, 256);
    void* const second = memory.allocate(256);  // the emulator fills allocated memory with NaN
    BOOST_TEST(second == first);
    stream.download(got.data(), kept, 256);
    stream.synchronize();
    BOOST_TEST(got == std::vector<int>(64));
    memory.release(second, 256);
    memory.release(kept, 256);
  }
}

BOOST_AUTO_TEST_CASE(deferred_failures_are_reported_when_the_host_waits) {
  const emulator::DeferredWork deferred(1);
  Stream stream;
  const std::string found = refusal([&] {
    launch(stream, 1, 64, 0, &uneven_barrier);
    stream.synchronize();
  });
  BOOST_TEST(contains(found, "thread 0 waits at the barrier"));
}

// The emulator fills a memory block with a fixed value when the block is allocated. When the block
// is released, the emulator aborts the program if an unused byte at its end has another value. If a
// failed kernel cancelled the fill, the program would be aborted and the kernel's error hidden.
BOOST_AUTO_TEST_CASE(memory_can_be_returned_after_a_deferred_failure) {
  int lent = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const emulator::DeferredWork deferred(seed);
    CachingAllocator memory("test", emulator::device_memory(std::size_t{1} << 20));
    Stream stream;
    void* block = nullptr;
    const std::string found = refusal([&] {
      launch(stream, 1, 64, 0, &uneven_barrier);
      block = memory.allocate(10);
      stream.synchronize();
    });
    BOOST_TEST(contains(found, "thread 0 waits at the barrier"));
    // The kernel failed during its launch, so no memory was allocated.
    if (block == nullptr) continue;
    ++lent;
    memory.release(block, 10);
  }
  BOOST_TEST(lent > 0);
}

BOOST_AUTO_TEST_CASE(launches_that_no_device_accepts_are_errors) {
  Stream stream;
  BOOST_CHECK_THROW(launch(stream, 1, 33, 0, &uneven_barrier), Error);
  BOOST_CHECK_THROW(launch(stream, 1, 2048, 0, &uneven_barrier), Error);
  BOOST_CHECK_THROW(launch(stream, Grid(1, 70000), 32, 0, &uneven_barrier), Error);
  BOOST_CHECK_THROW(launch(stream, 1, 32, std::size_t{1} << 20, &uneven_barrier), Error);
  BOOST_CHECK_NO_THROW(launch(stream, 0, 32, 0, &uneven_barrier));
}

BOOST_AUTO_TEST_SUITE_END()
