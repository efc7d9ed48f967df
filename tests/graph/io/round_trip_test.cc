// Claim: whatever the builder can build, export_onnx() writes and import_onnx() reads back as an
// equal graph; loops and branches that ONNX can express are written as Loop and If.
#include <gtest/gtest.h>

#include <functional>

#include "graph/base/random.h"
#include "graph/io/export.h"
#include "graph/io/parse_model.h"
#include "graph/ir/print.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

// Builds random programs over float[2,n] values, with bools and int64 scalars to decide by.
class RandomProgram {
 public:
  RandomProgram(GraphBuilder& builder, uint64_t seed) : b_(builder), random_(seed) {}

  void build() {
    shape_ = {2, b_.symbol("n")};
    pool_ = {b_.input("x0", tensor_type(ElementType::kFloat, shape_)),
             b_.input("x1", tensor_type(ElementType::kFloat, shape_))};
    flag_ = b_.input("flag", bools({}));
    number_ = b_.input("number", int64s({}));
    for (uint64_t steps = 2 + random_.below(6); steps > 0; --steps) step(3);
    b_.output("out", pick());
    b_.output("again", pick());
    b_.output("raw", pool_[0]);
    b_.output("fixed", b_.scalar(1.5f));
  }

 private:
  Value pick() { return pool_[random_.below(pool_.size())]; }

  void step(int depth) {
    switch (random_.below(depth > 0 ? 9 : 4)) {
      case 0:
        return add(b_.op("Neg", {pick()}));
      case 1:
        return add(named_sum());
      case 2:
        return add(b_.op("Mul", {pick(), b_.scalar(random_.uniform(-1, 1))}));
      case 3:
        return add(transposed_twice());
      case 4:
        return add(counted_loop(depth - 1));
      case 5:
        return add(checked_loop(depth - 1));
      case 6:
        return add(general_loop(depth - 1));
      case 7:
        return add(branch(depth - 1));
      default:
        return add(choice(depth - 1));
    }
  }

  void add(Value value) { pool_.push_back(value); }

  Value named_sum() {
    OpOptions options;
    options.opset_version = random_.below(4) == 0 ? 13 : 0;
    if (random_.below(2) == 0) options.output_names = {"sum"};
    if (random_.below(4) == 0) options.device = "cpu";
    if (random_.below(2) == 0) options.name = "sum" + std::to_string(random_.below(3));
    return b_.op("Add", {pick(), pick()}, {}, options);
  }

  Value transposed_twice() {
    const Attributes swap = {{"perm", std::vector<int64_t>{1, 0}}};
    return b_.op("Transpose", {b_.op("Transpose", {pick()}, swap)}, swap);
  }

  // Values made inside do not leave the region.
  Value inside(const std::function<Value()>& body) {
    const size_t size = pool_.size();
    const Value result = body();
    pool_.resize(size);
    return result;
  }

  Value steps_inside(Value start, int depth) {
    return inside([&] {
      add(start);
      for (uint64_t steps = random_.below(3); steps > 0; --steps) step(depth);
      return random_.below(5) == 0 ? start : pick();
    });
  }

  Value counted_loop(int depth) {
    const uint32_t scans = static_cast<uint32_t>(random_.below(2));
    return b_.while_loop(
        {.name = "for", .initial = {pick()}, .trip_limit = number_, .num_scan_outputs = scans},
        [&](Value, std::span<const Value> carried) {
          return WhileTest{b_.scalar(true), {carried[0]}};
        },
        [&](Value iteration, std::span<const Value> v) {
          std::vector<Value> results = {steps_inside(v[0], depth)};
          if (scans > 0) results.push_back(iteration);
          return results;
        })[0];
  }

  Value checked_loop(int depth) {
    return b_.while_loop(
        {.initial = {flag_, pick()}},
        [&](Value, std::span<const Value> carried) {
          return WhileTest{carried[0], {carried[1]}};
        },
        [&](Value iteration, std::span<const Value> v) -> std::vector<Value> {
          return {b_.op("Less", {iteration, number_}), steps_inside(v[0], depth)};
        })[0];
  }

