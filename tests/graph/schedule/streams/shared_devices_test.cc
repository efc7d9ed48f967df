// Claim: with nodes on several devices, assignment by matching has the fewest waits of all
// assignments with maximum logical concurrency, however nodes are named; where edges join nodes
// that share several devices as well. Where the search is cut short, it returns a bound on the
// difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <set>
#include <utility>

#include "graph/analysis/transitive_reduction.h"
#include "graph/schedule/streams/edge_devices.h"
#include "graph/schedule/streams/matching_assignment.h"
#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/all_assignments.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::AllAssignments;
using testing::Devices;
using testing::Placement;
using testing::plan;
using testing::PlannedDag;
using testing::prove;

Placement placement_of(const Devices& devices, Random* random_or_null = nullptr) {
  Placement placement;
  for (uint32_t node = 0; node < devices.size(); ++node) {
    auto first = devices[node].begin();
    if (random_or_null != nullptr) {
      std::advance(first, static_cast<ptrdiff_t>(random_or_null->below(devices[node].size())));
    }
    placement.devices.push_back(*first);
    for (const uint32_t device : devices[node]) {
      if (device != *first) placement.further.push_back({node, device});
    }
  }
  return placement;
}

StreamOptions options_of(const Placement& placement) {
  return {.policy = AssignPolicy::kMatching,
          .devices = placement.devices,
          .further_devices = placement.further};
}

// The same number of waits, by trying every way to give edges to devices: on each device an edge
// may not start, nor end, where another one does.
class AllEdges {
 public:
  AllEdges(const Dag& dag, const Devices& devices)
      : reduced_(testing::model_reduction(dag)), devices_(devices) {
    give(0, 0);
  }
  uint32_t fewest_waits() const { return static_cast<uint32_t>(reduced_.size()) - most_; }

 private:
  void give(size_t next, uint32_t num_given) {
    most_ = std::max(most_, num_given);
    if (next == reduced_.size() || num_given + (reduced_.size() - next) <= most_) return;
    const Edge edge = reduced_[next];
    for (const uint32_t device : devices_[edge.from]) {
      if (!devices_[edge.to].contains(device)) continue;
      if (left_.contains({edge.from, device}) || entered_.contains({edge.to, device})) continue;
      left_.insert({edge.from, device});
      entered_.insert({edge.to, device});
      give(next + 1, num_given + 1);
      left_.erase({edge.from, device});
      entered_.erase({edge.to, device});
    }
    give(next + 1, num_given);
  }

  std::vector<Edge> reduced_;
  const Devices& devices_;
  std::set<std::pair<uint32_t, uint32_t>> left_, entered_;  // node, device
  uint32_t most_ = 0;
};

bool any_share_several(const Dag& dag, const Devices& devices) {
  for (const Edge& edge : testing::model_reduction(dag)) {
    size_t shared = 0;
    for (const uint32_t device : devices[edge.from]) shared += devices[edge.to].count(device);
    if (shared > 1) return true;
  }
  return false;
}

// Every node on one of two devices, or on both.
void for_each_placement(uint32_t num_nodes, const std::function<void(const Devices&)>& visit) {
  uint32_t num_placements = 1;
  for (uint32_t node = 0; node < num_nodes; ++node) num_placements *= 3;
  const std::set<uint32_t> choices[] = {{0}, {1}, {0, 1}};
  for (uint32_t i = 0; i < num_placements; ++i) {
    Devices devices(num_nodes);
    uint32_t rest = i;
    for (std::set<uint32_t>& of_node : devices) {
      of_node = choices[rest % 3];
      rest /= 3;
    }
    visit(devices);
  }
}

TEST(SharedDevicesTest, AllGraphsOfFourNodesOnTwoDevicesHaveTheFewestWaits) {
  testing::for_each_dag(4, [](const Dag& dag) {
    for_each_placement(4, [&](const Devices& devices) {
      const Placement placement = placement_of(devices);
      const PlannedDag planned = plan(dag, options_of(placement));
      const AllAssignments best(dag, devices);
      ASSERT_EQ(planned.syncs.waits.size(), best.fewest_waits());
      ASSERT_EQ(AllEdges(dag, devices).fewest_waits(), best.fewest_waits());
      ASSERT_GE(planned.streams.num_streams, best.fewest_streams_then());
      if (planned.streams.fewest == FewestStreams::kExact) {
        ASSERT_EQ(planned.streams.num_streams, best.fewest_streams_then());
      }
      ASSERT_EQ(planned.streams.fewest == FewestStreams::kExact, !any_share_several(dag, devices));
      ASSERT_TRUE(prove(dag, planned.commands).is_safe());
    });
  });
}

// Waits of the plan, with the first device of each node drawn.
size_t num_waits(const Dag& dag, const Devices& devices, Random& random) {
  const Placement placement = placement_of(devices, &random);
  const PlannedDag planned = plan(dag, options_of(placement));
  EXPECT_TRUE(prove(dag, planned.commands).is_safe());
  return planned.syncs.waits.size();
}

