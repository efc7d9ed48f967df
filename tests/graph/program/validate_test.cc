// Claim: any program can be validated and proved: a malformed program is unsafe and the result has
// the reason, and no spoilt id makes either read what is not there or run without end.
#include "graph/program/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "graph/base/random.h"
#include "graph/proof/program_proof.h"
#include "graph/schedule/emit_program.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

using Op = Program::Op;

Program make_commands(uint64_t seed) {
  const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 60});
  PlanOptions options;
  options.is_auto = false;
  return plan_graph(graph, options).program;
}

// The first list of the seeds that has a pipelined loop.
const Program& with_open_loop() {
  static const Program program = [] {
    for (uint64_t seed = 0;; ++seed) {
      Program made = make_commands(seed);
      const bool is_pipelined = std::ranges::any_of(made.loops, &Program::Loop::is_pipelined);
      if (is_pipelined && !made.cases.empty()) return made;
    }
  }();
  return program;
}

std::string problem(const std::function<void(Program&)>& spoil) {
  Program program = with_open_loop();
  spoil(program);
  const ProgramProof proof = prove_program(program);
  if (proof.is_safe()) return "safe";
  const auto number = [](uint32_t id) { return std::to_string(id); };
  return proof.violations[0].to_string(number, number);
}

uint32_t open_region(const Program& program) {
  return std::ranges::find(program.loops, true, &Program::Loop::is_pipelined)->after;
}

TEST(ValidateTest, WhatIsMalformedIsUnsafeAndSaysWhy) {
  EXPECT_EQ(problem([](Program&) {}), "safe");
  EXPECT_EQ(problem([](Program& c) { c.launches[0].reads.push_back(1u << 30); }),
            std::to_string(with_open_loop().launches[0].node) + ": a name is not there");
  EXPECT_EQ(problem([](Program& c) { c.block_of_name.pop_back(); }),
            "a region: names and their memory are not equally many");
  EXPECT_EQ(problem([](Program& c) { c.block_of_name[0] = 1000; }),
            "a region: a name is of no block");
  EXPECT_EQ(problem([](Program& c) { c.blocks[0].steps.pop_back(); }),
            "a region: the block does not end as its owner demands");
  EXPECT_EQ(problem([](Program& c) { c.blocks[0].steps.back().stream = 999; }),
            "a region: the block does not begin and end on its main stream");
  EXPECT_EQ(problem([](Program& c) { c.blocks[c.loops[0].before].steps.back().op = Op::kEnd; }),
            "a region: the block does not end as its owner demands");
  EXPECT_EQ(problem([](Program& c) { c.blocks[0].steps[1].stream = 999; }),
            "a region: a step stands on stream 999, which is not one of the block's");
  EXPECT_EQ(problem([](Program& c) { c.blocks[open_region(c)].steps.clear(); }),
            "a region: the block lacks its begin or end");
  EXPECT_NE(problem([](Program& c) { c.loops[0].after = 1u << 30; }).find("a block is not there"),
            std::string::npos);
  EXPECT_NE(problem([](Program& c) {
              c.loops[0].after = 0;
            }).find("the block is another's, too, or its own"),
            std::string::npos);
  EXPECT_NE(
      problem([](Program& c) { c.cases[0].results.clear(); }).find("a branch lacks its results"),
      std::string::npos);
  EXPECT_NE(problem([](Program& c) {
              const auto has_output = [](const Program::Launch& l) { return !l.writes.empty(); };
              const auto first = std::ranges::find_if(c.launches, has_output);
              const auto second = std::find_if(first + 1, c.launches.end(), has_output);
              second->writes[0] = first->writes[0];
            }).find("a name is made twice"),
            std::string::npos);
  EXPECT_EQ(problem([](Program& c) {
              auto& steps = c.blocks[0].steps;
              const auto launch = std::ranges::find(steps, Op::kLaunch, &Program::Step::op);
              steps.erase(launch);
            }),
            "a region: an operand has no step");
}

TEST(ValidateTest, AStepOutOfPlaceIsUnsafeAndSaysWhy) {
  const auto insert = [](Program& c, uint32_t region, Program::Step step) {
    auto& steps = c.blocks[region].steps;
    step.stream = steps[0].stream;
    steps.insert(steps.end() - 1, step);
  };
  EXPECT_EQ(problem([&](Program& c) {
              insert(c, 0, {Op::kWaitPrevious, 0, 0});
            }),
            "a region: a wait for the iteration before, but no pipelined loop");
  EXPECT_EQ(problem([&](Program& c) {
              insert(c, open_region(c), {Op::kWaitPrevious, 0, 999});
            }),
            "a region: event 999 is not one of the block's");
  EXPECT_EQ(problem([&](Program& c) {
              insert(c, 0, {Op::kLaunch, 0, 1u << 30});
            }),
            "a region: a launch is not there");
  EXPECT_EQ(problem([&](Program& c) {
              insert(c, 0, {Op::kLoop, 0, 0});
            }),
            "a region: a loop stands in two places");
  EXPECT_EQ(problem([&](Program& c) {
              c.rows.push_back({0, 1u << 30});
            }),
            "a region: a row is of no loop");
  EXPECT_EQ(problem([&](Program& c) {
              c.loops[0].rows.push_back(0);
              c.rows.push_back({0, static_cast<uint32_t>(c.loops[0].rows.size()) - 1});
              insert(c, 0, {Op::kPushRow, 0, static_cast<uint32_t>(c.rows.size()) - 1});
            }),
            "a region: a row stands outside its loop's `after`");
  EXPECT_EQ(problem([&](Program& c) {
              insert(c, 0, {Op::kEnd, 0, 0});
            }),
            "a region: a begin or end stands in the middle of the block");
}

