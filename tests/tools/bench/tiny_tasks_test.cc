// Claim: graphs of tiny tasks have the shapes that their names promise, and Eddy, oneTBB's flow
// graph and its task group make of them what a plain loop makes, in every run.
#include "tools/bench/tiny_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace eddy::test {
namespace {

size_t num_sinks(const TaskShape& shape) {
  std::set<uint32_t> read;
  for (const auto& predecessors : shape.predecessors) {
    read.insert(predecessors.begin(), predecessors.end());
  }
  return shape.size() - read.size();
}

size_t longest_chain(const TaskShape& shape) {
  std::vector<size_t> depth(shape.size(), 1);
  for (uint32_t task = 0; task < shape.size(); ++task) {
    for (const uint32_t predecessor : shape.predecessors[task]) {
      EXPECT_LT(predecessor, task);
      depth[task] = std::max(depth[task], depth[predecessor] + 1);
    }
  }
  return *std::ranges::max_element(depth);
}

TEST(TinyTasks, GraphsHaveTheShapesOfTheirNames) {
  const TaskShape fan_out = fan_out_tasks(100);
  EXPECT_EQ(fan_out.size(), 100u);
  EXPECT_EQ(num_sinks(fan_out), 99u);
  EXPECT_EQ(longest_chain(fan_out), 2u);
  const TaskShape diamonds = diamond_tasks(100, 10);
  EXPECT_EQ(diamonds.size(), 100u);
  EXPECT_EQ(num_sinks(diamonds), 1u);
  EXPECT_EQ(longest_chain(diamonds), 1u + 2 * 9);
  EXPECT_EQ(diamonds.predecessors.back().size(), 10u);
  EXPECT_EQ(longest_chain(chain_tasks(100, 1)), 100u);
  const TaskShape chains = chain_tasks(101, 4);
  EXPECT_EQ(longest_chain(chains), 26u);
  EXPECT_EQ(num_sinks(chains), 1u);
  const TaskShape tree = fork_join_tasks(100);
  EXPECT_EQ(tree.size(), 3u * 32 - 2);
  EXPECT_EQ(num_sinks(tree), 1u);
  EXPECT_EQ(longest_chain(tree), 11u);
}

TEST(TinyTasks, EveryWayMakesWhatALoopMakesAgainAndAgain) {
  const TaskShape shapes[] = {fan_out_tasks(300), diamond_tasks(3000, 20), chain_tasks(300, 1),
                              chain_tasks(3000, 7), fork_join_tasks(3000)};
  for (const TaskShape& shape : shapes) {
    const uint64_t expected = run_in_order(shape);
    for (const TaskWay way : {TaskWay::kEddy, TaskWay::kFlowGraph, TaskWay::kTaskGroup}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(shape.name + ", " + name_of(way) + ", threads: " + std::to_string(threads));
        auto runner = make_task_runner(way, shape, threads);
        ASSERT_TRUE(runner.is_ok()) << runner.status().to_string();
        for (int run = 0; run < 20; ++run) {
          const Result<uint64_t> made = (*runner)->run();
          ASSERT_TRUE(made.is_ok()) << made.status().to_string();
          ASSERT_EQ(*made, expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace eddy::test