TEST(SharedDevicesTest, AllGraphsOfFiveNodesOnTwoDevicesHaveTheFewestWaits) {
  Random random(5);
  testing::for_each_dag(5, [&](const Dag& dag) {
    if (dag.num_edges() < 4) return;  // few edges: as with four nodes
    for_each_placement(5, [&](const Devices& devices) {
      if (!any_share_several(dag, devices)) return;
      ASSERT_EQ(num_waits(dag, devices, random), AllEdges(dag, devices).fewest_waits());
    });
  });
}

Devices random_devices(Random& random, uint32_t num_nodes, uint32_t num_devices) {
  Devices devices(num_nodes);
  for (std::set<uint32_t>& of_node : devices) {
    of_node.insert(static_cast<uint32_t>(random.below(num_devices)));
    for (uint32_t device = 0; device < num_devices; ++device) {
      if (random.below(2) == 0) of_node.insert(device);
    }
  }
  return devices;
}

// Half of the nodes before the others, every pair an edge or not: no edge is redundant.
Dag random_two_layers(Random& random, uint32_t num_nodes) {
  std::vector<Edge> edges;
  for (uint32_t from = 0; from < num_nodes / 2; ++from) {
    for (uint32_t to = num_nodes / 2; to < num_nodes; ++to) {
      if (random.below(2) == 0) edges.push_back({from, to});
    }
  }
  return testing::dag_of(num_nodes, edges);
}

TEST(SharedDevicesTest, RandomGraphsOnTwoToFourDevicesHaveTheFewestWaits) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = seed % 2 == 0 ? random_two_layers(random, 8)
                                  : testing::random_dag(random, {.num_nodes = 9, .num_edges = 16});
    const Devices devices =
        random_devices(random, dag.num_nodes(), 2 + static_cast<uint32_t>(random.below(3)));
    ASSERT_EQ(num_waits(dag, devices, random), AllEdges(dag, devices).fewest_waits());
  }
}

TEST(SharedDevicesTest, NewNamesKeepTheWaits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 60, .num_edges = 110});
    const Devices devices = random_devices(random, 60, 3);
    const std::vector<uint32_t> new_id = testing::random_permutation(random, 60);
    Devices renamed(60);
    for (uint32_t node = 0; node < 60; ++node) renamed[new_id[node]] = devices[node];
    ASSERT_EQ(num_waits(dag, devices, random), num_waits(relabel(dag, new_id), renamed, random));
  }
}

TEST(SharedDevicesTest, WaitsAreTheReducedEdgesWithoutTheMatchedOnes) {
  uint32_t num_proved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 150, .num_edges = 300, .window = 30});
    const Dag reduced = transitive_reduction(dag);
    const Placement placement = placement_of(random_devices(random, 150, 4), &random);
    for (const uint32_t exact_nodes : {0u, 2000u}) {
      StreamOptions options = options_of(placement);
      options.exact_nodes = exact_nodes;
      const PlannedDag planned = plan(dag, options);
      ASSERT_EQ(planned.syncs.waits.size(), reduced.num_edges() - matching_size(reduced, options));
    }
    num_proved += choose_edge_devices(reduced, Slots(150, options_of(placement))).above_fewest == 0;
  }
  EXPECT_GE(num_proved, 50u) << "the search is to reach its end on graphs like these";
}

// With one matching for each part, and no more.
TEST(SharedDevicesTest, ASearchThatIsCutShortSaysHowFarOffItMayBe) {
  uint32_t num_cut = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = transitive_reduction(random_two_layers(random, 8));
    const Devices devices = random_devices(random, 8, 3);
    const Placement placement = placement_of(devices);
    const EdgeDevices cut = choose_edge_devices(dag, Slots(8, options_of(placement)), 1);
    const uint32_t num_waits = dag.num_edges() - maximum_matching(cut.pairs).size;
    const uint32_t fewest = AllEdges(dag, devices).fewest_waits();
    ASSERT_LE(num_waits, fewest + cut.above_fewest);
    num_cut += cut.above_fewest > 0 ? 1 : 0;
  }
  std::cout << "seeds 0 to 1499: " << num_cut << " searches were cut short\n";
  EXPECT_GT(num_cut, 10u);
}

// Everything on the same devices is edge colouring: each node keeps one edge for each device.
TEST(SharedDevicesTest, NodesThatAreAllOnThreeDevicesKeepThreeEdgesEach) {
  std::vector<Edge> edges;
  for (uint32_t from = 0; from < 5; ++from) {
    for (uint32_t to = 5; to < 10; ++to) edges.push_back({from, to});
  }
  const Placement placement = placement_of(Devices(10, {0, 1, 2}));
  const PlannedDag planned = plan(testing::dag_of(10, edges), options_of(placement));
  EXPECT_EQ(planned.syncs.waits.size(), 25u - 15u);
}

}  // namespace
}  // namespace eddy
