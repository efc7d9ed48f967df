// Claim: operators that came, or came anew, with opsets 18 to 26 give what ONNX Runtime gives, on
// seeded inputs. Skipped where ONNX Runtime is not installed (tools/bench/ort_rival.h says where it
// is looked for); a case that its version refuses is left out and named.
#include "tests/tools/bench/rival.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

class RivalOperatorsTest : public RivalTest {
 protected:
  void compare(const char* op, int opset, std::vector<TestValue> inputs, Attributes attributes = {},
               size_t num_outputs = 1) {
    RivalTest::compare(call(op, opset, std::move(inputs), std::move(attributes), num_outputs));
  }
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
  compare("LpPool", 22, {floats({2, 3, 9, 70})},
          {{"kernel_shape", Ints{2, 5}}, {"ceil_mode", int64_t{1}}, {"strides", Ints{2, 3}}});
  compare("GlobalLpPool", 2, {floats({1, 2, 7, 6})});
  compare("GlobalLpPool", 2, {floats({2, 3, 40, 21})}, {{"p", int64_t{5}}});
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
  EXPECT_GT(num_compared_, 0);
}

TEST_F(RivalOperatorsTest, Regions) {
  const TestTensor images = ints({0, 1, 1});
  for (const char* mode : {"avg", "max"}) {
    for (const int64_t ratio : {0, 2, 3}) {
      Attributes attributes = {{"mode", mode},
                               {"output_height", int64_t{2}},
                               {"output_width", int64_t{3}},
                               {"sampling_ratio", ratio},
                               {"spatial_scale", 0.9f}};
      // Of regions that are not turned over, which ONNX Runtime refuses for maxima.
      const TestTensor rois = TestTensor::of<float>(
          {3, 4}, {0.5f, 1, 7.25f, 6, -2, 3.5f, 4, 12, 8.5f, 7.75f, 9.5f, 20});
      compare("RoiAlign", 10, {floats({2, 2, 8, 9}), rois, images}, attributes);
      for (const char* pixels : {"half_pixel", "output_half_pixel"}) {
        attributes.set("coordinate_transformation_mode", pixels);
        compare("RoiAlign", 16, {floats({2, 2, 8, 9}), rois, images}, attributes);
      }
    }
  }
  const TestTensor corners =
      TestTensor::of<float>({3, 5}, {0, 0, 0, 5, 5, 1, 2, 2.4f, 8, 7, 1, 3, 3, 18, 27});
  compare("MaxRoiPool", 1, {floats({2, 3, 9, 8}), corners},
          {{"pooled_shape", Ints{3, 2}}, {"spatial_scale", 0.5f}});
  compare("MaxRoiPool", 1, {floats({2, 3, 9, 8}), corners}, {{"pooled_shape", Ints{1, 4}}});
  EXPECT_GE(num_compared_, 20);
}

TEST_F(RivalOperatorsTest, DeformConv) {
  const TestTensor x = floats({2, 4, 6, 7}), b = floats({6});
  for (const int64_t group : {1, 2}) {
    for (const int64_t moved : {1, 2}) {
      const TestTensor w = floats({6, 4 / group, 3, 2});
      const TestTensor offset = floats({2, 12 * moved, 3, 6}), mask = floats({2, 6 * moved, 3, 6});
      const Attributes window = {{"group", group},
                                 {"offset_group", moved},
                                 {"strides", Ints{2, 1}},
                                 {"dilations", Ints{1, 2}},
                                 {"pads", Ints{1, 0, 0, 1}}};
      compare("DeformConv", 19, {x, w, offset}, window);
      compare("DeformConv", 22, {x, w, offset, b, mask}, window);
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
