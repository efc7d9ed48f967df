// Claim: a program's text has each step once, in the order of issue, inside the block that it is
// of; the same program has the same text; a wait for the iteration before is marked.
#include "graph/program/print.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

const ProgramNames kNumbers = {[](uint32_t node) { return "n" + std::to_string(node); },
                               [](uint32_t name) { return "v" + std::to_string(name); }};

Program pipelined_loop() {
  using Op = Program::Op;
  Program program;
  program.blocks.resize(3);
  program.blocks[0] = {.streams = {0},
                       .steps = {{Op::kBegin, 0, 0}, {Op::kLoop, 0, 0}, {Op::kEnd, 0, 0}}};
  program.blocks[1] = {.streams = {0}, .steps = {{Op::kBegin, 0, 0}, {Op::kTest, 0, 0}}};
  program.blocks[2] = {.streams = {0, 3},
                       .num_events = 4,
                       .steps = {{Op::kBegin, 0, 0},
                                 {Op::kWaitPrevious, 0, 1},
                                 {Op::kRecord, 0, 0},
                                 {Op::kWait, 3, 0},
                                 {Op::kRetain, 3, 1},
                                 {Op::kLaunch, 3, 0},
                                 {Op::kPushRow, 3, 0},
                                 {Op::kRecord, 3, 1},
                                 {Op::kAdvance, 0, 0}}};
  program.launches.resize(2);
  program.launches[0] = {.node = 7, .reads = {2}, .writes = {1}};
  program.launches[1] = {.node = 4, .aliases = {{2, 0}}};
  program.loops.push_back({.node = 4, .before = 1, .after = 2, .rows = {1}, .is_pipelined = true});
  program.rows.push_back({0, 0});
  program.memory.resize(3);
  program.block_of_name = {0, 2, 2};
  return program;
}

TEST(PrintTest, EachStepIsALineInItsBlock) {
  EXPECT_EQ(print_program(pipelined_loop(), kNumbers), R"(streams 0
0  begin
0  loop n4
  before
    streams 0
    0  begin
    0  test n4
  after, pipelined
    streams 0 3
    0  begin
    0  wait e1 of the iteration before
    0  record e0
    3  wait e0
    3  retain v0
    3  launch n7
    3  push row v1
    3  record e1
    0  advance n4
0  end
)");
}

TEST(PrintTest, RandomPlansHaveALineForEachStep) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 40});
    const Program program = plan_graph(graph, {.is_auto = false}).program;
    size_t num_lines = program.blocks.size();  // of streams
    for (const Program::Block& block : program.blocks) num_lines += block.steps.size();
    num_lines += program.blocks.size() - 1;  // "before", "after", "branch 1"
    const std::string text = print_program(program, kNumbers);
    EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '\n')), num_lines);
    EXPECT_EQ(text, print_program(plan_graph(graph, {.is_auto = false}).program, kNumbers));
  }
}

}  // namespace
}  // namespace eddy
