// Claim: oneTBB works in every build, and what it orders is no race to ThreadSanitizer, which
// has to see its atomics for that.
#include <gtest/gtest.h>
#include <oneapi/tbb.h>

#include <vector>

namespace eddy {
namespace {

TEST(Tbb, TasksHandOverPlainMemory) {
  constexpr int kRounds = 200;
  constexpr int kTasks = 64;
  tbb::task_arena arena(4);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> plain(kTasks, 0);
    arena.execute([&] {
      tbb::task_group group;
      for (int i = 0; i < kTasks; ++i) group.run([&plain, i] { plain[i] = i; });
      group.wait();
    });
    int sum = 0;
    for (int value : plain) sum += value;
    ASSERT_EQ(sum, kTasks * (kTasks - 1) / 2);
  }
}

TEST(Tbb, ParallelForCoversTheRange) {
  std::vector<int> touched(100000, 0);
  tbb::parallel_for(0, 100000, [&](int i) { ++touched[i]; });
  for (int count : touched) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace eddy
