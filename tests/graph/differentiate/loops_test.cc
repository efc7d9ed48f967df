// Claim: the gradient through while loops and case-of nodes, nested in each other, agrees with
// central differences on random programs: loops with work on both sides of their check, left in the
// middle, by a limit or after no trip at all; branches with a default or values passed through;
// rows that are stacked; captured values; shapes that change from iteration to iteration.
//
// A perturbed run that takes another path is left out and counted.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ir/builder.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

const ValueType kScalar = tensor_type(ElementType::kDouble, {});

// Programs over scalars, and over stacks that loops leave behind.
class Generator {
 public:
  Generator(GraphBuilder& b, uint64_t seed, int depth = 3, bool has_branches = true)
      : b_(b), random_(seed), depth_(depth), has_branches_(has_branches) {}

  void build() {
    std::vector<Value> known;
    for (const char* name : {"a", "b", "c"}) known.push_back(b_.input(name, kScalar));
    known = body(std::move(known), depth_, 6);
    Value loss = known.back();
    for (size_t i = known.size() - 4; i + 1 < known.size(); ++i) {
      loss = b_.op("Add", {loss, known[i]});
    }
    for (const Value stack : stacks_) loss = b_.op("Add", {loss, sum(stack)});
    b_.output("loss", loss);
  }

 private:
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
  }
  bool happens(double probability) { return random_.uniform() < probability; }
  Value pick(const std::vector<Value>& from) {
    return from[static_cast<size_t>(below(std::ssize(from)))];
  }
  Value sum(Value stack) {
    return b_.op("Tanh", {b_.op("ReduceSum", {stack}, {{"keepdims", int64_t{0}}})});
  }

  std::vector<Value> body(std::vector<Value> known, int depth, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double kind = random_.uniform();
      if (depth > 0 && kind < 0.25) {
        for (const Value made : loop(known, depth - 1)) known.push_back(made);
      } else if (depth > 0 && has_branches_ && kind < 0.45) {
        for (const Value made : branch(known, depth - 1)) known.push_back(made);
      } else {
        known.push_back(simple(known));
      }
    }
    return known;
  }

  Value simple(const std::vector<Value>& known) {
    if (!stacks_.empty() && happens(0.15)) return sum(pick(stacks_));
    switch (below(6)) {
      case 0:
        return b_.op("Add", {pick(known), pick(known)});
      case 1:
        return b_.op("Tanh", {b_.op("Mul", {pick(known), pick(known)})});
      case 2:
        return b_.op("Sin", {pick(known)});
      case 3:
        return b_.op("Mul", {pick(known), b_.scalar(random_.uniform() - 0.5)});
      case 4:
        return b_.op("Tanh", {pick(known)});
      default:
        return b_.op("Cos", {b_.op("Sub", {pick(known), pick(known)})});
    }
  }

  std::vector<Value> several(const std::vector<Value>& known, int64_t count) {
    std::vector<Value> chosen;
    for (int64_t i = 0; i < count; ++i) chosen.push_back(pick(known));
    return chosen;
  }

  std::vector<Value> loop(const std::vector<Value>& known, int depth) {
    const int64_t num_carried = 1 + below(3), num_forwarded = 1 + below(3), num_rows = below(3);
    const bool counts = happens(0.5);
    const int64_t limit = below(5), trips = below(5);
    const double threshold = random_.uniform() * 1.6 - 0.8;
    WhileOptions options;
    options.initial = several(known, num_carried);
    if (!counts || happens(0.4)) options.trip_limit = b_.scalar(limit);
    options.num_scan_outputs = static_cast<uint32_t>(num_rows);
    const std::vector<Value> outer_stacks = stacks_;
    const int before_depth = happens(0.6) ? depth : 0, after_depth = happens(0.6) ? depth : 0;
    const auto made = b_.while_loop(
        options,
        [&](Value iteration, ValueSpan carried) {
          stacks_ = outer_stacks;  // those of inner regions are out of sight
          std::vector<Value> seen = known;
          seen.insert(seen.end(), carried.begin(), carried.end());
          seen = body(std::move(seen), before_depth, below(4));
          const Value go = counts ? b_.op("Less", {iteration, b_.scalar(trips)})
                                  : b_.op("Less", {pick(seen), b_.scalar(threshold)});
          return WhileTest{go, several(seen, num_forwarded)};
        },
        [&](Value, ValueSpan forwarded) {
          stacks_ = outer_stacks;
          std::vector<Value> seen = known;
          seen.insert(seen.end(), forwarded.begin(), forwarded.end());
          seen = body(std::move(seen), after_depth, below(5));
          return several(seen, num_carried + num_rows);
        });
    stacks_ = outer_stacks;
    const size_t first_row = static_cast<size_t>(num_forwarded);
    for (size_t s = first_row; s < made.size(); ++s) stacks_.push_back(made[s]);
    return {made.begin(), made.begin() + num_forwarded};
  }

  std::vector<Value> branch(const std::vector<Value>& known, int depth) {
    const int64_t num_branches = 1 + below(3), num_outputs = 1 + below(2);
    const Value scaled =
        b_.op("Floor", {b_.op("Mul", {b_.op("Abs", {pick(known)}), b_.scalar(7.0)})});
    const Value wide = b_.cast(scaled, ElementType::kInt64);
    const Value turned = b_.op("Mod", {wide, b_.scalar(num_branches + 2)});
    CaseOptions options;
    options.selector = b_.op("Sub", {turned, b_.scalar(int64_t{1})});
    if (happens(0.5)) {
      options.pass_through = several(known, num_outputs);
    } else {
      options.default_region = static_cast<int>(below(num_branches));
    }
    const std::vector<Value> outer_stacks = stacks_;
    std::vector<CaseBody> bodies;
    for (int64_t i = 0; i < num_branches; ++i) {
      bodies.push_back([&] {
        const std::vector<Value> seen = body(known, depth, below(4));
        stacks_ = outer_stacks;
        return several(seen, num_outputs);
      });
    }
    return b_.case_of(options, bodies);
  }

  GraphBuilder& b_;
  Random random_;
  const int depth_;
  const bool has_branches_;
  std::vector<Value> stacks_;
};

