// find_difference: tolerances for floats, equality for all else, and the first place that differs.
#include "tools/command/compare.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace eddy {
namespace {

template <typename T>
HostValue values(const std::vector<T>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return HostValue::copy_of({const_cast<T*>(numbers.data()), &count, 1, element_type_of<T>()});
}

constexpr Tolerance kTolerance = {.rtol = 0.01, .atol = 0.1};

TEST(FindDifference, FloatsAgreeWithinAtolPlusRtolTimesExpected) {
  EXPECT_FALSE(find_difference(values<float>({101.05f}), values<float>({100}), kTolerance));
  EXPECT_TRUE(find_difference(values<float>({101.2f}), values<float>({100}), kTolerance));
}

TEST(FindDifference, NanAgreesWithNanAndInfinityWithItselfOnly) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(find_difference(values<double>({NAN, inf}), values<double>({NAN, inf}), kTolerance));
  EXPECT_TRUE(find_difference(values<double>({0}), values<double>({NAN}), kTolerance));
  EXPECT_TRUE(find_difference(values<double>({inf}), values<double>({-inf}), kTolerance));
  EXPECT_TRUE(find_difference(values<double>({1e308}), values<double>({inf}), kTolerance));
}

// A type of 8 bits may have several codes for NaN; which one a program writes is its own affair.
TEST(FindDifference, NanOfSmallFloatsAgreesWithNanWhateverItsBits) {
  const auto of = [](ElementType type, std::vector<uint8_t> codes) {
    const auto count = static_cast<int64_t>(codes.size());
    return HostValue::copy_of({codes.data(), &count, 1, type});
  };
  constexpr ElementType kType = ElementType::kFloat8E5M2;
  const HostValue expected = of(kType, {0x7e, 0x7c, 0x01});
  EXPECT_FALSE(find_difference(of(kType, {0x7f, 0x7c, 0x01}), expected, kTolerance));
  EXPECT_FALSE(find_difference(of(kType, {0xfd, 0x7c, 0x01}), expected, kTolerance));
  EXPECT_EQ(find_difference(of(kType, {0x7b, 0x7c, 0x01}), expected, kTolerance),
            "at [0] of [3]: expected \"nan\", found 57344.0");
  EXPECT_TRUE(find_difference(of(kType, {0x7e, 0x7f, 0x01}), expected, kTolerance));
  EXPECT_TRUE(find_difference(of(kType, {0x7e, 0x7c, 0x02}), expected, kTolerance));
  constexpr ElementType kScale = ElementType::kFloat8E8M0;
  EXPECT_FALSE(find_difference(of(kScale, {0xff}), of(kScale, {0xff}), kTolerance));
  EXPECT_TRUE(find_difference(of(kScale, {0xfe}), of(kScale, {0xff}), kTolerance));
}

TEST(FindDifference, IntegersAndTypesAndShapesMustBeEqual) {
  EXPECT_TRUE(find_difference(values<int64_t>({100}), values<int64_t>({101}), kTolerance));
  EXPECT_EQ(find_difference(values<int32_t>({1}), values<int64_t>({1}), kTolerance),
            "expected int64[1], found int32[1]");
  EXPECT_EQ(find_difference(values<float>({1, 2}), values<float>({1}), kTolerance),
            "expected float[1], found float[2]");
}

TEST(FindDifference, IntegersThatNoDoubleTellsApartDiffer) {
  constexpr int64_t kEven = int64_t{1} << 53;
  EXPECT_FALSE(find_difference(values<int64_t>({kEven}), values<int64_t>({kEven}), kTolerance));
  EXPECT_TRUE(find_difference(values<int64_t>({kEven}), values<int64_t>({kEven + 1}), kTolerance));
}

TEST(FindDifference, NamesTheFirstPlaceAndCountsTheOthers) {
  EXPECT_EQ(find_difference(values<int32_t>({1, 5, 9}), values<int32_t>({1, 2, 3}), kTolerance),
            "at [1] of [3]: expected 2, found 5 (2 of 3 elements differ, by at most 6)");
}

TEST(FindDifference, StringsSequencesAndNothing) {
  HostValue a = HostValue::tensor(ElementType::kString, {1});
  HostValue b = a;
  a.strings[0] = "yes";
  EXPECT_TRUE(find_difference(a, b, kTolerance));
  b.strings[0] = "yes";
  EXPECT_FALSE(find_difference(a, b, kTolerance));
  const HostValue one = HostValue::sequence(ElementType::kString, {a});
  const HostValue two = HostValue::sequence(ElementType::kString, {a, b});
  EXPECT_EQ(find_difference(one, two, kTolerance), "expected a sequence of 2, found one of 1");
  EXPECT_FALSE(find_difference(two, two, kTolerance));
  EXPECT_FALSE(find_difference(HostValue::none(), HostValue::none(), kTolerance));
  EXPECT_EQ(find_difference(HostValue::none(), a, kTolerance), "expected a tensor, found nothing");
}

}  // namespace
}  // namespace eddy
