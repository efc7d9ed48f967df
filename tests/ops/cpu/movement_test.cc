// long: a random comparison and hand-written values for each of the twenty operators of the family.
//
// The movement operators move each element to the place that the reference computes by counting,
// for every storage size and for strings, on seeded random shapes; and what the standard leaves to
// care (negative steps, crops, bad indices, growth in place) gives the values and messages written
// here.
#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/cpu/cpu_kernels.h"
#include "ops/reference/reference_kernels.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ElementType kEverySize[] = {ElementType::kInt8,       ElementType::kFloat16,
                                      ElementType::kFloat,      ElementType::kInt64,
                                      ElementType::kComplex128, ElementType::kString};

OpCall make_call(std::string op, int opset, Attributes attributes = {}) {
  OpCall call;
  call.op = std::move(op);
  call.opset = opset;
  call.attributes = std::move(attributes);
  return call;
}

TestTensor any_tensor(ElementType element, const Dims& dims, Random& random) {
  TestTensor tensor(element, dims);
  const int64_t count = tensor.count();
  if (element == ElementType::kString) {
    std::vector<std::string> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back("a string that does not fit inline " + std::to_string(random.below(1000)));
    }
    return TestTensor::of_strings(dims, values);
  }
  auto* bytes = tensor.view().mutable_as<uint8_t>();
  for (size_t i = 0; i < tensor.view().size_bytes(); ++i) {
    // No NaN in half floats, which compare by value.
    bytes[i] = static_cast<uint8_t>(random.below(0x70));
  }
  return tensor;
}

Dims random_dims(Random& random, int min_rank, int max_rank, int64_t max_size = 7) {
  Dims dims;
  const int rank =
      min_rank + static_cast<int>(random.below(static_cast<uint64_t>(max_rank - min_rank + 1)));
  for (int d = 0; d < rank; ++d) {
    const bool is_empty = random.below(20) == 0;
    dims.push_back(
        is_empty ? 0 : 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(max_size))));
  }
  return dims;
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

TestTensor int64s(const std::vector<int64_t>& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// Compares with host values unknown and known when binding.
void compare_both_ways(OpCall call) {
  compare_with_reference(call);
  call.constant_inputs = ~uint64_t{1};
  compare_with_reference(call);
}

template <typename Make>
void for_seeds(const Make& make, uint64_t seeds = 12) {
  for (ElementType element : kEverySize) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(std::string(element_type_name(element)) + ", seed " + std::to_string(seed));
      Random random(seed);
      compare_both_ways(make(element, random));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(MovementTest, ConcatAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    const Dims dims = random_dims(random, 1, 4);
    const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
    OpCall call = make_call(
        "Concat", 17,
        {{"axis", between(random, 0, 1) != 0 ? int64_t{axis} : int64_t{axis - dims.rank()}}});
    for (int64_t i = between(random, 1, 4); i > 0; --i) {
      Dims part = dims;
      part[axis] = between(random, 0, 5);
      call.inputs.push_back(any_tensor(element, part, random));
    }
    return call;
  });
}

TEST(MovementTest, SplitAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    Dims dims = random_dims(random, 1, 4);
    const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
    std::vector<int64_t> sizes;
    dims[axis] = 0;
    for (int64_t i = between(random, 1, 4); i > 0; --i) {
      sizes.push_back(between(random, 0, 4));
      dims[axis] += sizes.back();
    }
    OpCall call = make_call("Split", 13, {{"axis", int64_t{axis}}});
    call.inputs = {any_tensor(element, dims, random), int64s(sizes)};
    call.num_outputs = sizes.size();
    return call;
  });
}

TEST(MovementTest, SliceAgreesWithTheReference) {
  for_seeds(
      [](ElementType element, Random& random) {
        const Dims dims = random_dims(random, 1, 4, 9);
        std::vector<int64_t> starts, ends, axes, steps;
        for (int axis = 0; axis < dims.rank(); ++axis) {
          if (random.below(3) == 0) continue;
          axes.push_back(random.below(2) == 0 ? axis : axis - dims.rank());
          starts.push_back(between(random, -12, 12));
          ends.push_back(random.below(4) == 0 ? INT64_MIN : between(random, -12, 12));
          steps.push_back(
              random.below(2) == 0 ? 1 : between(random, 1, 3) * (random.below(2) ? 1 : -1));
        }
        OpCall call = make_call("Slice", 13);
        call.inputs = {any_tensor(element, dims, random), int64s(starts), int64s(ends),
                       int64s(axes), int64s(steps)};
        return call;
      },
      40);
}

