// Claim: bodies and branches get the streams and the memory that their place in the graph allows,
// shown on the smallest graphs of each kind.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "graph/ir/builder.h"
#include "graph/proof/program_proof.h"
#include "graph/schedule/memory/plan_memory.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

constexpr uint64_t kBlock = 4032;  // of a value of 1000 floats

class RegionPlanTest : public testing::Test {
 protected:
  RegionPlanTest() : b_(nested_ops(), "regions") {
    b_.set_opset("nested", 1);
    x_ = b_.input("x", tensor_type(ElementType::kFloat, {1000}));
  }

  Value make(std::vector<Value> inputs) {
    return b_.op("Make", inputs, {{"size", int64_t{1000}}}, {.domain = "nested"});
  }
  Value step(Value x, Value y) { return b_.op("Step", {x, y}, {}, {.domain = "nested"}); }
  Value test(Value x) { return b_.op("Test", {x}, {}, {.domain = "nested"}); }
  Value loop(Value initial, const std::function<Value(Value)>& body) {
    return b_.while_loop(
        {.initial = {initial}},
        [&](Value, ValueSpan v) {
          return WhileTest{test(v[0]), {v[0]}};
        },
        [&](Value, ValueSpan v) { return std::vector<Value>{body(v[0])}; })[0];
  }
  // Two values made side by side, joined.
  Value wide(Value x) { return make({make({x}), make({x})}); }

  // Plans, proves and simulates.
  void plan(uint32_t max_streams = 0) {
    if (!graph_) graph_.emplace(std::move(b_.finish().value()));
    plan_ = plan_graph(*graph_, {.is_auto = false, .max_streams = max_streams});
    const Status status = prove_plan(*graph_, plan_);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    ASSERT_EQ(simulate_often(plan_.program, 40), "");
  }
  // The given region of the nth loop or branch, outer before inner.
  const Program::Block& region(size_t nth, size_t index) const {
    for (uint32_t n = 0; n < graph_->num_nodes(); ++n) {
      const Node& node = graph_->node(NodeId(n));
      if (!node.regions.empty() && nth-- == 0)
        return plan_.program.blocks[node.regions[index].index()];
    }
    ADD_FAILURE() << "not so many loops and branches";
    return plan_.program.blocks[0];
  }
  std::set<uint32_t> streams(size_t nth, size_t index) const {
    const Program::Block& plan = region(nth, index);
    return {plan.streams.begin(), plan.streams.end()};
  }
  uint64_t arena_bytes() const {
    return plan_.memory.arenas.empty() ? 0 : plan_.memory.arenas[0].size_bytes;
  }

  // By what loops and cases hand on.
  size_t num_copies() const {
    const Program& program = plan_.program;
    size_t count = 0;
    const auto add = [&](const std::vector<Program::Alias>& aliases, Program::Moment moment,
                         uint32_t loop) {
      for (const Program::Alias& alias : aliases) count += is_copy(program, alias, moment, loop);
    };
    for (uint32_t l = 0; l < program.loops.size(); ++l) {
      add(program.loops[l].enter, Program::Moment::kEnter, l);
      add(program.loops[l].advance, Program::Moment::kAdvance, l);
      add(program.loops[l].forward, Program::Moment::kWithin, l);
      add(program.loops[l].leave, Program::Moment::kWithin, l);
    }
    for (const Program::Case& branch : program.cases) {
      for (const auto& results : branch.results) add(results, Program::Moment::kWithin, 0);
      add(branch.pass_through, Program::Moment::kWithin, 0);
    }
    return count;
  }

  GraphBuilder b_;
  Value x_;
  std::optional<Graph> graph_;
  Plan plan_;
};

