// Kernels with one fault each. They are compiled like those kernels of the library in which the
// emulator checks memory accesses: see CMakeLists.txt.
#include "tests/check.h"

#include "core/memory.h"
#include "cuda/emulator/memory.h"
#include "cuda/launch.h"
#include "cuda/tensor_cores.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(watch_test)

using namespace longhand;
using namespace longhand::cuda;

// The emulator must report each fault, and report nothing for the same kernel without the fault.

namespace {

/// Device memory of 1024 words.
class Words {
 public:
  Words() : memory_("test", emulator::device_memory(std::size_t{1} << 20)) {
    data_ = static_cast<int*>(memory_.allocate(bytes));
    stream_.zero(data_, bytes);
  }
  ~Words() { memory_.release(data_, bytes); }
  int* data() const { return data_; }

 private:
  static constexpr std::size_t bytes = 4096;
  CachingAllocator memory_;
  Stream stream_;
  int* data_;
};

__global__ void reverse(int* y, bool barrier) {
  __shared__ int shared[64];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (barrier) __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
}

__global__ void overwrite(int* y, bool barrier) {
  __shared__ int shared[64];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
  if (barrier) __syncthreads();
  shared[threadIdx.x] = 0;
}

__global__ void reverse_in_warps(int* y, bool barrier) {
  int* const shared = shared_memory<int>();
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = thread;
  if (barrier) __syncwarp();
  // Without a barrier, the threads only take part in a shuffle, which does not order their memory
  // accesses.
  if (!barrier) __shfl_sync(full_warp, thread, 0);
  y[thread] = shared[thread ^ 1];
}

__global__ void halves(int* y, bool barrier) {
  auto* const shared = shared_memory<bf16>();
  shared[threadIdx.x] = bf16(1.0f);
  if (barrier) __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x].bits;
}

enum class Publish { properly, without_fence, fence_first };

/// Block 0 writes 64 words and then stores 1 in y[64]. Block 1 waits until y[64] is 1 and then
/// reads the words.
__global__ void pass_on(int* y, Publish how, bool wait_fence) {
  if (blockIdx.x == 0) {
    y[threadIdx.x] = 7;
    if (how == Publish::fence_first) __threadfence();
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (how == Publish::properly) __threadfence();
    *static_cast<volatile int*>(y + 64) = 1;
  } else {
    if (threadIdx.x == 0) {
      while (*static_cast<const volatile int*>(y + 64) == 0) let_others_run();
      if (wait_fence) __threadfence();
    }
    __syncthreads();
    y[128 + threadIdx.x] = y[63 - threadIdx.x];
  }
}

__global__ void both_write(int* y, bool apart) {
  if (threadIdx.x == 0) y[apart ? blockIdx.x : 0u] = 1;
}

__global__ void count(int* y, bool atomically) {
  if (atomically) {
    atomicAdd(y, 1);
  } else {
    y[0] += 1;
  }
}

__global__ void one_past(int* y, int more) {
  int* const shared = shared_memory<int>();
  shared[static_cast<int>(threadIdx.x) + more] = 1;
  y[threadIdx.x] = 0;
}

__global__ void one_past_an_array(int* y, int more) {
  __shared__ int shared[64], next[64];
  next[threadIdx.x] = 0;
  shared[static_cast<int>(threadIdx.x) + more] = 1;
  y[threadIdx.x] = next[threadIdx.x] + shared[static_cast<int>(threadIdx.x) + more];
}

