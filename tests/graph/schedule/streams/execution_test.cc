// Claim: queues that run a planned command list never get stuck, and whatever order they advance
// in, every node starts after its parents have ended.
#include <gtest/gtest.h>

#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::NodeTimes;
using testing::plan;

TEST(ExecutionTest, EveryOrderOfCompletionRespectsEveryEdge) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 40, .num_edges = 80});
    const testing::Placement placement = testing::random_placement(random, 40, 3);
    StreamOptions options{.policy = static_cast<AssignPolicy>(seed % 3)};
    options.max_streams = static_cast<uint32_t>(random.below(5));
    if (random.below(2) == 0) {
      options.devices = placement.devices;
      options.further_devices = placement.further;
    }
    const std::vector<NodeTimes> times =
        testing::run_queues(40, plan(dag, options).commands, random);
    ASSERT_EQ(times.size(), 40u) << "the queues got stuck";
    for (const Edge& edge : dag.edges()) {
      ASSERT_LT(times[edge.from].end, times[edge.to].start) << edge.from << " -> " << edge.to;
    }
  }
}

// The queues themselves notice a missing wait.
TEST(ExecutionTest, WithoutWaitsSomeOrderBreaksAnEdge) {
  Random random(3);
  const Dag dag = testing::dag_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  std::vector<Program::Step> commands = plan(dag).commands;
  std::erase_if(commands, [](const Program::Step& c) { return c.op == Program::Op::kWait; });
  bool is_broken = false;
  for (int i = 0; i < 100; ++i) {
    const std::vector<NodeTimes> times = testing::run_queues(4, commands, random);
    for (const Edge& edge : dag.edges()) is_broken |= times[edge.from].end > times[edge.to].start;
  }
  EXPECT_TRUE(is_broken);
}

}  // namespace
}  // namespace eddy
