// Claim: the CUDA kernels that convert and move elements give the reference's bits for elements of
// every size, and an index out of range is reported with its place while nothing is read out of
// bounds.
#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

const ElementType kSizes[] = {ElementType::kInt8, ElementType::kFloat16, ElementType::kFloat,
                              ElementType::kInt64};

class CudaMovementTest : public CudaKernelFixture {
 protected:
  TestTensor indices(ElementType element, const Dims& dims, int64_t size) {
    return random(element, dims, static_cast<double>(-size), static_cast<double>(size - 1));
  }
};

TEST_F(CudaMovementTest, EveryPairOfTypesIsCastAsTheReferenceDoes) {
  const ElementType types[] = {ElementType::kFloat,    ElementType::kDouble, ElementType::kFloat16,
                               ElementType::kBfloat16, ElementType::kInt8,   ElementType::kUint8,
                               ElementType::kInt16,    ElementType::kUint16, ElementType::kInt32,
                               ElementType::kUint32,   ElementType::kInt64,  ElementType::kUint64,
                               ElementType::kBool};
  for (const ElementType from : types) {
    for (const ElementType to : types) {
      const bool is_unsigned = from == ElementType::kUint8 || from == ElementType::kUint16 ||
                               from == ElementType::kUint32 || from == ElementType::kUint64;
      OpCall call = make_call("Cast", {random(from, {3, 57}, is_unsigned ? 0 : -120, 120)});
      call.attributes.set("to", static_cast<int64_t>(to));
      compare(call);
    }
  }
}

// Bits of all lengths, many of them ties of bfloat16 or a little off.
TEST_F(CudaMovementTest, WideIntegersAreRoundedOnce) {
  Random random(kSeed);
  std::vector<uint64_t> wide;
  for (int i = 0; i < 2000; ++i) {
    const int length = 54 + static_cast<int>(random.below(11));
    const uint64_t lead = (uint64_t{1} << (length - 1)) | (random.below(256) << (length - 9));
    wide.push_back(lead + random.below(3) - 1);
  }
  std::vector<int64_t> with_sign;
  for (const uint64_t bits : wide) with_sign.push_back(static_cast<int64_t>(bits));
  const Dims dims{static_cast<int64_t>(wide.size())};
  for (const TestTensor& x :
       {TestTensor::of<uint64_t>(dims, wide), TestTensor::of<int64_t>(dims, with_sign)}) {
    for (const ElementType to : {ElementType::kBfloat16, ElementType::kFloat, ElementType::kDouble,
                                 ElementType::kFloat16}) {
      OpCall call = make_call("Cast", {x});
      call.attributes.set("to", static_cast<int64_t>(to));
      compare(call);
    }
  }
}

TEST_F(CudaMovementTest, FloatsOutOfRangeAreClampedAndNoNumberIsZero) {
  const TestTensor x = TestTensor::of<double>(
      {9}, {1e30, -1e30, HUGE_VAL, -HUGE_VAL, NAN, 65520, 1e-9, 0.5, -0.999});
  for (const ElementType to : {ElementType::kInt8, ElementType::kUint8, ElementType::kInt32,
                               ElementType::kInt64, ElementType::kUint64, ElementType::kFloat16,
                               ElementType::kBfloat16, ElementType::kFloat, ElementType::kBool}) {
    OpCall call = make_call("Cast", {x});
    call.attributes.set("to", static_cast<int64_t>(to));
    compare(call);
  }
}

TEST_F(CudaMovementTest, ConcatAndSplitMoveRowsOfAnyNumberOfParts) {
  for (const ElementType element : kSizes) {
    for (const int64_t axis : {0, 1, -1}) {
      std::vector<TestValue> parts;
      for (int64_t i = 0; i < 19; ++i) {  // more than one launch takes; one part is empty
        Dims dims{4, 3, 2};
        dims[axis < 0 ? 2 : static_cast<int>(axis)] = i % 5;
        parts.push_back(random(element, dims, 0, 50));
      }
      OpCall concat = make_call("Concat", parts);
      concat.attributes.set("axis", axis);
      compare(concat);
    }
    OpCall split = make_call("Split", {random(element, {3, 10, 4}, 0, 50), ints({3, 0, 5, 2})});
    split.attributes.set("axis", int64_t{1});
    split.num_outputs = 4;
    compare(split);
  }
}