TEST(MovementTest, GatherAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    Dims dims = random_dims(random, 1, 4);
    const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
    dims[axis] = between(random, 1, 6);
    OpCall call = make_call("Gather", 13, {{"axis", int64_t{axis}}});
    const ElementType index = random.below(2) == 0 ? ElementType::kInt32 : ElementType::kInt64;
    call.inputs = {
        any_tensor(element, dims, random),
        TestTensor::random(index, random_dims(random, 0, 3, 4), random,
                           -static_cast<double>(dims[axis]), static_cast<double>(dims[axis] - 1))};
    return call;
  });
}

TEST(MovementTest, TransposeAgreesWithTheReference) {
  for_seeds(
      [](ElementType element, Random& random) {
        const Dims dims = random_dims(random, 0, 5);
        std::vector<int64_t> perm;
        for (int d = 0; d < dims.rank(); ++d) perm.push_back(d);
        for (size_t d = 1; d < perm.size(); ++d) std::swap(perm[d], perm[random.below(d + 1)]);
        OpCall call = make_call("Transpose", 13);
        if (random.below(4) != 0) call.attributes.set("perm", perm);
        call.inputs = {any_tensor(element, dims, random)};
        return call;
      },
      25);
}

TEST(MovementTest, TransposeOfLargePlanesAgreesWithTheReference) {
  for (ElementType element : kEverySize) {
    for (const Dims& dims : {Dims{2, 33, 65}, Dims{64, 64}, Dims{3, 5, 100}, Dims{1, 7, 3}}) {
      Random random(7);
      OpCall call = make_call("Transpose", 13);
      if (dims.rank() == 3) call.attributes.set("perm", std::vector<int64_t>{0, 2, 1});
      call.inputs = {any_tensor(element, dims, random)};
      compare_with_reference(call);
    }
  }
}

TEST(MovementTest, PadAgreesWithTheReferenceInEveryMode) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    for_seeds([&](ElementType element, Random& random) {
      const bool is_constant = std::string(mode) == "constant";
      Dims dims = random_dims(random, 1, 4, 5);
      std::vector<int64_t> before, after, axes;
      for (int d = 0; d < dims.rank(); ++d) {
        if (!is_constant && dims[d] == 0) dims[d] = 1;
        if (random.below(3) == 0) continue;
        axes.push_back(d);
        before.push_back(between(random, -std::min<int64_t>(dims[d] / 2, 2), 8));
        after.push_back(between(random, -std::min<int64_t>(dims[d] / 2, 2), 8));
      }
      before.insert(before.end(), after.begin(), after.end());
      OpCall call = make_call("Pad", 19, {{"mode", std::string(mode)}});
      call.inputs = {any_tensor(element, dims, random), int64s(before), TestValue::omitted(),
                     int64s(axes)};
      if (is_constant && random.below(2) == 0) call.inputs[2] = any_tensor(element, {}, random);
      return call;
    });
  }
}

TEST(MovementTest, ExpandAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    const Dims out = random_dims(random, 0, 5, 5);
    Dims in;
    const int rank = static_cast<int>(between(random, 0, out.rank()));
    for (int d = out.rank() - rank; d < out.rank(); ++d) {
      in.push_back(random.below(2) == 0 ? 1 : out[d]);
    }
    OpCall call = make_call("Expand", 13);
    call.inputs = {any_tensor(element, in, random),
                   int64s(std::vector<int64_t>(out.begin(), out.end()))};
    return call;
  });
}

TEST(MovementTest, TileAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    const Dims dims = random_dims(random, 0, 4, 4);
    std::vector<int64_t> repeats;
    for (int d = 0; d < dims.rank(); ++d) repeats.push_back(between(random, 0, 4));
    OpCall call = make_call("Tile", 13);
    call.inputs = {any_tensor(element, dims, random), int64s(repeats)};
    return call;
  });
}

