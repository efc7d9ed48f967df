// Claim: assignment by rank is NNC's documented rule to the letter, on one device or several, with
// commands or costs; and a cap is never exceeded.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::Placement;
using testing::plan;
using testing::PlannedDag;
using testing::prove;
using testing::RandomDag;

// The rule as it is written, over sets and a closure.
class RankModel {
 public:
  RankModel(const Dag& dag, const std::vector<uint32_t>& order, const StreamOptions& options)
      : dag_(dag), options_(options), reach_(testing::model_reachability(dag)) {
    const std::vector<uint32_t> any = topological_order(dag);
    const std::vector<double> units(dag.num_nodes(), 1.0);
    ranks_ = cost_ranks(dag, any, options.costs.empty() ? units : options.costs);
    devices_.resize(dag.num_nodes());
    streams_.resize(dag.num_nodes());
    for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
      devices_[node].push_back(options.devices.empty() ? 0 : options.devices[node]);
    }
    for (const NodeDevice& more : options.further_devices) {
      devices_[more.node].push_back(more.device);
    }
    for (uint32_t node : order) visit(node);
  }
  // In the form of testing::nodes_of_streams.
  std::vector<std::vector<uint32_t>> streams() const {
    std::vector<std::vector<uint32_t>> nodes;
    for (const Stream& stream : all_) nodes.push_back(stream.nodes);
    for (std::vector<uint32_t>& list : nodes) std::sort(list.begin(), list.end());
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

 private:
  struct Stream {
    uint32_t device;
    std::vector<uint32_t> nodes;
    std::set<uint32_t> commands;
  };
  bool is_on(uint32_t node, uint32_t device) const {
    return std::count(devices_[node].begin(), devices_[node].end(), device) > 0;
  }
  bool is_assigned(uint32_t node, uint32_t device) const { return streams_[node].contains(device); }
  bool has_run(size_t stream, uint32_t node) const {
    return !options_.commands.empty() && all_[stream].commands.contains(options_.commands[node]);
  }
  void assign(uint32_t node, size_t stream) {
    streams_[node].insert(all_[stream].device);
    all_[stream].nodes.push_back(node);
    if (!options_.commands.empty()) all_[stream].commands.insert(options_.commands[node]);
  }
  void visit(uint32_t node) {
    for (uint32_t device : devices_[node]) {
      if (is_assigned(node, device)) continue;
      const size_t stream = choose(node, device);
      for (uint32_t next = node; next != UINT32_MAX; next = extension(next, stream)) {
        assign(next, stream);
      }
    }
  }
  size_t choose(uint32_t node, uint32_t device) {
    size_t first = all_.size();
    for (size_t stream = all_.size(); stream-- > 0;) {
      if (all_[stream].device != device || !reach_[all_[stream].nodes.back()][node]) continue;
      const bool is_preferred = has_run(stream, node);
      if (first == all_.size() || is_preferred || !has_run(first, node)) first = stream;
    }
    if (first == all_.size()) all_.push_back({device, {}, {}});
    return first;
  }
  uint32_t extension(uint32_t node, size_t stream) const {
    uint32_t best = UINT32_MAX;
    for (uint32_t child : dag_.children(node)) {
      const uint32_t device = all_[stream].device;
      if (!is_on(child, device) || is_assigned(child, device)) continue;
      if (best == UINT32_MAX || ranks_[child] > ranks_[best] ||
          (ranks_[child] == ranks_[best] && has_run(stream, child) && !has_run(stream, best))) {
        best = child;
      }
    }
    return best;
  }

  const Dag& dag_;
  const StreamOptions& options_;
  testing::Relation reach_;
  std::vector<double> ranks_;
  std::vector<std::vector<uint32_t>> devices_;
  std::vector<std::set<uint32_t>> streams_;  // devices on which the node has one
  std::vector<Stream> all_;
};

void expect_as_model(const Dag& dag, const StreamOptions& options) {
  const PlannedDag planned = plan(dag, options);
  const RankModel model(dag, planned.order, options);
  ASSERT_EQ(testing::nodes_of_streams(planned.streams), model.streams());
  ASSERT_TRUE(prove(dag, planned.commands).is_safe());
}

TEST(RankRuleTest, AllGraphsOfUpToFiveNodes) {
  for (uint32_t num_nodes = 0; num_nodes <= 5; ++num_nodes) {
    testing::for_each_dag(num_nodes, [](const Dag& dag) { expect_as_model(dag, {}); });
  }
}

TEST(RankRuleTest, RandomGraphsWithCommandsAndCosts) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomDag shape{.num_nodes = 1 + static_cast<uint32_t>(random.below(60))};
    shape.num_edges = static_cast<uint32_t>(random.below(shape.num_nodes * 3));
    shape.window = seed % 3 == 0 ? 6 : 0;
    const Dag dag = testing::random_dag(random, shape);
    std::vector<uint32_t> commands;
    std::vector<double> costs;
    for (uint32_t node = 0; node < shape.num_nodes; ++node) {
      commands.push_back(static_cast<uint32_t>(random.below(5)));
      costs.push_back(static_cast<double>(random.below(3)));
    }
    StreamOptions options;
    if (seed % 2 == 0) options.commands = commands;
    if (seed % 5 == 0) options.costs = costs;
    ASSERT_NO_FATAL_FAILURE(expect_as_model(dag, options));
  }
}

