// Claim: the builder types graphs as they grow, widens what loops carry until it holds, and turns
// every misuse into one error that names the cause and the place.
#include "graph/ir/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/print.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static std::string error_of(GraphBuilder& b) {
    const auto graph = b.finish();
    EXPECT_FALSE(graph.is_ok());
    return graph.is_ok() ? "" : graph.status().to_string();
  }

  OpTable ops_;
  const ValueType scalar_ = tensor_type(ElementType::kFloat, {});
  const ValueType vector_ = tensor_type(ElementType::kFloat, {3});
};

TEST_F(BuilderTest, TypesAreInferredWhileBuilding) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 3}));
  const Value y = b.op("Add", {x, b.vector({1.0f, 2.0f, 3.0f})});
  EXPECT_EQ(b.type(y), b.type(x)) << "a symbol survives broadcasting";
  EXPECT_EQ(to_string(b.type(b.op("Transpose", {y}))), "float[3,s0]");
}

TEST_F(BuilderTest, ACopyOutlivesItsGraphAndSharesItsConstants) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", vector_);
  b.output("y", b.op("Add", {x, b.vector({1.0f, 2.0f, 3.0f})}));
  auto original = b.finish();
  ASSERT_TRUE(original.is_ok()) << original.status().to_string();
  const std::string text = print_text(*original);
  Graph copy = original->copy();
  EXPECT_EQ(print_text(copy), text);
  EXPECT_EQ(copy.constant(ConstantId(0)).data, original->constant(ConstantId(0)).data);
  const ConstantId unread[] = {ConstantId(0)};
  original->release_constants(unread);
  EXPECT_EQ(original->constant(ConstantId(0)).data, nullptr);
  { [[maybe_unused]] const Graph gone = std::move(*original); }
  EXPECT_EQ(static_cast<const float*>(copy.constant(ConstantId(0)).data)[2], 3.0f);
}

// sum of i * x while it is below a limit, its sign taken by a branch, and one row an iteration.
struct Sums {
  GraphBuilder b;
  Value x, limit;
  explicit Sums(const OpTable& ops) : b(ops) {
    x = b.input("x", tensor_type(ElementType::kFloat, {}));
    limit = b.input("limit", tensor_type(ElementType::kFloat, {}));
  }
  Value add(Value sum, Value iteration) {
    return b.op("Add", {sum, b.op("Mul", {b.cast(iteration, ElementType::kFloat), x})});
  }
  std::string text(std::span<const Value> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) b.output("o" + std::to_string(i), outputs[i]);
    const auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return graph.is_ok() ? print_text(*graph) : "";
  }
};

TEST_F(BuilderTest, LoopsAndBranchesBuiltPieceByPieceAreThoseBuiltByFunctions) {
  Sums pieces(ops_);
  GraphBuilder& b = pieces.b;
  const auto before = b.begin_while({.name = "sum", .initial = {pieces.x}, .num_scan_outputs = 1});
  ASSERT_EQ(before.size(), 2u) << b.status().to_string();
  const auto after = b.begin_after({b.op("Less", {before[1], pieces.limit}), {before[1]}});
  ASSERT_EQ(after.size(), 2u) << b.status().to_string();
  const Value sum = pieces.add(after[1], after[0]);
  const auto sums = b.end_while(std::vector<Value>{sum, sum});
  ASSERT_EQ(sums.size(), 2u) << b.status().to_string();
  b.begin_case({.name = "sign", .selector = b.op("Less", {sums[0], b.scalar(0.0f)})}, 2);
  b.begin_branch();
  b.end_branch(std::vector<Value>{sums[0]});
  b.begin_branch();
  b.end_branch(std::vector<Value>{b.op("Neg", {sums[0]})});
  const auto sign = b.end_case();
  ASSERT_EQ(sign.size(), 1u) << b.status().to_string();

  Sums again(ops_);
  {
    GraphBuilder& c = again.b;
    const auto loop = c.while_loop(
        {.name = "sum", .initial = {again.x}, .num_scan_outputs = 1},
        [&](Value, ValueSpan v) {
          return WhileTest{c.op("Less", {v[0], again.limit}), {v[0]}};
        },
        [&](Value i, ValueSpan v) {
          const Value next = again.add(v[0], i);
          return std::vector<Value>{next, next};
        });
    const CaseBody bodies[] = {[&] { return std::vector<Value>{loop[0]}; },
                               [&] { return std::vector<Value>{c.op("Neg", {loop[0]})}; }};
    const auto branch =
        c.case_of({.name = "sign", .selector = c.op("Less", {loop[0], c.scalar(0.0f)})}, bodies);
    EXPECT_EQ(pieces.text(std::vector<Value>{sign[0], sums[1]}),
              again.text(std::vector<Value>{branch[0], loop[1]}));
  }
}

