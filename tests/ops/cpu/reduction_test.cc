// Claim: reductions over any set of axes, given as attribute or input, equal the reference; empty
// sets have their neutral values; ArgMax and ArgMin find the first or last place, NaN included.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

const char* const kReductions[] = {"ReduceL1",  "ReduceL2",       "ReduceLogSum", "ReduceLogSumExp",
                                   "ReduceMax", "ReduceMean",     "ReduceMin",    "ReduceProd",
                                   "ReduceSum", "ReduceSumSquare"};

OpCall reduce(const std::string& op, int opset, const TestTensor& input,
              const std::vector<int64_t>& axes, int64_t keepdims) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = {input};
  call.attributes.set("keepdims", keepdims);
  const bool by_input = opset >= 18 || (op == "ReduceSum" && opset >= 13);
  if (by_input) {
    call.inputs.push_back(TestTensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
  } else if (!axes.empty()) {
    call.attributes.set("axes", axes);
  }
  return call;
}

TEST(ReductionTest, EverySetOfAxesEqualsTheReference) {
  const uint64_t seed = 70;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const char* op : kReductions) {
    for (const Dims& dims : {Dims{2, 3, 4, 5}, Dims{4, 1, 70}, Dims{1, 1}, Dims{130}}) {
      for (uint32_t mask = 0; mask < (1u << dims.rank()); ++mask) {
        std::vector<int64_t> axes;
        for (int axis = 0; axis < dims.rank(); ++axis) {
          if (mask & (1u << axis)) axes.push_back(mask & 1 ? axis : axis - dims.rank());
        }
        const TestTensor x = TestTensor::random(ElementType::kFloat, dims, random, 0.5, 1.5);
        for (int opset : {11, 18}) {
          compare_with_reference(reduce(op, opset, x, axes, mask & 1), 3e-6, 1e-6);
        }
      }
    }
  }
}

// Signs of both kinds, rows longer than the chunks that are joined, and integers that wrap.
TEST(ReductionTest, IntegersAndBoolsEqualTheReference) {
  const uint64_t seed = 73;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const std::string op : kReductions) {
    for (ElementType element : {ElementType::kInt32, ElementType::kInt64, ElementType::kBool}) {
      const bool is_bool = element == ElementType::kBool;
      if (is_bool && op != "ReduceMax" && op != "ReduceMin") continue;
      for (const Dims& dims : {Dims{3, 4, 5}, Dims{2, 700}, Dims{600, 3}, Dims{1}, Dims{3, 0}}) {
        for (uint32_t mask = 0; mask < (1u << dims.rank()); ++mask) {
          std::vector<int64_t> axes;
          for (int axis = 0; axis < dims.rank(); ++axis) {
            if (mask & (1u << axis)) axes.push_back(axis);
          }
          const double end = is_bool ? 1 : 9;
          const TestTensor x = TestTensor::random(element, dims, random, is_bool ? 0 : -end, end);
          compare_with_reference(reduce(op, 20, x, axes, mask & 1));
        }
      }
    }
  }
}

TEST(ReductionTest, LogSumExpEqualsTheReferenceOnInfinitiesAndLongRows) {
  const float inf = HUGE_VALF, nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = TestTensor::of<float>(
      {4, 3}, {-inf, -inf, -inf, inf, 1, -inf, nan, 1, 2, -1000, -1000, -inf});
  for (int64_t axis : {0, 1}) {
    compare_with_reference(reduce("ReduceLogSumExp", 18, x, {axis}, 0), 1e-6, 1e-6);
  }
  Random random(74);
  const TestTensor large = TestTensor::random(ElementType::kFloat, {3, 900, 2}, random, -90, 90);
  for (int64_t axis : {0, 1, 2}) {
    compare_with_reference(reduce("ReduceLogSumExp", 18, large, {axis}, 0), 1e-6, 1e-6);
  }
}

TEST(ReductionTest, IntegersAndHalvesAreSupported) {
  Random random(71);
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"}) {
    for (ElementType element : {ElementType::kInt64, ElementType::kInt32, ElementType::kUint8,
                                ElementType::kDouble, ElementType::kFloat16}) {
      compare_with_reference(
          reduce(op, 13, TestTensor::random(element, {3, 4}, random, 1, 3), {1}, 1));
    }
  }
  const TestTensor large = TestTensor::of<int64_t>({2}, {(int64_t{1} << 60) + 1, 2});
  EXPECT_EQ(run_one(reduce("ReduceSum", 13, large, {0}, 0), KernelSet::kCpu).values<int64_t>(),
            (std::vector<int64_t>{(int64_t{1} << 60) + 3}));
}