TEST(RankRuleTest, RandomGraphsOnSeveralDevices) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 40, .num_edges = 70});
    const Placement placement = testing::random_placement(random, 40, 3);
    ASSERT_NO_FATAL_FAILURE(
        expect_as_model(dag, {.devices = placement.devices, .further_devices = placement.further}));
  }
}

TEST(RankRuleTest, WideGraphsWhoseSetsOfStreamsSpanManyWords) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomDag shape{.num_nodes = 900, .num_edges = 1100};
    shape.window = seed % 2 == 0 ? 0 : 250;
    const Dag dag = testing::random_dag(random, shape);
    ASSERT_GT(plan(dag).streams.num_streams, 128u);
    ASSERT_NO_FATAL_FAILURE(expect_as_model(dag, {}));
  }
}

TEST(RankRuleTest, ManyIdleStreamsBehindALongChainOfForks) {
  // 300 sources join in one node; from there on, pairs branch and merge.
  std::vector<Edge> edges;
  for (uint32_t node = 0; node < 300; ++node) edges.push_back({node, 300});
  for (uint32_t top = 300; top < 900; top += 3) {
    for (uint32_t side : {top + 1, top + 2}) {
      edges.push_back({top, side});
      edges.push_back({side, top + 3});
    }
  }
  expect_as_model(testing::dag_of(901, edges), {});
}

// Rank and matching in turn, on one device and on those of the placement.
StreamOptions options_of(uint64_t seed, const Placement& placement) {
  StreamOptions options{.policy = seed % 2 ? AssignPolicy::kRank : AssignPolicy::kMatching};
  if (seed % 4 < 2) {
    options.devices = placement.devices;
    options.further_devices = placement.further;
  }
  return options;
}

TEST(StreamCapTest, IsNeverExceededOnAnyDeviceAndThePlanIsProved) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 50, .num_edges = 80});
    const Placement placement = testing::random_placement(random, 50, 2);
    StreamOptions options = options_of(seed, placement);
    options.max_streams = 1 + static_cast<uint32_t>(random.below(5));
    const PlannedDag planned = plan(dag, options);
    std::vector<uint32_t> streams_of_device(2);
    for (uint32_t device : planned.streams.device_of_stream) ++streams_of_device[device];
    ASSERT_LE(streams_of_device[0], options.max_streams);
    ASSERT_LE(streams_of_device[1], options.max_streams);
    ASSERT_TRUE(prove(dag, planned.commands).is_safe());
  }
}

TEST(StreamCapTest, ACapThatIsNotReachedChangesNothing) {
  uint32_t num_changed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 60, .num_edges = 90});
    const Placement placement = testing::random_placement(random, 60, 2);
    StreamOptions options = options_of(seed, placement);
    const StreamAssignment free = plan(dag, options).streams;
    std::vector<uint32_t> streams_of_device(2);
    for (const uint32_t device : free.device_of_stream) ++streams_of_device[device];
    const uint32_t most = std::max(streams_of_device[0], streams_of_device[1]);
    for (const uint32_t cap : {most, most + 1}) {
      options.max_streams = cap;
      ASSERT_EQ(plan(dag, options).streams, free) << "cap " << cap;
    }
    options.max_streams = most - 1;
    if (most == 1) continue;
    const StreamAssignment capped = plan(dag, options).streams;
    EXPECT_EQ(capped.fewest, FewestStreams::kCapped);
    const bool is_same =
        capped.stream_of_node == free.stream_of_node && capped.further == free.further;
    num_changed += is_same ? 0 : 1;
  }
  EXPECT_EQ(num_changed, 200u) << "and one that is reached changes something";
}

TEST(StreamsTest, BelongToTheDevicesOfTheirNodes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 40, .num_edges = 60});
    const Placement placement = testing::random_placement(random, 40, 3);
    StreamOptions options{.devices = placement.devices, .further_devices = placement.further};
    options.policy = static_cast<AssignPolicy>(seed % 3);
    const PlannedDag planned = plan(dag, options);
    for (uint32_t node = 0; node < 40; ++node) {
      std::vector<uint32_t> expected = {placement.devices[node]};
      for (const NodeDevice& more : placement.further) {
        if (more.node == node) expected.push_back(more.device);
      }
      std::vector<uint32_t> found;
      planned.streams.for_each_stream_of(node, [&](uint32_t stream) {
        found.push_back(planned.streams.device_of_stream[stream]);
      });
      EXPECT_EQ(found[0], expected[0]);
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace eddy
