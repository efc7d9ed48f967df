// Claim: graphs built with the builder run through a session with the values that their meaning
// gives, on the calling thread, on workers and driven by the host alike.
#include "runtime/api/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>

#include "graph/ir/builder.h"

namespace eddy {
namespace {

const ValueType kScalar = tensor_type(ElementType::kFloat, {});

std::unique_ptr<Session> make_session(const Library& library, GraphBuilder& builder,
                                      SessionOptions options = {}) {
  Result<Graph> graph = builder.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph), options);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return std::move(*session);
}

// x := x + 1 while x < limit.
void build_counter(GraphBuilder& b) {
  const Value x = b.input("x", kScalar);
  const Value limit = b.input("limit", kScalar);
  const auto results = b.while_loop(
      {.name = "count", .initial = {x}},
      [&](Value, std::span<const Value> carried) {
        return WhileTest{b.op("Less", {carried[0], limit}), {carried[0]}};
      },
      [&](Value, std::span<const Value> forwarded) {
        return std::vector<Value>{b.op("Add", {forwarded[0], b.scalar(1.0f)})};
      });
  b.output("y", results[0]);
}

class SessionWays : public testing::TestWithParam<Loops> {
 protected:
  SessionOptions options() const {
    SessionOptions result;
    result.loops = GetParam();
    return result;
  }
  Library library_;
};

TEST_P(SessionWays, AWhileCountsUpToItsLimit) {
  GraphBuilder b(library_.ops());
  build_counter(b);
  auto session = make_session(library_, b, options());
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto outputs = session->run({{"x", Tensor::scalar(0.0f)}, {"limit", Tensor::scalar(1000.0f)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], 1000.0f);
    EXPECT_EQ(session->loop_reports()[0].iterations, 1000);
  }
}

// An outer loop of `outer` trips, each of which runs a counter up to `limit`, beside a branch with
// another loop.
void build_nest(GraphBuilder& b) {
  const Value limit = b.input("limit", kScalar);
  const Value outer = b.input("outer", tensor_type(ElementType::kInt64, {}));
  const auto counter = [&](const Value from) {
    return b.while_loop(
        {.initial = {from}},
        [&](Value, std::span<const Value> carried) {
          return WhileTest{b.op("Less", {carried[0], limit}), {carried[0]}};
        },
        [&](Value, std::span<const Value> forwarded) {
          return std::vector<Value>{b.op("Add", {forwarded[0], b.scalar(1.0f)})};
        })[0];
  };
  const auto nest = b.while_loop(
      {.initial = {b.scalar(0.0f)}},
      [&](Value i, std::span<const Value> carried) {
        return WhileTest{b.op("Less", {i, outer}), {carried[0]}};
      },
      [&](Value, std::span<const Value> forwarded) {
        return std::vector<Value>{b.op("Sub", {counter(forwarded[0]), limit})};
      });
  const Value is_long = b.op("Greater", {limit, b.scalar(100.0f)});
  const auto branch = b.if_else(
      is_long, [&] { return std::vector<Value>{counter(b.scalar(0.0f))}; },
      [&] { return std::vector<Value>{b.op("Neg", {limit})}; });
  b.output("y", nest[0]);
  b.output("z", branch[0]);
}

