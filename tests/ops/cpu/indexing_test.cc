// Operators that look up elements agree with the reference's counting on seeded shapes, for every
// storage size, with 32- and 64-bit indices of both signs; NonZero, Compress, Unique, TopK and the
// scatters' reductions give the values written here, and a bad index is named.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  if (element == ElementType::kString) {
    std::vector<std::string> values;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      values.push_back("a string that does not fit inline " + std::to_string(random.below(1000)));
    }
    return TestTensor::of_strings(dims, values);
  }
  auto* bytes = tensor.view().mutable_as<uint8_t>();
  for (size_t i = 0; i < tensor.view().size_bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(random.below(0x70));  // no NaN
  }
  return tensor;
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

Dims random_dims(Random& random, int min_rank, int max_rank, int64_t max_size = 5) {
  Dims dims;
  for (int64_t rank = between(random, min_rank, max_rank); rank > 0; --rank) {
    dims.push_back(between(random, 1, max_size));
  }
  return dims;
}

template <typename Make>
void for_seeds(const Make& make, uint64_t seeds = 15) {
  for (ElementType element : kEverySize) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(std::string(element_type_name(element)) + ", seed " + std::to_string(seed));
      Random random(seed);
      compare_with_reference(make(element, random));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Indices in [-size, size).
TestTensor indices_below(const Dims& dims, int64_t size, Random& random, bool may_be_int32 = true) {
  const bool is_int32 = may_be_int32 && random.below(2) == 0;
  return TestTensor::random(is_int32 ? ElementType::kInt32 : ElementType::kInt64, dims, random,
                            -static_cast<double>(size), static_cast<double>(size - 1));
}

TEST(IndexingTest, GatherElementsAgreesWithTheReference) {
  for_seeds([](ElementType element, Random& random) {
    const Dims dims = random_dims(random, 1, 4);
    const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
    Dims shape = dims;
    for (int d = 0; d < dims.rank(); ++d) shape[d] = between(random, 0, d == axis ? 6 : dims[d]);
    OpCall call = make_call("GatherElements", 13, {{"axis", int64_t{axis - dims.rank()}}});
    call.inputs = {any_tensor(element, dims, random), indices_below(shape, dims[axis], random)};
    return call;
  });
}

TEST(IndexingTest, ScatterElementsAgreesWithTheReferenceAlsoInPlace) {
  for_seeds(
      [](ElementType element, Random& random) {
        const Dims dims = random_dims(random, 1, 4);
        const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
        Dims shape = dims;
        for (int d = 0; d < dims.rank(); ++d)
          shape[d] = between(random, 0, d == axis ? 6 : dims[d]);
        OpCall call = make_call("ScatterElements", 18, {{"axis", int64_t{axis}}});
        if (element == ElementType::kFloat || element == ElementType::kInt64) {
          const char* names[] = {"none", "add", "mul", "max", "min"};
          call.attributes.set("reduction", std::string(names[random.below(5)]));
        }
        call.inputs = {any_tensor(element, dims, random), indices_below(shape, dims[axis], random),
                       any_tensor(element, shape, random)};
        if (random.below(2) == 0) call.in_place_input = 0;
        return call;
      },
      25);
}

// Lines of several blocks of updates: anywhere, and rising, as places of maxima rise.
TEST(IndexingTest, AdditionsOnLinesAgreeWithTheReferenceAlsoInPlace) {
  for (const ElementType element :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kInt64}) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(std::string(element_type_name(element)) + ", seed " + std::to_string(seed));
      Random random(seed);
      const int64_t size = between(random, 1, 3000), count = between(random, 0, 1500);
      OpCall call = make_call("ScatterElements", 18, {{"reduction", std::string("add")}});
      TestTensor indices = indices_below({count}, size, random);
      if (seed % 2 == 0) {
        indices = TestTensor(ElementType::kInt64, {count});
        auto* const values = indices.view().mutable_as<int64_t>();
        for (int64_t i = 0; i < count; ++i) values[i] = i * size / count;
      }
      call.inputs = {TestTensor::random(element, {size}, random, -9, 9), indices,
                     TestTensor::random(element, {count}, random, -9, 9)};
      if (random.below(2) == 0) call.in_place_input = 0;
      if (seed % 3 == 0) {  // as gradients begin: constants, of which some are all 0
        if (seed % 2 == 0) call.inputs[0] = TestTensor(element, {size});
        call.constant_inputs = 1;
        call.in_place_input = -1;
      }
      compare_with_reference(call);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Data, indices of whole tuples, and the dimensions the result of a GatherND would have.
struct Tuples {
  Dims data, result;
  TestTensor indices;
};

Tuples random_tuples(Random& random, int64_t batch_axes) {
  Tuples made;
  made.data = random_dims(random, static_cast<int>(batch_axes) + 1, 4);
  const int64_t length = between(random, 1, made.data.rank() - batch_axes);
  Dims shape;
  for (int d = 0; d < batch_axes; ++d) shape.push_back(made.data[d]);
  for (int64_t more = between(random, 0, 2); more > 0; --more)
    shape.push_back(between(random, 0, 4));
  made.result = shape;
  shape.push_back(length);
  made.indices = TestTensor(ElementType::kInt64, shape);
  auto* values = made.indices.view().mutable_as<int64_t>();
  for (int64_t i = 0; i < made.indices.count(); ++i) {
    const int64_t size = made.data[static_cast<int>(batch_axes + i % length)];
    values[i] = between(random, -size, size - 1);
  }
  for (int64_t d = batch_axes + length; d < made.data.rank(); ++d) {
    made.result.push_back(made.data[static_cast<int>(d)]);
  }
  return made;
}

TEST(IndexingTest, GatherNdAgreesWithTheReference) {
  for_seeds(
      [](ElementType element, Random& random) {
        const int64_t batch = between(random, 0, 2);
        const Tuples tuples = random_tuples(random, batch);
        OpCall call = make_call("GatherND", 13, {{"batch_dims", batch}});
        call.inputs = {any_tensor(element, tuples.data, random), tuples.indices};
        return call;
      },
      25);
}

TEST(IndexingTest, ScatterNdAgreesWithTheReferenceAlsoInPlace) {
  for_seeds(
      [](ElementType element, Random& random) {
        const Tuples tuples = random_tuples(random, 0);
        OpCall call = make_call("ScatterND", 18);
        if (element == ElementType::kFloat || element == ElementType::kInt64) {
          const char* names[] = {"none", "add", "mul", "max", "min"};
          call.attributes.set("reduction", std::string(names[random.below(5)]));
        }
        call.inputs = {any_tensor(element, tuples.data, random), tuples.indices,
                       any_tensor(element, tuples.result, random)};
        if (random.below(2) == 0) call.in_place_input = 0;
        return call;
      },
      25);
}

TEST(IndexingTest, TopKAgreesWithTheReferenceOnTiesAndNan) {
  for (ElementType element : {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                              ElementType::kInt64, ElementType::kUint8, ElementType::kFloat16}) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      SCOPED_TRACE(std::string(element_type_name(element)) + ", seed " + std::to_string(seed));
      Random random(seed);
      const Dims dims = random_dims(random, 1, 3, 9);
      const int axis = static_cast<int>(between(random, 0, dims.rank() - 1));
      OpCall call =
          make_call("TopK", 11, {{"axis", int64_t{axis}}, {"largest", between(random, 0, 1)}});
      TestTensor data = TestTensor::random(element, dims, random, 0, 4);
      if (element == ElementType::kFloat) {
        auto* values = data.view().mutable_as<float>();
        for (int64_t i = 0; i < data.count(); ++i) {
          values[i] = random.below(6) == 0 ? std::numeric_limits<float>::quiet_NaN()
                                           : static_cast<float>(random.below(4));
        }
      }
      call.inputs = {data, TestTensor::of<int64_t>({1}, {between(random, 0, dims[axis])})};
      call.num_outputs = 2;
      compare_with_reference(call);
    }
  }
}

