// Resize by one axis after the other computes what the sum over all axes at once computes, for
// every mode and coordinate rule; its rules report what is wrong with scales and sizes. (That the
// weights are ONNX's is what ONNX's own tests show.)
#include <gtest/gtest.h>

#include "ops/reference/windows/resize_axis.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

TestTensor floats(const std::vector<float>& values) {
  return TestTensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
TestTensor int64s(const std::vector<int64_t>& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

OpCall resize(const Dims& x, uint64_t seed) {
  Random random(seed);
  OpCall call;
  call.op = "Resize";
  call.opset = 19;
  call.inputs = {TestTensor::random(ElementType::kFloat, x, random, -1, 1), TestValue::omitted(),
                 TestValue::omitted(), TestValue::omitted()};
  return call;
}

const char* const kModes[] = {"nearest", "linear", "cubic"};

TEST(ResizeTest, AgreesForEveryModeAndCoordinateRule) {
  for (const char* mode : kModes) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                    "align_corners", "asymmetric"}) {
      for (int64_t flags = 0; flags < 4; ++flags) {
        SCOPED_TRACE(std::string(mode) + " " + coordinates + " " + std::to_string(flags));
        OpCall call = resize({2, 3, 5, 7}, 1);
        call.attributes = {{"mode", std::string(mode)},
                           {"coordinate_transformation_mode", std::string(coordinates)},
                           {"exclude_outside", flags & 1},
                           {"antialias", flags >> 1}};
        call.inputs[2] = floats({1, 1, 1.7f, 0.4f});
        compare_with_reference(call, 1e-5, 1e-6);
        call.inputs[2] = TestValue::omitted();
        call.inputs[3] = int64s({2, 5, 1, 20});
        compare_with_reference(call, 1e-5, 1e-6);
      }
    }
  }
}

TEST(ResizeTest, ASizeOfZeroLeavesNothing) {
  OpCall call = resize({2, 3, 5, 7}, 1);
  call.attributes = {{"mode", std::string("linear")}, {"antialias", int64_t{1}}};
  call.inputs[2] = TestValue::omitted();
  call.inputs[3] = int64s({2, 3, 0, 20});
  compare_with_reference(call, 0, 0);
  // A launch asks for the taps before it sees that there is nothing to do.
  ResizeAxis axis;
  axis.output = 0;
  axis.scale = 0;
  ResizeRules rules;
  rules.mode = ResizeMode::kLinear;
  rules.antialiases = true;
  EXPECT_EQ(axis.num_taps(rules), 0);
}

// At quarters no two of the ways agree.
TEST(ResizeTest, NearestRoundsAsNearestModeWants) {
  const auto values = [](const char* rounding) {
    OpCall call = resize({4}, 1);
    call.attributes = {{"nearest_mode", std::string(rounding)},
                       {"coordinate_transformation_mode", std::string("asymmetric")}};
    call.inputs[0] = floats({0, 1, 2, 3});
    call.inputs[3] = int64s({16});
    return run_one(call, KernelSet::kCpu);
  };
  EXPECT_TRUE(
      is_same_bits(values("floor"), floats({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3})));
  EXPECT_TRUE(
      is_same_bits(values("ceil"), floats({0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3})));
  EXPECT_TRUE(is_same_bits(values("round_prefer_floor"),
                           floats({0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3})));
  EXPECT_TRUE(is_same_bits(values("round_prefer_ceil"),
                           floats({0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3})));
}

TEST(ResizeTest, IntegersTakeTheirNearestNeighbours) {
  for (ElementType element : {ElementType::kInt32, ElementType::kInt64}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      OpCall call = resize({2, 3, 5, 4}, seed);
      Random random(seed);
      call.inputs[0] = TestTensor::random(element, {2, 3, 5, 4}, random, -99, 99);
      const auto size = [&] { return static_cast<int64_t>(1 + random.below(12)); };
      call.inputs[3] = TestTensor::of<int64_t>({4}, {2, 3, size(), size()});
      call.constant_inputs = 1 << 3;
      call.attributes = {{"mode", std::string(seed % 3 == 0 ? "linear" : "nearest")}};
      compare_with_reference(call);
    }
  }
}

