// Claim: with plain control flow random programs and their gradients give the same bits, are
// written with operators of ONNX only, and give the same bits again when they are read back.
#include "graph/compile/plain_control.h"

#include <gtest/gtest.h>

#include <cstring>

#include "graph/io/export.h"
#include "graph/io/import.h"
#include "graph/ir/builder.h"
#include "tests/ops/gradient/gradient_check.h"
#include "tools/check/gradient_program.h"

namespace eddy::testing {
namespace {

NamedValues random_inputs(uint64_t seed) {
  Random random(seed + 77);
  NamedValues inputs;
  for (const char* name : {"a", "b", "c"}) {
    inputs[name] = TestTensor::random(ElementType::kDouble, {}, random, -1.2, 1.2);
  }
  inputs["v"] = TestTensor::random(ElementType::kDouble, {check::kGradientRows}, random, -1, 1);
  return inputs;
}

// Empty, or the first output that differs.
std::string difference(const GraphRun& expected, const Graph& graph, const NamedValues& inputs) {
  const auto found = run_graph(graph, inputs);
  if (!found.is_ok()) return found.status().to_string();
  for (const auto& [name, value] : expected.outputs) {
    const TensorView a = value.tensor().view(), b = found->outputs.at(name).tensor().view();
    if (a.size_bytes() != b.size_bytes() || std::memcmp(a.data, b.data, a.size_bytes()) != 0) {
      return name;
    }
  }
  return "";
}

void expect_plain(Graph graph, const NamedValues& inputs) {
  const auto expected = run_graph(graph, inputs);
  ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
  const auto plain = plain_control(std::move(graph), gradient_ops());
  ASSERT_TRUE(plain.is_ok()) << plain.status().to_string();
  ASSERT_EQ(difference(*expected, *plain, inputs), "");
  const auto bytes = format_onnx(*plain);
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().to_string();
  // A node's domain: field 7 of its message.
  EXPECT_EQ(bytes->find("\x3a\x04"
                        "eddy"),
            std::string::npos)
      << "an operator of Eddy's is left";
  EXPECT_EQ(bytes->find("eddy.onnx"), std::string::npos) << "operators are of several opsets";
  const auto read = import_onnx_bytes(std::as_bytes(std::span(*bytes)), gradient_ops());
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_EQ(difference(*expected, *read, inputs), "");
}

TEST(PlainControlTest, ProgramsAndGradientsKeepTheirBits) {
  printf("seeds 1..60\n");
  int num_gradients = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(gradient_ops());
    check::add_gradient_program(b, seed, {.depth = static_cast<int>(1 + seed % 3)});
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const NamedValues inputs = random_inputs(seed);
    auto gradient =
        differentiate(graph->copy(), gradient_ops(), gradient_rules(), {.loss = "loss"});
    expect_plain(std::move(*graph), inputs);
    if (gradient.is_ok()) expect_plain(std::move(gradient->graph), inputs);
    num_gradients += gradient.is_ok();
    if (HasFailure()) break;
  }
  EXPECT_GT(num_gradients, 40);
}

// Branches 0 and 1, the default 1; or values that pass through.
TEST(PlainControlTest, SelectorsInAndOutOfRange) {
  for (const bool passes : {false, true}) {
    GraphBuilder b(gradient_ops());
    const Value x = b.input("x", tensor_type(ElementType::kDouble, {}));
    CaseOptions options;
    options.selector = b.input("s", tensor_type(ElementType::kInt32, {}));
    if (passes) options.pass_through = {x};
    if (!passes) options.default_region = 1;
    const std::vector<CaseBody> bodies = {[&] { return std::vector<Value>{b.op("Exp", {x})}; },
                                          [&] { return std::vector<Value>{b.op("Neg", {x})}; }};
    b.output("y", b.case_of(options, bodies)[0]);
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    for (const int32_t selector : {-1, 0, 1, 2}) {
      expect_plain(graph->copy(),
                   {{"x", TestTensor::scalar(0.5)}, {"s", TestTensor::scalar(selector)}});
    }
  }
}

}  // namespace
}  // namespace eddy::testing
