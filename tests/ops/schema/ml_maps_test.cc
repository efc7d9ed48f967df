// Claim: operators on maps, read as pairs of lists, give values worked out by hand, by both sets of
// kernels and however little is known of the shapes; an empty map is a map.
#include <gtest/gtest.h>

#include <string>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

TestTensor ints(const Ints& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}
TestTensor words(const Words& values) {
  return TestTensor::of_strings({static_cast<int64_t>(values.size())}, values);
}

OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes) {
  return make_of("ai.onnx.ml", op, 1, std::move(inputs), std::move(attributes));
}

void expect(OpCall call, const TestTensor& expected) {
  for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    call.known = known;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_TRUE(is_same_bits(run_one(call, kernels), expected)) << call.op;
    }
  }
}

TEST(MlMapsTest, DictVectorizerPutsEachValueAtThePlaceOfItsWord) {
  const Attributes letters = {{"string_vocabulary", Words{"a", "b", "c"}}};
  expect(make("DictVectorizer", {words({"c", "x", "a"}), floats({3}, {3, 9, 1})}, letters),
         floats({1, 3}, {1, 0, 3}));
  expect(make("DictVectorizer", {words({}), floats({0}, {})}, letters), floats({1, 3}, {0, 0, 0}));
  expect(make("DictVectorizer", {ints({5, 7}), words({"five", "seven"})},
              {{"int64_vocabulary", Ints{7, 6}}}),
         TestTensor::of_strings({1, 2}, {"seven", ""}));
}

TEST(MlMapsTest, CastMapOrdersValuesByTheirKeys) {
  const TestTensor keys = ints({8, -1, 3});
  expect(make("CastMap", {keys, floats({3}, {80, -10, 30})}, {}), floats({1, 3}, {-10, 30, 80}));
  expect(make("CastMap", {keys, words({"8.5", "-1", "3"})}, {{"cast_to", "TO_FLOAT"}}),
         floats({1, 3}, {-1, 3, 8.5f}));
  expect(make("CastMap", {ints({}), floats({0}, {})}, {}), floats({1, 0}, {}));
}

TEST(MlMapsTest, ASparseCastMapPutsValuesAtTheirKeys) {
  expect(make("CastMap", {ints({2, -1, 0, 9}), floats({4}, {22, 1, 11, 5})},
              {{"map_form", "SPARSE"}, {"max_map", int64_t{4}}, {"cast_to", "TO_INT64"}}),
         TestTensor::of<int64_t>({1, 4}, {11, 0, 22, 0}));
}

TEST(MlMapsTest, ZipMapIsTheTableOfItsMapsValues) {
  const TestTensor table = floats({2, 2}, {0.25f, 0.75f, 1, 0});
  expect(make("ZipMap", {table}, {{"classlabels_strings", Words{"no", "yes"}}}), table);
}

}  // namespace
}  // namespace eddy::testing