TEST_F(BuilderTest, APieceThatDoesNotFitSaysWhereTheBuilderIs) {
  const auto error = [&](auto misuse) {
    GraphBuilder b(ops_);
    const Value x = b.input("x", scalar_);
    misuse(b, x);
    return error_of(b);
  };
  const auto begin = [](GraphBuilder& b, Value x) {
    return b.begin_while({.name = "loop", .initial = {x}});
  };
  EXPECT_THAT(error([](GraphBuilder& b, Value) { b.end_while({}); }),
              testing::HasSubstr("end_while does not fit here: no loop or case is open"));
  EXPECT_THAT(error([&](GraphBuilder& b, Value x) {
                begin(b, x);
                b.end_while(std::vector<Value>{x});
              }),
              testing::HasSubstr("'loop' is in its part before the test"));
  EXPECT_THAT(error([&](GraphBuilder& b, Value x) { begin(b, x); }),
              testing::HasSubstr("'loop' is still open"));
  EXPECT_THAT(error([&](GraphBuilder& b, Value x) {
                const auto before = begin(b, x);
                b.begin_after({b.scalar(true), {before[1]}});
                b.end_while({});
              }),
              testing::HasSubstr("the loop's body gives 0 results, but the loop carries 1"));
  EXPECT_THAT(error([](GraphBuilder& b, Value x) {
                b.begin_case({.name = "c", .selector = b.scalar(true)}, 1);
                b.begin_branch();
                b.end_branch(std::vector<Value>{x});
                b.begin_branch();
              }),
              testing::HasSubstr("'c' was begun with 1 branches; this is one more"));
  EXPECT_THAT(error([](GraphBuilder& b, Value) {
                b.begin_case({.name = "c", .selector = b.scalar(true)}, 2);
                b.end_case();
              }),
              testing::HasSubstr("'c' was begun with 2 branches, but has 0"));
}

TEST_F(BuilderTest, ACarriedShapeThatGrowsIsWidenedAndItsBodyInferredAnew) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3}));
  Value inner;
  const auto out = b.while_loop(
      {.initial = {x}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        inner = b.op("Neg", {f[0]});
        return std::vector<Value>{b.op("Concat", {inner, x}, {{"axis", int64_t{0}}})};
      });
  EXPECT_EQ(to_string(b.type(out[0])), "float[?,3]");
  EXPECT_EQ(to_string(b.type(inner)), "float[?,3]") << "nodes built before see the wider type";
  b.output("y", out[0]);
  EXPECT_TRUE(b.finish().is_ok());
}

TEST_F(BuilderTest, NestedLoopsWidenTogether) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const Value yes = b.scalar(true);
  const auto out = b.while_loop(
      {.initial = {x}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{yes, {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        return b.while_loop(
            {.initial = {f[0]}, .trip_limit = b.scalar<int64_t>(2)},
            [&](Value, std::span<const Value> c) {
              return WhileTest{yes, {c[0]}};
            },
            [&](Value, std::span<const Value> g) {
              return std::vector<Value>{b.op("Concat", {g[0], x}, {{"axis", int64_t{0}}})};
            });
      });
  EXPECT_EQ(to_string(b.type(out[0])), "float[?]");
  b.output("y", out[0]);
  EXPECT_TRUE(b.finish().is_ok());
}

TEST_F(BuilderTest, RebuildingABodySeesTheWiderTypesFromItsStart) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  std::vector<std::string> seen;
  const auto out = b.while_loop(
      {.initial = {x}, .trip_limit = b.scalar<int64_t>(3), .rebuild_on_widening = true},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        seen.push_back(to_string(b.type(f[0])));
        return std::vector<Value>{b.op("Concat", {f[0], x}, {{"axis", int64_t{0}}})};
      });
  EXPECT_EQ(seen, (std::vector<std::string>{"float[1]", "float[?]"}));
  b.output("y", out[0]);
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(graph->num_nodes(), 2u) << "the first attempt is forgotten";
}

