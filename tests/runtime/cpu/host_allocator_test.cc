// Claim: the pool hands freed memory out again, keeps its limit, and builds and destroys strings.
#include "runtime/cpu/host_allocator.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <cstdlib>
#include <memory>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "graph/base/random.h"
#include "graph/base/sanitizers.h"

namespace eddy {
namespace {

TEST(HostAllocatorTest, EverySizeFitsItsClassWithAtMostAQuarterWasted) {
  HostAllocator allocator;
  for (size_t size = 1; size < 100'000; size += 1 + size / 7) {
    const auto buffer = allocator.allocate(size);
    ASSERT_TRUE(buffer.is_ok());
    EXPECT_GE(buffer->capacity_bytes(), size);
    EXPECT_LE(buffer->capacity_bytes(), size + size / 4 + 64);
  }
}

TEST(HostAllocatorTest, AWarmPoolAsksTheSystemForNothing) {
  HostAllocator allocator;
  for (int i = 0; i < 3; ++i) (void)allocator.allocate(1000);
  const uint64_t before = allocator.statistics().num_system_allocations;
  for (int i = 0; i < 100; ++i) (void)allocator.allocate(1000);
  EXPECT_EQ(allocator.statistics().num_system_allocations, before);
}

TEST(HostAllocatorTest, TheLimitHoldsAndCachedMemoryDoesNotCount) {
  HostAllocator allocator(10'000);
  { EXPECT_TRUE(allocator.allocate(8000).is_ok()); }
  auto first = allocator.allocate(6000);
  ASSERT_TRUE(first.is_ok());
  const auto second = allocator.allocate(6000);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().message(),
            "no memory for a tensor of 6000 bytes: " + std::to_string(first->capacity_bytes()) +
                " bytes are in use of a limit of 10000");
  first->reset();
  EXPECT_TRUE(allocator.allocate(6000).is_ok());
}

TEST(HostAllocatorTest, WhatTheSystemRefusesIsNotCountedAsInUse) {
#if EDDY_HAS_ASAN || EDDY_HAS_TSAN
  GTEST_SKIP() << "a sanitizer ends the process where the system would refuse";
#endif
  HostAllocator allocator;
  const auto first = allocator.allocate(6000);
  ASSERT_TRUE(first.is_ok());
  const auto giant = allocator.allocate(size_t{1} << 47);
  ASSERT_FALSE(giant.is_ok());
  EXPECT_EQ(giant.status().message(),
            "no memory for a tensor of " + std::to_string(size_t{1} << 47) +
                " bytes: " + std::to_string(first->capacity_bytes()) + " bytes are in use");
}

TEST(HostAllocatorTest, WhereTheSystemHasNoMoreCachedBlocksOfOtherSizesGoBack) {
#if EDDY_HAS_ASAN || EDDY_HAS_TSAN
  GTEST_SKIP() << "a sanitizer's own memory does not fit in a limited address space";
#endif
  constexpr size_t kMiB = size_t{1} << 20;
  HostAllocator allocator;
  allocator.allocate(90 * kMiB)->reset();
  ASSERT_GE(allocator.statistics().cached_bytes, 90 * kMiB);
  size_t num_pages = 0;
  std::ifstream("/proc/self/statm") >> num_pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = num_pages * 4096 + 200 * kMiB;  // of 224 that the class of 210 takes
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const auto buffer = allocator.allocate(210 * kMiB);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(buffer.is_ok()) << buffer.status().to_string();
  EXPECT_EQ(allocator.statistics().cached_bytes, 0u);
}

TEST(HostAllocatorTest, ATensorThatGrowsDoesNotLeaveItsPastBehind) {
  HostAllocator allocator;
  const auto grow = [&] {
    BufferRef last;
    for (size_t bytes = 100'000; bytes <= 8'000'000; bytes += 100'000) {
      auto next = allocator.allocate(bytes);
      ASSERT_TRUE(next.is_ok());
      EXPECT_GE(next->capacity_bytes(), bytes);
      last = std::move(*next);
    }
  };
  grow();
  // Two generations are alive at once; twice that may wait in the pool.
  EXPECT_LE(allocator.statistics().cached_bytes, size_t{34} << 20);
  for (int i = 0; i < 20; ++i) grow();
  const uint64_t warm = allocator.statistics().num_system_allocations;
  for (int i = 0; i < 5; ++i) grow();
  EXPECT_EQ(allocator.statistics().num_system_allocations, warm) << "warm growth allocates nothing";
}

TEST(HostAllocatorTest, ALargerBlockServesWithinTheLimitOnly) {
  HostAllocator allocator(size_t{1} << 20);
  allocator.allocate(700'000)->reset();
  auto small = allocator.allocate(300'000);
  ASSERT_TRUE(small.is_ok());
  EXPECT_GE(small->capacity_bytes(), 700'000u) << "the block that lay there";
  small->reset();
  auto kept = allocator.allocate(300'000);
  auto more = allocator.allocate(250'000);
  ASSERT_TRUE(kept.is_ok());
  EXPECT_TRUE(more.is_ok()) << "within the limit even with the larger block in use";
}

TEST(HostAllocatorTest, StringsAreEmptyAtFirstAndFreedWithTheirBuffer) {
  HostAllocator allocator;
  for (int round = 0; round < 2; ++round) {
    const auto buffer = allocator.allocate_strings(10);
    ASSERT_TRUE(buffer.is_ok());
    auto* strings = static_cast<std::string*>(buffer->data());
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(strings[i], "");
      strings[i] = std::string(1000, 'x');  // a leak would show under ASan
    }
  }
}

TEST(HostAllocatorTest, CharactersOfStringsCountAsLongAsTheirBuffer) {
  HostAllocator allocator(1 << 20);
  auto buffer = allocator.allocate_strings(10);
  ASSERT_TRUE(buffer.is_ok());
  const size_t used_bytes = allocator.statistics().used_bytes;
  EXPECT_TRUE(allocator.charge_strings(buffer->get(), 500'000));
  EXPECT_EQ(allocator.statistics().used_bytes, used_bytes + 500'000);
  EXPECT_FALSE(allocator.charge_strings(buffer->get(), 1 << 20)) << "beside the buffer itself";
  EXPECT_EQ(allocator.statistics().used_bytes, used_bytes + 500'000) << "nothing has changed";
  EXPECT_FALSE(allocator.allocate(600'000).is_ok());
  EXPECT_TRUE(allocator.charge_strings(buffer->get(), 1000)) << "in place of the former";
  EXPECT_EQ(allocator.statistics().used_bytes, used_bytes + 1000);
  *buffer = BufferRef();
  EXPECT_EQ(allocator.statistics().used_bytes, 0u);
}

TEST(HostAllocatorTest, ThreadsNeverShareABuffer) {
  HostAllocator allocator;
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 2000; ++i) {
        const auto buffer = allocator.allocate(1 + random.below(300));
        auto* bytes = static_cast<volatile char*>(buffer->data());
        bytes[0] = static_cast<char>(t);
        if (bytes[0] != static_cast<char>(t)) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

TEST(HostAllocatorTest, BlocksOfAnotherMemoryGoBackThereWithTheirSizes) {
  struct Counted : HostMemory {
    void* allocate(size_t size_bytes) override {
      if (size_bytes > 1 << 20) return nullptr;
      used_bytes += size_bytes;
      return std::aligned_alloc(64, size_bytes);
    }
    void release(void* block, size_t size_bytes) override {
      used_bytes -= size_bytes;
      std::free(block);
    }
    size_t used_bytes = 0;
  };
  const auto memory = std::make_shared<Counted>();
  {
    HostAllocator allocator(0, memory);
    { EXPECT_TRUE(allocator.allocate(1000).is_ok()); }
    EXPECT_GE(memory->used_bytes, 1000u) << "cached";
    EXPECT_FALSE(allocator.allocate(1 << 20).is_ok());
    EXPECT_EQ(memory->used_bytes, 0u) << "where there is no more, what is cached goes back first";
    EXPECT_TRUE(allocator.allocate(70'000).is_ok());
    EXPECT_TRUE(allocator.allocate_strings(7).is_ok());
  }
  EXPECT_EQ(memory->used_bytes, 0u);
}

}  // namespace
}  // namespace eddy
