// Claim: where a loop multiplies few rows by a matrix from outside, the matrix' adjoint waits for
// one product behind the loop, whatever the loop keeps; it is what is added up iteration by
// iteration (`exact`), also after no trip, beside products in branches and in loops inside, by
// MatMul and by Gemm of either form, and where the way back begins with rows whose number no type
// says. Products of branches wait, too, where the matrix is large, the loop lies in no other and
// keeps all. Many rows do not wait.
#include <gtest/gtest.h>

#include "graph/differentiate/differentiate.h"
#include "graph/ir/builder.h"
#include "graph/ir/print.h"
#include "tests/ops/gradient/gradient_check.h"
#include "tests/ops/gradient/graph_runner.h"

namespace eddy::testing {
namespace {

struct Shape {
  int64_t rows = 1, width = 8;
  bool is_gemm = false, turns_b = false, is_nested = false, has_branch = false;
  bool stacks = false;  // the loss is of all iterations' rows, whose number no type says
};

// h <- sin(h W) + h, "trips" times; and more of it where the shape says so.
Result<Graph> program(const Shape& shape) {
  GraphBuilder b(gradient_ops());
  const auto matrix = [&](const char* name, int64_t rows) {
    return b.input(name, tensor_type(ElementType::kDouble, {rows, shape.width}));
  };
  const Value h = matrix("h", shape.rows), w = matrix("w", shape.width);
  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
  const auto step = [&](Value x) {
    const Attributes turned = {{"transB", int64_t{shape.turns_b}}};
    const Value product = shape.is_gemm ? b.op("Gemm", {x, w}, turned) : b.op("MatMul", {x, w});
    return b.op("Add", {b.op("Sin", {product}), x});
  };
  const auto loop = [&](const std::string& name, Value start, const auto& body) {
    return b.while_loop(
        {.name = name, .initial = {start}, .trip_limit = trips, .num_scan_outputs = shape.stacks},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value i, ValueSpan f) {
          const Value next = body(i, f[0]);
          return shape.stacks ? std::vector<Value>{next, next} : std::vector<Value>{next};
        });
  };
  std::vector<Value> made = loop("steps", h, [&](Value i, Value x) {
    Value next = step(x);
    if (shape.has_branch) {
      const Value is_odd =
          b.op("Equal", {b.op("Mod", {i, b.scalar(int64_t{2})}), b.scalar(int64_t{1})});
      next = b.if_else(
          is_odd,
          [&] {
            return std::vector<Value>{b.op("Cos", {b.op("MatMul", {next, w})})};
          },
          [&] { return std::vector<Value>{b.op("Identity", {next})}; })[0];
    }
    if (shape.is_nested) next = loop("inner", next, [&](Value, Value y) { return step(y); })[0];
    return next;
  });
  if (made.empty()) return b.finish();
  const Value all =
      shape.stacks ? b.op("Mul", {made[1], made[1]}) : b.op("Mul", {made[0], made[0]});
  b.output("loss", b.op("ReduceMean", {all}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

// Products with a transposed A within loops.
int count_products_in_loops(const Graph& graph) {
  int count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    const bool is_product = node.kind == NodeKind::kExec && node.op->name == "Gemm" &&
                            node.attributes.get_int("transA", 0) == 1;
    count += is_product && node.region != Graph::kRoot;
  }
  return count;
}

Result<GradientGraph> gradient_of(const Shape& shape, std::string_view policy, bool exact) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, program(shape));
  EDDY_ASSIGN_OR_RETURN(const SavePolicy save, parse_save_policy(policy));
  return differentiate(
      std::move(graph), gradient_ops(), gradient_rules(),
      {.loss = "loss", .wrt = {"w", "h"}, .save = {.others = save}, .exact = exact});
}

void compare(const Shape& shape, std::string_view policy, uint64_t seed) {
  SCOPED_TRACE(std::string(policy) + ", seed " + std::to_string(seed));
  const auto exact = gradient_of(shape, policy, true), waits = gradient_of(shape, policy, false);
  ASSERT_TRUE(exact.is_ok()) << exact.status().to_string();
  ASSERT_TRUE(waits.is_ok()) << waits.status().to_string();
  Random random(seed);
  for (const int64_t trips : {0, 1, 5}) {
    SCOPED_TRACE(std::to_string(trips) + " trips");
    NamedValues inputs;
    inputs["h"] =
        TestTensor::random(ElementType::kDouble, {shape.rows, shape.width}, random, -1, 1);
    inputs["w"] =
        TestTensor::random(ElementType::kDouble, {shape.width, shape.width}, random, -0.5, 0.5);
    inputs["trips"] = TestTensor::scalar(trips);
    const auto expected = run_graph(exact->graph, inputs), found = run_graph(waits->graph, inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_EQ(found->outputs.size(), expected->outputs.size());
    for (const auto& [name, value] : expected->outputs) {
      EXPECT_TRUE(is_close(found->outputs.at(name).tensor(), value.tensor(), 1e-12, 1e-12)) << name;
    }
  }
}

constexpr std::string_view kPolicies[] = {"all", "carried", "every:2", "grow"};

TEST(WaitingTest, ProductsWaitForTheEndOfTheirLoop) {
  uint64_t seed = 1;
  for (const Shape& shape : {Shape{}, Shape{.rows = 2}, Shape{.is_gemm = true},
                             Shape{.is_gemm = true, .turns_b = true}, Shape{.stacks = true}}) {
    for (const std::string_view policy : kPolicies) {
      compare(shape, policy, seed++);
      if (policy != "all") continue;
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, policy, false)->graph), 0);
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, policy, true)->graph), 1);
    }
  }
}