// Few of many are found in blocks, more by sorting.
TEST(IndexingTest, TopKOfLongLinesAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int64_t size = between(random, 100, 900);
    const bool is_last = random.below(3) > 0;
    OpCall call = make_call(
        "TopK", 11, {{"axis", int64_t{is_last ? -1 : 0}}, {"largest", between(random, 0, 1)}});
    TestTensor data = TestTensor::random(ElementType::kFloat,
                                         is_last ? Dims{3, size} : Dims{size, 2}, random, -1, 1);
    auto* values = data.view().mutable_as<float>();
    const uint64_t num_kinds = random.below(2) == 0 ? 1 << 20 : 5;  // few or many ties
    for (int64_t i = 0; i < data.count(); ++i) {
      values[i] = static_cast<float>(random.below(num_kinds));
      if (random.below(400) == 0) values[i] = std::numeric_limits<float>::quiet_NaN();
    }
    call.inputs = {data, TestTensor::of<int64_t>({1}, {between(random, 1, 24)})};
    call.num_outputs = 2;
    compare_with_reference(call);
  }
}

// ---- values written by hand ----

class BothSets : public ::testing::TestWithParam<KernelSet> {
 protected:
  TestTensor one(const OpCall& call) { return run_one(call, GetParam()); }
  std::string error(const OpCall& call) { return run_op(call, GetParam()).status().to_string(); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, BothSets,
                         ::testing::Values(KernelSet::kReference, KernelSet::kCpu));

TestTensor int64s(const std::vector<int64_t>& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

TEST_P(BothSets, ScatterAppliesDuplicatesInOrder) {
  OpCall call = make_call("ScatterElements", 18, {{"reduction", std::string("add")}});
  call.inputs = {int64s({1, 2, 3}), int64s({1, -2, 1}), int64s({10, 20, 30})};
  EXPECT_THAT(one(call).values<int64_t>(), ElementsAre(1, 62, 3));
  call.attributes = {{"reduction", std::string("max")}};
  EXPECT_THAT(one(call).values<int64_t>(), ElementsAre(1, 30, 3));
  call.attributes = {};
  EXPECT_THAT(one(call).values<int64_t>(), ElementsAre(1, 30, 3));
}

TEST_P(BothSets, ABadIndexIsNamedWithItsAxisAndSize) {
  const TestTensor data = TestTensor::of<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  OpCall call = make_call("GatherElements", 13, {{"axis", int64_t{1}}});
  call.inputs = {data, TestTensor::of<int64_t>({1, 1}, {3})};
  EXPECT_THAT(error(call), HasSubstr("index 3 is out of range for axis 1 of size 3"));
  call = make_call("ScatterElements", 13);
  call.inputs = {data, TestTensor::of<int32_t>({1, 1}, {-3}), TestTensor::of<int64_t>({1, 1}, {0})};
  EXPECT_THAT(error(call), HasSubstr("index -3 is out of range for axis 0 of size 2"));
  call = make_call("ScatterElements", 18, {{"reduction", std::string("add")}});
  call.inputs = {int64s({1, 2, 3}), int64s({2, 3, -4}), int64s({0, 0, 0})};
  EXPECT_THAT(error(call), HasSubstr("index 3 is out of range for axis 0 of size 3"));
  call.inputs[1] = int64s({2, INT64_MIN, INT64_MAX});
  EXPECT_THAT(error(call), HasSubstr("is out of range for axis 0 of size 3"));
  call = make_call("GatherND", 13);
  call.inputs = {data, TestTensor::of<int64_t>({1, 2}, {1, INT64_MIN})};
  EXPECT_THAT(error(call), HasSubstr("is out of range for axis 1 of size 3"));
  call = make_call("ScatterND", 13);
  call.inputs = {data, TestTensor::of<int64_t>({1, 1}, {INT64_MAX}),
                 TestTensor::of<int64_t>({1, 3}, {0, 0, 0})};
  EXPECT_THAT(error(call), HasSubstr("is out of range for axis 0 of size 2"));
}

TEST_P(BothSets, ShapesThatDoNotBelongTogetherAreRefused) {
  const TestTensor data = TestTensor::of<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  OpCall call = make_call("GatherElements", 13, {{"axis", int64_t{1}}});
  call.inputs = {data, TestTensor::of<int64_t>({3, 1}, {0, 0, 0})};
  EXPECT_THAT(error(call), HasSubstr("indices [3,1] exceed data [2,3] on axis 0"));
  call = make_call("ScatterND", 13);
  call.inputs = {data, TestTensor::of<int64_t>({1, 1}, {0}), TestTensor::of<int64_t>({1}, {0})};
  EXPECT_THAT(error(call), HasSubstr("updates must be [1,3], not [1]"));
  call = make_call("GatherND", 13);
  call.inputs = {data, TestTensor::of<int64_t>({1, 3}, {0, 0, 0})};
  EXPECT_THAT(error(call), HasSubstr("have 3 entries"));
  call = make_call("TopK", 11);
  call.inputs = {data, int64s({4})};
  EXPECT_THAT(error(call), HasSubstr("K is 4, but axis 1 of [2,3] has only 3"));
}

TEST_P(BothSets, NonZeroListsCoordinatesAxisByAxis) {
  OpCall call = make_call("NonZero", 13);
  call.inputs = {TestTensor::of<float>({2, 2}, {1, -0.0f, 0.5f, 3})};
  const TestTensor found = one(call);
  EXPECT_EQ(found.dims(), (Dims{2, 3}));
  EXPECT_THAT(found.values<int64_t>(), ElementsAre(0, 1, 1, 0, 0, 1));
  call.inputs = {TestTensor::scalar(true)};
  EXPECT_EQ(one(call).dims(), (Dims{0, 1}));
}

TEST(IndexingTest, NonZeroAgreesWithTheReference) {
  for (ElementType element : {ElementType::kFloat, ElementType::kInt32, ElementType::kInt64,
                              ElementType::kBool, ElementType::kUint8}) {
    for (const Dims& dims : {Dims{}, Dims{7}, Dims{3, 0}, Dims{2, 3, 4}, Dims{3, 1, 5, 2}}) {
      Random random(9);
      OpCall call = make_call("NonZero", 13);
      const double low = element == ElementType::kUint8 || element == ElementType::kBool ? 0 : -1;
      call.inputs = {TestTensor::random(element, dims, random, low, 1)};
      compare_with_reference(call);
    }
  }
}

TEST_P(BothSets, CompressKeepsWhatTheConditionChooses) {
  OpCall call = make_call("Compress", 11, {{"axis", int64_t{-1}}});
  call.inputs = {TestTensor::of_strings({2, 2}, {"a", "b", "c", "d"}),
                 TestTensor::of<bool>({2}, {false, true})};
  EXPECT_THAT(one(call).strings(), ElementsAre("b", "d"));
  call.attributes = {};
  call.inputs[1] = TestTensor::of<bool>({3}, {true, false, true});
  EXPECT_THAT(one(call).strings(), ElementsAre("a", "c"));
  call.inputs[1] = TestTensor::of<bool>({5}, {false, false, false, false, true});
  EXPECT_THAT(error(call), HasSubstr("condition chooses element 4 of 4"));
}

TEST_P(BothSets, UniqueSortsOrKeepsTheOrderOfAppearance) {
  OpCall call = make_call("Unique", 11, {{"sorted", int64_t{0}}});
  call.inputs = {TestTensor::of<float>({6}, {2, 1, 1, 3, 4, 3})};
  call.num_outputs = 4;
  const auto kept = run_op(call, GetParam());
  ASSERT_TRUE(kept.is_ok()) << kept.status().to_string();
  EXPECT_THAT((*kept)[0].tensor().values<float>(), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT((*kept)[1].tensor().values<int64_t>(), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT((*kept)[2].tensor().values<int64_t>(), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT((*kept)[3].tensor().values<int64_t>(), ElementsAre(1, 2, 2, 1));
  call.attributes = {{"axis", int64_t{0}}};
  call.inputs = {TestTensor::of<int32_t>({3, 2}, {5, 1, 2, 3, 5, 1})};
  const auto sorted = run_op(call, GetParam());
  ASSERT_TRUE(sorted.is_ok()) << sorted.status().to_string();
  EXPECT_THAT((*sorted)[0].tensor().values<int32_t>(), ElementsAre(2, 3, 5, 1));
  EXPECT_THAT((*sorted)[1].tensor().values<int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT((*sorted)[2].tensor().values<int64_t>(), ElementsAre(1, 0, 1));
}

TEST_P(BothSets, CumSumGoesBothWaysAlongAnyAxis) {
  OpCall call = make_call("CumSum", 14, {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
  call.inputs = {int64s({1, 2, 3}), TestTensor::scalar<int32_t>(0)};
  EXPECT_THAT(one(call).values<int64_t>(), ElementsAre(5, 3, 0));
  call.attributes = {};
  call.inputs = {TestTensor::of<float>({2, 2}, {1, 2, 3, 4}), TestTensor::scalar<int64_t>(-2)};
  EXPECT_THAT(one(call).values<float>(), ElementsAre(1, 2, 4, 6));
  call.inputs[1] = TestTensor::scalar<int64_t>(2);
  EXPECT_THAT(error(call), HasSubstr("axis 2"));
}

TEST_P(BothSets, ReverseSequenceTurnsOnlyTheGivenLengths) {
  OpCall call =
      make_call("ReverseSequence", 10, {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}});
  call.inputs = {TestTensor::of<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6}), int64s({2, 3})};
  EXPECT_THAT(one(call).values<int64_t>(), ElementsAre(2, 1, 3, 6, 5, 4));
  call.inputs[1] = int64s({2, 4});
  EXPECT_THAT(error(call), HasSubstr("sequence length 4 is not between 0 and 3"));
}

}  // namespace
}  // namespace eddy::testing