TEST_P(SessionWays, IterationsOfAllLoopsAreCountedOverAllRuns) {
  GraphBuilder b(library_.ops());
  build_nest(b);
  auto session = make_session(library_, b, options());
  EXPECT_EQ(session->num_iterations(), 0u);
  uint64_t expected = 0;
  for (const int limit : {3, 200, 5, 5}) {  // the branch's loop runs in the second only
    const auto outputs = session->run({{"limit", Tensor::scalar(static_cast<float>(limit))},
                                       {"outer", Tensor::scalar(int64_t{7})}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    expected += static_cast<uint64_t>(7 + 7 * limit + (limit > 100 ? limit : 0));
    EXPECT_EQ(session->num_iterations(), expected) << "limit " << limit;
  }
  EXPECT_TRUE(session->operator_times().empty()) << "none is timed that is not asked for";
}

TEST_P(SessionWays, IterationsOfAStoppedRunCount) {
  GraphBuilder b(library_.ops());
  build_counter(b);
  auto session = make_session(library_, b, options());
  const float forever = std::numeric_limits<float>::infinity();
  const RunOptions until{.timeout = std::chrono::milliseconds(20)};
  const auto outputs =
      session->run({{"x", Tensor::scalar(0.0f)}, {"limit", Tensor::scalar(forever)}}, until);
  ASSERT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
  const uint64_t counted = session->num_iterations();
  EXPECT_GT(counted, 0u);
  ASSERT_TRUE(
      session->run({{"x", Tensor::scalar(0.0f)}, {"limit", Tensor::scalar(10.0f)}}).is_ok());
  EXPECT_EQ(session->num_iterations(), counted + 10);
}

TEST_P(SessionWays, OperatorsAreCountedAndTimedWhereThatIsAskedFor) {
  GraphBuilder b(library_.ops());
  build_nest(b);
  SessionOptions timed = options();
  timed.times_operators = true;
  auto session = make_session(library_, b, timed);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        session->run({{"limit", Tensor::scalar(4.0f)}, {"outer", Tensor::scalar(int64_t{3})}})
            .is_ok());
  }
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  std::map<std::string, uint64_t> calls;
  uint64_t time_ns = 0;
  for (const OperatorTime& each : session->operator_times()) {
    calls[each.name] = each.num_calls;
    EXPECT_EQ(each.num_calls > 0, each.time_ns > 0) << each.name;
    time_ns += each.time_ns;
  }
  EXPECT_EQ(calls["Add"], 2u * 3 * 4);
  EXPECT_EQ(calls["Sub"], 2u * 3);
  EXPECT_EQ(calls["Neg"], 2u);
  EXPECT_EQ(calls["Greater"], 2u);
  EXPECT_EQ(calls["Less"], 2u * (4 + 3 * 5));
  const auto num_threads = static_cast<uint64_t>(session->num_workers() + 1);
  EXPECT_LE(time_ns, static_cast<uint64_t>(elapsed.count()) * num_threads);
}

TEST_P(SessionWays, ACallWritesIntoTheCallersMemory) {
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Add", {b.input("x", kScalar), b.scalar(1.0f)}));
  auto session = make_session(library_, b, options());
  auto call = session->prepare();
  ASSERT_TRUE(call.is_ok());
  float x = 1;
  float y = 0;
  ASSERT_TRUE((*call)->bind_input(0, {&x, nullptr, 0, ElementType::kFloat}).is_ok());
  ASSERT_TRUE((*call)->bind_output(0, {&y, nullptr, 0, ElementType::kFloat}).is_ok());
  for (int i = 0; i < 5; ++i) {
    x = static_cast<float>(i);
    ASSERT_TRUE((*call)->run().is_ok());
    EXPECT_EQ(y, x + 1);
  }
}

