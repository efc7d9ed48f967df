// Claim: one thread at a time has the lock, and one that waits for long leaves its processor to
// others.
#include "graph/base/short_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace eddy {
namespace {

TEST(ShortLock, OneThreadAtATimeHasIt) {
  constexpr int kTimes = 20'000;
  ShortLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * kTimes);
}

// How often the thread has let go of its processor by itself.
int64_t count_naps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string name = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size()));
  }
  return -1;
}

// A thread that spins only would never be seen to nap, and the test would not end.
TEST(ShortLock, AThreadThatWaitsLetsOthersHaveItsProcessor) {
  ShortLock lock;
  lock.lock();
  std::atomic<pid_t> waiter{0};
  std::thread waits([&] {
    waiter = gettid();
    std::lock_guard guard(lock);
  });
  while (waiter == 0) std::this_thread::yield();
  const int64_t before = count_naps(waiter);
  ASSERT_GE(before, 0);
  while (count_naps(waiter) < before + 3) std::this_thread::yield();
  lock.unlock();
  waits.join();
}

}  // namespace
}  // namespace eddy
