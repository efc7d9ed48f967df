// Claim: operators that came, or came anew, with opsets 18 to 26 give what ONNX Runtime gives, on
// seeded inputs. Skipped where ONNX Runtime is not installed (tools/bench/ort_rival.h says where it
// is looked for); a case that its version refuses is left out and named.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/graph/io/model_writer.h"
#include "tests/ops/testing/op_runner.h"
#include "tools/bench/ort_rival.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr ElementType kF32 = ElementType::kFloat;

WireWriter to_proto(const Attributes::Entry& entry) {
  WireWriter proto;
  proto.bytes(1, entry.name);
  if (const auto* i = std::get_if<int64_t>(&entry.value)) {
    proto.integer(3, *i);
    proto.integer(20, 2);
  } else if (const auto* f = std::get_if<float>(&entry.value)) {
    proto.float32(2, *f);
    proto.integer(20, 1);
  } else if (const auto* s = std::get_if<std::string>(&entry.value)) {
    proto.bytes(4, *s);
    proto.integer(20, 3);
  } else if (const auto* ints = std::get_if<Ints>(&entry.value)) {
    for (const int64_t value : *ints) proto.integer(8, value);
    proto.integer(20, 7);
  } else {
    ADD_FAILURE() << "attribute " << entry.name;
  }
  return proto;
}

// A model of the one call. Outputs are declared by what Eddy infers.
std::string model_of(const OpCall& call, const std::vector<ValueType>& outputs) {
  test::GraphParts parts;
  test::Names inputs, names;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool is_given = call.inputs[i].kind != TestValue::Kind::kOmitted;
    inputs.push_back(is_given ? "x" + std::to_string(i) : "");
    if (is_given) parts.inputs.push_back(test::info(inputs.back(), call.inputs[i].type()));
  }
  for (size_t o = 0; o < call.num_outputs; ++o) {
    names.push_back("y" + std::to_string(o));
    parts.outputs.push_back(test::info(names.back(), TensorType(outputs[o].tensor.element)));
  }
  test::Messages attributes;
  for (const auto& entry : call.attributes.entries()) attributes.push_back(to_proto(entry));
  parts.nodes = {test::node(call.op, inputs, names, attributes)};
  return test::model(test::graph(parts), call.opset);
}

class RivalOperatorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = OrtLibrary::open("");
    if (!library.is_ok()) GTEST_SKIP() << library.status().message();
    library_ = std::move(*library);
  }

  TestTensor floats(const Dims& dims, double low = -2, double high = 2) {
    return TestTensor::random(kF32, dims, random_, low, high);
  }
  TestTensor ints(const Ints& values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }

  void compare(const char* op, int opset, std::vector<TestValue> inputs, Attributes attributes = {},
               size_t num_outputs = 1) {
    OpCall call;
    call.op = op;
    call.opset = opset;
    call.inputs = std::move(inputs);
    call.attributes = std::move(attributes);
    call.num_outputs = num_outputs;
    SCOPED_TRACE(std::string(op) + " " + std::to_string(opset) + " case " +
                 std::to_string(num_compared_));
    const auto found = run_op(call, KernelSet::kCpu);
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    const auto expected = run_rival(call, *found);
    if (!expected.is_ok()) {
      std::cout << op << " " << opset << " is left out: " << expected.status().message() << "\n";
      return;
    }
    ++num_compared_;
    for (size_t o = 0; o < num_outputs; ++o) {
      const TensorView view = (*expected)[o].view();
      TestTensor theirs(view.element, Dims(view.shape()));
      if (view.size_bytes() > 0) std::memcpy(theirs.view().data, view.data, view.size_bytes());
      EXPECT_TRUE(is_close((*found)[o].tensor(), theirs, 1e-4, 1e-5)) << "output " << o;
    }
  }

  Result<std::vector<HostValue>> run_rival(const OpCall& call,
                                           const std::vector<TestValue>& found) {
    std::vector<ValueType> types;
    for (const TestValue& value : found) types.push_back(value.type());
    const std::string path = ::testing::TempDir() + "/rival_operator.onnx";
    std::ofstream(path, std::ios::binary) << model_of(call, types);
    std::vector<HostValue> values(call.inputs.size());
    std::vector<std::pair<std::string, const HostValue*>> feed;
    for (size_t i = 0; i < values.size(); ++i) {
      if (call.inputs[i].kind == TestValue::Kind::kOmitted) continue;
      values[i] = HostValue::copy_of(call.inputs[i].tensor().view());
      feed.emplace_back("x" + std::to_string(i), &values[i]);
    }
    std::vector<std::string> names;
    for (size_t o = 0; o < call.num_outputs; ++o) names.push_back("y" + std::to_string(o));
    EDDY_ASSIGN_OR_RETURN(auto model, OrtModel::load(*library_, path, 1, feed, names));
    EDDY_RETURN_IF_ERROR(model->run());
    return model->outputs();
  }

  std::unique_ptr<OrtLibrary> library_;
  Random random_{17};
  int num_compared_ = 0;
};