TEST_F(BuilderTest, CapturesAreListedAtEveryDepth) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", scalar_);
  const Value c = b.input("c", tensor_type(ElementType::kBool, {}));
  const auto out = b.if_else(
      c,
      [&] {
        return b.if_else(
            c, [&] { return std::vector<Value>{b.op("Neg", {x})}; },
            [&] { return std::vector<Value>{x}; });
      },
      [&] { return std::vector<Value>{b.scalar(1.0f)}; });
  b.output("y", out[0]);
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const Node& outer = graph->node(graph->root().nodes[0]);
  EXPECT_EQ(graph->region(outer.regions[0]).captures.size(), 0u);
  EXPECT_EQ(graph->region(outer.regions[1]).captures.size(), 2u);
}

TEST_F(BuilderTest, TheFirstErrorSticksAndNamesItsNodeAndPath) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", vector_);
  b.while_loop(
      {.name = "decode", .initial = {x}},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, std::span<const Value> f) {
        const Value bad = b.op("Add", {f[0], b.vector({1.0f, 2.0f})}, {}, {.name = "sum"});
        b.op("NoSuchOperator", {bad});
        return std::vector<Value>{bad};
      });
  const std::string error = error_of(b);
  EXPECT_NE(error.find("decode/sum"), std::string::npos) << error;
  EXPECT_EQ(error.find("NoSuchOperator"), std::string::npos) << error;
}

TEST_F(BuilderTest, UnknownOperatorsAreNamedWithTheirOpset) {
  GraphBuilder b(ops_);
  b.op("Frobnicate", {b.input("x", scalar_)});
  EXPECT_EQ(error_of(b),
            "unsupported: at Frobnicate_0: operator 'Frobnicate' is not known in opset 22");
}

TEST_F(BuilderTest, AnUnknownOperatorsMessageNamesWhatWasPerhapsMeant) {
  const auto advice = [this](const char* domain, const char* name) {
    return ops_.advice(domain, name);
  };
  EXPECT_EQ(advice("", "Ad"), "; the nearest is 'Add'");
  EXPECT_EQ(advice("", "ADD"), "; the nearest is 'Add'") << "letters' cases count as none";
  EXPECT_EQ(advice("", "Adding"), "") << "too far";
  EXPECT_EQ(advice("own", "Ad"), "") << "of another domain";
  EXPECT_EQ(advice("own", "Add"), ", known in domain 'ai.onnx'");
  EXPECT_EQ(advice("", std::string(1'000'000, 'A').c_str()), "");
}

TEST_F(BuilderTest, APredicateMustBeOneBool) {
  for (const ValueType& type :
       {tensor_type(ElementType::kFloat, {}), tensor_type(ElementType::kBool, {2})}) {
    GraphBuilder b(ops_);
    const Value p = b.input("p", type);
    b.while_loop(
        {.name = "loop", .initial = {p}},
        [&](Value, std::span<const Value> c) {
          return WhileTest{c[0], {c[0]}};
        },
        [&](Value, std::span<const Value> f) { return std::vector<Value>{f[0]}; });
    EXPECT_NE(error_of(b).find("the predicate must be one bool, not " + to_string(type)),
              std::string::npos);
  }
}

