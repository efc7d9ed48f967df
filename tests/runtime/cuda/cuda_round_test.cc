// Claim: a round of a loop that the device drives holds the graph's kernels, but for those of
// single elements and what makes a carried value element by element, and one that does these,
// moves, counts and tests; one more where the test must read what that has written, a view or the
// iteration's number; nothing else, and no copy engine. What writes a carried value last writes it
// where the next iteration reads it, if the old one is needed no more.
// Nor is there one in a round that the host drives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class CudaRoundTest : public CudaSessionFixture {
 protected:
  // Runs it on the GPU and on the CPU, which agree; what a round holds, the graph's kernels as
  // "op".
  std::vector<std::string> round_of(const Build& build, const NamedTensors& inputs) {
    use_fake();
    auto cpu = std::move(*Session::create(library(), graph_of(build), {}));
    auto session = make_or_null(graph_of(build), {.loops = Loops::kDevice});
    if (session == nullptr) return {};
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run(inputs);
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      if (!outputs.is_ok()) return {};
      EXPECT_EQ(check::difference(*cpu->run(inputs), *outputs), "");
    }
    session.reset();
    std::vector<std::string> names = fake_->cuda().last_round();
    for (std::string& name : names) {
      if (!name.starts_with("eddy_") && name.find(' ') == std::string::npos) name = "op";
    }
    return names;
  }
};

TEST_P(CudaRoundTest, WhereTheTestHasKernelsTheyReadTheNextValuesWhereTheyAreMade) {
  EXPECT_THAT(round_of(side_by_side(1), {{"x", Tensor::scalar(0.0f)}}),
              ElementsAre("op", "op", "eddy_loop_copy"));
}

// Its own kernel, which comes last: nothing is left to move.
void last_is_a_kernel(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4, 4}));
  const auto results = b.while_loop(
      {.name = "rows", .initial = {x}, .trip_limit = b.scalar(int64_t{5})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const Value turned = b.op("Transpose", {v[0]}, {{"perm", std::vector<int64_t>{1, 0}}});
        return std::vector<Value>{b.op("Softmax", {turned}, {{"axis", int64_t{1}}})};
      });
  b.output("y", results[0]);
}

TEST_P(CudaRoundTest, WhatMakesACarriedValueLastWritesItWhereItIsReadNext) {
  std::vector<float> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i % 5) - 0.5f;
  EXPECT_THAT(round_of(last_is_a_kernel, {{"x", Tensor::of<float>({4, 4}, x)}}),
              ElementsAre("op", "op", "eddy_loop_step"));
}

