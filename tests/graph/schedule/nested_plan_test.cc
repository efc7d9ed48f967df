// Claim: plans of nested graphs are proved, in streams, waits and memory; a slow machine that runs
// them in random orders finds nothing; and what it finds in a spoilt plan, the proof finds too.
#include <gtest/gtest.h>

#include <iostream>

#include "graph/base/random.h"
#include "graph/proof/nested_proof.h"
#include "graph/schedule/nested_commands.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

constexpr uint64_t kSeeds = 120;

PlanOptions options_of(uint64_t seed) {
  constexpr AssignPolicy kPolicies[] = {AssignPolicy::kRank, AssignPolicy::kMatching,
                                        AssignPolicy::kSerial};
  PlanOptions options;
  options.is_auto = false;
  options.policy = kPolicies[seed % 7 == 0 ? 2 : seed % 2];
  options.max_streams = seed % 3 == 0 ? 1 + seed % 5 : 0;
  return options;
}

std::string text(const NestedProof& proof) {
  const auto number = [](uint32_t id) { return std::to_string(id); };
  return proof.is_safe() ? "safe" : proof.violations[0].to_string(number, number);
}

// The first thing that some order of completion finds wrong.
std::string simulate_often(const NestedCommands& commands, int times) {
  for (int i = 0; i < times; ++i) {
    std::string error = simulate_nested(commands, static_cast<uint64_t>(i));
    if (!error.empty()) return error;
  }
  return "";
}

TEST(NestedPlanTest, EveryPlanIsProvedAndHoldsInRandomOrders) {
  uint64_t num_blocks = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    Plan plan = plan_graph(graph, options_of(seed));
    const NestedCommands commands = nested_commands(graph, plan);
    ASSERT_EQ(text(prove_nested(commands)), "safe");
    ASSERT_TRUE(prove_plan(graph, plan).is_ok());
    EXPECT_TRUE(plan.is_proved);
    ASSERT_EQ(simulate_often(commands, 12), "");
    for (const MemoryArena& arena : plan.memory.arenas) {
      EXPECT_GE(arena.size_bytes, arena.lower_bound_bytes);
      num_blocks += arena.num_blocks;
    }
  }
  EXPECT_GT(num_blocks, kSeeds) << "the graphs must be worth planning";
}

TEST(NestedPlanTest, TheCapHoldsOverAllRegionsAndStopsNone) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    PlanOptions options = options_of(seed);
    options.max_streams = 1 + static_cast<uint32_t>(seed % 4);
    const Plan plan = plan_graph(graph, options);
    EXPECT_LE(plan.num_streams, options.max_streams);
    const NestedCommands commands = nested_commands(graph, plan);
    for (const NestedRegion& region : commands.regions) {
      for (const NestedCommand& command : region.commands) {
        EXPECT_LT(command.stream, options.max_streams);
      }
    }
    ASSERT_EQ(text(prove_nested(commands)), "safe");
    ASSERT_EQ(simulate_often(commands, 4), "") << "nor does the cap stop it";
  }
}

TEST(NestedPlanTest, TheSameGraphGivesTheSamePlan) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    const Graph again = nested_graph(seed);
    const NestedCommands a = nested_commands(graph, plan_graph(graph, options_of(seed)));
    const NestedCommands b = nested_commands(again, plan_graph(again, options_of(seed)));
    ASSERT_EQ(a.regions.size(), b.regions.size());
    for (size_t r = 0; r < a.regions.size(); ++r) {
      EXPECT_EQ(a.regions[r].commands, b.regions[r].commands);
    }
    EXPECT_EQ(a.arena_sizes_bytes, b.arena_sizes_bytes);
    for (size_t name = 0; name < a.memory.size(); ++name) {
      EXPECT_EQ(a.memory[name].offsets_bytes, b.memory[name].offsets_bytes);
    }
  }
}

TEST(NestedProofTest, RegionsThatMayBeAtWorkTogetherShareNoEvent) {
  uint32_t num_shared = 0;  // by regions of one loop or branch
  uint32_t num_caught = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    NestedCommands commands = nested_commands(graph, plan_graph(graph, options_of(seed)));
    for (uint32_t r = 1; r < graph.num_regions(); ++r) {
      NestedRegion& inner = commands.regions[r];
      const Node& owner = graph.node(graph.region(RegionId(r)).owner);
      const NestedRegion& outer = commands.regions[owner.region.index()];
      const NestedRegion& first = commands.regions[owner.regions[0].index()];
      if (inner.num_machine_events == 0) continue;
      num_shared += &first != &inner && first.num_machine_events > 0 &&
                    first.first_machine_event == inner.first_machine_event;
      if (outer.num_machine_events == 0) continue;
      const uint32_t good = inner.first_machine_event;
      inner.first_machine_event = outer.first_machine_event + outer.num_machine_events - 1;
      EXPECT_FALSE(prove_nested(commands).is_safe());
      inner.first_machine_event = good;
      ++num_caught;
    }
  }
  EXPECT_GT(num_shared, 20u);
  EXPECT_GT(num_caught, 20u);
}

