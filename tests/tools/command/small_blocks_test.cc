// Claim: with the command's operators new and delete, no two live blocks overlap and none changes
// by itself, whichever thread frees it and whether or not its size is given; a thread keeps no more
// than it may; and too large a block is std::bad_alloc.
#include "tools/command/small_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "graph/base/random.h"

void operator delete(void* data, size_t size) noexcept;  // clang 14 does not declare it

namespace eddy::small_blocks {
namespace {

struct Owned {
  unsigned char* data = nullptr;
  size_t size = 0;
  unsigned char fill = 0;
};

Owned make(Random& random) {
  Owned made;
  made.size = random.below(4) == 0 ? random.below(3000) : random.below(kLargestBytes + 40);
  made.fill = static_cast<unsigned char>(random.next());
  made.data = static_cast<unsigned char*>(::operator new(made.size));
  std::memset(made.data, made.fill, made.size);
  return made;
}

bool is_intact(const Owned& owned) {
  for (size_t i = 0; i < owned.size; ++i) {
    if (owned.data[i] != owned.fill) return false;
  }
  return reinterpret_cast<uintptr_t>(owned.data) % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0;
}

void let_go(const Owned& owned, Random& random) {
  random.below(2) == 0 ? ::operator delete(owned.data) : ::operator delete(owned.data, owned.size);
}

// Blocks go from thread to thread through the middle.
TEST(SmallBlocks, NoTwoLiveBlocksOverlap) {
  std::mutex mutex;
  std::vector<Owned> middle;
  std::atomic<int> num_spoilt{0};
  const auto play = [&](uint64_t seed) {
    Random random(seed);
    std::vector<Owned> mine;
    for (int round = 0; round < 60'000; ++round) {
      mine.push_back(make(random));
      if (random.below(4) == 0) {
        const std::lock_guard lock(mutex);
        middle.push_back(mine.back());
        mine.back() = middle[random.below(middle.size())];
        std::erase_if(middle, [&](const Owned& owned) { return owned.data == mine.back().data; });
      }
      if (mine.size() < 200 || random.below(3) == 0) continue;
      std::swap(mine[random.below(mine.size())], mine.back());
      num_spoilt += is_intact(mine.back()) ? 0 : 1;
      let_go(mine.back(), random);
      mine.pop_back();
      if (mine.size() > 2000) {
        for (const Owned& owned : mine) let_go(owned, random);
        mine.clear();
      }
    }
    for (const Owned& owned : mine) {
      num_spoilt += is_intact(owned) ? 0 : 1;
      let_go(owned, random);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(play, seed);
  for (std::thread& thread : threads) thread.join();
  Random random(5);
  for (const Owned& owned : middle) {
    num_spoilt += is_intact(owned) ? 0 : 1;
    let_go(owned, random);
  }
  EXPECT_EQ(num_spoilt, 0);
}

TEST(SmallBlocks, ABlockComesBackToItsThreadAndNoMoreIsKeptThanMayBe) {
  if (!kIsOn) GTEST_SKIP() << "sanitizers watch malloc's own blocks";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{16}, size_t{17}, size_t{512}}) {
    std::vector<void*> blocks(2 * kMaxKeptBytes / 16 + 2);
    for (void*& block : blocks) block = ::operator new(size);
    for (void* block : blocks) ::operator delete(block, size);
    EXPECT_LE(kept_bytes(size), kMaxKeptBytes);
    EXPECT_GT(kept_bytes(size), kMaxKeptBytes - 1024);
    const size_t kept_before = kept_bytes(size);
    void* const again = ::operator new(size);
    EXPECT_LT(kept_bytes(size), kept_before);
    ::operator delete(again, size);
  }
  EXPECT_EQ(kept_bytes(kLargestBytes + 1), 0u);
  std::thread([] { EXPECT_EQ(kept_bytes(16), 0u); }).join();
}

TEST(SmallBlocks, WhatNoMachineHasIsBadAlloc) {
  if (!kIsOn) GTEST_SKIP() << "sanitizers end the process there";
  for (volatile size_t size :
       {size_t{1} << 60, SIZE_MAX - kLargestBytes, SIZE_MAX - 14, SIZE_MAX}) {
    EXPECT_THROW(::operator delete(::operator new(size)), std::bad_alloc) << size;
  }
}

}  // namespace
}  // namespace eddy::small_blocks
