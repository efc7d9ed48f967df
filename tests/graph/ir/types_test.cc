// Claim: types join to the least specific one that covers both, and print stably.
#include "graph/ir/types.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

const ValueType f23 = tensor_type(ElementType::kFloat, {2, 3});

TEST(DimsTest, CountIsTheProductUnlessUnknownOrTooLarge) {
  EXPECT_EQ((Dims{2, 3}).count(), 6);
  EXPECT_EQ(Dims().count(), 1);
  EXPECT_EQ((Dims{2, kUnknownDim}).count(), std::nullopt);
  EXPECT_EQ((Dims{INT64_MAX, 2}).count(), std::nullopt);
}

// Kernels step through the other dimensions of an empty tensor, and reckon with their product.
TEST(DimsTest, EmptyTensorsCountOnlyWhenTheirOtherDimensionsAreFew) {
  EXPECT_EQ((Dims{0}).count(), 0);
  EXPECT_EQ((Dims{1 << 14, 0, 1 << 14}).count(), 0);
  EXPECT_EQ((Dims{1 << 14, 0, 1 << 14, 2}).count(), std::nullopt);
  EXPECT_EQ((Dims{INT64_MAX, 2, 0}).count(), std::nullopt);
  EXPECT_EQ((Dims{0, INT64_MAX, 2}).count(), std::nullopt);
  EXPECT_EQ((Dims{0, kUnknownDim, INT64_MAX}).count(), std::nullopt);
}

TEST(DimsDeathTest, MoreThanTheLargestRankIsAProgrammerError) {
  Dims dims{1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_DEATH(dims.push_back(1), "at most 8");
}

TEST(JoinTest, EqualStaysAndDifferentBecomesUnknown) {
  EXPECT_EQ(join(f23, f23), f23);
  EXPECT_EQ(join(f23, tensor_type(ElementType::kFloat, {2, 4})),
            ValueType(tensor_type(ElementType::kFloat, {2, kUnknownDim})));
  EXPECT_EQ(join(f23, tensor_type(ElementType::kFloat, {2})),
            ValueType(TensorType(ElementType::kFloat)));
}

TEST(JoinTest, ElementTypesAndWrappersMustAgree) {
  EXPECT_EQ(join(f23, tensor_type(ElementType::kInt64, {2, 3})), std::nullopt);
  EXPECT_EQ(join(f23, ValueType::sequence_of(f23)), std::nullopt);
}

TEST(JoinTest, IsCommutativeAndIdempotentOnSamples) {
  const ValueType samples[] = {f23, tensor_type(ElementType::kFloat, {2, -2}),
                               tensor_type(ElementType::kFloat, {kUnknownDim, 3}),
                               TensorType(ElementType::kFloat),
                               tensor_type(ElementType::kFloat, {})};
  for (const ValueType& a : samples) {
    EXPECT_EQ(join(a, a), a);
    for (const ValueType& b : samples) {
      EXPECT_EQ(join(a, b), join(b, a));
      const auto ab = join(a, b);
      ASSERT_TRUE(ab.has_value());
      EXPECT_EQ(join(*ab, a), ab) << "joining again must not widen further";
    }
  }
}

TEST(CompatibleTest, UnknownAndSymbolicDimensionsMatchAnything) {
  EXPECT_TRUE(is_compatible(f23, tensor_type(ElementType::kFloat, {-2, kUnknownDim})));
  EXPECT_FALSE(is_compatible(f23, tensor_type(ElementType::kFloat, {2, 4})));
  EXPECT_FALSE(is_compatible(f23, tensor_type(ElementType::kFloat, {2})));
  EXPECT_TRUE(is_compatible(f23, TensorType(ElementType::kFloat)));
}

TEST(ValueTypeTest, WrappersNestFromTheOutsideIn) {
  const ValueType type = ValueType::optional_of(ValueType::sequence_of(f23));
  EXPECT_TRUE(type.is_optional());
  EXPECT_TRUE(type.unwrapped().is_sequence());
  EXPECT_EQ(type.unwrapped().unwrapped(), f23);
  EXPECT_EQ(to_string(type), "optional(sequence(float[2,3]))");
}

TEST(PrintTest, SymbolsAndUnknownsShow) {
  EXPECT_EQ(to_string(ValueType(tensor_type(ElementType::kInt64, {4, kUnknownDim, -2, -3}))),
            "int64[4,?,s0,s1]");
  EXPECT_EQ(to_string(ValueType(TensorType(ElementType::kBool))), "bool[...]");
}

}  // namespace
}  // namespace eddy
