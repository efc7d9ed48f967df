// Claim: what a sequence costs beside its tensors counts as memory in use: a limit refuses one that
// is too long, the run fails and the next one is fine; and no node makes more elements of no bytes
// than a fixed number.
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

class SequenceMemoryTest : public WaysTest {};

// What a sequence costs beside its tensors counts, also where it is the caller's; nothing of it
// stays.
TEST_P(SequenceMemoryTest, ASequenceThatIsTooLongForTheLimitIsRefusedAsAnInput) {
  GraphBuilder b(library_.ops());
  const Value s = b.input("s", ValueType::sequence_of(tensor_type(ElementType::kFloat, {1})));
  b.output("length", b.op("SequenceLength", {s}));
  SessionOptions limited = options();
  limited.memory_limit_bytes = 64 << 10;
  auto session = Session::create(library_, std::move(*b.finish()), limited);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto of_length = [](size_t length) {
    const std::vector<Tensor> elements(length, Tensor::of<float>({1}, {1}));
    return Tensor::sequence(ElementType::kFloat, elements);
  };
  const Tensor few = of_length(3), many = of_length(2000);
  auto call = (*session)->prepare();
  ASSERT_TRUE(call.is_ok()) << call.status().to_string();
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ((*session)->run({{"s", many}}).status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ((*call)->bind_input(0, many).code(), StatusCode::kResourceExhausted);
    const auto made = (*session)->run({{"s", few}});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(values<int64_t>((*made)[0].second), std::vector<int64_t>{3});
    ASSERT_TRUE((*call)->bind_input(0, few).is_ok());
    EXPECT_EQ((*call)->bind_input(0, many).code(), StatusCode::kResourceExhausted);
    ASSERT_TRUE((*call)->run().is_ok());  // with what was bound before
    EXPECT_EQ((*call)->output(0).as<int64_t>()[0], 3);
  }
}

// Elements without bytes: no limit of memory ends the node, which would make a million of them.
TEST_P(SequenceMemoryTest, ANodeThatMakesTooManyElementsOfNothingIsStopped) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 0}));
  b.output("length", b.op("SequenceLength", {b.op("SplitToSequence", {x})}));
  auto s = make_session(b);
  ASSERT_NE(s, nullptr);
  const auto run = [&](int64_t n) {
    return s->run({{"x", Tensor::of<float>({n, 0}, std::span<const float>())}});
  };
  const auto many = run(1 << 20);
  ASSERT_FALSE(many.is_ok());
  EXPECT_NE(many.status().message().find("more than 400000 tensors"), std::string::npos)
      << many.status().to_string();
  const auto few = run(3);
  ASSERT_TRUE(few.is_ok()) << few.status().to_string();
  EXPECT_EQ(values<int64_t>((*few)[0].second), std::vector<int64_t>{3});
}

EDDY_IN_ALL_WAYS(SequenceMemoryTest);
}  // namespace
}  // namespace eddy