TEST_F(BuilderTest, ACarriedPredicateMustStayOneBool) {
  GraphBuilder b(ops_);
  const bool two[] = {true, true};
  b.while_loop(
      {.name = "loop", .initial = {b.scalar(true)}},
      [&](Value, std::span<const Value> c) {
        return WhileTest{c[0], {}};
      },
      [&](Value, std::span<const Value>) {
        return std::vector<Value>{b.vector(std::span<const bool>(two))};
      });
  EXPECT_NE(error_of(b).find("the body's predicate must be one bool, not bool[2]"),
            std::string::npos);
}

TEST_F(BuilderTest, ABodyOfWrongArityIsRefused) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", scalar_);
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x, x}},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0], c[1]}};
      },
      [&](Value, std::span<const Value> f) { return std::vector<Value>{f[0]}; });
  EXPECT_EQ(out.size(), 2u) << "callers may index results even after an error";
  EXPECT_NE(error_of(b).find("gives 1 results, but the loop carries 2"), std::string::npos);
}

TEST_F(BuilderTest, BranchesMustAgreeInNumberAndElementType) {
  GraphBuilder b(ops_);
  const Value c = b.input("c", tensor_type(ElementType::kBool, {}));
  b.if_else(
      c, [&] { return std::vector<Value>{b.scalar(1.0f)}; },
      [&] { return std::vector<Value>{b.scalar<int64_t>(1)}; }, "pick");
  EXPECT_NE(error_of(b).find("output 0 is int64[] in one branch and float[] in another"),
            std::string::npos);
}

TEST_F(BuilderTest, AValueOfAClosedRegionCannotBeUsed) {
  GraphBuilder b(ops_);
  const Value c = b.input("c", tensor_type(ElementType::kBool, {}));
  Value leaked;
  b.if_else(
      c,
      [&] {
        leaked = b.op("Neg", {b.scalar(1.0f)});
        return std::vector<Value>{leaked};
      },
      [&] { return std::vector<Value>{b.scalar(1.0f)}; });
  b.output("y", leaked);
  EXPECT_NE(error_of(b).find("of a region that is closed"), std::string::npos);
}

TEST_F(BuilderTest, NamesOfInputsAndOutputsAreUnique) {
  GraphBuilder twice(ops_);
  twice.input("x", scalar_);
  twice.input("x", scalar_);
  EXPECT_NE(error_of(twice).find("input 'x' is declared twice"), std::string::npos);
  GraphBuilder outputs(ops_);
  const Value x = outputs.input("x", scalar_);
  outputs.output("y", x);
  outputs.output("y", x);
  EXPECT_NE(error_of(outputs).find("output 'y' is declared twice"), std::string::npos);
}

TEST_F(BuilderTest, NodeNamesAreMadeUniqueWithinTheirRegion) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", scalar_);
  b.op("Neg", {x}, {}, {.name = "same"});
  b.output("y", b.op("Neg", {x}, {}, {.name = "same"}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  EXPECT_NE(graph->node(NodeId(0)).name, graph->node(NodeId(1)).name);
}

TEST_F(BuilderTest, ManyInputsOutputsAndSymbolsAreDeclaredWithoutSearching) {
  constexpr int kMany = 100'000;  // a search for each would take minutes
  GraphBuilder b(ops_);
  for (int i = 0; i < kMany; ++i) {
    const int64_t n = b.symbol("n" + std::to_string(i));
    b.output("y" + std::to_string(i),
             b.input("x" + std::to_string(i), tensor_type(ElementType::kFloat, {n})));
  }
  EXPECT_EQ(b.symbol("n7"), b.symbol("n7"));
  EXPECT_NE(b.symbol("n7"), b.symbol("n8"));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(graph->inputs().size(), static_cast<size_t>(kMany));
  EXPECT_EQ(graph->symbol(graph->value(graph->inputs()[7]).type.tensor.dims[0]), "n7");
}

TEST_F(BuilderTest, ANameGivenLaterCountsForWhatIsDeclaredTwice) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", scalar_);
  b.set_name(x, "renamed");
  b.input("x", scalar_);
  EXPECT_TRUE(b.status().is_ok());
  b.input("renamed", scalar_);
  EXPECT_EQ(error_of(b), "invalid argument: input 'renamed' is declared twice");
}

}  // namespace
}  // namespace eddy
