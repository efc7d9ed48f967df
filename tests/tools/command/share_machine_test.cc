// Claim: ranks of one machine keep to processors of their own, as many each, where there are enough
// and nothing else was asked for; and what is started for the whole machine has it.
#include "tools/command/share_machine.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

namespace eddy {
namespace {

std::set<int> processors_here() {
  cpu_set_t set;
  std::set<int> found;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return found;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) found.insert(i);
  }
  return found;
}

// What a thread keeps to is its own.
std::set<int> kept(
    SessionOptions& options, const LaunchedRank& rank, const std::function<void()>& then = [] {}) {
  std::set<int> found;
  std::thread([&] {
    share_machine(options, rank);
    then();
    found = processors_here();
  }).join();
  return found;
}

LaunchedRank rank_of(uint32_t number, uint32_t num_local) {
  return {.rank = number, .num_ranks = num_local, .num_local = num_local, .number_here = number};
}

TEST(ShareMachine, RanksKeepToProcessorsOfTheirOwn) {
  const std::set<int> all = processors_here();
  if (all.size() < 2) GTEST_SKIP() << "one processor can't be shared";
  const auto n = static_cast<uint32_t>(all.size());
  for (const uint32_t num_ranks : {2u, n}) {
    std::set<int> taken;
    for (uint32_t rank = 0; rank < num_ranks; ++rank) {
      SessionOptions options;
      const std::set<int> own = kept(options, rank_of(rank, num_ranks));
      EXPECT_EQ(own.size(), n / num_ranks);
      EXPECT_EQ(options.num_threads, static_cast<int>(n / num_ranks));
      for (const int processor : own) {
        EXPECT_TRUE(all.contains(processor));
        EXPECT_TRUE(taken.insert(processor).second) << "processor " << processor << " is shared";
      }
    }
  }
  EXPECT_EQ(processors_here(), all);
}

TEST(ShareMachine, WhereThatIsNotPossibleOrWantedTheyKeepToNone) {
  const std::set<int> all = processors_here();
  const auto n = static_cast<uint32_t>(all.size());
  SessionOptions options;
  EXPECT_EQ(kept(options, rank_of(0, 1)), all) << "alone";
  options = {};
  EXPECT_EQ(kept(options, rank_of(n, n + 1)), all) << "more ranks than processors";
  EXPECT_EQ(options.num_threads, 1);
  options = {};
  options.num_threads = static_cast<int>(n);
  EXPECT_EQ(kept(options, rank_of(0, 2)), all) << "more threads than its own processors";
  EXPECT_EQ(options.num_threads, static_cast<int>(n));
  options = {};
  LaunchedRank unknown = rank_of(0, 2);
  unknown.number_here.reset();
  EXPECT_EQ(kept(options, unknown), all);
}

TEST(ShareMachine, MemoryIsDividedWhereItHasALimit) {
  SessionOptions options;
  options.memory_limit_bytes = 1000;
  kept(options, rank_of(0, 4));
  EXPECT_EQ(options.memory_limit_bytes, 250U);
}

TEST(ShareMachine, WhatIsStartedForTheWholeMachineHasIt) {
  const std::set<int> all = processors_here();
  SessionOptions options;
  std::set<int> within;
  const std::set<int> after = kept(options, rank_of(0, 2), [&] {
    const WholeMachine scope;
    std::thread([&] { within = processors_here(); }).join();
  });
  EXPECT_EQ(within, all);
  if (all.size() >= 2) {
    EXPECT_LT(after.size(), all.size());
  }
}

}  // namespace
}  // namespace eddy
