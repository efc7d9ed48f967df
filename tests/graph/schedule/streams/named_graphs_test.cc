// Claim: on the small graphs that other planners are known to get wrong, the plan is the one that
// the papers promise.
#include <gtest/gtest.h>

#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::dag_of;
using testing::nodes_of_streams;
using testing::plan;
using testing::PlannedDag;
using testing::prove;
using Streams = std::vector<std::vector<uint32_t>>;

constexpr StreamOptions kByMatching{.policy = AssignPolicy::kMatching};

TEST(NamedGraphsTest, N1ToN2AndN3ToN4GivesN1N2N4OneStream) {
  const Dag dag = dag_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const PlannedDag planned = plan(dag);
  EXPECT_EQ(nodes_of_streams(planned.streams), (Streams{{0, 1, 3}, {2}}));
  EXPECT_EQ(planned.syncs.waits.size(), 2u);
  EXPECT_TRUE(prove(dag, planned.commands).is_safe());
}

TEST(NamedGraphsTest, RepeatedBranchAndMergeReusesTwoStreams) {
  // 0 -> (1, 2) -> 3 -> (4, 5) -> 6 -> ...
  std::vector<Edge> edges;
  for (uint32_t top = 0; top < 30; top += 3) {
    for (uint32_t side : {top + 1, top + 2}) {
      edges.push_back({top, side});
      edges.push_back({side, top + 3});
    }
  }
  const Dag dag = dag_of(31, edges);
  for (const StreamOptions& options : {StreamOptions{}, kByMatching}) {
    const PlannedDag planned = plan(dag, options);
    EXPECT_EQ(planned.streams.num_streams, 2u);
    EXPECT_EQ(planned.syncs.waits.size(), 20u);
    EXPECT_TRUE(prove(dag, planned.commands).is_safe());
  }
}

TEST(NamedGraphsTest, AHubOfTwoSourcesAndTwoSinksNeedsASecondPass) {
  // One pass of matching gives 3 streams: a1 h b1, a2, b2.
  const Dag dag = dag_of(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}});
  const PlannedDag planned = plan(dag, kByMatching);
  EXPECT_EQ(planned.streams.num_streams, 2u);
  EXPECT_EQ(planned.syncs.waits.size(), 2u);
  EXPECT_EQ(plan(dag).streams.num_streams, 2u);
}

TEST(NamedGraphsTest, AChainIsOneStreamWithoutSyncs) {
  const Dag dag = dag_of(3, {{0, 1}, {1, 2}});
  for (const StreamOptions& options : {StreamOptions{}, kByMatching}) {
    const PlannedDag planned = plan(dag, options);
    EXPECT_EQ(planned.streams.num_streams, 1u);
    EXPECT_TRUE(planned.syncs.waits.empty());
    EXPECT_TRUE(planned.syncs.records.empty());
  }
}

TEST(NamedGraphsTest, TheLongerChainIsFollowedThoughItsEdgeComesSecond) {
  // s=0 -> b=1 -> e=4 beside s -> c=2 -> d=3 -> f=5 -> e.
  const Dag dag = dag_of(6, {{0, 1}, {1, 4}, {0, 2}, {2, 3}, {3, 5}, {5, 4}});
  EXPECT_EQ(nodes_of_streams(plan(dag).streams), (Streams{{0, 2, 3, 4, 5}, {1}}));
}

TEST(NamedGraphsTest, CostsDecideWhichChainIsLonger) {
  const Dag dag = dag_of(6, {{0, 1}, {1, 4}, {0, 2}, {2, 3}, {3, 5}, {5, 4}});
  // What follows 1 is 4 alone; only costs on the chain behind the children count.
  const std::vector<double> costs = {1, 1, 1, 0, 1, 0};
  const std::vector<double> dear = {1, 1, 1, 5, 1, 1};
  EXPECT_EQ(nodes_of_streams(plan(dag, {.costs = dear}).streams), (Streams{{0, 2, 3, 4, 5}, {1}}));
  // Equal cost ranks: the lower id.
  EXPECT_EQ(nodes_of_streams(plan(dag, {.costs = costs}).streams), (Streams{{0, 1, 4}, {2, 3, 5}}));
}

TEST(NamedGraphsTest, EqualRanksPreferTheCommandTheStreamHasRun) {
  const Dag dag = dag_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const std::vector<uint32_t> commands = {7, 3, 7, 3};
  EXPECT_EQ(nodes_of_streams(plan(dag, {.commands = commands}).streams), (Streams{{0, 2, 3}, {1}}));
}

