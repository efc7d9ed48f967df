// Claim: the waits are the fewest that suffice for the streams and issue order given, found alike
// by clocks and by reduction; records are shared; both lists are in issue order.
#include "graph/schedule/streams/sync_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::PlannedDag;
using testing::Relation;

std::vector<Edge> steps_of(const StreamAssignment& streams, const std::vector<uint32_t>& order) {
  std::vector<Edge> steps;
  std::vector<uint32_t> last(streams.num_streams, UINT32_MAX);
  for (uint32_t node : order) {
    streams.for_each_stream_of(node, [&](uint32_t stream) {
      if (last[stream] != UINT32_MAX) steps.push_back({last[stream], node});
      last[stream] = node;
    });
  }
  return steps;
}

// The size of the smallest subset of the edges that orders all edges beside the streams.
uint32_t model_fewest_waits(const Dag& dag, const std::vector<Edge>& steps) {
  const std::vector<Edge> edges = dag.edges();
  uint32_t fewest = UINT32_MAX;
  for (uint32_t subset = 0; subset < 1u << edges.size(); ++subset) {
    const uint32_t size = static_cast<uint32_t>(std::popcount(subset));
    if (size >= fewest) continue;
    std::vector<Edge> order = steps;
    for (size_t i = 0; i < edges.size(); ++i) {
      if (subset >> i & 1) order.push_back(edges[i]);
    }
    const Relation reach = testing::model_reachability(testing::dag_of(dag.num_nodes(), order));
    const bool suffices =
        std::all_of(edges.begin(), edges.end(), [&](const Edge& e) { return reach[e.from][e.to]; });
    if (suffices) fewest = size;
  }
  return fewest;
}

// Calls visit for every way to put the nodes on streams, related or not.
void for_each_assignment(uint32_t num_nodes,
                         const std::function<void(const StreamAssignment&)>& visit) {
  StreamAssignment streams;
  streams.stream_of_node.resize(num_nodes);
  std::function<void(uint32_t)> place = [&](uint32_t node) {
    if (node == num_nodes) return visit(streams);
    const uint32_t num_streams = streams.num_streams;
    for (uint32_t stream = 0; stream <= num_streams; ++stream) {
      streams.stream_of_node[node] = stream;
      streams.num_streams = std::max(num_streams, stream + 1);
      streams.device_of_stream.assign(streams.num_streams, 0);
      place(node + 1);
    }
    streams.num_streams = num_streams;
  };
  place(0);
}

TEST(SyncPlanTest, HasTheFewestWaitsForEveryGraphAndAssignmentOfFourNodes) {
  const std::vector<uint32_t> order = {0, 1, 2, 3};
  testing::for_each_dag(4, [&](const Dag& dag) {
    for_each_assignment(4, [&](const StreamAssignment& streams) {
      const SyncPlan plan = plan_syncs(dag, streams, order, SyncMethod::kClocks);
      ASSERT_EQ(plan.waits.size(), model_fewest_waits(dag, steps_of(streams, order)));
      ASSERT_EQ(plan_syncs(dag, streams, order, SyncMethod::kReduction), plan);
    });
  });
}

StreamOptions random_options(Random& random, const testing::Placement& placement) {
  StreamOptions options;
  options.policy = static_cast<AssignPolicy>(random.below(3));
  options.max_streams = static_cast<uint32_t>(random.below(6));
  if (random.below(2) == 0) {
    options.devices = placement.devices;
    options.further_devices = placement.further;
  }
  return options;
}

TEST(SyncPlanTest, ClocksAndReductionAgreeWithTheDefinition) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 60, .num_edges = 130});
    const testing::Placement placement = testing::random_placement(random, 60, 3);
    const PlannedDag planned = testing::plan(dag, random_options(random, placement));
    const SyncPlan by_clocks = plan_syncs(dag, planned.streams, planned.order, SyncMethod::kClocks);
    ASSERT_EQ(plan_syncs(dag, planned.streams, planned.order, SyncMethod::kReduction), by_clocks);
    // The reduced graph stands for the graph.
    ASSERT_EQ(plan_syncs(transitive_reduction(dag), planned.streams, planned.order), by_clocks);

    const std::vector<Edge> steps = steps_of(planned.streams, planned.order);
    std::vector<Edge> all = dag.edges();
    all.insert(all.end(), steps.begin(), steps.end());
    std::vector<Edge> expected = testing::model_reduction(testing::dag_of(60, all));
    std::erase_if(expected, [&](const Edge& edge) {
      return std::find(steps.begin(), steps.end(), edge) != steps.end();
    });
    std::vector<Edge> found;
    for (const SyncPlan::Wait& wait : by_clocks.waits) found.push_back(by_clocks.served_edge(wait));
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected);
  }
}

TEST(SyncPlanTest, EventsAreNumberedAndListedInIssueOrderAndAllWaitedFor) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 60, .num_edges = 130});
    const PlannedDag planned = testing::plan(dag);
    const std::vector<uint32_t> position = position_of(planned.order);
    std::vector<bool> is_waited_for(planned.syncs.records.size());
    for (uint32_t i = 0; i < planned.syncs.records.size(); ++i) {
      ASSERT_EQ(planned.syncs.records[i].event, i);
      if (i > 0) {
        ASSERT_LT(position[planned.syncs.records[i - 1].node],
                  position[planned.syncs.records[i].node]);
      }
    }
    std::pair<uint32_t, uint32_t> last = {0, 0};
    for (const SyncPlan::Wait& wait : planned.syncs.waits) {
      const std::pair<uint32_t, uint32_t> place = {position[wait.node], wait.event};
      ASSERT_LE(last, place);
      last = place;
      is_waited_for[wait.event] = true;
      ASSERT_LT(position[planned.syncs.records[wait.event].node], position[wait.node]);
    }
    ASSERT_EQ(std::count(is_waited_for.begin(), is_waited_for.end(), false), 0);
  }
}

}  // namespace
}  // namespace eddy
