#include "core/memory.h"

#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(memory_test)

using namespace longhand;

namespace {

/// Host memory of limited size. The destructor checks that all memory was released.
class SmallMemory final : public MemorySource {
 public:
  explicit SmallMemory(std::size_t limit) : limit_(limit), host_(host_memory()) {}
  ~SmallMemory() override { BOOST_TEST(out_ == 0u); }
  void* allocate(std::size_t bytes) override {
    if (out_ + bytes > limit_) return nullptr;
    out_ += bytes;
    return host_->allocate(bytes);
  }
  void release(void* block, std::size_t bytes) noexcept override {
    out_ -= bytes;
    host_->release(block, bytes);
  }

 private:
  std::size_t limit_, out_ = 0;
  std::unique_ptr<MemorySource> host_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_size_class_is_at_most_an_eighth_larger_than_the_request) {
  for (std::size_t bytes = 257; bytes < 1'000'000; bytes += 97) {
    const std::size_t size = CachingAllocator::class_size(bytes);
    BOOST_REQUIRE(size >= bytes);
    BOOST_REQUIRE(static_cast<double>(size) <= 1.126 * static_cast<double>(bytes));
    BOOST_REQUIRE(CachingAllocator::class_size(size) == size);
  }
}

BOOST_AUTO_TEST_CASE(freed_blocks_are_reused_and_statistics_add_up) {
  CachingAllocator memory("test", host_memory());
  void* const a = memory.allocate(1000);
  BOOST_TEST(memory.use().live == 1024u);
  memory.release(a, 1000);
  BOOST_TEST(memory.use().live == 0u);
  BOOST_TEST(memory.use().cached == 1024u);
  void* const b = memory.allocate(1010);
  BOOST_TEST(a == b);
  BOOST_TEST(memory.use().cached == 0u);
  BOOST_TEST(memory.use().peak == 1024u);
  memory.release(b, 1010);
}

BOOST_AUTO_TEST_CASE(cached_blocks_are_freed_before_a_request_fails) {
  CachingAllocator memory("test", std::make_unique<SmallMemory>(4096));
  void* const a = memory.allocate(4096);
  memory.release(a, 4096);
  // The new block fits into the limit only after the cached block was returned to SmallMemory.
  void* const b = memory.allocate(2048);
  BOOST_CHECK_THROW(memory.allocate(4096), Error);
  memory.release(b, 2048);
}

// A large request can be served by an idle block that is at most twice as large. The block keeps
// its size.
BOOST_AUTO_TEST_CASE(large_requests_reuse_idle_blocks_that_are_slightly_larger) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  CachingAllocator memory("test", host_memory());
  void* const block = memory.allocate(12 * mib);
  memory.release(block, 12 * mib);
  BOOST_TEST(memory.use().cached == 12 * mib);

  // The idle block of 12 MiB is more than twice as large as this request, so it is not used.
  void* const little = memory.allocate(5 * mib);
  BOOST_TEST(little != block);
  void* const most = memory.allocate(7 * mib);
  BOOST_TEST(most == block);
  BOOST_TEST(memory.use().live == 12 * mib);
  BOOST_TEST(memory.use().cached == 0u);
  memory.release(most, 7 * mib);
  BOOST_TEST(memory.use().cached == 12 * mib);
  BOOST_TEST(memory.allocate(12 * mib) == block);
  memory.release(block, 12 * mib);
  memory.release(little, 5 * mib);
  BOOST_TEST(memory.use().live == 0u);
  BOOST_TEST(memory.use().peak == 17 * mib);

  // A request gets the idle block with the closest size. Of idle blocks with 12 and 9 MiB, a
  // request for 8 MiB gets the one with 9 MiB.
  void* const closer = memory.allocate(10 * mib);
  BOOST_TEST(closer == block);
  void* const closest = memory.allocate(9 * mib);
  memory.release(closer, 10 * mib);
  memory.release(closest, 9 * mib);
  BOOST_TEST(memory.allocate(8 * mib) == closest);
  memory.release(closest, 8 * mib);
}

// ReservedBlocks reserves memory for a computation that is repeated, such as a recorded training
// step. Only repeated computations may use this memory.
BOOST_AUTO_TEST_CASE(reserved_blocks_serve_no_other_request) {
  CachingAllocator memory("test", std::make_unique<SmallMemory>(std::size_t{1} << 20));
  const auto first = std::make_unique<ReservedBlocks>(memory);
  auto second = std::make_unique<ReservedBlocks>(memory);
  const auto take = [&](ReservedBlocks& blocks) {
    const ReservedBlocks::Use use(blocks);
    void* const block = memory.allocate(1000);
    BOOST_CHECK_THROW(use.check(), Error);
    memory.release(block, 1000);
    use.check();
    return block;
  };
  const auto take_plain = [&] {
    void* const block = memory.allocate(1000);
    memory.release(block, 1000);
    return block;
  };
  void* const before = take_plain();
  BOOST_TEST(take(*first) == before);   // `first` reserves the idle block
  BOOST_TEST(take(*first) == before);   // `first` uses the same block again
  BOOST_TEST(take(*second) == before);  // `second` uses the same block as `first`
  void* const plain = take_plain();
  // A request outside of repeated computations does not get the reserved block.
  BOOST_TEST(plain != before);
  BOOST_TEST(take_plain() == plain);
  memory.drop_cached();
  BOOST_TEST(memory.use().cached == 1024u);
  BOOST_TEST(take(*first) == before);
  second.reset();
  BOOST_TEST(take_plain() != before);  // `first` still reserves the block
}

BOOST_AUTO_TEST_CASE(released_blocks_can_serve_any_request) {
  CachingAllocator memory("test", host_memory());
  void *idle = nullptr, *live = nullptr;
  {
    ReservedBlocks blocks(memory);
    const ReservedBlocks::Use use(blocks);
    idle = memory.allocate(1000);
    live = memory.allocate(5000);
    memory.release(idle, 1000);
  }
  BOOST_TEST(memory.allocate(1000) == idle);
  memory.release(live, 5000);
  BOOST_TEST(memory.allocate(5000) == live);
  memory.release(live, 5000);
  memory.release(idle, 1000);
  memory.drop_cached();
  BOOST_TEST(memory.use().cached == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