TEST(MovementTest, DepthAndSpaceAgreeWithTheReference) {
  for_seeds(
      [](ElementType element, Random& random) {
        const int64_t block = between(random, 1, 3);
        const Dims dims = {between(random, 1, 2), between(random, 1, 3) * block * block,
                           between(random, 1, 3) * block, between(random, 1, 3) * block};
        OpCall call = make_call(random.below(2) == 0 ? "DepthToSpace" : "SpaceToDepth", 13,
                                {{"blocksize", block}});
        if (call.op == "DepthToSpace") {
          call.attributes.set("mode", std::string(random.below(2) == 0 ? "CRD" : "DCR"));
        }
        call.inputs = {any_tensor(element, dims, random)};
        return call;
      },
      20);
}

TEST(MovementTest, TriluAgreesWithTheReferenceAlsoInPlace) {
  for_seeds([](ElementType element, Random& random) {
    const Dims dims = random_dims(random, 2, 4);
    OpCall call = make_call("Trilu", 14, {{"upper", between(random, 0, 1)}});
    call.inputs = {any_tensor(element, dims, random)};
    if (random.below(3) != 0) {
      call.inputs.push_back(TestTensor::scalar<int64_t>(between(random, -9, 9)));
    }
    if (random.below(2) == 0) call.in_place_input = 0;
    return call;
  });
}

TEST(MovementTest, OneHotAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    const ElementType index = random.below(2) == 0 ? ElementType::kFloat : ElementType::kInt32;
    const Dims dims = random_dims(random, 0, 3, 4);
    const int64_t axis = between(random, -dims.rank() - 1, dims.rank());
    OpCall call = make_call("OneHot", 11, {{"axis", axis}});
    call.inputs = {TestTensor::random(index, dims, random, -8, 8),
                   TestTensor::scalar<int64_t>(between(random, 0, 6)),
                   any_tensor(element, {2}, random)};
    return call;
  });
}

TEST(MovementTest, OneHotIsOffEverywhereForWhatIsNoIndex) {
  const float inf = std::numeric_limits<float>::infinity();
  OpCall call = make_call("OneHot", 11);
  call.inputs = {TestTensor::of<float>({7}, {NAN, inf, -inf, 1e30f, -1e30f, 1.9f, -1}),
                 TestTensor::scalar<int64_t>(3), TestTensor::of<float>({2}, {0, 1})};
  std::vector<float> expected(21, 0);
  expected[5 * 3 + 1] = 1;
  expected[6 * 3 + 2] = 1;
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_EQ(run_one(call, kernels).values<float>(), expected);
  }
  call.inputs[0] = TestTensor::of<uint64_t>({2}, {UINT64_MAX, 2});
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_EQ(run_one(call, kernels).values<float>(), (std::vector<float>{0, 0, 0, 0, 0, 1}));
  }
}

TEST(MovementTest, EyeLikeAndConstantOfShapeAgreeWithTheReference) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    OpCall eye = make_call("EyeLike", 9, {{"k", between(random, -7, 7)}});
    eye.inputs = {TestTensor::random(ElementType::kFloat16, random_dims(random, 2, 2), random)};
    compare_with_reference(eye);
    eye.attributes.set("dtype", static_cast<int64_t>(ElementType::kInt32));
    compare_with_reference(eye);

    OpCall filled = make_call("ConstantOfShape", 9);
    const Dims dims = random_dims(random, 0, 4);
    filled.inputs = {int64s(std::vector<int64_t>(dims.begin(), dims.end()))};
    compare_with_reference(filled);
    const double value = 2.5;
    filled.attributes.set("value", Constant{ElementType::kDouble, {1}, &value});
    compare_with_reference(filled);
  }
}

// Kernels of one name in two files could become one when linked; comparing them says nothing then.
TEST(MovementTest, WhatIsComparedWithTheReferenceIsNotTheReference) {
  KernelRegistry reference, cpu;
  add_reference_kernels(reference);
  add_cpu_kernels(cpu);
  const std::vector<ValueType> inputs(3, tensor_type(ElementType::kFloat, {2}));
  const std::vector<ValueType> outputs(1, tensor_type(ElementType::kFloat, {2}));
  const std::vector<TensorView> constants(3);
  for (const char* op :
       {"Concat", "Split", "Gather", "Slice", "Transpose", "Expand", "Tile", "Pad", "DepthToSpace",
        "Trilu", "OneHot", "GatherElements", "ScatterElements", "GatherND", "ScatterND", "TopK"}) {
    const OpCall call = make_call(op, 18);
    const KernelInit init{*find_op(call), call.attributes, 18, op, inputs, outputs, constants};
    const auto slow = reference.bind(init), fast = cpu.bind(init);
    ASSERT_TRUE(slow.is_ok() && fast.is_ok()) << op;
    EXPECT_NE(slow->run, fast->run) << op;
  }
}

