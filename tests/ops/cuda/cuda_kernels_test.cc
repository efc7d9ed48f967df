// Claim: the bodies of the CUDA kernels and the launches that the host half plans for them give the
// reference's values, for every type, broadcast, alignment and amount of knowledge when binding.
#include "ops/cuda/cuda_kernels.h"

#include <algorithm>

#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

const ElementType kFloats[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16,
                               ElementType::kBfloat16};
const ElementType kNumbers[] = {ElementType::kFloat,    ElementType::kDouble, ElementType::kFloat16,
                                ElementType::kBfloat16, ElementType::kInt32,  ElementType::kInt64};

// Equal shapes with tails of a pack, several blocks, single elements, rows, columns, both sides
// repeated, empty.
const std::pair<Dims, Dims> kShapes[] = {
    {{}, {}},         {{1}, {}},           {{37}, {37}},           {{3, 700}, {3, 700}},
    {{37}, {}},       {{1}, {64}},         {{3, 5}, {5}},          {{3, 5}, {3, 1}},
    {{3, 1}, {1, 5}}, {{2, 1, 4}, {3, 1}}, {{2, 3, 1, 5}, {4, 1}}, {{0, 3}, {3}},
    {{16, 3}, {3}},   {{4, 1, 1}, {2, 3}}, {{1, 6, 1}, {2, 1, 7}},
};

using CudaKernelsTest = CudaKernelFixture;

TEST_F(CudaKernelsTest, EveryKernelOfTheListIsReachedByItsName) {
  for (const auto& [name, kernel] : host_kernels()) {
    EXPECT_TRUE(launcher_.find(name).is_ok()) << name;
    EXPECT_NE(kernel.run_thread == nullptr, kernel.run_block == nullptr) << name;
  }
  EXPECT_GT(host_kernels().size(), 600u);
}

TEST_F(CudaKernelsTest, ArithmeticAndComparisonsEqualTheReferenceBitForBit) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "LessOrEqual",
                         "Greater", "GreaterOrEqual"}) {
    for (ElementType element : kNumbers) {
      for (const auto& [a, b] : kShapes) {
        compare_with_reference(make_call(op, {random(element, a, 0, 9), random(element, b, 0, 9)}),
                               registry_, 0, 0);
      }
    }
  }
}

TEST_F(CudaKernelsTest, DivisionAndPowersOfFloatsAreTheReferences) {
  for (ElementType element : kFloats) {
    for (const auto& [a, b] : kShapes) {
      compare_with_reference(make_call("Div", {random(element, a, 0, 9), random(element, b, 1, 9)}),
                             registry_, 0, 0);
      compare_with_reference(
          make_call("Pow", {random(element, a, 0, 3), random(element, b, -2, 2)}), registry_, 1e-6,
          1e-6);
    }
  }
}

TEST_F(CudaKernelsTest, LogicEqualsTheReference) {
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    for (const auto& [a, b] : kShapes) {
      compare_with_reference(
          make_call(op, {random(ElementType::kBool, a, 0, 1), random(ElementType::kBool, b, 0, 1)}),
          registry_, 0, 0);
    }
  }
  compare_with_reference(make_call("Not", {random(ElementType::kBool, {37}, 0, 1)}), registry_, 0,
                         0);
}

TEST_F(CudaKernelsTest, UnaryFunctionsAreTheReferencesWithinAFewUnits) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const char* op :
       {"Abs", "Neg", "Relu", "Ceil", "Cos", "Erf", "Exp", "Floor", "LeakyRelu", "Log",
        "Reciprocal", "Round", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh"}) {
    for (ElementType element : kFloats) {
      const bool is_half = element == ElementType::kFloat16 || element == ElementType::kBfloat16;
      const double low = std::string(op) == "Log" || std::string(op) == "Sqrt" ? 0.1 : -3;
      for (const Dims& dims : {Dims{}, Dims{5}, Dims{3, 700}, Dims{0}}) {
        // Computed as float and rounded once; a value near a tie may round the other way.
        compare_with_reference(make_call(op, {random(element, dims, low, 3)}), registry_,
                               is_half ? 1e-2 : 2e-6, is_half ? 1e-3 : 2e-7);
      }
    }
  }
  for (const char* op : {"Abs", "Neg", "Relu"}) {
    for (ElementType element : {ElementType::kInt32, ElementType::kInt64}) {
      compare_with_reference(make_call(op, {random(element, {100}, -50, 50)}), registry_, 0, 0);
    }
  }
}

TEST_F(CudaKernelsTest, WhereTakesEitherSideForElementsOfEverySize) {
  for (ElementType element :
       {ElementType::kInt8, ElementType::kFloat16, ElementType::kFloat, ElementType::kInt64}) {
    for (const auto& [a, b] : kShapes) {
      compare_with_reference(
          make_call("Where", {random(ElementType::kBool, a, 0, 1), random(element, b, 0, 9),
                              random(element, a, 0, 9)}),
          registry_, 0, 0);
    }
  }
}

TEST_F(CudaKernelsTest, TransposeAndViewsMoveElementsOfEverySize) {
  for (ElementType element :
       {ElementType::kBool, ElementType::kBfloat16, ElementType::kInt32, ElementType::kDouble}) {
    for (const std::vector<int64_t>& perm :
         {std::vector<int64_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}}) {
      OpCall call = make_call("Transpose", {random(element, {3, 40, 9}, 0, 1)});
      call.attributes.set("perm", perm);
      compare_with_reference(call, registry_, 0, 0);
    }
    compare_with_reference(make_call("Transpose", {random(element, {7, 0, 2}, 0, 1)}), registry_, 0,
                           0);
    compare_with_reference(make_call("Identity", {random(element, {7, 3}, 0, 1)}), registry_, 0, 0);
  }
}