TEST(ReductionTest, ReducingNothingGivesTheNeutralValue) {
  const TestTensor empty(ElementType::kFloat, {2, 0});
  const auto run = [&](const char* op, KernelSet kernels) {
    return run_one(reduce(op, 18, empty, {1}, 0), kernels).values<float>()[1];
  };
  for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_EQ(run("ReduceSum", kernels), 0);
    EXPECT_EQ(run("ReduceProd", kernels), 1);
    EXPECT_EQ(run("ReduceMax", kernels), -HUGE_VALF);
    EXPECT_EQ(run("ReduceMin", kernels), HUGE_VALF);
    EXPECT_EQ(run("ReduceLogSumExp", kernels), -HUGE_VALF);
    EXPECT_TRUE(std::isnan(run("ReduceMean", kernels)));
  }
}

// Over no axes each element is a group of its own: its norm is its absolute value, its logarithm
// its own; only what is the identity on one element leaves it as it is.
TEST(ReductionTest, EmptyAxesReduceAllOrWithNoopEachElementByItself) {
  const std::vector<float> values = {-1, 2, -3, 4};
  const TestTensor x = TestTensor::of<float>({2, 2}, values);
  OpCall all = reduce("ReduceL1", 18, x, {}, 0);
  EXPECT_EQ(run_one(all, KernelSet::kCpu).values<float>(), std::vector<float>{10});
  for (const std::string op : kReductions) {
    SCOPED_TRACE(op);
    std::vector<float> expected;
    for (const float value : values) {
      expected.push_back(op == "ReduceL1" || op == "ReduceL2" ? std::fabs(value)
                         : op == "ReduceSumSquare"            ? value * value
                         : op == "ReduceLogSum"               ? std::log(value)
                                                              : value);
    }
    for (const int64_t keepdims : {0, 1}) {
      OpCall call = reduce(op, 18, x, {}, keepdims);
      call.attributes.set("noop_with_empty_axes", int64_t{1});
      for (const bool is_given : {true, false}) {
        if (!is_given) call.inputs.pop_back();
        for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
          EXPECT_TRUE(
              is_close(run_one(call, kernels), TestTensor::of<float>({2, 2}, expected), 1e-6, 0));
        }
      }
    }
    OpCall integers = reduce(op, 18, TestTensor::of<int64_t>({3}, {-5, 0, 7}), {}, 1);
    integers.attributes.set("noop_with_empty_axes", int64_t{1});
    compare_with_reference(integers);
    if (op == "ReduceL2") {
      EXPECT_EQ(run_one(integers, KernelSet::kCpu).values<int64_t>(),
                (std::vector<int64_t>{5, 0, 7}));
    }
  }
}

constexpr int64_t kLarge = (int64_t{1} << 60) + 1;  // as a double it loses its 1
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::lowest();

TEST(ReductionTest, MeansNormsAndLogarithmsOfIntegersAreExactAndCutTowardsZero) {
  struct Case {
    const char* op;
    std::vector<int64_t> values;
    int64_t expected;
  };
  const std::vector<Case> cases = {
      {"ReduceMean", {kLarge}, kLarge},
      {"ReduceMean", {kLarge, kLarge + 2}, kLarge + 1},
      {"ReduceMean", {kMost, kMost, kMost}, kMost},
      {"ReduceMean", {kLeast, kLeast}, kLeast},
      {"ReduceMean", {7, 0}, 3},
      {"ReduceMean", {-7, 0}, -3},
      {"ReduceL2", {-kLarge}, kLarge},
      {"ReduceL2", {3, -4}, 5},
      {"ReduceL2", {1, 1}, 1},
      {"ReduceL2", {3 * kLarge, -4 * kLarge}, 5 * kLarge},
      {"ReduceL2", {kLeast}, kMost},
      {"ReduceL2", {kLeast, kLeast, kLeast, kLeast, kLeast}, kMost},
      {"ReduceLogSum", {kLarge, 1 - kLarge}, 0},  // log(1)
      {"ReduceLogSum", {kMost, kMost, kMost}, 44},
      {"ReduceLogSum", {5, -5}, kLeast},
      {"ReduceLogSum", {-5}, 0},
      {"ReduceLogSumExp", {kLarge}, kLarge},
      {"ReduceLogSumExp", {kLarge, kLarge, kLarge}, kLarge + 1},
      {"ReduceLogSumExp", {-kLarge, -kLarge}, 1 - kLarge},
      {"ReduceLogSumExp", {-3, -4}, -2},
      {"ReduceLogSumExp", {0, kLeast}, 0},
      {"ReduceLogSumExp", {kMost, kMost, kMost, kLeast}, kMost},
  };
  for (const Case& one : cases) {
    const auto count = static_cast<int64_t>(one.values.size());
    const OpCall call = reduce(one.op, 18, TestTensor::of<int64_t>({count}, one.values), {0}, 0);
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_EQ(run_one(call, kernels).values<int64_t>()[0], one.expected)
          << one.op << " of " << one.values[0] << " and " << count - 1 << " more";
    }
  }
}