TEST(NamedGraphsTest, ARecycledStreamIsRatherOneThatHasRunTheCommand) {
  // Sources 0, 1, 2 join in 3; behind it 4 and 5, of which 5 runs what 2 ran.
  const Dag dag = dag_of(6, {{0, 3}, {1, 3}, {2, 3}, {3, 4}, {3, 5}});
  const std::vector<uint32_t> plain = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(nodes_of_streams(plan(dag, {.commands = plain}).streams),
            (Streams{{0, 3, 4}, {1, 5}, {2}}));
  const std::vector<uint32_t> same = {0, 1, 2, 3, 4, 2};
  EXPECT_EQ(nodes_of_streams(plan(dag, {.commands = same}).streams),
            (Streams{{0, 3, 4}, {1}, {2, 5}}));
}

TEST(NamedGraphsTest, AFanInOf70000WaitsForAllButOne) {
  constexpr uint32_t kFan = 70'000;
  std::vector<Edge> edges;
  for (uint32_t node = 0; node < kFan; ++node) edges.push_back({node, kFan});
  const Dag dag = dag_of(kFan + 1, edges);
  for (const StreamOptions& options : {StreamOptions{}, kByMatching}) {
    const PlannedDag planned = plan(dag, options);
    EXPECT_EQ(planned.streams.num_streams, kFan);
    EXPECT_EQ(planned.syncs.waits.size(), kFan - 1);
    EXPECT_TRUE(prove(dag, planned.commands).is_safe());
  }
  const PlannedDag capped = plan(dag, {.max_streams = 8});
  EXPECT_EQ(capped.streams.num_streams, 8u);
  EXPECT_EQ(capped.syncs.waits.size(), 7u);
  EXPECT_TRUE(prove(dag, capped.commands).is_safe());
}

TEST(NamedGraphsTest, AFanOutSharesOneRecord) {
  constexpr uint32_t kFan = 5000;
  std::vector<Edge> edges;
  for (uint32_t node = 1; node <= kFan; ++node) edges.push_back({0, node});
  const PlannedDag planned = plan(dag_of(kFan + 1, edges));
  EXPECT_EQ(planned.syncs.waits.size(), kFan - 1);
  EXPECT_EQ(planned.syncs.records.size(), 1u);
}

TEST(NamedGraphsTest, CompleteBipartite3By3Needs6Waits) {
  std::vector<Edge> edges;
  for (uint32_t from = 0; from < 3; ++from) {
    for (uint32_t to = 3; to < 6; ++to) edges.push_back({from, to});
  }
  for (const StreamOptions& options : {StreamOptions{}, kByMatching}) {
    const PlannedDag planned = plan(dag_of(6, edges), options);
    EXPECT_EQ(planned.streams.num_streams, 3u);
    EXPECT_EQ(planned.syncs.waits.size(), 6u);
    EXPECT_EQ(planned.syncs.records.size(), 3u);
  }
}

TEST(NamedGraphsTest, ABodyWithTwoSourcesStartsOnTwoStreams) {
  const PlannedDag planned = plan(dag_of(3, {{0, 2}, {1, 2}}));
  EXPECT_EQ(nodes_of_streams(planned.streams), (Streams{{0, 2}, {1}}));
  EXPECT_EQ(planned.syncs.waits.size(), 1u);
}

TEST(NamedGraphsTest, SerialIsOneStreamByRank) {
  const Dag dag = dag_of(6, {{0, 1}, {1, 4}, {0, 2}, {2, 3}, {3, 5}, {5, 4}});
  const PlannedDag planned = plan(dag, {.policy = AssignPolicy::kSerial});
  EXPECT_EQ(planned.streams.num_streams, 1u);
  EXPECT_TRUE(planned.syncs.waits.empty());
  EXPECT_EQ(planned.order, (std::vector<uint32_t>{0, 2, 3, 1, 5, 4}));
  EXPECT_TRUE(prove(dag, planned.commands).is_safe());
}

TEST(NamedGraphsTest, ATransferBetweenTwoDevicesIsOnAStreamOfEach) {
  // 0 on device 0 -> 1 on both -> 2 on device 1.
  const Dag dag = dag_of(3, {{0, 1}, {1, 2}});
  const std::vector<uint32_t> devices = {0, 0, 1};
  const std::vector<NodeDevice> further = {{1, 1}};
  for (AssignPolicy policy :
       {AssignPolicy::kRank, AssignPolicy::kMatching, AssignPolicy::kSerial}) {
    const PlannedDag planned =
        plan(dag, {.policy = policy, .devices = devices, .further_devices = further});
    EXPECT_EQ(nodes_of_streams(planned.streams), (Streams{{0, 1}, {1, 2}}));
    EXPECT_TRUE(planned.syncs.waits.empty());
    EXPECT_TRUE(prove(dag, planned.commands).is_safe());
  }
}

}  // namespace
}  // namespace eddy
