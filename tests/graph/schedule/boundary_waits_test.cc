// Claim: of the records and waits of a region, those at its entry and exit included, none can be
// left out, on one device and on two, in pipelined loops and in branches; no other set of waits
// that orders nothing beyond streams and edges is smaller, as trying all of them shows; and no
// other of its streams would need fewer at entry and exit as its stream 0.
#include "graph/schedule/boundary_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iostream>

#include "graph/base/bit_matrix.h"
#include "graph/proof/program_proof.h"
#include "graph/proof/reaching_writes.h"
#include "graph/schedule/emit_program.h"
#include "graph/schedule/plan_graph.h"
#include "graph/schedule/region_dag.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

using Op = Program::Op;

bool is_wait(const Program::Step& step) {
  return step.op == Op::kWait || step.op == Op::kWaitPrevious;
}

PlanOptions options_of(const Graph& graph, uint64_t seed, uint32_t num_devices) {
  PlanOptions options;
  options.is_auto = false;
  options.policy = seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
  options.max_streams = seed % 5 == 0 ? 2 + seed % 4 : 0;
  if (num_devices > 1) {
    options.devices = nested_devices(num_devices);
    options.value_devices = nested_value_devices(graph, options.devices);
  }
  return options;
}

struct Dropped {
  uint64_t num_inside = 0, num_at_entry = 0, num_at_exit = 0, num_in_open = 0, num_in_branch = 0;
};

// Takes each record and wait of all regions away in turn.
void drop_each(const Graph& graph, const Plan& plan, Dropped& dropped) {
  Program nested = plan.program;
  const ReachingWrites contents = find_reaching_writes(nested);
  ProgramProver prover(nested, contents, 1);
  ASSERT_TRUE(prover.prove().is_safe());
  for (uint32_t r = 0; r < nested.blocks.size(); ++r) {
    const uint32_t entry = first_frame_event(nested.blocks[r]);
    const bool overlaps = is_pipelined(nested, nested.blocks[r]);
    const NodeId owner = graph.region(RegionId(r)).owner;
    const bool is_branch = !owner.is_none() && graph.node(owner).kind == NodeKind::kCaseOf;
    std::vector<Program::Step>& commands = nested.blocks[r].steps;
    for (size_t c = 0; c < commands.size(); ++c) {
      const Program::Step command = commands[c];
      if (!is_sync(command.op)) continue;
      commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(c));
      EXPECT_FALSE(prover.prove_again(r).is_safe())
          << "region " << r << " without command " << c << ", a "
          << (is_wait(command) ? "wait for" : "record of") << " event " << command.operand;
      commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(c), command);
      const bool is_entry = command.operand == entry;
      ++(command.operand < entry ? dropped.num_inside
         : is_entry              ? dropped.num_at_entry
                                 : dropped.num_at_exit);
      dropped.num_in_open += overlaps && is_entry ? 1 : 0;
      dropped.num_in_branch += is_branch && command.operand >= entry ? 1 : 0;
    }
  }
}

void drop_from_plans(uint32_t num_devices, uint64_t num_seeds) {
  Dropped dropped;
  for (uint64_t seed = 0; seed < num_seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph =
        nested_graph(seed, {.max_depth = 4, .max_nodes = 60, .num_devices = num_devices});
    drop_each(graph, plan_graph(graph, options_of(graph, seed, num_devices)), dropped);
  }
  std::cout << "seeds 0 to " << num_seeds - 1 << ", devices: " << num_devices
            << ": taken away: " << dropped.num_inside << " records and waits between nodes, "
            << dropped.num_at_entry << " at entries, " << dropped.num_at_exit << " at exits; "
            << dropped.num_in_open << " of them at entries of pipelined loops, "
            << dropped.num_in_branch << " of branches\n";
  EXPECT_GT(dropped.num_inside, num_seeds);
  EXPECT_GT(dropped.num_at_entry, num_seeds);
  EXPECT_GT(dropped.num_at_exit, num_seeds);
  EXPECT_GT(dropped.num_in_open, num_seeds / 10);
  EXPECT_GT(dropped.num_in_branch, num_seeds / 10);
}

TEST(BoundaryWaitsTest, EachRecordAndWaitIsNeeded) { drop_from_plans(1, 600); }
TEST(BoundaryWaitsTest, EachIsNeededOnTwoDevices) { drop_from_plans(2, 300); }

// The schedule with streams 0 and `s` exchanged.
RegionSchedule exchanged(RegionSchedule plan, uint32_t s) {
  for (Program::Step& command : plan.steps) {
    command.stream = command.stream == 0 ? s : command.stream == s ? 0 : command.stream;
  }
  return plan;
}

