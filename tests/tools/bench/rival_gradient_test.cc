// Claim: ONNX Runtime runs gradients with plain control flow (graph/compile/plain_control.h), of
// random programs and of an LSTM, and finds the same numbers as Eddy's reference kernels.
//
// Skipped where ONNX Runtime is not installed (tools/bench/ort_rival.h says where it is looked
// for); graphs that its version refuses are counted and named.
#include <gtest/gtest.h>

#include <map>

#include "graph/compile/plain_control.h"
#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "tests/ops/gradient/gradient_check.h"
#include "tools/bench/ort_rival.h"
#include "tools/check/gradient_program.h"

namespace eddy::testing {
namespace {

class RivalGradientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = OrtLibrary::open("");
    if (!library.is_ok()) GTEST_SKIP() << library.status().message();
    library_ = std::move(*library);
  }

  // Compares all outputs; nothing where the rival refuses the graph.
  void compare(Graph graph, const NamedValues& inputs, double tolerance) {
    const auto expected = run_graph(graph, inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    const auto plain = plain_control(std::move(graph), gradient_ops());
    ASSERT_TRUE(plain.is_ok()) << plain.status().to_string();
    const std::string path = ::testing::TempDir() + "/rival_gradient.onnx";
    ASSERT_TRUE(export_onnx(*plain, path).is_ok());
    std::vector<HostValue> values;
    for (const ValueId input : plain->inputs()) {
      values.push_back(HostValue::copy_of(inputs.at(plain->value(input).name).tensor().view()));
    }
    std::vector<std::pair<std::string, const HostValue*>> feed;
    for (size_t i = 0; i < values.size(); ++i) {
      feed.emplace_back(plain->value(plain->inputs()[i]).name, &values[i]);
    }
    auto model = OrtModel::load(*library_, path, 1, feed, plain->output_names());
    if (!model.is_ok()) {
      ++refused_[model.status().message()];
      return;
    }
    const Status ran = (*model)->run();
    ASSERT_TRUE(ran.is_ok()) << ran.to_string();
    const auto found = (*model)->outputs();
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    for (size_t o = 0; o < found->size(); ++o) {
      const std::string& name = plain->output_names()[o];
      const TensorView a = expected->outputs.at(name).tensor().view(), b = (*found)[o].view();
      ASSERT_EQ(a.count(), b.count()) << name;
      for (int64_t i = 0; i < a.count(); ++i) {
        ASSERT_NEAR(number_at(a, i), number_at(b, i), tolerance) << name << "[" << i << "]";
      }
    }
    ++num_compared_;
  }

  void print_refused() {
    for (const auto& [message, count] : refused_)
      printf("%d refused: %s\n", count, message.c_str());
  }

  std::unique_ptr<OrtLibrary> library_;
  int num_compared_ = 0;
  std::map<std::string, int> refused_;
};

TEST_F(RivalGradientTest, RunsGradientsOfRandomPrograms) {
  printf("seeds 1..60\n");
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(gradient_ops());
    check::add_gradient_program(b, seed,
                                {.depth = static_cast<int>(1 + seed % 3),
                                 .has_sequences = seed % 2 == 0,
                                 .has_waves = false});
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto gradient =
        differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    if (!gradient.is_ok()) continue;  // flat
    Random random(seed);
    NamedValues inputs;
    for (const char* name : {"a", "b", "c"}) {
      inputs[name] = TestTensor::random(ElementType::kDouble, {}, random, -1.2, 1.2);
    }
    inputs["v"] = TestTensor::random(ElementType::kDouble, {check::kGradientRows}, random, -1, 1);
    compare(std::move(gradient->graph), inputs, 1e-9);
  }
  print_refused();
  printf("%d compared\n", num_compared_);
  EXPECT_GE(num_compared_, 30);
}

TEST_F(RivalGradientTest, RunsTheGradientOfAnLstm) {
  GraphBuilder b(gradient_ops());
  Random random(3);
  NamedValues inputs;
  const auto input = [&](const char* name, const Dims& dims) {
    inputs[name] = TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
    return b.input(name, tensor_type(ElementType::kFloat, dims));
  };
  const Value given[] = {input("x", {5, 2, 3}), input("w", {2, 16, 3}), input("r", {2, 16, 4}),
                         input("bias", {2, 32})};
  const Value y = b.op("LSTM", given,
                       {{"hidden_size", int64_t{4}}, {"direction", std::string("bidirectional")}});
  b.output("loss", b.op("ReduceSum", {b.op("Mul", {y, y})}, {{"keepdims", int64_t{0}}}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto gradient =
      differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  compare(std::move(gradient->graph), inputs, 1e-4);
  print_refused();
  EXPECT_EQ(num_compared_, 1);
}

}  // namespace
}  // namespace eddy::testing