TEST_F(RivalOperatorsTest, Attention) {
  for (const int64_t causal : {0, 1}) {
    for (const float softcap : {0.0f, 1.5f}) {
      const Attributes choice = {{"is_causal", causal}, {"softcap", softcap}};
      const TestTensor q = floats({2, 4, 3, 8}), k = floats({2, 2, 5, 8}), v = floats({2, 2, 5, 6});
      for (const int opset : {23, 24}) {
        compare("Attention", opset, {q, k, v}, choice);
        compare("Attention", opset, {q, k, v, floats({3, 5})}, choice);
        compare("Attention", opset,
                {q, k, v, TestTensor::random(ElementType::kBool, {2, 1, 3, 5}, random_)}, choice);
        compare("Attention", opset,
                {q, k, v, TestValue::omitted(), floats({2, 2, 7, 8}), floats({2, 2, 7, 6})}, choice,
                3);
        for (int64_t mode = 0; mode < 4; ++mode) {
          if (mode == 2 && causal != 0) continue;  // it shows the lowest float for -inf
          Attributes shown = choice;
          shown.set("qk_matmul_output_mode", mode);
          compare("Attention", opset,
                  {q, k, v, floats({3, 12}), floats({2, 2, 7, 8}), floats({2, 2, 7, 6})}, shown, 4);
        }
      }
    }
  }
  compare("Attention", 23, {floats({2, 3, 24}), floats({2, 5, 12}), floats({2, 5, 10})},
          {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"scale", 0.3f}});
  EXPECT_GT(num_compared_, 0);
}

TEST_F(RivalOperatorsTest, TransformerParts) {
  for (const int64_t interleaved : {0, 1}) {
    const TestTensor c = floats({10, 4}), s = floats({10, 4});
    const TestTensor ids = TestTensor::of<int64_t>({2, 3}, {0, 1, 2, 7, 8, 9});
    compare("RotaryEmbedding", 23, {floats({2, 4, 3, 8}), c, s, ids},
            {{"interleaved", interleaved}});
    compare("RotaryEmbedding", 23, {floats({2, 3, 32}), c, s, ids},
            {{"interleaved", interleaved}, {"num_heads", int64_t{4}}});
    compare("RotaryEmbedding", 23, {floats({2, 4, 3, 8}), floats({2, 3, 2}), floats({2, 3, 2})},
            {{"interleaved", interleaved}, {"rotary_embedding_dim", int64_t{4}}});
  }
  compare("RMSNormalization", 23, {floats({2, 3, 5}), floats({5})});
  compare("RMSNormalization", 23, {floats({2, 3, 5}), floats({3, 5})},
          {{"axis", int64_t{1}}, {"epsilon", 0.1f}});
  compare("Swish", 24, {floats({3, 5})}, {{"alpha", 0.7f}});
  compare("TensorScatter", 24, {floats({2, 3, 5, 2}), floats({2, 3, 2, 2}), ints({1, 3})});
  compare("TensorScatter", 24, {floats({2, 3, 5, 2}), floats({2, 3, 2, 2}), ints({4, 3})},
          {{"mode", "circular"}});
  compare("CumProd", 26, {floats({2, 3}), TestTensor::scalar<int64_t>(1)});
  compare("BitCast", 26, {floats({2, 3})}, {{"to", int64_t{6}}});
  EXPECT_GT(num_compared_, 0);
}