TEST_F(CudaMovementTest, GatherTakesRowsByIndicesOfEitherSideAndType) {
  for (const ElementType element : kSizes) {
    for (const ElementType index : {ElementType::kInt32, ElementType::kInt64}) {
      for (const int64_t axis : {0, 1, 2}) {
        OpCall call = make_call("Gather", {random(element, {5, 4, 6}, 0, 50),
                                           indices(index, {2, 3}, axis == 1 ? 4 : 5)});
        call.attributes.set("axis", axis);
        compare(call);
      }
      OpCall elements =
          make_call("GatherElements", {random(element, {5, 4}, 0, 50), indices(index, {3, 4}, 5)});
      compare(elements);
    }
    OpCall tuples = make_call("GatherND", {random(element, {2, 5, 4, 3}, 0, 50),
                                           indices(ElementType::kInt64, {2, 6, 2}, 4)});
    tuples.attributes.set("batch_dims", int64_t{1});
    compare(tuples);
    tuples = make_call(
        "GatherND", {random(element, {4, 4, 3}, 0, 50), indices(ElementType::kInt64, {6, 2}, 4)});
    compare(tuples);
  }
}

TEST_F(CudaMovementTest, ScattersTakeUpdatesInOrderWhateverTheyDo) {
  for (const ElementType element :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
        ElementType::kInt32, ElementType::kInt64}) {
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      for (const int64_t axis : {0, 1}) {  // several indices of a line are equal
        OpCall call = make_call("ScatterElements", {random(element, {3, 4}, 0, 5),
                                                    indices(ElementType::kInt64, {3, 4}, 3),
                                                    random(element, {3, 4}, 0, 5)});
        call.opset = 18;
        call.attributes.set("axis", axis);
        call.attributes.set("reduction", std::string(reduction));
        compare(call);
        call.in_place_input = 0;
        compare(call);
      }
      OpCall call = make_call(
          "ScatterND", {random(element, {4, 5}, 0, 5), indices(ElementType::kInt64, {6, 1}, 4),
                        random(element, {6, 5}, 0, 5)});
      call.opset = 18;
      call.attributes.set("reduction", std::string(reduction));
      compare(call);
    }
  }
  compare(make_call("ScatterND", {random(ElementType::kInt8, {4, 5}, 0, 5),
                                  indices(ElementType::kInt64, {7, 2}, 4),
                                  random(ElementType::kInt8, {7}, 0, 5)}));
}

TEST_F(CudaMovementTest, AnIndexOutOfRangeIsReportedWithItsAxis) {
  const TestTensor data = random(ElementType::kFloat, {4, 5}, 0, 1);
  OpCall gather = make_call("Gather", {data, ints({0, 5, 1})});
  gather.attributes.set("axis", int64_t{1});
  EXPECT_EQ(refusal(gather), "index 5 is out of range for axis 1 of size 5");
  EXPECT_EQ(refusal(make_call("Gather", {data, ints({-5})})),
            "index -5 is out of range for axis 0 of size 4");
  EXPECT_EQ(refusal(make_call("Gather", {random(ElementType::kFloat, {0, 5}, 0, 1), ints({0})})),
            "index 0 is out of range for axis 0 of size 0");
  const TestTensor index = TestTensor::of<int64_t>({1, 2}, {0, 9});
  EXPECT_EQ(refusal(make_call("GatherElements", {data, index})),
            "index 9 is out of range for axis 0 of size 4");
  EXPECT_EQ(refusal(make_call("GatherND", {data, index})),
            "index 9 is out of range for axis 1 of size 5");
  EXPECT_EQ(refusal(make_call("ScatterND", {data, index, random(ElementType::kFloat, {1}, 0, 1)})),
            "index 9 is out of range for axis 1 of size 5");
  EXPECT_EQ(refusal(make_call("ScatterElements",
                              {data, index, random(ElementType::kFloat, {1, 2}, 0, 1)})),
            "index 9 is out of range for axis 0 of size 4");
}

