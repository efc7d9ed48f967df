// Claim: a streamed output's rows come in order while its loop runs, which waits only while as many
// rows wait as the stream takes; the output is what it always is; and however the run ends, its
// stream ends with the same status.
#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;
using testing::WaysTest;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class StreamsTest : public WaysTest {
 protected:
  // "rows" are 0, 1, 2 … up to n; "twice" the doubled ones; "y" the last; "sum" is no row.
  std::unique_ptr<Session> make() {
    GraphBuilder b(library_.ops());
    const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
    const auto out = b.while_loop(
        {.name = "count", .initial = {b.scalar(0.0f)}, .trip_limit = n, .num_scan_outputs = 2},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)}), f[0],
                                    b.op("Add", {f[0], f[0]})};
        });
    b.output("y", out[0]);
    b.output("rows", out[1]);
    b.output("twice", out[2]);
    b.output("sum", b.op("ReduceSum", {out[1]}, {{"keepdims", 0}}));
    return make_session(b);
  }
  static NamedTensors trips(int64_t n) { return {{"n", Tensor::scalar(n)}}; }
  static std::shared_ptr<OutputStream> stream(size_t max_waiting,
                                              std::function<void(Tensor)> on_value = {},
                                              RowCalls calls = RowCalls::kOnCallbackThread) {
    return std::make_shared<OutputStream>(max_waiting, std::move(on_value), nullptr, calls);
  }
  static std::vector<float> take_all(OutputStream& stream) {
    std::vector<float> values;
    while (const std::optional<Tensor> row = stream.next()) {
      values.push_back(row->values<float>()[0]);
    }
    return values;
  }
  static std::vector<float> counted(int n, float step) {
    std::vector<float> values;
    for (int i = 0; i < n; ++i) values.push_back(step * static_cast<float>(i));
    return values;
  }
};

TEST_P(StreamsTest, RowsComeInOrderAndTheOutputsAreWhatTheyAlwaysAre) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  for (const size_t max_waiting : {1, 3, 1000}) {
    const auto rows = stream(max_waiting), twice = stream(max_waiting);
    Result<NamedTensors> outputs = NamedTensors();
    RunHandle handle =
        session->run_async(trips(200), [&](Result<NamedTensors> o) { outputs = std::move(o); },
                           {.streams = {{"rows", rows}, {"twice", twice}}});
    std::vector<float> doubled;
    std::thread other([&] { doubled = take_all(*twice); });
    EXPECT_EQ(take_all(*rows), counted(200, 1));
    other.join();
    EXPECT_EQ(doubled, counted(200, 2));
    EXPECT_TRUE(handle.wait().is_ok());
    EXPECT_TRUE(rows->status().is_ok());
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(values<float>((*outputs)[1].second), counted(200, 1));
    EXPECT_EQ(values<float>((*outputs)[2].second), counted(200, 2));
  }
  EXPECT_TRUE(session->run(trips(5)).is_ok()) << "without streams";
}

TEST_P(StreamsTest, TheLoopWaitsWhileTheStreamIsFullAndNothingElseDoes) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  std::vector<std::shared_ptr<OutputStream>> full;
  std::vector<RunHandle> handles;
  for (int i = 0; i < 8; ++i) {  // more than there are threads
    full.push_back(stream(2));
    handles.push_back(session->run_async(trips(50), {}, {.streams = {{"rows", full.back()}}}));
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(session->run(trips(10)).is_ok());
  for (RunHandle& handle : handles) EXPECT_FALSE(handle.is_done());
  for (const auto& each : full) EXPECT_EQ(take_all(*each), counted(50, 1));
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
}

TEST_P(StreamsTest, AFunctionHasEachRowBeforeTheRunsOwnCallback) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  std::vector<float> seen;
  size_t seen_at_end = 0;
  const auto note = [&seen](const Tensor& row) { seen.push_back(row.values<float>()[0]); };
  RunHandle handle =
      session->run_async(trips(40), [&](const Result<NamedTensors>&) { seen_at_end = seen.size(); },
                         {.streams = {{"rows", stream(4, note)}}});
  EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_EQ(seen, counted(40, 1));
  EXPECT_EQ(seen_at_end, 40u);
  seen.clear();
  EXPECT_TRUE(session->run(trips(30), {.streams = {{"rows", stream(1, note)}}}).is_ok());
  EXPECT_EQ(seen, counted(30, 1)) << "a run that is waited for has given all of them";
}