// A source is behind no node, and no node is behind a sink, for any commands.
size_t model_boundary_waits(const Graph& graph, RegionId id, const RegionSchedule& plan) {
  const Dag dag = region_dag(graph, id);
  const Region& region = graph.region(id);
  size_t num_waits = 0;
  for (const Program::Step& command : plan.steps) {
    if (command.op != Op::kLaunch || command.stream == 0) continue;
    const auto found = std::ranges::find(region.nodes, NodeId(command.operand));
    const auto node = static_cast<uint32_t>(found - region.nodes.begin());
    num_waits += dag.parents(node).empty() ? 1 : 0;
    num_waits += dag.children(node).empty() && !plan.is_pipelined ? 1 : 0;
  }
  return num_waits;
}

// Whether the region's stream 0 is chosen for what the next iteration needs.
bool is_for_next_iteration(const Graph& graph, RegionId id) {
  const NodeId owner = graph.region(id).owner;
  if (owner.is_none() || graph.node(owner).kind != NodeKind::kWhile) return false;
  return graph.node(owner).regions[1] == id;
}

TEST(BoundaryWaitsTest, NoOtherStreamOfTheDeviceNeedsFewerAsStream0) {
  uint32_t num_regions = 0, num_worse = 0, num_carried = 0;
  constexpr uint64_t kNumSeeds = 600;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const uint32_t num_devices = 1 + seed % 3;
    const Graph graph =
        nested_graph(seed, {.max_depth = 4, .max_nodes = 60, .num_devices = num_devices});
    PlanOptions options{.is_auto = false, .lays_out_memory = false};
    options.policy = seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
    if (num_devices > 1) {
      options.devices = nested_devices(num_devices);
      options.value_devices = nested_value_devices(graph, options.devices);
    }
    const Schedule plan = schedule_graph(graph, options);
    for (uint32_t r = 0; r < plan.regions.size(); ++r) {
      const RegionSchedule& region = plan.regions[r];
      const size_t chosen = model_boundary_waits(graph, RegionId(r), region);
      const BoundaryWaits frame = boundary_waits(region);
      ASSERT_EQ(frame.entry.size() + frame.exit.size(), chosen) << "region " << r;
      for (uint32_t s = 1; s < region.num_streams; ++s) {
        if (!region.devices.empty() && region.devices[s] != region.devices[0]) continue;
        const size_t other = model_boundary_waits(graph, RegionId(r), exchanged(region, s));
        num_worse += other > chosen ? 1 : 0;
        if (other < chosen && is_for_next_iteration(graph, RegionId(r))) {
          ++num_carried;
          continue;
        }
        EXPECT_LE(chosen, other) << "region " << r << " with stream " << s << " first";
        ++num_regions;
      }
    }
  }
  std::cout << "seeds 0 to " << kNumSeeds - 1 << ": " << num_regions << " other choices, "
            << num_worse << " of them worse; " << num_carried
            << " better ones not taken for the next iteration's sake\n";
  EXPECT_GT(num_worse, num_regions / 10);
  EXPECT_LT(num_carried, num_regions / 10);
}