TEST(ResizeTest, CroppingTakesTheExtrapolationValueOutside) {
  OpCall call = resize({4}, 1);
  call.attributes = {{"mode", std::string("linear")},
                     {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                     {"extrapolation_value", 10.0f}};
  call.inputs[0] = floats({0, 1, 2, 3});
  call.inputs[1] = floats({0.5f, 1.5f});
  call.inputs[3] = int64s({3});
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu), floats({1.5f, 3, 10}), 0, 1e-6));
  call.inputs[1] = floats({0.5f});
  EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(), "roi must hold 2 values, not 1");
  call.inputs[1] = floats({-1e30f, 1e30f});
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu), floats({10, 0, 10}), 0, 1e-6));
}

TEST(ResizeTest, AxesAndAspectPoliciesSetTheSizes) {
  OpCall call = resize({1, 4, 6}, 2);
  call.attributes = {{"axes", std::vector<int64_t>{2, 1}},
                     {"keep_aspect_ratio_policy", std::string("not_larger")}};
  call.inputs[3] = int64s({12, 6});
  auto types = infer_op(call);
  ASSERT_TRUE(types.is_ok()) << types.status().to_string();
  EXPECT_EQ((*types)[0], tensor_type(ElementType::kFloat, {1, 6, 9}));
  compare_with_reference(call);
  call.attributes.set("keep_aspect_ratio_policy", std::string("not_smaller"));
  types = infer_op(call);
  ASSERT_TRUE(types.is_ok()) << types.status().to_string();
  EXPECT_EQ((*types)[0], tensor_type(ElementType::kFloat, {1, 8, 12}));
  compare_with_reference(call);
}

TEST(ResizeTest, BytesAndEmptyTensorsAreResized) {
  OpCall call = resize({1, 2, 3}, 3);
  Random random(3);
  call.inputs[0] = TestTensor::random(ElementType::kUint8, {1, 2, 3}, random, 0, 255);
  call.inputs[2] = floats({1, 2, 2});
  compare_with_reference(call);
  call.inputs[0] = TestTensor(ElementType::kFloat, {0, 2, 3});
  compare_with_reference(call);
  call.inputs[0] = TestTensor(ElementType::kFloat, {1, 2, 3});
  call.inputs[2] = floats({1, 0.1f, 1});
  compare_with_reference(call);
}

TEST(ResizeTest, SaysWhatIsWrongWithScalesAndSizes) {
  OpCall call = resize({2, 4}, 4);
  const auto message = [&] { return infer_op(call).status().message(); };
  EXPECT_EQ(message(), "Resize needs scales or sizes");
  call.inputs[2] = floats({1, 0});
  EXPECT_EQ(message(), "scales must be positive and finite, not 0.000000 for axis 1");
  call.inputs[2] = floats({1, 1e30f});
  EXPECT_EQ(message(), "scales ask for 1e+30 times axis 1 of size 4, more than a tensor holds");
  call.inputs[2] = floats({1});
  EXPECT_EQ(message(), "scales must hold 2 values, not [1]");
  call.inputs[3] = int64s({2, 4});
  EXPECT_EQ(message(), "Resize takes scales or sizes, not both");
  call.inputs[2] = TestValue::omitted();
  call.inputs[3] = int64s({2, -1});
  EXPECT_EQ(message(), "sizes asks for -1 on axis 1 of size 4");
  call.attributes = {{"mode", std::string("sharp")}};
  EXPECT_EQ(message(), "mode must be one of nearest, linear, cubic, not sharp");
}

}  // namespace
}  // namespace eddy::testing