TEST(ReductionTest, ANormIsAsLargeAsTheElementTypeAllows) {
  const auto norm = [](const TestTensor& x) {
    return run_one(reduce("ReduceL2", 18, x, {0}, 0), KernelSet::kCpu);
  };
  EXPECT_EQ(norm(TestTensor::of<int32_t>({2}, {INT32_MIN, 5})).values<int32_t>()[0], INT32_MAX);
  EXPECT_EQ(norm(TestTensor::of<uint32_t>({2}, {UINT32_MAX, 1})).values<uint32_t>()[0], UINT32_MAX);
  EXPECT_EQ(norm(TestTensor::of<uint64_t>({1}, {UINT64_MAX})).values<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(norm(TestTensor::of<uint64_t>({2}, {UINT64_MAX, 9})).values<uint64_t>()[0], UINT64_MAX);
}

// Against what defines them: a norm's square is the last that does not exceed the sum of squares, a
// mean times the count the last that does not exceed the sum in size.
TEST(ReductionTest, NormsAndMeansOfRandomIntegersAreWhatTheyShouldBe) {
  const uint64_t seed = 75;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    const auto count = static_cast<int64_t>(1 + random.below(6));
    const int shift = static_cast<int>(random.below(60)) + 3;
    std::vector<int64_t> values;
    __int128 sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<int64_t>(random.next()) >> shift);
      sum += values.back();
      squares += static_cast<__int128>(values.back()) * values.back();
    }
    const TestTensor x = TestTensor::of<int64_t>({count, 1}, values);
    const auto result = [&](const char* op) -> __int128 {
      compare_with_reference(reduce(op, 18, x, {0}, 0));
      return run_one(reduce(op, 18, x, {0}, 0), KernelSet::kCpu).values<int64_t>()[0];
    };
    const __int128 norm = result("ReduceL2"), mean = result("ReduceMean");
    EXPECT_TRUE(norm * norm <= squares && (norm + 1) * (norm + 1) > squares);
    const __int128 rest = sum - mean * count;
    EXPECT_TRUE(sum >= 0 ? rest >= 0 && rest < count : rest <= 0 && rest > -count);
    compare_with_reference(reduce("ReduceLogSumExp", 18, x, {0}, 0));
  }
}

TEST(ReductionTest, BadAxesAreNamed) {
  const TestTensor x(ElementType::kFloat, {2, 2});
  const auto far = infer_op(reduce("ReduceSum", 13, x, {2}, 1));
  ASSERT_FALSE(far.is_ok());
  EXPECT_EQ(far.status().message(), "axis 2 is out of range for rank 2: -2..1");
  const auto twice = infer_op(reduce("ReduceMax", 13, x, {0, -2}, 1));
  ASSERT_FALSE(twice.is_ok());
  EXPECT_EQ(twice.status().message(), "axis -2 is given twice");
}

TEST(ReductionTest, ArgSearchesEqualTheReference) {
  Random random(72);
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (ElementType element : {ElementType::kFloat, ElementType::kInt32, ElementType::kInt64}) {
      for (int64_t axis = -3; axis < 3; ++axis) {
        for (int64_t last : {0, 1}) {
          OpCall call;
          call.op = op;
          call.opset = 13;
          // Few distinct values, so that there are ties.
          TestTensor x = TestTensor::random(ElementType::kInt32, {3, 50, 4}, random, 0, 9);
          if (element == ElementType::kFloat) {
            std::vector<float> values;
            for (int32_t value : x.values<int32_t>()) {
              values.push_back(value == 5 ? std::numeric_limits<float>::quiet_NaN()
                                          : static_cast<float>(value));
            }
            x = TestTensor::of<float>({3, 50, 4}, values);
          } else if (element == ElementType::kInt64) {
            x = TestTensor::random(element, {3, 50, 4}, random, -4, 4);
          }
          call.inputs = {x};
          call.attributes = {{"axis", axis}, {"keepdims", last}, {"select_last_index", last}};
          compare_with_reference(call);
        }
      }
    }
  }
}

TEST(ReductionTest, SearchingAnEmptyAxisIsRefused) {
  OpCall call;
  call.op = "ArgMax";
  call.opset = 13;
  call.inputs = {TestTensor(ElementType::kFloat, {2, 0})};
  call.attributes = {{"axis", int64_t{1}}};
  EXPECT_FALSE(infer_op(call).is_ok());
}

}  // namespace
}  // namespace eddy::testing