// A region's entry, nodes and exit in the order of issue, and what is behind what.
class RegionNodes {
 public:
  RegionNodes(const Graph& graph, const Plan& plan, RegionId id, const Program::Block& nested)
      : behind_(0, 0) {
    for (const Program::Step& command : nested.steps) {
      if (!is_sync(command.op)) commands_.push_back(command);
    }
    const auto count = static_cast<uint32_t>(commands_.size());
    behind_ = BitMatrix(count, count);
    const Region& region = graph.region(id);
    std::vector<uint32_t> place(region.nodes.size());
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_node(commands_[i].op)) continue;
      const auto found = std::ranges::find(region.nodes, node_of(plan.program, commands_[i]));
      place[static_cast<size_t>(found - region.nodes.begin())] = i;
    }
    for (const Edge& edge : region_dag(graph, id).edges()) {
      behind_.set(place[edge.to], place[edge.from]);
    }
    for (uint32_t later = 0; later < count; ++later) {
      for (uint32_t earlier = 0; earlier < later; ++earlier) {
        // Rows are stacked behind all else.
        const bool is_frame =
            earlier == 0 || later + 1 == count || commands_[later].op == Op::kPushRow;
        const bool is_near = commands_[earlier].stream == commands_[later].stream;
        if (is_frame || is_near) behind_.set(later, earlier);
      }
    }
    close();
  }

  // Every wait that would order nothing more.
  std::vector<Edge> possible_waits() const {
    std::vector<Edge> waits;
    for (uint32_t to = 0; to < commands_.size(); ++to) {
      for (uint32_t from = 0; from < to; ++from) {
        const bool is_near = commands_[from].stream == commands_[to].stream;
        if (!is_near && behind_.test(to, from)) waits.push_back({from, to});
      }
    }
    return waits;
  }

  // The region with these waits, and a record for all that wait for one node.
  std::vector<Program::Step> with(const std::vector<Edge>& waits) const {
    std::vector<Program::Step> list;
    for (uint32_t node = 0; node < commands_.size(); ++node) {
      const uint32_t stream = commands_[node].stream;
      for (const Edge& wait : waits) {
        if (wait.to == node) list.push_back({Op::kWait, stream, wait.from});
      }
      list.push_back(commands_[node]);
      const bool is_awaited =
          std::ranges::any_of(waits, [&](const Edge& wait) { return wait.from == node; });
      if (is_awaited) list.push_back({Op::kRecord, stream, node});
    }
    return list;
  }

 private:
  void close() {
    const auto count = static_cast<uint32_t>(commands_.size());
    for (uint32_t later = 0; later < count; ++later) {
      for (uint32_t between = later; between-- > 0;) {
        if (behind_.test(later, between)) behind_.or_row(later, between);
      }
    }
  }

  std::vector<Program::Step> commands_;
  BitMatrix behind_;
};

// The fewest waits with which the region proves, trying all sets of them, small ones first.
uint32_t fewest_waits(const RegionNodes& nodes, uint32_t r, Program& nested,
                      ProgramProver& prover) {
  const std::vector<Edge> all = nodes.possible_waits();
  std::vector<uint32_t> sets(size_t{1} << all.size());
  for (uint32_t set = 0; set < sets.size(); ++set) sets[set] = set;
  std::ranges::stable_sort(sets, {}, [](uint32_t set) { return std::popcount(set); });
  for (const uint32_t set : sets) {
    std::vector<Edge> waits;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if ((set >> i & 1) != 0) waits.push_back(all[i]);
    }
    nested.blocks[r].steps = nodes.with(waits);
    if (prover.prove_again(r).is_safe()) return static_cast<uint32_t>(waits.size());
  }
  ADD_FAILURE() << "not even all waits prove";
  return 0;
}

TEST(BoundaryWaitsTest, NoOtherWaitsAreFewer) {
  constexpr size_t kMaxWaits = 11;
  uint32_t num_regions = 0, num_waits = 0, num_kept_free = 0;
  uint64_t seed = 0;
  for (; num_regions < 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const uint32_t num_devices = 1 + seed % 2;
    const Graph graph =
        nested_graph(seed, {.max_depth = 3, .max_nodes = 14, .num_devices = num_devices});
    const PlanOptions options = options_of(graph, seed, num_devices);
    const Schedule schedule = schedule_graph(graph, options);
    const Plan plan = plan_graph(graph, options);
    Program nested = plan.program;
    const ReachingWrites contents = find_reaching_writes(nested);
    ProgramProver prover(nested, contents, 1);
    ASSERT_TRUE(prover.prove().is_safe());
    for (uint32_t r = 0; r < nested.blocks.size(); ++r) {
      const auto num_streams = static_cast<uint32_t>(nested.blocks[r].streams.size());
      if (num_streams == 1 || is_pipelined(nested, nested.blocks[r])) continue;
      const std::vector<Program::Step> planned = nested.blocks[r].steps;
      const RegionNodes nodes(graph, plan, RegionId(r), nested.blocks[r]);
      if (nodes.possible_waits().size() > kMaxWaits) continue;
      const auto expected = std::ranges::count_if(planned, is_wait);
      nested.blocks[r].num_events += static_cast<uint32_t>(planned.size());
      EXPECT_EQ(fewest_waits(nodes, r, nested, prover), expected) << "region " << r;
      nested.blocks[r].steps = planned;
      const BoundaryWaits frame = boundary_waits(schedule.regions[r]);
      num_waits += static_cast<uint32_t>(expected);
      num_kept_free +=
          2 * (num_streams - 1) - static_cast<uint32_t>(frame.entry.size() + frame.exit.size());
      ++num_regions;
    }
  }
  std::cout << "seeds 0 to " << seed - 1 << ": " << num_regions << " regions with " << num_waits
            << " waits; " << num_kept_free << " streams begin or end without one of the frame\n";
  EXPECT_GT(num_kept_free, num_regions / 4);
}

}  // namespace
}  // namespace eddy
