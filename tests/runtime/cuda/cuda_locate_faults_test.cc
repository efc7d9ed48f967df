// Claim: a session that locates faults names the very node with the kernel that has lost the GPU,
// and its iteration, however far the host has come since: in loops that the GPU drives, nested and
// in branches, in loops of the host, in straight stretches that are recorded and in several
// streams. Values and trip counts stay what they were, no loop is one kernel, and without it the
// message states what is known and how to learn more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ValueType kEight = tensor_type(ElementType::kFloat, {8});

Tensor ones() { return Tensor::of<float>({8}, {1, 1, 1, 1, 1, 1, 1, 1}); }

Value named(GraphBuilder& b, const char* op, std::initializer_list<Value> inputs,
            const std::string& name) {
  return b.op(op, inputs, {}, {.name = name});
}

WhileTest is_low(GraphBuilder& b, Value x, std::vector<Value> carried, const std::string& suffix) {
  const Value low = b.op("ReduceMin", {x}, {{"keepdims", int64_t{0}}}, {.name = "low" + suffix});
  return {named(b, "Less", {low, b.scalar(2.0f)}, "is_low" + suffix), std::move(carried)};
}

std::vector<Value> squash(GraphBuilder& b, Value x, const std::string& suffix) {
  const Value grown = named(b, "Mul", {x, b.scalar(0.5f)}, "grow" + suffix);
  return {named(b, "Tanh", {named(b, "Sin", {grown}, "turn" + suffix)}, "squash" + suffix)};
}

// Ten rounds of two nodes in the test and three in the body.
void spin(GraphBuilder& b) {
  const auto results = b.while_loop(
      {.name = "spin", .initial = {b.input("x", kEight)}, .trip_limit = b.scalar(int64_t{10})},
      [&](Value, ValueSpan v) { return is_low(b, v[0], {v[0]}, ""); },
      [&](Value, ValueSpan v) { return squash(b, v[0], ""); });
  b.output("y", results[0]);
}

// Three rounds, in each a branch, and in that a loop of two.
void nested(GraphBuilder& b) {
  const auto results = b.while_loop(
      {.name = "outer", .initial = {b.input("x", kEight)}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan v) { return is_low(b, v[0], {v[0]}, "_outer"); },
      [&](Value, ValueSpan v) {
        const Value sum = b.op("ReduceSum", {v[0]}, {{"keepdims", int64_t{0}}}, {.name = "sum"});
        const Value choice = named(b, "Greater", {sum, b.scalar(-1e30f)}, "choice");
        const auto inner = [&] {
          return std::vector<Value>{b.while_loop(
              {.name = "inner", .initial = {v[0]}, .trip_limit = b.scalar(int64_t{2})},
              [&](Value, ValueSpan w) { return is_low(b, w[0], {w[0]}, "_inner"); },
              [&](Value, ValueSpan w) { return squash(b, w[0], "_inner"); })[0]};
        };
        const auto other = [&] { return squash(b, v[0], "_other"); };
        return std::vector<Value>{b.case_of({.name = "pick", .selector = choice},
                                            std::vector<CaseBody>{other, inner})[0]};
      });
  b.output("y", results[0]);
}

// Two chains of four that part and meet.
void straight(GraphBuilder& b) {
  const Value x = b.input("x", kEight);
  std::vector<Value> ends;
  for (const std::string side : {"left", "right"}) {
    Value at = x;
    const char* const op = side == "left" ? "Tanh" : "Sin";
    for (int i = 0; i < 4; ++i) at = named(b, op, {at}, side + std::to_string(i));
    ends.push_back(at);
  }
  b.output("y", named(b, "Add", {ends[0], ends[1]}, "join"));
}

class CudaLocateFaultsTest : public CudaSessionFixture {
 protected:
  std::unique_ptr<Session> make(const Build& build, Loops loops, bool locates = true) {
    use_fake();
    return make_or_null(graph_of(build), {.loops = loops, .locates_faults = locates});
  }
  // The error message of a run in which that execution of the node loses the GPU.
  std::string told(const Build& build, Loops loops, const std::string& node, uint64_t execution,
                   int runs_before = 0) {
    auto session = make(build, loops);
    for (int i = 0; i < runs_before; ++i) EXPECT_TRUE(session->run({{"x", ones()}}).is_ok());
    fake_->fault_node(node, execution);
    const Status status = session->run({{"x", ones()}}).status();
    EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << status.to_string();
    session.reset();
    return status.to_string();
  }
};