// ---- values written by hand ----

OpCall slice_call(const TestTensor& data, std::vector<int64_t> starts, std::vector<int64_t> ends,
                  std::vector<int64_t> axes, std::vector<int64_t> steps) {
  OpCall call = make_call("Slice", 13);
  call.inputs = {data, int64s(starts), int64s(ends), int64s(axes), int64s(steps)};
  return call;
}

TestTensor iota(const Dims& dims) {
  TestTensor tensor(ElementType::kInt32, dims);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    tensor.view().mutable_as<int32_t>()[i] = static_cast<int32_t>(i);
  }
  return tensor;
}

class BothSets : public ::testing::TestWithParam<KernelSet> {
 protected:
  std::vector<int32_t> ints(const OpCall& call) {
    return run_one(call, GetParam()).values<int32_t>();
  }
  std::string error(const OpCall& call) { return run_op(call, GetParam()).status().to_string(); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, BothSets,
                         ::testing::Values(KernelSet::kReference, KernelSet::kCpu));

TEST_P(BothSets, SliceClampsAndReversesAsNumpyDoes) {
  const TestTensor data = iota({5});
  EXPECT_THAT(ints(slice_call(data, {-2}, {INT64_MAX}, {0}, {1})), ElementsAre(3, 4));
  EXPECT_THAT(ints(slice_call(data, {INT64_MAX}, {INT64_MIN}, {0}, {-2})), ElementsAre(4, 2, 0));
  EXPECT_THAT(ints(slice_call(data, {3}, {-6}, {-1}, {-1})), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(ints(slice_call(data, {4}, {0}, {0}, {INT64_MIN})), ElementsAre(4));
  EXPECT_THAT(ints(slice_call(data, {0}, {5}, {0}, {INT64_MAX})), ElementsAre(0));
  EXPECT_THAT(ints(slice_call(data, {7}, {9}, {0}, {1})), ElementsAre());
  EXPECT_THAT(ints(slice_call(data, {INT64_MIN}, {INT64_MIN}, {0}, {-1})), ElementsAre());
}

TEST_P(BothSets, SliceByAttributesIsTheOldSlice) {
  OpCall call = make_call("Slice", 9,
                          {{"starts", std::vector<int64_t>{1}},
                           {"ends", std::vector<int64_t>{3}},
                           {"axes", std::vector<int64_t>{1}}});
  call.inputs = {iota({2, 4})};
  EXPECT_THAT(ints(call), ElementsAre(1, 2, 5, 6));
}

TEST_P(BothSets, SliceRefusesAZeroStepAndARepeatedAxis) {
  EXPECT_THAT(error(slice_call(iota({5}), {0}, {1}, {0}, {0})),
              HasSubstr("the step of axis 0 is 0"));
  EXPECT_THAT(error(slice_call(iota({5}), {0, 0}, {1, 1}, {0, -1}, {1, 1})),
              HasSubstr("axis 0 is sliced twice"));
  EXPECT_THAT(error(slice_call(iota({5}), {0}, {1}, {1}, {1})), HasSubstr("axis 1"));
}

TEST_P(BothSets, GatherNamesTheIndexThatIsOutOfRange) {
  OpCall call = make_call("Gather", 13);
  call.inputs = {iota({5}), int64s({0, 7})};
  EXPECT_THAT(error(call), HasSubstr("index 7 is out of range for axis 0 of size 5"));
  call.inputs = {iota({5}), int64s({-6})};
  EXPECT_THAT(error(call), HasSubstr("index -6 is out of range for axis 0 of size 5"));
  call.inputs = {iota({5}), int64s({INT64_MIN})};
  EXPECT_THAT(error(call), HasSubstr("is out of range for axis 0 of size 5"));
  call.inputs = {iota({0}), int64s({0})};
  EXPECT_THAT(error(call), HasSubstr("index 0 is out of range for axis 0 of size 0"));
}

TEST_P(BothSets, PadMirrorsWrapsAndCrops) {
  const auto pad = [&](const char* mode, int64_t before, int64_t after) {
    OpCall call = make_call("Pad", 19, {{"mode", std::string(mode)}});
    call.inputs = {iota({4}), int64s({before, after})};
    return ints(call);
  };
  EXPECT_THAT(pad("reflect", 2, 5), ElementsAre(2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2));
  EXPECT_THAT(pad("edge", 2, 1), ElementsAre(0, 0, 0, 1, 2, 3, 3));
  EXPECT_THAT(pad("wrap", 2, 1), ElementsAre(2, 3, 0, 1, 2, 3, 0));
  EXPECT_THAT(pad("constant", 1, -2), ElementsAre(0, 0, 1));
}

TEST_P(BothSets, PadByAttributesTakesItsValueAsAFloat) {
  OpCall call = make_call("Pad", 10, {{"pads", std::vector<int64_t>{1, 0}}, {"value", 7.0f}});
  call.inputs = {TestTensor::of<double>({2}, {1, 2})};
  EXPECT_THAT(run_one(call, GetParam()).values<double>(), ElementsAre(7, 1, 2));
}

TEST_P(BothSets, PadRefusesWhatNoShapeCanHold) {
  OpCall call = make_call("Pad", 13);
  call.inputs = {iota({4}), int64s({-5, 0})};
  EXPECT_THAT(error(call), HasSubstr("crop more than the 4 elements"));
  call.inputs = {iota({4}), int64s({INT64_MAX, INT64_MAX})};
  EXPECT_THAT(error(call), HasSubstr("exceeds int64"));
  call.inputs = {iota({4}), int64s({1})};
  EXPECT_THAT(error(call), HasSubstr("pads needs 2 entries"));
}

TEST_P(BothSets, ConcatGrowsItsFirstInputInPlace) {
  // As the executor grows it: the first input's data is the start of the output's buffer.
  for (bool is_string : {false, true}) {
    const TestTensor out = is_string ? TestTensor::of_strings({1, 3}, {"a", "b", ""})
                                     : TestTensor::of<int32_t>({1, 3}, {1, 2, 0});
    const TestTensor more =
        is_string ? TestTensor::of_strings({1, 1}, {"c"}) : TestTensor::of<int32_t>({1, 1}, {3});
    OpCall call = make_call("Concat", 17, {{"axis", int64_t{1}}});
    call.inputs = {out, more};
    KernelRegistry registry;
    (GetParam() == KernelSet::kCpu ? add_cpu_kernels : add_reference_kernels)(registry);
    const std::vector<ValueType> inputs = {tensor_type(out.element(), {1, 2}),
                                           tensor_type(out.element(), {1, 1})};
    const std::vector<ValueType> outputs = {out.type()};
    const std::vector<TensorView> constants(2);
    const Result<BoundKernel> kernel = registry.bind(
        {*find_op(call), call.attributes, call.opset, "grow", inputs, outputs, constants});
    ASSERT_TRUE(kernel.is_ok()) << kernel.status().to_string();
    const int64_t two[] = {1, 2};
    TensorView views[2] = {out.view(), more.view()};
    views[0].dims = two;
    TensorView result = out.view();
    KernelArgs args;
    Status status;
    args.inputs = views;
    args.outputs = &result;
    args.state = kernel->state.get();
    args.error = &status;
    args.num_inputs = 2;
    args.num_outputs = 1;
    ASSERT_TRUE(kernel->run(args));
    if (is_string) {
      EXPECT_THAT(out.strings(), ElementsAre("a", "b", "c"));
    } else {
      EXPECT_THAT(out.values<int32_t>(), ElementsAre(1, 2, 3));
    }
  }
}

TEST_P(BothSets, SplitGivesTheLastPartWhatIsLeft) {
  OpCall call = make_call("Split", 18, {{"num_outputs", int64_t{3}}});
  call.inputs = {iota({7})};
  call.num_outputs = 3;
  const auto parts = run_op(call, GetParam());
  ASSERT_TRUE(parts.is_ok());
  EXPECT_THAT((*parts)[0].tensor().values<int32_t>(), ElementsAre(0, 1, 2));
  EXPECT_THAT((*parts)[2].tensor().values<int32_t>(), ElementsAre(6));
  call.opset = 13;
  call.attributes = {};
  EXPECT_THAT(error(call), HasSubstr("does not split into 3 equal parts"));
}

TEST_P(BothSets, RangeCountsExactlyAtTheEndsOfInt64) {
  OpCall call = make_call("Range", 11);
  const auto scalars = [&](int64_t a, int64_t b, int64_t c) {
    call.inputs = {TestTensor::scalar(a), TestTensor::scalar(b), TestTensor::scalar(c)};
  };
  scalars(INT64_MAX - 1, INT64_MAX, 1);
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre(INT64_MAX - 1));
  scalars(10, 4, -3);
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre(10, 7));
  scalars(0, 5, -1);
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre());
  scalars(0, 5, 0);
  EXPECT_THAT(error(call), HasSubstr("delta is 0"));
  scalars(INT64_MIN, INT64_MAX, 1);
  EXPECT_THAT(error(call), HasSubstr("more steps than an int64 counts"));
  call.inputs = {TestTensor::scalar(0.0f), TestTensor::scalar(1.0f),
                 TestTensor::scalar(std::numeric_limits<float>::quiet_NaN())};
  EXPECT_THAT(error(call), HasSubstr("not a number"));
  call.inputs = {TestTensor::scalar(1.0f), TestTensor::scalar(2.0f), TestTensor::scalar(0.3f)};
  EXPECT_EQ(run_one(call, GetParam()).count(), 4);
}

