// Claim: a process has ended once it has, whether its parent has seen that or not, and no sooner,
// also where the system gives no handle of it.
#include "runtime/mpi/rank_process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace eddy {
namespace {

pid_t start_one() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  return child;
}

void wait_for_end(const RankProcess& process) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!process.has_ended() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(process.has_ended());
}

TEST(RankProcessTest, AnUnknownOneHasNotEnded) {
  const RankProcess process;
  EXPECT_FALSE(process.is_known());
  EXPECT_FALSE(process.has_ended());
  process.signal(SIGKILL);  // nobody's
}

TEST(RankProcessTest, EndsWhenItDoes) {
  RankProcess process;
  const pid_t child = start_one();
  process.know(child);
  EXPECT_TRUE(process.is_known());
  EXPECT_FALSE(process.has_ended());
  process.signal(SIGKILL);
  wait_for_end(process);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(process.has_ended());
  RankProcess gone;
  gone.know(child);
  EXPECT_TRUE(gone.has_ended());
}

// No descriptor is left, as where a container forbids the call.
TEST(RankProcessTest, WithoutAHandleItsNumberHasToDo) {
  rlimit kept = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &kept), 0);
  rlimit none = kept;
  none.rlim_cur = 0;
  const pid_t child = start_one();
  RankProcess process;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  process.know(child);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &kept), 0);
  EXPECT_TRUE(process.is_known());
  EXPECT_FALSE(process.has_ended());
  process.signal(SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(process.has_ended());
}

}  // namespace
}  // namespace eddy