// Each launch of each plan in turn: gone, done again at the end of its block, and moved to another.
TEST(ValidateTest, APlanThatLeavesANodeOutOrRunsItTwiceIsRefused) {
  uint32_t num_launches = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 30});
    Plan plan = plan_graph(graph, {.is_auto = false});
    ASSERT_TRUE(prove_plan(graph, plan).is_ok()) << "seed " << seed;
    std::vector<Program::Block>& blocks = plan.program.blocks;
    for (Program::Block& block : blocks) {
      for (size_t i = 0; i < block.steps.size(); ++i) {
        if (!is_node(block.steps[i].op)) continue;
        ++num_launches;
        const std::vector<Program::Step> whole = block.steps;
        const std::string name = graph.path(node_of(plan.program, whole[i]));
        const auto refusal = [&] { return prove_plan(graph, plan).message(); };
        block.steps.erase(block.steps.begin() + static_cast<ptrdiff_t>(i));
        EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is not launched in its region");
        Program::Block& other = blocks[&block == &blocks[0] ? blocks.size() - 1 : 0];
        if (&other != &block) {
          Program::Step moved = whole[i];
          moved.stream = other.streams[0];
          other.steps.insert(other.steps.end() - 1, moved);
          EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is launched outside its region");
          block.steps = whole;
          EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is launched outside its region");
          other.steps.erase(other.steps.end() - 2);
        }
        block.steps = whole;
        block.steps.insert(block.steps.end() - 1, whole[i]);
        EXPECT_EQ(refusal(), "the plan is unsafe: " + name + " is launched 2 times");
        EXPECT_FALSE(plan.is_proved);
        block.steps = whole;
      }
    }
  }
  EXPECT_GT(num_launches, 300u);
}

TEST(ValidateTest, RegionsNestedWithoutEndAreRefused) {
  Program program;
  constexpr uint32_t kDepth = 100'000;
  for (uint32_t r = 0; r <= kDepth; ++r) {
    Program::Block& region = program.blocks.emplace_back();
    region.streams = {0};
    region.steps = {{Op::kBegin, 0, 0}, {Op::kEnd, 0, r == 0 ? 0 : r - 1}};
    if (r == kDepth) break;
    region.steps.insert(region.steps.begin() + 1, {Op::kCase, 0, r});
    Program::Case& branch = program.cases.emplace_back();
    branch.blocks = {r + 1};
    branch.results.resize(1);
  }
  const ProgramProof proof = prove_program(program);
  ASSERT_FALSE(proof.is_safe());
  EXPECT_EQ(proof.violations[0].text, "blocks are nested too deeply");
}

// One number of the list, at random, becomes a small one, a large one or its neighbour.
void spoil(Program& c, Random& random) {
  std::vector<uint32_t*> numbers;
  const auto add = [&](auto& list) {
    for (uint32_t& number : list) numbers.push_back(&number);
  };
  const auto add_passes = [&](std::vector<Program::Alias>& passes) {
    for (Program::Alias& pass : passes) numbers.insert(numbers.end(), {&pass.to, &pass.from});
  };
  for (Program::Block& region : c.blocks) {
    numbers.insert(numbers.end(), {&region.num_events, &region.first_machine_event});
    for (Program::Step& step : region.steps) {
      numbers.insert(numbers.end(), {&step.operand, &step.stream});
      if (random.below(300) == 0) step.op = static_cast<Op>(random.below(12));
    }
  }
  for (Program::Launch& launch : c.launches) {
    add(launch.reads), add(launch.writes), add(launch.escapes), add_passes(launch.aliases);
  }
  for (Program::Loop& loop : c.loops) {
    numbers.insert(numbers.end(), {&loop.before, &loop.after});
    for (auto* list : {&loop.reads, &loop.tested, &loop.rows, &loop.stacks}) add(*list);
    for (auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) add_passes(*list);
  }
  for (Program::Case& branch : c.cases) {
    add(branch.reads), add(branch.blocks), add_passes(branch.pass_through);
    for (auto& results : branch.results) add_passes(results);
  }
  for (Program::Memory& memory : c.memory) {
    numbers.push_back(&memory.arena);
    numbers.push_back(&memory.loop);
    if (random.below(300) == 0) memory.size_bytes = random.next();
    for (uint64_t& offset : memory.offsets_bytes) {
      if (random.below(300) == 0) offset = random.next() & ~uint64_t{63};
    }
  }
  for (Program::Row& row : c.rows) numbers.insert(numbers.end(), {&row.loop, &row.index});
  add(c.block_of_name), add(c.results);
  uint32_t& number = *numbers[random.below(numbers.size())];
  const uint32_t values[] = {0,          static_cast<uint32_t>(random.below(12)),
                             number + 1, number - 1,
                             UINT32_MAX, static_cast<uint32_t>(random.next())};
  number = values[random.below(std::size(values))];
}

TEST(ValidateTest, ASpoiltListIsTakenLikeAnyOther) {
  uint32_t num_unsafe = 0, num_malformed = 0, num_spoilt = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Program good = make_commands(seed);
    Random random(seed);
    for (int i = 0; i < 40; ++i, ++num_spoilt) {
      Program bad = good;
      spoil(bad, random);
      const bool is_malformed = find_malformed(bad).has_value();
      const bool is_unsafe = !prove_program(bad).is_safe();
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