TEST_P(BothSets, ShapesAndSizesAreReadFromDims) {
  OpCall call = make_call("Shape", 15, {{"start", int64_t{-2}}});
  call.inputs = {iota({2, 3, 4})};
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre(3, 4));
  call.attributes = {{"end", int64_t{-3}}};
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre());
  call.op = "Size";
  call.attributes = {};
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre(24));
}

TEST_P(BothSets, ViewsKeepEveryElement) {
  OpCall call = make_call("Reshape", 14);
  call.inputs = {iota({2, 3, 4}), int64s({0, -1, 2})};
  const TestTensor out = run_one(call, GetParam());
  EXPECT_EQ(out.dims(), (Dims{2, 6, 2}));
  EXPECT_EQ(out.values<int32_t>(), iota({24}).values<int32_t>());
}

TEST_P(BothSets, DropoutIsTheIdentityUnlessItTrains) {
  OpCall call = make_call("Dropout", 13, {{"seed", int64_t{1}}});
  const TestTensor ones = TestTensor::of<float>({64}, std::vector<float>(64, 1.0f));
  call.inputs = {ones, TestTensor::scalar(0.25f), TestTensor::scalar(false)};
  call.num_outputs = 2;
  EXPECT_EQ(run_one(call, GetParam()).values<float>(), ones.values<float>());
  call.inputs[2] = TestTensor::scalar(true);
  const auto outputs = run_op(call, GetParam());
  ASSERT_TRUE(outputs.is_ok());
  const auto values = (*outputs)[0].tensor().values<float>();
  const auto mask = (*outputs)[1].tensor().values<bool>();
  int kept = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], mask[i] ? 1.0f / 0.75f : 0.0f);
    kept += mask[i];
  }
  EXPECT_GT(kept, 32);
  EXPECT_LT(kept, 64);
  call.inputs[1] = TestTensor::scalar(1.5f);
  EXPECT_THAT(error(call), HasSubstr("ratio must lie in [0, 1)"));
}

TEST_P(BothSets, ConstantsComeFromAnyAttribute) {
  OpCall call = make_call("Constant", 13, {{"value_ints", std::vector<int64_t>{3, 4}}});
  EXPECT_THAT(run_one(call, GetParam()).values<int64_t>(), ElementsAre(3, 4));
  call.attributes = {{"value_string", std::string("word")}};
  EXPECT_THAT(run_one(call, GetParam()).strings(), ElementsAre("word"));
  call.attributes = {};
  EXPECT_THAT(error(call), HasSubstr("exactly one attribute"));
}

}  // namespace
}  // namespace eddy::testing
