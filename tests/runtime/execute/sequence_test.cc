// Claim: a sequence that a loop appends to, and another one takes apart from its end, is never
// copied, and whoever holds an older one of it keeps that.
#include "tests/runtime/testing/allocation_counter.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::num_allocations;
using testing::WaysTest;

class SequenceTest : public WaysTest {
 protected:
  static ValueType scalars() {
    return ValueType::sequence_of(TensorType(ElementType::kInt64, Dims()));
  }

  // "sum" of 0 .. n - 1, pushed one by one, and of n - 1 .. 0, popped: place by place, so that a
  // wrong order is seen.
  static void build_stack(GraphBuilder& b) {
    const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
    const Value empty =
        b.op("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(ElementType::kInt64)}});
    const auto pushed = b.while_loop(
        {.name = "push", .initial = {empty}, .trip_limit = n, .carried_types = {scalars()}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value i, ValueSpan f) {
          const Value square = b.op("Mul", {i, i});
          return std::vector<Value>{b.op("SequenceInsert", {f[0], square})};
        });
    const auto popped = b.while_loop(
        {.name = "pop",
         .initial = {pushed[0], b.scalar(int64_t{0})},
         .carried_types = {scalars(), std::nullopt}},
        [&](Value, ValueSpan c) {
          const Value go = b.op("Greater", {b.op("SequenceLength", {c[0]}), b.scalar(int64_t{0})});
          return WhileTest{go, {c[0], c[1]}};
        },
        [&](Value i, ValueSpan f) {
          const Value last = b.scalar(int64_t{-1});
          const Value weighted = b.op("Mul", {b.op("SequenceAt", {f[0], last}), i});
          return std::vector<Value>{b.op("SequenceErase", {f[0], last}),
                                    b.op("Add", {f[1], weighted})};
        });
    b.output("sum", popped[1]);
    b.output("length", b.op("SequenceLength", {pushed[0]}));
    b.output("first", b.op("SequenceAt", {pushed[0], b.scalar(int64_t{0})}));
  }
};

TEST_P(SequenceTest, AHundredThousandPushesAndPopsCopyNothing) {
  GraphBuilder b(library_.ops());
  build_stack(b);
  const auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  const auto run = [&](int64_t n) {
    const uint64_t before = num_allocations();
    const auto outputs = session->run({{"n", Tensor::scalar(n)}});
    const uint64_t made = num_allocations() - before;
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return made;
    int64_t sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += (n - 1 - k) * (n - 1 - k) * k;
    EXPECT_EQ(values<int64_t>((*outputs)[0].second)[0], sum);
    EXPECT_EQ(values<int64_t>((*outputs)[1].second)[0], n);
    EXPECT_EQ(values<int64_t>((*outputs)[2].second)[0], 0);
    return made;
  };
  run(3);
  // One for each element, and what its tensor needs; a copy would make one for each of all before.
  EXPECT_LT(run(1'000), 1'000u * 8 + 1'000);
  EXPECT_LT(run(100'000), 100'000u * 8 + 1'000);
}

TEST_P(SequenceTest, BranchesThatGoOnFromOneSequenceDoNotSeeEachOther) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
  const Value two = b.op("SequenceConstruct", {x, b.op("Neg", {x})});
  const Value left = b.op("SequenceInsert", {two, b.op("Mul", {x, x})});
  const Value right = b.op("SequenceInsert", {two, b.op("Add", {x, x})});
  const Value shorter = b.op("SequenceErase", {two});
  const Value other = b.op("SequenceInsert", {shorter, b.op("Abs", {x})});
  const auto joined = [&](Value sequence) {
    return b.op("ConcatFromSequence", {sequence}, {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
  };
  b.output("two", joined(two));
  b.output("left", joined(left));
  b.output("right", joined(right));
  b.output("other", joined(other));
  const auto outputs = run_twice(b, {{"x", Tensor::scalar(int64_t{-7})}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const std::vector<std::vector<int64_t>> expected = {{-7, 7}, {-7, 7, 49}, {-7, 7, -14}, {-7, 7}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(values<int64_t>((*outputs)[i].second), expected[i]) << (*outputs)[i].first;
  }
}

EDDY_IN_ALL_WAYS(SequenceTest);

}  // namespace
}  // namespace eddy