// Row k is there before the loop begins iteration k + 2: nothing is between them but the call. (The
// next one may overlap it.)
TEST_P(StreamsTest, AFunctionInTheLoopHasEachRowAtOnce) {
  std::atomic<int> begun = 0;
  const auto count = [&](std::span<const TensorView>) -> Result<int64_t> {
    ++begun;
    return 1;
  };
  ASSERT_TRUE(library_.add_host_function("count", count).is_ok());
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
  const auto out = b.while_loop(
      {.name = "count", .initial = {b.scalar(0.0f)}, .trip_limit = n, .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        const Value counted =
            b.op("HostPredicate", {c[0]}, {{"name", std::string("count")}}, {.domain = "eddy"});
        return WhileTest{counted, {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)}), f[0]};
      });
  b.output("rows", out[1]);
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  std::vector<float> seen;
  int latest = 0;
  size_t seen_at_end = 0;
  const auto note = [&](const Tensor& row) {
    latest = std::max(latest, begun - static_cast<int>(seen.size()));
    seen.push_back(row.values<float>()[0]);
  };
  for (const bool waits : {true, false}) {
    begun = 0;
    seen.clear();
    const RunOptions options = {.streams = {{"rows", stream(1, note, RowCalls::kInLoop)}}};
    if (waits) {
      EXPECT_TRUE(session->run(trips(30), options).is_ok());
    } else {
      const auto end = [&](const Result<NamedTensors>&) { seen_at_end = seen.size(); };
      EXPECT_TRUE(session->run_async(trips(30), end, options).wait().is_ok());
      EXPECT_EQ(seen_at_end, 30u);
    }
    EXPECT_EQ(seen, counted(30, 1));
    EXPECT_LE(latest, 2);
  }
}

TEST_P(StreamsTest, AFunctionInTheLoopMayThrowCloseCancelAndSubmitButNotWait) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  const auto throwing = stream(
      1, [](const Tensor&) { throw std::runtime_error("no more"); }, RowCalls::kInLoop);
  EXPECT_TRUE(session->run(trips(100), {.streams = {{"rows", throwing}}}).is_ok());

  int calls = 0;
  std::shared_ptr<OutputStream> closed;
  closed = stream(
      1,
      [&](const Tensor&) {
        if (++calls == 3) closed->close();
      },
      RowCalls::kInLoop);
  EXPECT_TRUE(session->run(trips(100), {.streams = {{"rows", closed}}}).is_ok());
  EXPECT_EQ(calls, 3);
  closed.reset();

  std::atomic<bool> is_there = false;
  std::optional<RunHandle> first, second;
  std::string waited;
  const auto acts = stream(
      1,
      [&](const Tensor& row) {
        while (!is_there) std::this_thread::yield();
        if (row.values<float>()[0] != 5) return;
        waited = session->run(trips(1)).status().to_string();
        second = session->run_async(trips(7), {});
        first->cancel();
      },
      RowCalls::kInLoop);
  first = session->run_async(trips(1'000'000), {}, {.streams = {{"rows", acts}}});
  is_there = true;
  EXPECT_EQ(first->wait().code(), StatusCode::kCancelled);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->wait().is_ok());
  EXPECT_THAT(waited, HasSubstr("may not wait for a run of its own session"));
}

TEST_P(StreamsTest, AStreamThatIsClosedOrWhoseFunctionThrowsLetsTheLoopGoOn) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  const auto closed = stream(1);
  RunHandle handle = session->run_async(trips(100), {}, {.streams = {{"rows", closed}}});
  EXPECT_EQ(closed->next()->values<float>()[0], 0);
  closed->close();
  EXPECT_TRUE(handle.wait().is_ok());
  const auto throwing = stream(1, [](const Tensor&) { throw std::runtime_error("no more"); });
  EXPECT_TRUE(session->run(trips(100), {.streams = {{"rows", throwing}}}).is_ok());
}