__global__ void unwritten(int* y, int written) {
  int* const shared = shared_memory<int>();
  if (static_cast<int>(threadIdx.x) < written) shared[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = shared[threadIdx.x];
}

struct alignas(8) Two {
  int a, b;
};
__global__ void crooked_pair(int* y, int by) {
  if (threadIdx.x == 0) *reinterpret_cast<Two*>(y + by) = {1, 2};
}
__global__ void crooked_word(int* y, int by) {
  if (threadIdx.x == 0) *reinterpret_cast<int*>(reinterpret_cast<char*>(y) + by) = 1;
}

enum class Copying { properly, no_barrier, early_store, late_store };

/// Each of 64 threads copies 16 bytes into a tile. Then it reads an entry that another thread
/// copied, and stores this entry over the first entry of its own 16 bytes. Unless `how` is
/// Copying::properly, a barrier before the read or before the store is missing.
__global__ void copy_in(int* y, Copying how) {
  int* const tile = shared_memory<int>();
  const int thread = static_cast<int>(threadIdx.x);
  copy_async(tile + 4 * thread, y + 4 * thread, true);
  commit_copies();
  wait_for_copies<0>();
  if (how == Copying::early_store) tile[4 * (63 - thread)] = 0;
  if (how != Copying::no_barrier && how != Copying::early_store) __syncthreads();
  const int other = tile[4 * (63 - thread)];
  if (how == Copying::properly) __syncthreads();
  tile[4 * thread] = other;
}

__global__ void much_shared(int* y, bool more) {
  __shared__ int shared[512];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (more) y[threadIdx.x] = shared[63 - threadIdx.x];
}

/// Computes the matrix product a b, where all entries of a are 1 and b[k][n] = n. If wrong_by is
/// not 0, each lane passes words of b that another lane should pass.
__global__ void multiply(int* y, int wrong_by) {
  const int lane = lane_index();
  const float column = static_cast<float>((lane + wrong_by) % 32 / 4);
  const unsigned ones = to_tf32(1.0f), a[4] = {ones, ones, ones, ones};
  float c[4] = {};
  mma_tf32_16x8x8(c, a, to_tf32(column), to_tf32(column));
  y[lane] = static_cast<int>(c[0]);
}

template <class... Parameters, class... Arguments>
std::string fault(int blocks, std::size_t shared_bytes, void (*kernel)(Parameters...),
                  Arguments... arguments) {
  const Words y;
  Stream stream;
  return refusal([&] { launch(stream, blocks, 64, shared_bytes, kernel, y.data(), arguments...); });
}
/// Checks that the kernel has no fault with the argument `right`, and the fault `what` with
/// `wrong`.
template <class Kernel, class Argument>
void finds(const char* what, int blocks, std::size_t shared_bytes, Kernel kernel, Argument right,
           Argument wrong) {
  const std::string clean = fault(blocks, shared_bytes, kernel, right);
  BOOST_TEST(clean == "accepted");
  const std::string found = fault(blocks, shared_bytes, kernel, wrong);
  BOOST_TEST(found.find(what) != found.npos, found);
}

}  // namespace

BOOST_AUTO_TEST_CASE(missing_barriers_are_races) {
  // The threads run in ascending order, so the first threads read words that the last threads have
  // not yet written.
  finds("no thread has written", 1, 0, &reverse, true, false);
  emulator::set_order(emulator::Order::backward);
  finds("no thread has written", 1, 0, &reverse, true, false);
  emulator::set_order(emulator::Order::forward);
  finds("a race", 1, 0, &overwrite, true, false);
  finds("a race with a write", 1, 256, &reverse_in_warps, true, false);
  finds("no thread has written", 1, 256, &halves, true, false);
}

BOOST_AUTO_TEST_CASE(blocks_must_publish_and_wait_with_fences) {
  const auto passed = [](Publish how, bool wait_fence) {
    return fault(2, 0, &pass_on, how, wait_fence);
  };
  BOOST_TEST(passed(Publish::properly, true) == "accepted");
  BOOST_TEST(contains(passed(Publish::without_fence, true), "a race"));
  BOOST_TEST(contains(passed(Publish::fence_first, true), "a race"));
  BOOST_TEST(contains(passed(Publish::properly, false), "a race"));
  finds("a race with a write", 2, 0, &both_write, true, false);
  finds("a race with a write", 2, 0, &count, true, false);
}

BOOST_AUTO_TEST_CASE(accesses_out_of_bounds_or_misaligned_are_found) {
  finds("outside of shared memory", 1, 256, &one_past, 0, 1);
  finds("out of bounds", 1, 0, &one_past_an_array, 0, 1);
  finds("off its boundary", 1, 0, &crooked_pair, 2, 1);
  finds("off its boundary", 1, 0, &crooked_word, 4, 2);
}

BOOST_AUTO_TEST_CASE(shared_memory_must_be_written_before_it_is_read) {
  finds("no thread has written", 1, 256, &unwritten, 64, 63);
}

BOOST_AUTO_TEST_CASE(copies_need_a_barrier_before_others_use_the_tile) {
  finds("no thread has written", 1, 1024, &copy_in, Copying::properly, Copying::no_barrier);
  finds("a race", 1, 1024, &copy_in, Copying::properly, Copying::early_store);
  finds("a race", 1, 1024, &copy_in, Copying::properly, Copying::late_store);
}

BOOST_AUTO_TEST_CASE(static_and_dynamic_shared_memory_share_one_limit) {
  constexpr std::size_t limit = std::size_t{99} << 10;
  BOOST_TEST(fault(1, limit - 2048, &much_shared, true) == "accepted");
  BOOST_TEST(contains(fault(1, limit - 2047, &much_shared, true), "2048 of static shared memory"));
}

BOOST_AUTO_TEST_CASE(words_in_a_wrong_lane_give_a_wrong_matrix_product) {
  const auto product = [](int wrong_by) {
    const Words y;
    Stream stream;
    launch(stream, 1, 32, 0, &multiply, y.data(), wrong_by);
    std::vector<int> got(32);
    stream.download(got.data(), y.data(), 128);
    return got;
  };
  std::vector<int> expected(32);
  for (int lane = 0; lane < 32; ++lane) {
    expected[static_cast<std::size_t>(lane)] = 8 * (lane % 4 * 2);
  }
  BOOST_TEST(product(0) == expected);
  BOOST_TEST(product(4) != expected);
}

BOOST_AUTO_TEST_SUITE_END()
