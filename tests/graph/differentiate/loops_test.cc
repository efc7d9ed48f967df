// Claim: the gradient through while loops and case-of nodes, nested in each other, agrees with
// central differences on random programs: loops with work on both sides of their check, left in the
// middle, by a limit or after no trip at all; branches with a default or values passed through;
// rows that are stacked; captured values; shapes that change from iteration to iteration; and
// that gradients can be differentiated again.
//
// A perturbed run that takes another path is left out and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/ir/builder.h"
#include "tests/graph/differentiate/gradient_inputs.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

struct Tally {
  int compared = 0, other_paths = 0, flat = 0, zero_trips = 0;
};

void check_program(uint64_t seed, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  GraphBuilder b(gradient_ops());
  check::add_gradient_program(b, seed, {.has_sequences = false});
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const NamedValues inputs = random_inputs(seed);
  auto gradient =
      differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  if (!gradient.is_ok()) {
    EXPECT_NE(gradient.status().message().find("depends on no input"), std::string::npos)
        << gradient.status().to_string();
    ++tally.flat;
    return;
  }
  const auto run = run_graph(gradient->graph, inputs);
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  for (const int64_t decision : run->decisions) tally.zero_trips += decision == 0;
  const std::string difference = compare_with_differences(*gradient, inputs, "loss", "", 1e-6);
  if (difference.find("another path") != std::string::npos) {
    ++tally.other_paths;
  } else {
    EXPECT_EQ(difference, "");
    ++tally.compared;
  }
}

TEST(LoopsTest, RandomProgramsAgreeWithDifferences) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    check_program(seed, tally);
    if (HasFatalFailure() || HasNonfatalFailure()) break;
  }
  printf(
      "seeds 1..150: %d compared, %d took another path, %d flat, %d loops of no trip or first "
      "branches\n",
      tally.compared, tally.other_paths, tally.flat, tally.zero_trips);
  EXPECT_GE(tally.compared, 100);
  EXPECT_GE(tally.zero_trips, 100);
}

// What is compared, and how many programs kept rows or pushed on tapes.
struct TwiceTally {
  int compared = 0, with_rows = 0, with_tapes = 0, other_paths = 0;
};

void check_twice(uint64_t seed, int depth, bool has_branches, TwiceTally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  GraphBuilder b(gradient_ops());
  check::add_gradient_program(
      b, seed, {.depth = depth, .has_branches = has_branches, .has_sequences = false});
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto first =
      differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  if (!first.is_ok()) return;  // flat
  const auto& all = first->report.kept;
  tally.with_rows += std::ranges::count(all, KeptClass::kRow, &KeptReport::kind) > 0;
  tally.with_tapes += std::ranges::count(all, KeptClass::kPushed, &KeptReport::kind) > 0;
  for (const GradientOutput& of : first->report.gradients) {
    if (of.parameter == "v") continue;  // not one element
    const auto second = differentiate(first->graph.copy(), gradient_ops(), gradient_rules(),
                                      {.loss = of.output, .suffix = ".grad2"});
    if (!second.is_ok()) {
      ASSERT_NE(second.status().message().find("depends on no input"), std::string::npos)
          << second.status().to_string();
      continue;
    }
    const std::string difference =
        compare_with_differences(*second, random_inputs(seed), of.output, "", 1e-5);
    if (difference.find("another path") != std::string::npos) {
      ++tally.other_paths;
      continue;
    }
    ASSERT_EQ(difference, "") << of.output;
    ++tally.compared;
  }
}

// Loops beside each other, so that all they keep are rows.
TEST(LoopsTest, RowsCanBeDifferentiatedTwice) {
  TwiceTally tally;
  for (uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) check_twice(seed, 1, false, tally);
  printf("seeds 1..80: %d second derivatives compared, %d took another path, %d with rows\n",
         tally.compared, tally.other_paths, tally.with_rows);
  EXPECT_GE(tally.compared, 120);
  EXPECT_GE(tally.with_rows, 20);
  EXPECT_EQ(tally.with_tapes, 0);
}

TEST(LoopsTest, TapesCanBeDifferentiatedTwice) {
  TwiceTally tally;
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) check_twice(seed, 2, true, tally);
  printf("seeds 1..60: %d second derivatives compared, %d took another path, %d with tapes\n",
         tally.compared, tally.other_paths, tally.with_tapes);
  EXPECT_GE(tally.compared, 60);
  EXPECT_GE(tally.with_tapes, 20);
}

// z <- z * w while z > c, of vectors.
TEST(LoopsTest, ALoopWithWorkOnBothSidesOfItsCheck) {
  for (const double start : {40.0, 3.0, 0.5}) {  // the last one: no trip
    GraphBuilder b(gradient_ops());
    const Value x = b.input("x", tensor_type(ElementType::kDouble, {2}));
    const Value w = b.input("w", tensor_type(ElementType::kDouble, {2, 2}));
    const auto made = b.while_loop(
        {.name = "shrink", .initial = {x}, .num_scan_outputs = 1},
        [&](Value, ValueSpan z) {
          const Value y = b.op("MatMul", {z[0], w});
          const Value size = b.op("ReduceL2", {y}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Greater", {size, b.scalar(1.0)}), {y}};
        },
        [&](Value, ValueSpan y) {
          return std::vector<Value>{b.op("Mul", {y[0], b.scalar(0.7)}), b.op("Sin", {y[0]})};
        });
    const Value sum = b.op("ReduceSum", {made[1]}, {{"keepdims", int64_t{0}}});
    b.output("loss", b.op("Add", {sum, b.op("ReduceSum", {b.op("Exp", {made[0]})},
                                            {{"keepdims", int64_t{0}}})}));
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const NamedValues inputs = {{"x", TestTensor::of<double>({2}, {start, start / 3})},
                                {"w", TestTensor::of<double>({2, 2}, {0.6, 0.2, -0.3, 0.5})}};
    const auto gradient =
        differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
    EXPECT_EQ(compare_with_differences(*gradient, inputs, "loss", "", 1e-6), "");
  }
}

// Rows of a captured tensor are read one by one, and one is appended each time.
TEST(LoopsTest, ShapesThatChangeAreKeptByTheirElements) {
  GraphBuilder b(gradient_ops());
  add_growing_loop(b, 4);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  Random random(3);
  const NamedValues inputs = {{"x", TestTensor::random(ElementType::kDouble, {4, 2}, random)},
                              {"s", TestTensor::random(ElementType::kDouble, {1, 2}, random)}};
  const auto gradient =
      differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  EXPECT_EQ(compare_with_differences(*gradient, inputs, "loss", "", 1e-6), "");
}

}  // namespace
}  // namespace eddy::testing