// Records and waits of the plan are the fewest; those of a region's frame may be more than
// enough, but one whose loss goes unnoticed must be without effect.
TEST(NestedProofTest, DroppingAnyWaitOrRecordIsCaught) {
  uint64_t num_dropped = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = nested_graph(seed);
    const Plan plan = plan_graph(graph, options_of(seed));
    NestedCommands commands = nested_commands(graph, plan);
    for (size_t r = 0; r < commands.regions.size(); ++r) {
      auto& list = commands.regions[r].commands;
      for (size_t c = 0; c < list.size(); ++c) {
        const NestedCommand dropped = list[c];
        const bool is_record = dropped.kind == NestedCommand::Kind::kRecord;
        if (!is_record && dropped.kind != NestedCommand::Kind::kWait) continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed << " region " << r << " command " << c);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(c));
        const bool is_frame = dropped.id >= plan.regions[r].num_events;
        const bool is_safe = prove_nested(commands).is_safe();
        if (is_record || !is_frame) {
          EXPECT_FALSE(is_safe);
          ++num_dropped;
        } else if (is_safe) {
          EXPECT_EQ(simulate_often(commands, 4), "");
        }
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(c), dropped);
      }
    }
  }
  EXPECT_GT(num_dropped, kSeeds);
}

// Calls spoil(commands, random) for many plans; what the machine then finds, the proof must find.
// That it finds enough is asked for, too: a blind machine would say yes to all.
template <typename Spoil>
void expect_caught(Spoil spoil, uint64_t at_least_rejected, uint64_t at_least_seen) {
  uint64_t num_accepted = 0;
  uint64_t num_rejected = 0;
  uint64_t num_seen = 0;  // rejected, and the machine knows why
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = nested_graph(seed);
    const NestedCommands good = nested_commands(graph, plan_graph(graph, options_of(seed)));
    Random random(seed);
    for (int spoilt = 0; spoilt < 6; ++spoilt) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " spoilt " << spoilt);
      NestedCommands bad = good;
      if (!spoil(bad, random)) continue;
      const bool is_safe = prove_nested(bad).is_safe();
      const std::string error = simulate_often(bad, 8);
      if (is_safe) {
        EXPECT_EQ(error, "") << "the proof missed it";
      }
      num_accepted += is_safe;
      num_rejected += !is_safe;
      num_seen += !is_safe && !error.empty();
    }
  }
  std::cout << "seeds 0 to " << kSeeds - 1 << ": " << num_rejected << " spoilt plans rejected, "
            << num_seen << " of them seen to go wrong; " << num_accepted << " accepted\n";
  EXPECT_GT(num_rejected, at_least_rejected) << "spoiling must matter";
  EXPECT_GT(num_seen, at_least_seen) << "the machine must see it";
}

std::vector<uint32_t> names_with_blocks(const NestedCommands& commands) {
  std::vector<uint32_t> names;
  for (uint32_t name = 0; name < commands.memory.size(); ++name) {
    if (commands.memory[name].arena != NestedMemory::kOwn) names.push_back(name);
  }
  return names;
}

TEST(NestedProofTest, SwappedOffsetsAreCaughtWheneverTheyMatter) {
  expect_caught(
      [](NestedCommands& commands, Random& random) {
        const auto names = names_with_blocks(commands);
        if (names.size() < 2) return false;
        NestedMemory& a = commands.memory[names[random.below(names.size())]];
        NestedMemory& b = commands.memory[names[random.below(names.size())]];
        std::swap(a.offsets_bytes[random.below(a.offsets_bytes.size())],
                  b.offsets_bytes[random.below(b.offsets_bytes.size())]);
        return true;
      },
      kSeeds, kSeeds / 2);
}

TEST(NestedProofTest, MovedBlocksAreCaughtWheneverTheyMatter) {
  expect_caught(
      [](NestedCommands& commands, Random& random) {
        const auto names = names_with_blocks(commands);
        if (names.empty()) return false;
        NestedMemory& moved = commands.memory[names[random.below(names.size())]];
        uint64_t& offset = moved.offsets_bytes[random.below(moved.offsets_bytes.size())];
        const uint64_t room = commands.arena_sizes_bytes[moved.arena] - moved.size_bytes;
        const uint64_t to = random.below(room / 64 + 1) * 64;
        const bool has_moved = to != offset;
        offset = to;
        return has_moved;
      },
      kSeeds, kSeeds / 2);
}

TEST(NestedProofTest, ACarriedValueNeedsItsSpareBlock) {
  expect_caught(
      [](NestedCommands& commands, Random& random) {
        std::vector<uint32_t> carried;
        for (const uint32_t name : names_with_blocks(commands)) {
          if (!commands.memory[name].holders.empty()) carried.push_back(name);
        }
        if (carried.empty()) return false;
        NestedMemory& memory = commands.memory[carried[random.below(carried.size())]];
        memory.holders.pop_back();
        memory.offsets_bytes.pop_back();
        return true;
      },
      kSeeds / 2, kSeeds / 3);
}

}  // namespace
}  // namespace eddy