TEST_F(RivalOperatorsTest, NormalizationsAndPools) {
  compare("GroupNormalization", 18, {floats({2, 6, 3, 2}), floats({3}), floats({3})},
          {{"num_groups", int64_t{3}}});
  compare("GroupNormalization", 21, {floats({2, 6, 3, 2}), floats({6}), floats({6})},
          {{"num_groups", int64_t{3}}, {"epsilon", 0.01f}});
  compare("MeanVarianceNormalization", 13, {floats({2, 3, 4, 5})});
  compare("LpNormalization", 22, {floats({3, 4})}, {{"p", int64_t{1}}, {"axis", int64_t{0}}});
  compare("LpPool", 18, {floats({1, 2, 7, 6})},
          {{"kernel_shape", Ints{3, 2}},
           {"strides", Ints{2, 1}},
           {"p", int64_t{3}},
           {"dilations", Ints{2, 1}}});
  compare("LpPool", 18, {floats({1, 2, 7, 6})},
          {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 3}}});
  compare("GlobalLpPool", 2, {floats({1, 2, 7, 6})});
  EXPECT_GT(num_compared_, 0);
}

TEST_F(RivalOperatorsTest, Images) {
  compare("Col2Im", 18, {floats({2, 12, 12}), ints({4, 5}), ints({2, 2})});
  compare("Col2Im", 18, {floats({1, 8, 9}), ints({5, 5}), ints({2, 2})},
          {{"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 1, 0}}});
  compare("CenterCropPad", 18, {floats({5, 4, 3}), ints({3, 9})}, {{"axes", Ints{0, 2}}});
  for (const int64_t align : {0, 1}) {
    compare("AffineGrid", 20, {floats({2, 2, 3}), ints({2, 1, 3, 4})}, {{"align_corners", align}});
    compare("AffineGrid", 20, {floats({2, 3, 4}), ints({2, 1, 2, 3, 4})},
            {{"align_corners", align}});
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const char* mode : {"linear", "nearest", "cubic"}) {
        compare("GridSample", 20, {floats({2, 2, 4, 5}), floats({2, 3, 4, 2}, -1.6, 1.6)},
                {{"align_corners", align}, {"padding_mode", padding}, {"mode", mode}});
      }
      compare("GridSample", 20, {floats({1, 2, 3, 4, 5}), floats({1, 2, 3, 4, 3}, -1.6, 1.6)},
              {{"align_corners", align}, {"padding_mode", padding}});
    }
  }
  const TestTensor images = ints({0, 1, 1});
  for (const char* mode : {"avg", "max"}) {
    for (const char* pixels : {"half_pixel", "output_half_pixel"}) {
      compare("RoiAlign", 16, {floats({2, 2, 8, 9}), floats({3, 4}, 0, 8), images},
              {{"mode", mode},
               {"coordinate_transformation_mode", pixels},
               {"output_height", int64_t{2}},
               {"output_width", int64_t{3}},
               {"sampling_ratio", int64_t{2}},
               {"spatial_scale", 0.9f}});
    }
  }
  EXPECT_GT(num_compared_, 0);
}

TEST_F(RivalOperatorsTest, QuantizedProducts) {
  const auto bytes = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kUint8, dims, random_, 0, 255);
  };
  const auto scale = [](float value) { return TestTensor::scalar(value); };
  const auto zero = [](uint8_t value) { return TestTensor::scalar(value); };
  compare("QLinearMatMul", 10,
          {bytes({3, 4}), scale(0.01f), zero(120), bytes({4, 5}), scale(0.02f), zero(130),
           scale(0.07f), zero(128)});
  compare("QLinearConv", 10,
          {bytes({1, 2, 5, 6}), scale(0.01f), zero(120), bytes({3, 2, 3, 3}), scale(0.02f),
           zero(130), scale(0.09f), zero(128), TestTensor::of<int32_t>({3}, {100, -200, 3000})},
          {{"pads", Ints{1, 0, 1, 0}}, {"strides", Ints{2, 1}}});
  compare("ConvInteger", 10, {bytes({1, 2, 5, 6}), bytes({3, 2, 3, 3}), zero(120), zero(3)},
          {{"pads", Ints{1, 1, 1, 1}}});
  EXPECT_GT(num_compared_, 0);
}

}  // namespace
}  // namespace eddy::testing