NamedValues random_inputs(uint64_t seed) {
  Random random(seed + 1'000'000);
  NamedValues inputs;
  for (const char* name : {"a", "b", "c"}) {
    inputs[name] = TestTensor::scalar(random.uniform() * 2.4 - 1.2);
  }
  return inputs;
}

struct Tally {
  int compared = 0, other_paths = 0, flat = 0, zero_trips = 0;
};

void check_program(uint64_t seed, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  GraphBuilder b(gradient_ops());
  Generator(b, seed).build();
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

// Loops beside each other, so that all they keep are rows.
TEST(LoopsTest, RowsCanBeDifferentiatedTwice) {
  int compared = 0, with_rows = 0, other_paths = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(gradient_ops());
    Generator(b, seed, 1, false).build();
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const auto first =
        differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    if (!first.is_ok()) continue;  // flat
    with_rows += !first->report.kept.empty();
    for (const KeptReport& kept : first->report.kept) EXPECT_TRUE(kept.is_row) << kept.value;
    for (const GradientOutput& of : first->report.gradients) {
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
        ++other_paths;
        continue;
      }
      ASSERT_EQ(difference, "") << of.output;
      ++compared;
    }
  }
  printf(
      "seeds 1..80: %d second derivatives compared, %d took another path, %d programs with rows\n",
      compared, other_paths, with_rows);
  EXPECT_GE(compared, 120);
  EXPECT_GE(with_rows, 20);
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
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {4, 2}));
  const Value start = b.input("s", tensor_type(ElementType::kDouble, {1, 2}));
  const auto made = b.while_loop(
      {.name = "grow", .initial = {start}, .trip_limit = b.scalar(int64_t{4})},
      [&](Value, ValueSpan grown) {
        return WhileTest{b.scalar(true), {grown[0]}};
      },
      [&](Value iteration, ValueSpan grown) {
        const Value row = b.op("Gather", {x, b.op("Reshape", {iteration, b.int64s({1})})});
        const Value mean = b.op("ReduceMean", {grown[0], b.int64s({0})});
        const Value next = b.op("Tanh", {b.op("Mul", {row, mean})});
        return std::vector<Value>{b.op("Concat", {grown[0], next}, {{"axis", int64_t{0}}})};
      });
  b.output("loss", b.op("ReduceSumSquare", {made[0]}, {{"keepdims", int64_t{0}}}));
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