TEST_P(CudaLocateFaultsTest, InALoopTheNodeIsNamedWithItsIteration) {
  for (const Loops loops : {Loops::kDevice, Loops::kHost}) {
    for (const std::string node : {"low", "is_low", "grow", "turn", "squash"}) {
      for (const int iteration : {0, 1, 6}) {
        const std::string place = "at spin[" + std::to_string(iteration) + "]/" + node + ": ";
        EXPECT_THAT(told(spin, loops, node, static_cast<uint64_t>(iteration) + 1),
                    HasSubstr(place));
      }
    }
  }
}

TEST_P(CudaLocateFaultsTest, SoItIsInLoopsAndBranchesInsideOthers) {
  for (const Loops loops : {Loops::kDevice, Loops::kHost}) {
    EXPECT_THAT(told(nested, loops, "sum", 2), HasSubstr("at outer[1]/sum: "));
    EXPECT_THAT(told(nested, loops, "turn_inner", 4),
                HasSubstr("at outer[1]/pick/then/inner[1]/turn_inner: "));
    EXPECT_THAT(told(nested, loops, "is_low_outer", 3), HasSubstr("at outer[2]/is_low_outer: "));
  }
}

TEST_P(CudaLocateFaultsTest, InStraightWorkOfSeveralStreamsTheNodeIsAmongThoseNamed) {
  for (const std::string node : {"left0", "left3", "right1", "right2", "join"}) {
    for (const int runs_before : {0, 2}) {
      const std::string text = told(straight, Loops::kAuto, node, 1, runs_before);
      EXPECT_THAT(text, HasSubstr(node));
      const size_t others = text.find(" or ");
      const bool is_one_a_stream =
          others == std::string::npos || text.find(" or ", others + 1) == std::string::npos;
      EXPECT_TRUE(is_one_a_stream) << text;
      if (node == "join") {
        EXPECT_THAT(text, HasSubstr("at join: "));
      }
    }
  }
}

TEST_P(CudaLocateFaultsTest, ValuesAndTripCountsStay) {
  for (const Build& build : {Build(spin), Build(nested), Build(straight)}) {
    auto cpu = std::move(*Session::create(library_, graph_of(build), {}));
    const auto expected = cpu->run({{"x", ones()}});
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (const Loops loops : {Loops::kAuto, Loops::kHost}) {
      auto session = make(build, loops);
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto outputs = session->run({{"x", ones()}});
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(check::difference(*expected, *outputs), "");
        for (size_t i = 0; i < session->loop_reports().size(); ++i) {
          EXPECT_EQ(session->loop_reports()[i].iterations, cpu->loop_reports()[i].iterations);
        }
      }
    }
  }
}

TEST_P(CudaLocateFaultsTest, WithoutItTheMessageSaysHowToLearnMore) {
  for (const bool locates : {false, true}) {
    auto session = make(spin, Loops::kDevice, locates);
    fake_->fault_node("turn", 4);
    const std::string text = session->run({{"x", ones()}}).status().to_string();
    const auto is_advice = HasSubstr("a session with locate_faults names the nodes");
    EXPECT_THAT(text, HasSubstr(locates ? "at spin[3]/turn: " : "at spin[3]: "));
    if (locates) {
      EXPECT_THAT(text, Not(is_advice));
    } else {
      EXPECT_THAT(text, is_advice);
      EXPECT_THAT(text, HasSubstr("it runs low, is_low, grow, turn, squash there; "));
    }
    session.reset();
  }
}

TEST_P(CudaLocateFaultsTest, ADeviceThatLeavesNoneIsRefused) {
  use_fake({.can_copy_words = false});
  SessionOptions options;
  options.locate_faults = true;
  options.make_devices = {fake_->maker()};
  const Status status = Session::create(library_, graph_of(spin), options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("faults can't be located"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaLocateFaultsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