  // Work before the check, and forwarded values that are not the carried ones.
  Value general_loop(int depth) {
    return b_.while_loop(
        {.initial = {pick(), pick()}},
        [&](Value iteration, std::span<const Value> c) {
          const Value go = b_.op("Less", {iteration, number_});
          return WhileTest{go, {c[1], b_.op("Abs", {c[0]}), c[1]}};
        },
        [&](Value, std::span<const Value> v) -> std::vector<Value> {
          return {steps_inside(v[1], depth), v[2]};
        })[random_.below(3)];
  }

  Value branch(int depth) {
    const auto body = [&]() -> std::vector<Value> { return {steps_inside(pick(), depth)}; };
    return b_.if_else(flag_, body, body, "if")[0];
  }

  Value choice(int depth) {
    std::vector<CaseBody> bodies;
    for (uint64_t n = 1 + random_.below(3); n > 0; --n) {
      bodies.push_back([this, depth]() -> std::vector<Value> {
        return {steps_inside(pick(), depth), number_};
      });
    }
    CaseOptions options{.name = "switch", .selector = number_};
    if (random_.below(2) == 0) options.pass_through = {pick(), number_};
    if (random_.below(2) == 0) options.default_region = static_cast<int>(bodies.size()) - 1;
    return b_.case_of(options, bodies)[0];
  }

  GraphBuilder& b_;
  Random random_;
  Dims shape_;
  std::vector<Value> pool_;  // float[2,n] values that may be used here
  Value flag_, number_;
};

std::string must_format(const Graph& graph) {
  Result<std::string> text = format_onnx(graph);
  EDDY_CHECK(text.is_ok()) << text.status().to_string();
  return std::move(text).value();
}

void expect_round_trip(const Graph& graph) {
  const std::string file = must_format(graph);
  const Result<Graph> back = import_text(file);
  ASSERT_TRUE(back.is_ok()) << back.status().to_string() << "\n" << print_text(graph);
  EXPECT_EQ(describe(graph), describe(*back));
  EXPECT_EQ(print_text(graph), print_text(*back));
  EXPECT_EQ(describe(*back), describe(must_import(must_format(*back))));
}

TEST(RoundTrip, RandomGraphsComeBackEqual) {
  constexpr uint64_t kSeeds = 400;
  size_t nodes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(standard_ops(), "random");
    b.set_opset("", 17);
    RandomProgram(b, seed).build();
    const Result<Graph> graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    nodes += graph->num_nodes();
    expect_round_trip(*graph);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(nodes, 10 * kSeeds);
}

// The operators of the main graph of a file.
std::vector<std::string> ops_in_file(const std::string& file) {
  std::vector<std::string> ops;
  const OnnxModel model = *parse_model(as_bytes(file), {});
  for (const OnnxNode& node : model.graph.nodes) {
    ops.push_back(std::string(node.domain) + "." + std::string(node.op_type));
  }
  return ops;
}

TEST(RoundTrip, WhatOnnxCanSayIsWrittenAsLoopAndIf) {
  GraphBuilder b(standard_ops());
  const Value flag = b.input("flag", bools({}));
  const Value x = b.input("x", floats({}));
  const auto same = [&]() -> std::vector<Value> { return {x}; };
  b.output("a", b.if_else(flag, same, same)[0]);
  b.output("b", b.while_loop(
                    {.initial = {flag, x}},
                    [](Value, std::span<const Value> c) {
                      return WhileTest{c[0], {c[1]}};
                    },
                    [](Value, std::span<const Value> v) -> std::vector<Value> {
                      return {v[0], v[0]};
                    })[0]);
  EXPECT_FALSE(b.finish().is_ok());  // float is no condition

  GraphBuilder good(standard_ops());
  const Value f = good.input("flag", bools({}));
  const Value v = good.input("x", floats({}));
  const auto pass = [&]() -> std::vector<Value> { return {v}; };
  good.output("a", good.if_else(f, pass, pass)[0]);
  good.output("b", good.while_loop(
                       {.initial = {f, v}},
                       [](Value, std::span<const Value> c) {
                         return WhileTest{c[0], {c[1]}};
                       },
                       [&](Value, std::span<const Value> w) -> std::vector<Value> {
                         return {f, w[0]};
                       })[0]);
  good.output("c",
              good.while_loop(
                  {.initial = {f}},
                  [](Value, std::span<const Value> c) {
                    return WhileTest{c[0], {c[0]}};
                  },
                  [](Value, std::span<const Value> w) -> std::vector<Value> { return {w[0]}; })[0]);
  const Result<Graph> graph = good.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  expect_round_trip(*graph);
  const std::vector<std::string> ops = ops_in_file(must_format(*graph));
  EXPECT_EQ(std::vector<std::string>(ops.begin(), ops.begin() + 3),
            (std::vector<std::string>{".If", ".Loop", "eddy.While"}));
}