TEST_F(RegionPlanTest, ABodyWithTwoSourcesStartsOnItsLoopsStreamAndTheNextFreeOne) {
  b_.output("y", loop(x_, [&](Value v) { return wide(v); }));
  plan();
  EXPECT_EQ(region(0, 1).streams, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(plan_.num_streams, 2u);
}

TEST_F(RegionPlanTest, ABodyMayEndInALoop) {
  b_.output("y",
            loop(x_, [&](Value v) { return loop(wide(v), [&](Value w) { return wide(w); }); }));
  plan();
  EXPECT_EQ(plan_.num_streams, 2u) << "the inner body takes the outer one's idle stream";
}

TEST_F(RegionPlanTest, LoopsSideBySideHaveStreamsOfTheirOwnAndJoinInOneNode) {
  const Value left = loop(make({x_}), [&](Value v) { return wide(v); });
  const Value right = loop(make({x_}), [&](Value v) { return wide(v); });
  b_.output("y", make({left, right}));
  plan();
  const std::set<uint32_t> a = streams(0, 1);
  const std::set<uint32_t> b = streams(1, 1);
  EXPECT_EQ(a.size(), 2u);
  EXPECT_EQ(b.size(), 2u);
  for (const uint32_t stream : a) EXPECT_FALSE(b.contains(stream));
  EXPECT_EQ(plan_.num_streams, 4u);
  for (uint32_t cap = 1; cap <= 3; ++cap) {
    plan(cap);
    EXPECT_LE(plan_.num_streams, cap);
  }
}

TEST_F(RegionPlanTest, LoopsBehindEachOtherShareStreams) {
  b_.output("y",
            loop(loop(x_, [&](Value v) { return wide(v); }), [&](Value v) { return wide(v); }));
  plan();
  EXPECT_EQ(streams(0, 1), streams(1, 1));
}

TEST_F(RegionPlanTest, ExclusiveBranchesShareStreamsEventsAndMemory) {
  const Value condition = test(x_);
  const Value y = b_.if_else(
      condition, [&] { return std::vector<Value>{test(wide(wide(x_)))}; },
      [&] { return std::vector<Value>{test(wide(wide(x_)))}; })[0];
  b_.output("y", y);
  plan();
  EXPECT_EQ(streams(0, 0), streams(0, 1));
  EXPECT_EQ(region(0, 0).first_machine_event, region(0, 1).first_machine_event);
  EXPECT_EQ(arena_bytes(), 3 * kBlock + 64) << "one branch's two sides and their join, and a test";
}

TEST_F(RegionPlanTest, AChainInPlaceNeedsOneBlock) {
  Value v = make({x_});
  for (int i = 0; i < 10; ++i) v = step(v, x_);
  b_.output("y", test(v));
  plan();
  EXPECT_EQ(arena_bytes(), kBlock);
  const Schedule schedule = schedule_graph(*graph_, {.is_auto = false});
  const MemoryPlan apart = plan_memory(*graph_, schedule, {.allow_in_place = false});
  EXPECT_EQ(apart.arenas[0].size_bytes, 2 * kBlock);
}

// The time and memory of joining are near linear: at 50,000 nodes quadratic ones would take minutes
// and tens of gigabytes.
TEST_F(RegionPlanTest, ALongChainInPlaceIsPlannedToo) {
  Value v = make({x_});
  for (int i = 0; i < 50'000; ++i) v = step(v, x_);
  b_.output("y", test(v));
  plan();
  EXPECT_EQ(arena_bytes(), kBlock);
}

// 20,000 values; those that are placed one by one take turns in two blocks, as the others do.
TEST_F(RegionPlanTest, ALongChainThatIsNotInPlaceNeedsFewBlocks) {
  Value v = make({x_});
  for (int i = 0; i < 20'000; ++i) v = make({v});
  b_.output("y", test(v));
  plan();
  EXPECT_EQ(arena_bytes(), 4 * kBlock);
  EXPECT_EQ(plan_.memory.arenas[0].num_blocks, 20'001u);
}

TEST_F(RegionPlanTest, ACarriedValueHasTwoPlacesThatAlternate) {
  const Value y = loop(make({x_}), [&](Value v) { return make({v}); });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(arena_bytes(), 2 * kBlock + 64) << "two turns, the initial value in one, and a test";
  EXPECT_EQ(num_copies(), 0u);
}

TEST_F(RegionPlanTest, ACarriedValueWrittenBehindAllItsReadersHasOnePlace) {
  const Value y = loop(make({x_}), [&](Value v) { return make({make({v})}); });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(arena_bytes(), 2 * kBlock) << "the step, initial and carried, and its half";
  EXPECT_EQ(num_copies(), 0u);
}

TEST_F(RegionPlanTest, ACarriedValueThatIsOverwrittenInPlaceHasOnePlace) {
  const Value y = loop(make({x_}), [&](Value v) { return step(v, x_); });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(arena_bytes(), kBlock + 64);
  EXPECT_EQ(num_copies(), 0u);
}

// The caller's memory can't be written to; what is written over in part is copied once, not each
// time.
TEST_F(RegionPlanTest, ALargeInputOfALoopIsCopiedOnceWhereItIsOverwrittenInPlace) {
  const Value large = b_.input("large", tensor_type(ElementType::kFloat, {2000}));
  const Value y = loop(large, [&](Value v) {
    const Value read = test(v);  // before it is overwritten
    return step(v, b_.op("Make", {read}, {{"size", int64_t{900}}}, {.domain = "nested"}));
  });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(num_copies(), 1u);
  EXPECT_GE(arena_bytes(), 8000u);
}

TEST_F(RegionPlanTest, ALargeInputOfALoopThatMakesAnotherEachTimeGoesByReference) {
  const Value large = b_.input("large", tensor_type(ElementType::kFloat, {2000}));
  const Value y = loop(large, [&](Value v) {
    return b_.op("Make", {v}, {{"size", int64_t{2000}}}, {.domain = "nested"});
  });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(num_copies(), 0u);
  EXPECT_LT(arena_bytes(), 8000u);
}

TEST_F(RegionPlanTest, ALargeInputOfALoopThatIsJoinedWithAsMuchGoesByReference) {
  const Value large = b_.input("large", tensor_type(ElementType::kFloat, {2000}));
  const Value y = loop(large, [&](Value v) {
    return step(v, b_.op("Make", {test(v)}, {{"size", int64_t{1000}}}, {.domain = "nested"}));
  });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(num_copies(), 0u);
  EXPECT_LT(arena_bytes(), 8000u);
}

// Its first half is written where the older value is still read, if only by the turn.
TEST_F(RegionPlanTest, AValueThatIsPassedOnToAnotherParameterIsCopied) {
  const auto both = b_.while_loop(
      {.initial = {make({x_}), make({x_})}},
      [&](Value, ValueSpan v) {
        return WhileTest{test(v[0]), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{make({make({v[1]})}), v[0]};
      });
  b_.output("y", test(both[1]));
  plan();
  EXPECT_EQ(num_copies(), 1u) << "the first to the second";
}

TEST_F(RegionPlanTest, ValuesThatChangePlacesAreCopiedBothAtOnce) {
  const auto both = b_.while_loop(
      {.initial = {make({x_}), make({x_})}},
      [&](Value, ValueSpan v) {
        return WhileTest{test(v[0]), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{v[1], v[0]};
      });
  b_.output("y", test(both[1]));
  plan();
  EXPECT_EQ(num_copies(), 2u);
}

// Copies of what is large cost more than references.
TEST_F(RegionPlanTest, WhatIsLargeIsHandedOnByReferenceWhereItWouldBeCopied) {
  const auto large = [&](std::vector<Value> inputs) {
    return b_.op("Make", inputs, {{"size", int64_t{2000}}}, {.domain = "nested"});
  };
  const auto both = b_.while_loop(
      {.initial = {large({x_}), large({x_})}},
      [&](Value, ValueSpan v) {
        return WhileTest{test(v[0]), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{v[1], v[0]};
      });
  b_.output("y", test(both[1]));
  plan();
  EXPECT_EQ(num_copies(), 0u);
  EXPECT_EQ(arena_bytes(), 64u) << "a test";
}

TEST_F(RegionPlanTest, ANestedLoopGoesOnInThePlaceOfTheOuterOne) {
  const Value y =
      loop(make({x_}), [&](Value v) { return loop(v, [&](Value w) { return step(w, x_); }); });
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(arena_bytes(), kBlock + 64);
  EXPECT_EQ(num_copies(), 0u);
}

TEST_F(RegionPlanTest, BranchesMakeTheirResultWhereTheirCaseHandsItOn) {
  const Value y = b_.if_else(
      test(x_), [&] { return std::vector<Value>{make({make({x_})})}; },
      [&] { return std::vector<Value>{make({x_})}; })[0];
  b_.output("y", test(y));
  plan();
  EXPECT_EQ(num_copies(), 0u);
  EXPECT_EQ(arena_bytes(), 2 * kBlock + 64) << "the result, a step towards it, and a test";
}

TEST_F(RegionPlanTest, WhatLeavesTheGraphHasNoBlock) {
  const Value y = make({make({x_})});
  b_.output("y", y);
  plan();
  EXPECT_EQ(plan_.memory.values[y.id.index()].reason, NoBlock::kLeavesGraph);
  EXPECT_EQ(arena_bytes(), kBlock);
}

TEST_F(RegionPlanTest, AValueReadBesideALaterOneKeepsItsBlock) {
  // left is read at the end only, while right goes through three stages beside it.
  const Value left = make({x_});
  Value right = make({x_});
  for (int i = 0; i < 3; ++i) right = make({right});
  b_.output("y", test(make({left, right})));
  plan();
  EXPECT_GE(arena_bytes(), 3 * kBlock);
}

}  // namespace
}  // namespace eddy