// Values change places, and the test looks at both, also where it is the only one that runs.
void test_of_two(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const Value y = b.input("y", kFloat);
  const auto results = b.while_loop(
      {.name = "swap", .initial = {x, y}},
      [&](Value, ValueSpan v) {
        const Value difference = b.op("Sub", {v[0], v[1]});
        return WhileTest{b.op("Less", {b.op("Abs", {difference}), b.scalar(50.0f)}),
                         {v[0], v[1], difference}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{v[1], b.op("Mul", {v[0], b.scalar(1.5f)})};
      });
  for (size_t i = 0; i < 3; ++i) b.output("z" + std::to_string(i), results[i]);
}

TEST_P(CudaRoundTest, ATestOfValuesThatChangePlacesReadsThemBeforeTheyMove) {
  for (const float y : {1.0f, 3.0f, 100.0f}) {  // the last: no round at all
    const NamedTensors inputs = {{"x", Tensor::scalar(2.0f)}, {"y", Tensor::scalar(y)}};
    const std::vector<std::string> names = round_of(test_of_two, inputs);
    ASSERT_GE(names.size(), 5u);
    EXPECT_EQ(names[0], "op");
    EXPECT_EQ(names[3], "op");
    EXPECT_EQ(names.back(), "eddy_loop_copy");
  }
}

// What the test has made is carried on, and is not to be made anew before it is moved.
void test_that_is_carried(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const auto results = b.while_loop(
      {.name = "carried", .initial = {x, x}},
      [&](Value, ValueSpan v) {
        const Value sum = b.op("Add", {v[0], v[1]});
        return WhileTest{b.op("Less", {sum, b.scalar(50.0f)}), {v[0], sum}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Mul", {v[0], b.scalar(1.5f)}), v[1]};
      });
  b.output("y", results[0]);
  b.output("sum", results[1]);
}

// A view of the carried value, and a test by the iteration's number.
void test_of_a_view(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const auto results = b.while_loop(
      {.name = "view", .initial = {x}},
      [&](Value, ValueSpan v) {
        const Value shape = b.tensor<int64_t>({2}, {1, 1});
        const Value flat = b.op("Reshape", {v[0], shape});
        const Value most = b.op("ReduceMax", {flat}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {most, b.scalar(50.0f)}), {flat}};
      },
      [&](Value, ValueSpan v) {
        const Value shape = b.tensor<int64_t>({1}, {1});
        return std::vector<Value>{b.op("Mul", {b.op("Reshape", {v[0], shape}), b.scalar(1.5f)})};
      });
  b.output("y", results[0]);
}

void test_of_the_number(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const auto results = b.while_loop(
      {.name = "number", .initial = {x}},
      [&](Value i, ValueSpan v) {
        return WhileTest{
            b.op("Less", {b.op("Add", {i, b.scalar(int64_t{3})}), b.scalar(int64_t{9})}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Mul", {v[0], b.scalar(1.5f)})};
      });
  b.output("y", results[0]);
}

TEST_P(CudaRoundTest, ATestOfAViewOrOfTheNumberOrThatIsCarriedComesBehindTheCopies) {
  for (const auto& build : {test_that_is_carried, test_of_a_view, test_of_the_number}) {
    for (const float x : {2.0f, 60.0f}) {
      const auto names = round_of(build, {{"x", Tensor::of<float>({1}, {x})}});
      ASSERT_GE(names.size(), 3u);
      EXPECT_EQ(names[1], "eddy_loop_copy");
      EXPECT_EQ(names.back(), "eddy_loop_step");
    }
  }
}

// As ONNX has it: the body makes the predicate, which is carried.
void carried_test(GraphBuilder& b) {
  const Value x = b.input("x", kFloat);
  const Value go = b.input("go", tensor_type(ElementType::kBool, {}));
  const auto results = b.while_loop(
      {.name = "onnx", .initial = {go, x}, .trip_limit = b.scalar(int64_t{40})},
      [&](Value, ValueSpan v) {
        return WhileTest{v[0], {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        const Value next = b.op("Mul", {v[1], b.scalar(1.25f)});
        return std::vector<Value>{b.op("Less", {next, b.scalar(50.0f)}), next};
      });
  b.output("y", results[1]);
}

TEST_P(CudaRoundTest, WhereTheBodyMakesThePredicateOneKernelMovesCountsAndTests) {
  for (const bool go : {true, false}) {
    const NamedTensors inputs = {{"x", Tensor::scalar(1.0f)}, {"go", Tensor::scalar(go)}};
    EXPECT_THAT(round_of(carried_test, inputs), ElementsAre("op", "op", "eddy_loop_copy"));
  }
}

// The number of the iteration is carried, and the limit of the inner loop comes out of the outer.
void numbers(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
  const auto results = b.while_loop(
      {.name = "count", .initial = {x, x}, .trip_limit = b.scalar(int64_t{7})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v[0], v[1]}};
      },
      [&](Value i, ValueSpan v) {
        return std::vector<Value>{b.op("Identity", {i}), b.op("Add", {v[1], v[0]})};
      });
  b.output("last", results[0]);
  b.output("sum", results[1]);
}

TEST_P(CudaRoundTest, TheNumberOfTheIterationIsMovedBeforeItIsCounted) {
  const std::vector<std::string> names = round_of(numbers, {{"x", Tensor::scalar(int64_t{100})}});
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "eddy_loop_copy");
}

// Twelve values change places: more than one launch moves, and none is overwritten before.
void twelve(GraphBuilder& b) {
  std::vector<Value> initial;
  for (int i = 0; i < 12; ++i) initial.push_back(b.input("x" + std::to_string(i), kFloat));
  const auto results = b.while_loop(
      {.name = "turn", .initial = initial, .trip_limit = b.scalar(int64_t{5})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.scalar(true), {v.begin(), v.end()}};
      },
      [&](Value, ValueSpan v) {
        std::vector<Value> next(v.begin() + 1, v.end());
        next.push_back(b.op("Add", {v[0], b.scalar(0.5f)}));
        return next;
      });
  for (size_t i = 0; i < 12; ++i) b.output("y" + std::to_string(i), results[i]);
}

TEST_P(CudaRoundTest, MoreThanOneLaunchMovesAreMovedByMore) {
  NamedTensors inputs;
  for (int i = 0; i < 12; ++i) {
    inputs.emplace_back("x" + std::to_string(i), Tensor::scalar(static_cast<float>(i)));
  }
  EXPECT_THAT(round_of(twelve, inputs),
              ElementsAre("op", "eddy_loop_copy", "eddy_loop_copy", "eddy_loop_copy"));
}

// The host drives the loop: the last kernel of a round writes the value that decides.
TEST_P(CudaRoundTest, WhatTheHostDecidesByIsNoCopyEngines) {
  uint64_t num_copies[2];
  for (const bool is_long : {false, true}) {
    use_fake();
    auto session = make_or_null(graph_of(side_by_side(1)), {.loops = Loops::kHost});
    ASSERT_NE(session, nullptr);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run({{"x", Tensor::scalar(is_long ? -60.0f : 0.0f)}});
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ((*outputs)[0].second.values<float>()[0], 4.5f);
    }
    session.reset();
    num_copies[is_long ? 1 : 0] = fake_->cuda().num_copies();
  }
  EXPECT_EQ(num_copies[0], num_copies[1]) << "however often it goes round";
}

// Nor is the iteration's number, which the host has and the device reads in every round.
TEST_P(CudaRoundTest, TheNumberOfAnIterationOfTheHostsIsNoCopyEngines) {
  uint64_t num_copies[2];
  for (const bool is_long : {false, true}) {
    use_fake();
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
      const auto results = b.while_loop(
          {.name = "sum", .initial = {x}, .trip_limit = b.scalar(int64_t{is_long ? 90 : 9})},
          [&](Value, ValueSpan v) {
            return WhileTest{b.scalar(true), {v[0]}};
          },
          [&](Value i, ValueSpan v) {
            return std::vector<Value>{b.op("Add", {v[0], i})};
          });
      b.output("sum", results[0]);
    };
    auto session = make_or_null(graph_of(build), {.loops = Loops::kHost});
    ASSERT_NE(session, nullptr);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run({{"x", Tensor::scalar(int64_t{5})}});
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ((*outputs)[0].second.values<int64_t>()[0], is_long ? 4010 : 41);
    }
    session.reset();
    num_copies[is_long ? 1 : 0] = fake_->cuda().num_copies();
  }
  EXPECT_EQ(num_copies[0], num_copies[1]) << "however often it goes round";
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaRoundTest, ::testing::Range(uint64_t{1}, uint64_t{5}));

}  // namespace
}  // namespace eddy::testing
