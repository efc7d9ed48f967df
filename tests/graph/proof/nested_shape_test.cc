// Claim: the nested proof takes any list: what is malformed is unsafe and says why, and no spoilt
// id makes it read what is not there or run without end.
#include "graph/proof/nested_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "graph/base/random.h"
#include "graph/proof/nested_proof.h"
#include "graph/schedule/nested_commands.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;

NestedCommands make_commands(uint64_t seed) {
  const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 60});
  PlanOptions options;
  options.is_auto = false;
  return nested_commands(graph, plan_graph(graph, options));
}

// The first list of the seeds that has an open loop.
const NestedCommands& with_open_loop() {
  static const NestedCommands commands = [] {
    for (uint64_t seed = 0;; ++seed) {
      NestedCommands made = make_commands(seed);
      const bool is_open = std::ranges::any_of(made.loops, &NestedLoop::is_open);
      if (is_open && !made.cases.empty()) return made;
    }
  }();
  return commands;
}

std::string problem(const std::function<void(NestedCommands&)>& spoil) {
  NestedCommands commands = with_open_loop();
  spoil(commands);
  const NestedProof proof = prove_nested(commands);
  if (proof.is_safe()) return "safe";
  const auto number = [](uint32_t id) { return std::to_string(id); };
  return proof.violations[0].to_string(number, number);
}

uint32_t open_region(const NestedCommands& commands) {
  return std::ranges::find(commands.loops, true, &NestedLoop::is_open)->after;
}

TEST(NestedShapeTest, WhatIsMalformedIsUnsafeAndSaysWhy) {
  EXPECT_EQ(problem([](NestedCommands&) {}), "safe");
  EXPECT_EQ(problem([](NestedCommands& c) { c.launches[0].reads.push_back(1u << 30); }),
            std::to_string(with_open_loop().launches[0].node) + ": a name is not there");
  EXPECT_EQ(problem([](NestedCommands& c) { c.region_of_name.pop_back(); }),
            "a region: names and their memory are not equally many");
  EXPECT_EQ(problem([](NestedCommands& c) { c.region_of_name[0] = 1000; }),
            "a region: a name is of no region");
  EXPECT_EQ(problem([](NestedCommands& c) { c.regions[0].commands.pop_back(); }),
            "a region: the region lacks its entry or exit");
  EXPECT_EQ(problem([](NestedCommands& c) { c.regions[open_region(c)].commands.clear(); }),
            "a region: the region lacks its entry or exit");
  EXPECT_NE(
      problem([](NestedCommands& c) { c.loops[0].after = 1u << 30; }).find("a region is not there"),
      std::string::npos);
  EXPECT_NE(problem([](NestedCommands& c) {
              c.loops[0].after = 0;
            }).find("the region is another's, too, or its own"),
            std::string::npos);
  EXPECT_NE(problem([](NestedCommands& c) {
              c.cases[0].results.clear();
            }).find("a branch lacks its results"),
            std::string::npos);
  EXPECT_NE(problem([](NestedCommands& c) {
              const auto has_output = [](const NestedLaunch& l) { return !l.writes.empty(); };
              const auto first = std::ranges::find_if(c.launches, has_output);
              const auto second = std::find_if(first + 1, c.launches.end(), has_output);
              second->writes[0] = first->writes[0];
            }).find("a name is made twice"),
            std::string::npos);
  EXPECT_EQ(problem([](NestedCommands& c) {
              auto& commands = c.regions[0].commands;
              const auto launch = std::ranges::find(commands, Kind::kLaunch, &NestedCommand::kind);
              commands.erase(launch);
            }),
            "a region: a node stands nowhere");
  const auto insert = [](NestedCommands& c, uint32_t region, NestedCommand command) {
    auto& commands = c.regions[region].commands;
    command.stream = commands[0].stream;
    commands.insert(commands.end() - 1, command);
  };
  EXPECT_EQ(problem([&](NestedCommands& c) {
              insert(c, 0, {Kind::kWaitPrevious, 0, 0});
            }),
            "a region: a wait for the iteration before, but no open loop");
  EXPECT_EQ(problem([&](NestedCommands& c) {
              insert(c, open_region(c), {Kind::kWaitPrevious, 0, 999});
            }),
            "a region: event 999 is not one of the region's");
  EXPECT_EQ(problem([&](NestedCommands& c) {
              insert(c, 0, {Kind::kLaunch, 0, 1u << 30});
            }),
            "a region: a launch is not there");
  EXPECT_EQ(problem([&](NestedCommands& c) {
              insert(c, 0, {Kind::kLoop, 0, 0});
            }),
            "a region: a loop stands in two places");
  EXPECT_EQ(problem([&](NestedCommands& c) {
              insert(c, 0, {Kind::kExit, 0, 0});
            }),
            "a region: an entry or exit stands in the middle of the region");
}