// Whether an output can be made where it is bound is found out once, until anything is bound anew.
TEST_P(SessionWays, WhatIsBoundAnewMayMeetAnOutputOrNot) {
  constexpr int64_t kCount = 64;
  GraphBuilder b(library_.ops());
  b.output("y",
           b.op("Add", {b.input("x", tensor_type(ElementType::kFloat, {kCount})), b.scalar(1.0f)}));
  auto session = make_session(library_, b, options());
  auto call = session->prepare();
  ASSERT_TRUE(call.is_ok());
  std::vector<float> apart(kCount), both(kCount + 1);
  const auto view = [&](float* data) { return TensorView{data, &kCount, 1, ElementType::kFloat}; };
  ASSERT_TRUE((*call)->bind_output(0, view(&both[1])).is_ok());
  for (int i = 0; i < 6; ++i) {
    const bool meets = i % 3 == 2;
    float* const x = meets ? both.data() : apart.data();
    if (i % 3 != 1) {
      ASSERT_TRUE((*call)->bind_input(0, view(x)).is_ok());
    }
    std::vector<float> expected(kCount);
    for (int64_t e = 0; e < kCount; ++e) {
      x[e] = static_cast<float>(100 * i + e);
      expected[static_cast<size_t>(e)] = x[e] + 1;
    }
    ASSERT_TRUE((*call)->run().is_ok());
    EXPECT_EQ(std::vector<float>(both.begin() + 1, both.end()), expected) << "run " << i;
    EXPECT_EQ((*call)->copied_bytes(), meets ? kCount * sizeof(float) : 0u) << "run " << i;
  }
}

TEST_P(SessionWays, ARunByPlacesGivesTheOutputsThatAreWanted) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kScalar), y = b.input("y", kScalar);
  b.output("difference", b.op("Sub", {x, y}));
  b.output("sum", b.op("Add", {x, y}));
  auto session = make_session(library_, b, options());
  const Tensor two = Tensor::scalar(2.0f), seven = Tensor::scalar(7.0f);
  EXPECT_EQ(*session->find_input("y"), 1u);
  const Session::Given given[] = {{1, &two}, {0, &seven}};
  const size_t wanted[] = {1, 0, 1};
  Tensor made[3];
  const Status status = session->run_at(given, wanted, made);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  std::vector<float> numbers;
  for (const Tensor& each : made) numbers.push_back(each.values<float>()[0]);
  EXPECT_EQ(numbers, (std::vector<float>{9, 5, 9}));
}

TEST_P(SessionWays, PlacesThatAreWrongAreNamed) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kScalar), y = b.input("y", kScalar);
  b.output("sum", b.op("Add", {x, y}));
  auto session = make_session(library_, b, options());
  const Tensor two = Tensor::scalar(2.0f), whole = Tensor::scalar<int64_t>(2);
  const auto said = [&](std::vector<Session::Given> given, std::vector<size_t> wanted) {
    std::vector<Tensor> made(wanted.size());
    return session->run_at(given, wanted, made).message();
  };
  EXPECT_EQ(said({{0, &two}, {2, &two}}, {0}), "there is no input 2; the graph has 2");
  EXPECT_EQ(said({{0, &two}, {1, &two}}, {1}), "there is no output 1; the graph has 1");
  EXPECT_EQ(said({{0, &two}, {0, &two}}, {0}), "input 'x' is given twice; leave one out");
  EXPECT_EQ(said({{0, &two}}, {0}), "input 'y' (float[]) is missing");
  EXPECT_EQ(said({{0, &two}, {1, &whole}}, {0}),
            "input 'y' must be float[], but int64[] was given");
  EXPECT_EQ(said({{0, &two}, {1, &two}}, {0}), "");
}

TEST_P(SessionWays, AnEndlessLoopIsCancelledByItsDeadline) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kScalar);
  b.output("y", b.while_loop(
                    {.initial = {x}},
                    [&](Value, std::span<const Value> carried) {
                      return WhileTest{b.op("Less", {carried[0], b.scalar(2.0f)}), {carried[0]}};
                    },
                    [&](Value, std::span<const Value> forwarded) {
                      return std::vector<Value>{b.op("Mul", {forwarded[0], b.scalar(1.0f)})};
                    })[0]);
  auto session = make_session(library_, b, options());
  RunOptions run_options;
  run_options.timeout = std::chrono::milliseconds(20);
  const auto outputs = session->run({{"x", Tensor::scalar(1.0f)}}, run_options);
  EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(All, SessionWays, testing::Values(Loops::kDevice, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kDevice ? "DeviceDriven" : "HostDriven";
                         });

}  // namespace
}  // namespace eddy