TEST_F(CudaKernelsTest, ExpandAndSliceReadTheirHostValues) {
  OpCall expand = make_call("Expand", {random(ElementType::kFloat, {3, 1, 5}, 0, 1),
                                       TestTensor::of<int64_t>({4}, {2, 3, 4, 1})});
  compare_with_reference(expand, registry_, 0, 0);
  const auto list = [](std::vector<int64_t> values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  };
  for (const auto& [starts, ends, axes, steps] :
       {std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>,
                   std::vector<int64_t>>{{1}, {4}, {0}, {1}},
        {{-1, 0}, {-100, 6}, {0, 1}, {-1, 2}},
        {{0, 2}, {0, 5}, {1, 2}, {1, 1}}}) {
    OpCall slice = make_call("Slice", {random(ElementType::kInt32, {5, 6, 7}, 0, 99), list(starts),
                                       list(ends), list(axes), list(steps)});
    compare_with_reference(slice, registry_, 0, 0);
  }
}

TEST_F(CudaKernelsTest, ALaunchServesAnyCountWithoutElementsNone) {
  const uint64_t before = launcher_.num_launches();
  const OpCall call = make_call("Exp", {random(ElementType::kFloat, {0, 4}, 0, 1)});
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(launcher_.num_launches(), before) << "no elements, no launch";
  ASSERT_TRUE(
      run_op(make_call("Exp", {random(ElementType::kFloat, {100'003}, 0, 1)}), registry_).is_ok());
  EXPECT_EQ(launcher_.num_launches(), before + 1);
}

const ElementType kReduced[] = {ElementType::kFloat,    ElementType::kDouble, ElementType::kFloat16,
                                ElementType::kBfloat16, ElementType::kInt32,  ElementType::kInt64,
                                ElementType::kInt8,     ElementType::kUint8};
const Dims kRowShapes[] = {{}, {7}, {3, 700}, {5, 1, 6}, {2, 3, 4, 5}, {0, 3}};

TEST_F(CudaKernelsTest, ReductionsHaveTheReferencesOrderAndValues) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceSumSquare", "ReduceMax", "ReduceMin"}) {
    const std::string name = op;
    const bool has_integers =
        name == "ReduceSum" || name == "ReduceProd" || name == "ReduceMax" || name == "ReduceMin";
    for (ElementType element : kReduced) {
      if (kIntTypes.contains(element) && !has_integers) continue;
      const bool is_half = element == ElementType::kFloat16 || element == ElementType::kBfloat16;
      for (const std::vector<int64_t>& axes :
           {std::vector<int64_t>{}, {0}, {-1}, {1, 2}, {0, 2}, {3, 0}}) {
        for (const Dims& dims : {Dims{3, 700}, Dims{5, 1, 6}, Dims{2, 3, 4, 5}, Dims{4, 0, 2, 3}}) {
          const bool fits = std::all_of(axes.begin(), axes.end(),
                                        [&](int64_t axis) { return axis < dims.rank(); });
          if (!fits) continue;
          // Sums and products of bytes wrap.
          const bool is_byte = element_size_bytes(element) == 1;
          OpCall call = make_call(
              op, {is_byte ? random_bytes(element, dims) : random(element, dims, 0.5, 2)});
          call.opset = 12;  // axes are an attribute
          if (!axes.empty()) call.attributes.set("axes", axes);
          call.attributes.set("keepdims", int64_t{axes.size() == 1});
          // Rounded twice where the reference rounds once.
          compare_with_reference(call, registry_, is_half ? 1e-2 : 1e-6, is_half ? 1e-2 : 1e-12);
        }
      }
    }
  }
}

TEST_F(CudaKernelsTest, ArgMaxAndArgMinTakeTheFirstOrLastOfEquals) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (ElementType element : kReduced) {
      for (int64_t axis = -1; axis < 3; ++axis) {
        for (const int64_t takes_last : {0, 1}) {
          OpCall call = make_call(op, {random(element, {4, 5, 6}, 0, 4)});
          call.attributes.set("axis", axis);
          call.attributes.set("select_last_index", takes_last);
          compare_with_reference(call, registry_, 0, 0);
        }
      }
    }
  }
}

TEST_F(CudaKernelsTest, SoftmaxWorksAlongTheAxisOfItsVersion) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (ElementType element : kFloats) {
      const bool is_half = element == ElementType::kFloat16 || element == ElementType::kBfloat16;
      for (const Dims& dims : kRowShapes) {
        for (const int opset : {11, 13}) {
          if (dims.rank() < 2 && opset < 13) continue;
          OpCall call = make_call(op, {random(element, dims, -3, 3)});
          call.opset = opset;
          compare_with_reference(call, registry_, is_half ? 1e-2 : 1e-6, is_half ? 1e-2 : 1e-12);
        }
      }
    }
  }
}

TEST_F(CudaKernelsTest, WhatHasNoKernelIsRefusedByName) {
  const auto refusal = [&](const OpCall& call) {
    const auto result = run_op(call, registry_);
    return result.is_ok() ? std::string("accepted") : result.status().message();
  };
  EXPECT_THAT(refusal(make_call("Max", {random(ElementType::kUint64, {3}, 1, 9),
                                        random(ElementType::kUint64, {3}, 1, 9)})),
              ::testing::HasSubstr("uint64 is not supported by the CUDA kernel of Max"));
  EXPECT_THAT(refusal(make_call("Pow", {random(ElementType::kFloat, {3}, 1, 9),
                                        random(ElementType::kInt64, {3}, 1, 9)})),
              ::testing::HasSubstr("inputs of different types are not supported"));
}

}  // namespace
}  // namespace eddy::testing
