// Claim: what a slow machine that runs a spoilt plan in random orders finds, the proof finds, too;
// and regions that may be at work together are refused one event.
#include "graph/proof/program_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "graph/base/random.h"
#include "graph/schedule/emit_program.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

constexpr uint64_t kSeeds = 120;

TEST(NestedProofTest, RegionsThatMayBeAtWorkTogetherShareNoEvent) {
  uint32_t num_shared = 0;  // by regions of one loop or branch
  uint32_t num_caught = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    Program program = plan_graph(graph, nested_options(seed)).program;
    for (uint32_t r = 1; r < graph.num_regions(); ++r) {
      Program::Block& inner = program.blocks[r];
      const Node& owner = graph.node(graph.region(RegionId(r)).owner);
      const Program::Block& outer = program.blocks[owner.region.index()];
      const Program::Block& first = program.blocks[owner.regions[0].index()];
      if (inner.num_machine_events == 0) continue;
      num_shared += &first != &inner && first.num_machine_events > 0 &&
                    first.first_machine_event == inner.first_machine_event;
      if (outer.num_machine_events == 0) continue;
      const uint32_t good = inner.first_machine_event;
      inner.first_machine_event = outer.first_machine_event + outer.num_machine_events - 1;
      EXPECT_FALSE(prove_program(program).is_safe());
      inner.first_machine_event = good;
      ++num_caught;
    }
  }
  EXPECT_GT(num_shared, 20u);
  EXPECT_GT(num_caught, 20u);
}

// Calls spoil(commands, random) for many plans; what the machine then finds, the proof must find.
// The machine must find enough, too: a blind machine would accept all. Returns how many the proof
// accepts.
template <typename Spoil>
uint64_t expect_caught(Spoil spoil, uint64_t at_least_rejected, uint64_t at_least_seen) {
  uint64_t num_accepted = 0;
  uint64_t num_rejected = 0;
  uint64_t num_seen = 0;  // rejected, and the machine has the reason
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = nested_graph(seed);
    const Program good = plan_graph(graph, nested_options(seed)).program;
    Random random(seed);
    for (int spoilt = 0; spoilt < 6; ++spoilt) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " spoilt " << spoilt);
      Program bad = good;
      if (!spoil(bad, random)) continue;
      const bool is_safe = prove_program(bad).is_safe();
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
  return num_accepted;
}

std::vector<uint32_t> names_with_blocks(const Program& program) {
  std::vector<uint32_t> names;
  for (uint32_t name = 0; name < program.memory.size(); ++name) {
    if (program.memory[name].arena != Program::Memory::kOwn) names.push_back(name);
  }
  return names;
}

TEST(NestedProofTest, SwappedOffsetsAreCaughtWheneverTheyMatter) {
  expect_caught(
      [](Program& program, Random& random) {
        const auto names = names_with_blocks(program);
        if (names.size() < 2) return false;
        Program::Memory& a = program.memory[names[random.below(names.size())]];
        Program::Memory& b = program.memory[names[random.below(names.size())]];
        std::swap(a.offsets_bytes[random.below(a.offsets_bytes.size())],
                  b.offsets_bytes[random.below(b.offsets_bytes.size())]);
        return true;
      },
      kSeeds, kSeeds / 2);
}

TEST(NestedProofTest, MovedBlocksAreCaughtWheneverTheyMatter) {
  expect_caught(
      [](Program& program, Random& random) {
        const auto names = names_with_blocks(program);
        if (names.empty()) return false;
        Program::Memory& moved = program.memory[names[random.below(names.size())]];
        uint64_t& offset = moved.offsets_bytes[random.below(moved.offsets_bytes.size())];
        const uint64_t room = program.arena_sizes_bytes[moved.arena] - moved.size_bytes;
        const uint64_t to = random.below(room / 64 + 1) * 64;
        const bool has_moved = to != offset;
        offset = to;
        return has_moved;
      },
      kSeeds, kSeeds / 2);
}

TEST(NestedProofTest, ACarriedValueNeedsBothItsPlaces) {
  const uint64_t num_accepted = expect_caught(
      [](Program& program, Random& random) {
        std::vector<uint32_t> carried;
        for (const uint32_t name : names_with_blocks(program)) {
          if (program.memory[name].offsets_bytes.size() == 2) carried.push_back(name);
        }
        if (carried.empty()) return false;
        const Program::Memory pair = program.memory[carried[random.below(carried.size())]];
        for (Program::Memory& memory : program.memory) {
          if (memory.arena != pair.arena || memory.loop != pair.loop) continue;
          if (!std::ranges::is_permutation(memory.offsets_bytes, pair.offsets_bytes)) continue;
          memory.loop = Program::kNone;
          memory.offsets_bytes = {pair.offsets_bytes[0]};
        }
        return true;
      },
      kSeeds / 2, kSeeds / 3);
  EXPECT_LT(num_accepted, kSeeds / 3) << "few alternate for the sake of overlap only (coalesce.h)";
}

}  // namespace
}  // namespace eddy