TEST_P(StreamsTest, AStopReachesALoopThatWaitsForRoomAndTheStreamEndsWithIt) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  for (int i = 0; i < 20; ++i) {
    const auto full = stream(1), other = stream(1 + static_cast<size_t>(i) % 3);
    RunHandle handle =
        session->run_async(trips(1'000'000), {}, {.streams = {{"twice", other}, {"rows", full}}});
    if (i % 2 == 0) {
      EXPECT_TRUE(full->next().has_value());
    }
    handle.cancel();
    EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
    while (full->next()) continue;
    EXPECT_EQ(full->status().code(), StatusCode::kCancelled);
    EXPECT_EQ(other->status().code(), StatusCode::kCancelled);
  }
  const auto late = stream(1);
  EXPECT_EQ(session
                ->run(trips(1'000'000),
                      {.timeout = std::chrono::milliseconds(5), .streams = {{"rows", late}}})
                .status()
                .code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late->status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(StreamsTest, AStreamInUseIsRefusedToASecondRunAndGoesOnForTheFirst) {
  const auto session = make();
  const auto rows = stream(1);
  RunHandle first = session->run_async(trips(5), {}, {.streams = {{"rows", rows}}});
  RunHandle second = session->run_async(trips(5), {}, {.streams = {{"rows", rows}}});
  EXPECT_THAT(second.wait().to_string(), HasSubstr("takes rows of another output or run"));
  EXPECT_EQ(take_all(*rows), counted(5, 1));
  EXPECT_TRUE(first.wait().is_ok()) << first.wait().to_string();
  RunHandle both = session->run_async(trips(5), {}, {.streams = {{"rows", rows}, {"twice", rows}}});
  EXPECT_THAT(both.wait().to_string(), HasSubstr("takes rows of another output or run"));
  EXPECT_EQ(take_all(*rows), counted(0, 1));
}

TEST_P(StreamsTest, TheNextRowMayBeWaitedForSoLongAndNewsIsTold) {
  const auto session = make();
  std::atomic<int> changes = 0;
  const auto rows =
      std::make_shared<OutputStream>(1, std::function<void(Tensor)>(), [&] { ++changes; });
  bool is_over = true;
  EXPECT_FALSE(rows->next_for(std::chrono::milliseconds(1), is_over).has_value());
  EXPECT_FALSE(is_over) << "no run has begun";
  RunHandle run = session->run_async(trips(3), {}, {.streams = {{"rows", rows}}});
  std::vector<float> seen;
  while (!is_over) {
    if (const auto row = rows->next_for(std::chrono::seconds(1), is_over)) {
      seen.push_back(row->values<float>()[0]);
    }
  }
  EXPECT_EQ(seen, counted(3, 1));
  EXPECT_TRUE(run.wait().is_ok());
  EXPECT_EQ(changes, 4) << "three rows and an end";
}

TEST_P(StreamsTest, WhatCannotBeStreamedIsRefusedAndItsStreamEnds) {
  auto session = make();
  ASSERT_NE(session, nullptr);
  const auto refused = [&](const char* output) {
    const auto given = stream(1);
    const Status status = session->run(trips(3), {.streams = {{output, given}}}).status();
    EXPECT_FALSE(given->next().has_value());
    EXPECT_EQ(given->status().to_string(), status.to_string());
    EXPECT_EQ(session->run_async(trips(3), {}, {.streams = {{output, given}}}).wait().to_string(),
              status.to_string());
    EXPECT_FALSE(given->next().has_value());
    return status.to_string();
  };
  EXPECT_THAT(refused("nothing"), HasSubstr("there is no output 'nothing'"));
  EXPECT_THAT(refused("y"), HasSubstr("'y' cannot be streamed"));
  EXPECT_THAT(refused("sum"), HasSubstr("only rows that a loop of the graph itself stacks"));
  EXPECT_THAT(refused("sum"), HasSubstr("of this graph: 'rows', 'twice'"));
  const auto given = stream(1);
  EXPECT_FALSE(session->run({}, {.streams = {{"rows", given}}}).is_ok()) << "an input is missing";
  EXPECT_FALSE(given->next().has_value());
  EXPECT_FALSE(session->run(trips(3), {.streams = {{"rows", nullptr}}}).is_ok());
}

EDDY_IN_ALL_WAYS(StreamsTest);

}  // namespace
}  // namespace eddy