TEST_F(CudaMovementTest, PadKnowsAllModesAndTileRepeats) {
  for (const ElementType element : kSizes) {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
      OpCall call = make_call("Pad", {random(element, {3, 4, 5}, 0, 50), ints({1, 0, 7, -1, 2, 3}),
                                      random(element, {}, 0, 9)});
      call.opset = 19;
      call.attributes.set("mode", std::string(mode));
      compare(call);
    }
    OpCall few = make_call(
        "Pad", {random(element, {3, 4, 5}, 0, 50), ints({1, 2}), TestValue::omitted(), ints({-1})});
    few.opset = 18;
    compare(few);
    compare(make_call("Tile", {random(element, {2, 1, 3}, 0, 50), ints({2, 3, 1})}));
    compare(make_call("Tile", {random(element, {2, 1, 3}, 0, 50), ints({0, 3, 1})}));
  }
}

TEST_F(CudaMovementTest, TriluOneHotRangeAndFillsAreMadeByPosition) {
  for (const ElementType element : kSizes) {
    for (const int64_t upper : {0, 1}) {
      for (const int64_t k : {-100, -1, 0, 2, 100}) {
        OpCall call =
            make_call("Trilu", {random(element, {2, 4, 6}, 1, 50), TestTensor::scalar<int64_t>(k)});
        call.attributes.set("upper", upper);
        compare(call);
      }
    }
  }
  for (const ElementType index : {ElementType::kInt32, ElementType::kInt64, ElementType::kFloat}) {
    for (const int64_t axis : {0, 1, -1}) {
      OpCall call =
          make_call("OneHot", {random(index, {2, 3}, -7, 7), TestTensor::scalar<int64_t>(5),
                               TestTensor::of<float>({2}, {0.5f, 2})});
      call.attributes.set("axis", axis);
      compare(call);
    }
  }
  compare(make_call(
      "Range", {TestTensor::scalar(0.5f), TestTensor::scalar(9.0f), TestTensor::scalar(0.7f)}));
  compare(
      make_call("OneHot", {TestTensor::of<float>({3}, {NAN, 2, -9}), TestTensor::scalar<int64_t>(3),
                           TestTensor::of<float>({2}, {0, 1})}));
  compare(make_call("Range", {TestTensor::scalar<int64_t>(10), TestTensor::scalar<int64_t>(-600),
                              TestTensor::scalar<int64_t>(-1)}));
  compare(make_call("ConstantOfShape", {ints({3, 300})}));
}

TEST_F(CudaMovementTest, CheckedCallHandsItsFirstInputOn) {
  for (const ElementType element : {ElementType::kFloat16, ElementType::kFloat}) {
    const TestTensor x = random(element, {2, 300}, -2, 2), bias = random(element, {300}, -2, 2);
    OpCall call =
        make_call("CheckedCall", {x, TestValue::omitted(), TestValue::omitted(), x, bias});
    call.domain = "eddy";
    call.opset = 1;
    call.attributes = {{"checked", std::string("BiasGelu")},
                       {"checked_domain", std::string("com.microsoft")},
                       {"checked_opset", int64_t{1}},
                       {"checked_outputs", int64_t{1}}};
    compare(call);
  }
}

TEST_F(CudaMovementTest, DepthAndSpaceAreExchangedInBothOrders) {
  for (const ElementType element : kSizes) {
    for (const char* mode : {"DCR", "CRD"}) {
      OpCall call = make_call("DepthToSpace", {random(element, {2, 12, 3, 5}, 0, 50)});
      call.attributes.set("blocksize", int64_t{2});
      call.attributes.set("mode", std::string(mode));
      compare(call);
    }
    OpCall call = make_call("SpaceToDepth", {random(element, {2, 3, 4, 6}, 0, 50)});
    call.attributes.set("blocksize", int64_t{2});
    compare(call);
  }
}

}  // namespace
}  // namespace eddy::testing