TEST(RoundTrip, AttributesOfEveryKindComeBack) {
  OpTable table;
  OpDef def;
  def.name = "Everything";
  def.domain = "test";
  const std::pair<const char*, AttributeKind> kinds[] = {
      {"i", AttributeKind::kInt},     {"f", AttributeKind::kFloat},
      {"s", AttributeKind::kString},  {"is", AttributeKind::kInts},
      {"fs", AttributeKind::kFloats}, {"ss", AttributeKind::kStrings},
      {"t", AttributeKind::kTensor},  {"ty", AttributeKind::kType}};
  for (const auto& [name, kind] : kinds) def.attributes.push_back({name, kind});
  def.infer = [](InferContext& context) {
    context.set_output(0, tensor_type(ElementType::kFloat, {}));
    return Status::ok();
  };
  ASSERT_TRUE(table.add(std::move(def)).is_ok());
  GraphBuilder b(table);
  const std::string strings[] = {"a", "b c"};
  const int64_t dims[] = {2};
  const TensorView text{const_cast<std::string*>(strings), dims, 1, ElementType::kString};
  const auto deep = ValueType::optional_of(ValueType::sequence_of(floats({3, kUnknownDim})));
  b.output("y", b.op("Everything", {},
                     {{"i", int64_t{-5}},
                      {"f", 0.25f},
                      {"s", std::string("x\ny")},
                      {"is", std::vector<int64_t>{1, -1}},
                      {"fs", std::vector<float>{}},
                      {"ss", std::vector<std::string>{"", "q"}},
                      {"t", b.make_constant(text)},
                      {"ty", deep}},
                     {.domain = "test"}));
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const std::string file = must_format(*graph);
  const Result<Graph> back = import_onnx_bytes(as_bytes(file), table);
  ASSERT_TRUE(back.is_ok()) << back.status().to_string();
  EXPECT_EQ(describe(*graph), describe(*back));
}

TEST(RoundTrip, ConstantsOfEveryTypeComeBack) {
  GraphBuilder b(standard_ops());
  std::vector<std::byte> bytes(64);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 2);
  const int64_t dims[] = {3, 1};
  for (int e = 1; e < kNumElementTypes; ++e) {
    const auto element = static_cast<ElementType>(e);
    if (element == ElementType::kString) continue;
    b.output("c" + std::to_string(e), b.constant({bytes.data(), dims, 2, element}));
  }
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  expect_round_trip(*graph);
}

TEST(RoundTrip, OutputsNamedLikeOtherInputsAreRefused) {
  GraphBuilder b(standard_ops());
  const Value x = b.input("x", floats({}));
  b.output("x", b.op("Neg", {x}));
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  const Result<std::string> file = format_onnx(*graph);
  ASSERT_FALSE(file.is_ok());
  EXPECT_EQ(file.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(file.status().message().find("output 'x'"), std::string::npos);
}

TEST(RoundTrip, FilesThatCannotBeWrittenAreNamed) {
  GraphBuilder b(standard_ops());
  b.output("y", b.input("x", floats({})));
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  const Status status = export_onnx(*graph, "/nowhere/at/all.onnx");
  EXPECT_NE(status.message().find("cannot write '/nowhere/at/all.onnx'"), std::string::npos);
}

}  // namespace
}  // namespace eddy
