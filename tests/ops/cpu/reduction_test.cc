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

TEST(ReductionTest, EmptyAxesReduceAllUnlessTheyMeanNothing) {
  const TestTensor x = TestTensor::of<float>({2, 2}, {-1, 2, -3, 4});
  OpCall call = reduce("ReduceL1", 18, x, {}, 0);
  EXPECT_EQ(run_one(call, KernelSet::kCpu).values<float>(), std::vector<float>{10});
  call.attributes.set("noop_with_empty_axes", int64_t{1});
  EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), x));
  compare_with_reference(call);
  call.inputs.pop_back();
  EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), x));
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