// Each launch of each plan in turn: gone, done again at the end of its region, and moved to
// another.
TEST(NestedShapeTest, APlanThatLeavesANodeOutOrRunsItTwiceIsRefused) {
  uint32_t num_launches = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 30});
    Plan plan = plan_graph(graph, {.is_auto = false});
    ASSERT_TRUE(prove_plan(graph, plan).is_ok()) << "seed " << seed;
    for (RegionPlan& region : plan.regions) {
      for (size_t c = 0; c < region.commands.size(); ++c) {
        if (region.commands[c].kind != PlanCommand::Kind::kLaunch) continue;
        ++num_launches;
        const std::vector<PlanCommand> whole = region.commands;
        const std::string name = graph.path(whole[c].node);
        const auto refusal = [&] { return prove_plan(graph, plan).message(); };
        region.commands.erase(region.commands.begin() + static_cast<ptrdiff_t>(c));
        EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is not launched in its region");
        RegionPlan& other = plan.regions[&region == &plan.regions[0] ? plan.regions.size() - 1 : 0];
        if (&other != &region) {
          other.commands.push_back(whole[c]);
          other.commands.back().stream = 0;
          EXPECT_NE(refusal().find(name + " is "), std::string::npos);
          region.commands = whole;
          EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is launched outside its region");
          other.commands.pop_back();
        }
        region.commands = whole;
        region.commands.push_back(whole[c]);
        EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is launched 2 times");
        EXPECT_FALSE(plan.is_proved);
        region.commands = whole;
      }
    }
  }
  EXPECT_GT(num_launches, 300u);
}

TEST(NestedShapeTest, RegionsNestedWithoutEndAreRefused) {
  NestedCommands commands;
  constexpr uint32_t kDepth = 100'000;
  for (uint32_t r = 0; r <= kDepth; ++r) {
    NestedRegion& region = commands.regions.emplace_back();
    region.commands = {{Kind::kEnter, 0, 0}, {Kind::kExit, 0, 0}};
    if (r == kDepth) break;
    region.commands.insert(region.commands.begin() + 1, {Kind::kCase, 0, r});
    NestedCase& branch = commands.cases.emplace_back();
    branch.regions = {r + 1};
    branch.results.resize(1);
  }
  const NestedProof proof = prove_nested(commands);
  ASSERT_FALSE(proof.is_safe());
  EXPECT_EQ(proof.violations[0].text, "regions are nested too deeply");
}

// One number of the list, at random, becomes a small one, a large one or its neighbour.
void spoil(NestedCommands& c, Random& random) {
  std::vector<uint32_t*> numbers;
  const auto add = [&](auto& list) {
    for (uint32_t& number : list) numbers.push_back(&number);
  };
  const auto add_passes = [&](std::vector<NestedPass>& passes) {
    for (NestedPass& pass : passes) numbers.insert(numbers.end(), {&pass.to, &pass.from});
  };
  for (NestedRegion& region : c.regions) {
    numbers.insert(numbers.end(), {&region.num_events, &region.first_machine_event});
    for (NestedCommand& command : region.commands) {
      numbers.insert(numbers.end(), {&command.id, &command.stream});
      if (random.below(300) == 0) command.kind = static_cast<Kind>(random.below(8));
    }
  }
  for (NestedLaunch& launch : c.launches) {
    add(launch.reads), add(launch.writes), add(launch.kept), add_passes(launch.passes);
  }
  for (NestedLoop& loop : c.loops) {
    numbers.insert(numbers.end(), {&loop.before, &loop.after});
    for (auto* list : {&loop.reads, &loop.tested, &loop.rows, &loop.stacks}) add(*list);
    for (auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) add_passes(*list);
  }
  for (NestedCase& branch : c.cases) {
    add(branch.reads), add(branch.regions), add_passes(branch.pass_through);
    for (auto& results : branch.results) add_passes(results);
  }
  for (NestedMemory& memory : c.memory) {
    numbers.push_back(&memory.arena);
    add(memory.holders);
    if (random.below(300) == 0) memory.size_bytes = random.next();
    for (uint64_t& offset : memory.offsets_bytes) {
      if (random.below(300) == 0) offset = random.next() & ~uint64_t{63};
    }
  }
  add(c.region_of_name), add(c.results);
  uint32_t& number = *numbers[random.below(numbers.size())];
  const uint32_t values[] = {0,          static_cast<uint32_t>(random.below(12)),
                             number + 1, number - 1,
                             UINT32_MAX, static_cast<uint32_t>(random.next())};
  number = values[random.below(std::size(values))];
}

TEST(NestedShapeTest, ASpoiltListIsTakenLikeAnyOther) {
  uint32_t num_unsafe = 0, num_malformed = 0, num_spoilt = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const NestedCommands good = make_commands(seed);
    Random random(seed);
    for (int i = 0; i < 40; ++i, ++num_spoilt) {
      NestedCommands bad = good;
      spoil(bad, random);
      const bool is_malformed = find_malformed(bad).has_value();
      const bool is_unsafe = !prove_nested(bad).is_safe();
      EXPECT_TRUE(is_unsafe || !is_malformed) << "seed " << seed;
      num_unsafe += is_unsafe;
      num_malformed += is_malformed;
    }
  }
  std::cout << "seeds 0 to 149: " << num_spoilt << " spoilt lists, " << num_malformed
            << " malformed, " << num_unsafe << " unsafe\n";
  EXPECT_GT(num_malformed, num_spoilt / 4);
}

}  // namespace
}  // namespace eddy