TEST(WaitingTest, LoopsInsideAndSmallMatricesOfBranchesAddUpBesides) {
  uint64_t seed = 101;
  for (const bool has_branch : {false, true}) {
    for (const bool is_nested : {false, true}) {
      const Shape shape{.is_nested = is_nested, .has_branch = has_branch};
      for (const std::string_view policy : kPolicies) compare(shape, policy, seed++);
      // The branch adds in each iteration, the loop inside behind itself.
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, "all", false)->graph),
                has_branch + is_nested);
    }
  }
}

TEST(WaitingTest, BranchesPushTheirRows) {
  uint64_t seed = 401;
  for (const int64_t rows : {1, 3}) {
    for (const bool is_nested : {false, true}) {
      const Shape shape{
          .rows = rows, .width = 64, .is_nested = is_nested, .has_branch = true, .stacks = true};
      for (const std::string_view policy : kPolicies) compare(shape, policy, seed++);
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, "all", false)->graph), is_nested);
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, "all", true)->graph), 2 + is_nested);
      EXPECT_EQ(count_products_in_loops(gradient_of(shape, "carried", false)->graph),
                1 + is_nested);
    }
  }
}

// The adjoint of w is differentiated for w and h, by a seed.
void differentiate_again(const Shape& shape) {
  for (const std::string_view policy : {"all", "grow"}) {
    SCOPED_TRACE(policy);
    Random random(301);
    NamedValues inputs;
    const int64_t n = shape.width;
    const auto draw = [&](const Dims& dims) {
      return TestTensor::random(ElementType::kDouble, dims, random, -0.5, 0.5);
    };
    inputs["h"] = draw({1, n}), inputs["w"] = draw({n, n}), inputs["s"] = draw({n, n});
    inputs["trips"] = TestTensor::scalar(int64_t{4});
    std::vector<GraphRun> runs;
    for (const bool exact : {true, false}) {
      auto first = gradient_of(shape, policy, exact);
      ASSERT_TRUE(first.is_ok()) << first.status().to_string();
      const auto second = differentiate(
          std::move(first->graph), gradient_ops(), gradient_rules(),
          {.loss = "w.grad", .wrt = {"w", "h"}, .seed = "s", .suffix = ".2", .exact = exact});
      ASSERT_TRUE(second.is_ok()) << second.status().to_string();
      auto run = run_graph(second->graph, inputs);
      ASSERT_TRUE(run.is_ok()) << run.status().to_string();
      runs.push_back(std::move(*run));
    }
    for (const char* name : {"w.2", "h.2"}) {
      EXPECT_TRUE(is_close(runs[1].outputs.at(name).tensor(), runs[0].outputs.at(name).tensor(),
                           1e-10, 1e-12))
          << name;
    }
  }
}

TEST(WaitingTest, GradientsThatWaitedCanBeDifferentiatedAgain) {
  differentiate_again({});
  differentiate_again({.width = 64, .has_branch = true});
}

TEST(WaitingTest, ManyRowsDoNotWait) {
  const Shape shape{.rows = 3};  // 3 (8 + 8) elements an iteration, of a sum of 64
  const auto gradient = gradient_of(shape, "all", false);
  EXPECT_EQ(count_products_in_loops(gradient->graph), 1);
  EXPECT_EQ(print_text(gradient->graph), print_text(gradient_of(shape, "all", true)->graph));
  compare(shape, "all", 201);
}

}  // namespace
}  // namespace eddy::testing
