// Claim: requests that fit together share a run, each gets what a run alone would give it, to the
// bit where sums are exact, and a stop or a failure of one is no other's.
#include "runtime/batching/batching_session.h"

#include <future>
#include <limits>
#include <thread>

#include <gmock/gmock.h>

#include "graph/base/random.h"
#include "tests/runtime/batching/gated_model.h"

namespace eddy {
namespace {

using std::chrono::milliseconds;
using testing::Asked;
using testing::GatedModelTest;
using ::testing::HasSubstr;
using Sizes = std::vector<std::pair<size_t, int64_t>>;
constexpr std::chrono::hours kLong{1};

// One that was submitted, and what it was called back with.
struct Submitted {
  Asked asked;
  std::shared_ptr<std::promise<Result<NamedTensors>>> promise;
  std::future<Result<NamedTensors>> outputs;
  BatchHandle handle;
};

class BatchingSessionTest : public GatedModelTest {
 protected:
  static Submitted submit(BatchingSession& session, const Asked& asked,
                          const RunOptions& options = {}) {
    auto promise = std::make_shared<std::promise<Result<NamedTensors>>>();
    auto outputs = promise->get_future();
    BatchHandle handle = session.run_async(
        inputs(asked),
        [promise](Result<NamedTensors> made) { promise->set_value(std::move(made)); }, options);
    return {asked, std::move(promise), std::move(outputs), std::move(handle)};
  }
  static void expect_right(Submitted& one) {
    const Result<NamedTensors> outputs = one.outputs.get();
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_TRUE(is_right(one.asked, *outputs));
    EXPECT_TRUE(one.handle.wait().is_ok());
  }
  static void expect_ends_with(Submitted& one, StatusCode code, const char* message) {
    const Result<NamedTensors> outputs = one.outputs.get();
    EXPECT_EQ(outputs.status().code(), code) << outputs.status().to_string();
    EXPECT_THAT(outputs.status().message(), HasSubstr(message));
    EXPECT_EQ(one.handle.wait().code(), code);
  }

  // A session with one run at a time, which is held up at the gate.
  std::unique_ptr<BatchingSession> make_busy(Batching batching = {}, SessionOptions options = {}) {
    gate_.shut();
    batching.max_batches_in_flight = 1;
    auto session = make_session(batching, options);
    if (session == nullptr) return session;
    first_ = submit(*session, {.first = 100});
    gate_.wait_until_held(1);
    return session;
  }
  // Lets that run through; the next is then at the gate.
  void let_first_through() {
    gate_.let_one_through();
    expect_right(*first_);
    gate_.wait_until_held(1);
  }

  std::optional<Submitted> first_;
};

TEST_F(BatchingSessionTest, WhatComesMeanwhileSharesARun) {
  const auto session = make_busy();
  std::vector<Submitted> all;
  for (int64_t i = 0; i < 5; ++i) {
    all.push_back(submit(
        *session,
        {.num_samples = 1 + i % 3, .first = 10.0f * static_cast<float>(i), .pick = i, .steps = 3}));
  }
  gate_.open();
  expect_right(*first_);
  for (Submitted& one : all) expect_right(one);
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {5, 9}}));
}

TEST_F(BatchingSessionTest, ThreadsThatWaitShareRuns) {
  const auto session = make_session({.max_samples = 8, .wait_limit = kLong});
  ASSERT_NE(session, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> num_right{0};
  for (int64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const Asked asked{.first = static_cast<float>(i), .pick = i, .steps = 2};
      const auto outputs = session->run(inputs(asked));
      num_right += outputs.is_ok() && is_right(asked, *outputs) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, 8);
  EXPECT_EQ(batches(), (Sizes{{8, 8}}));
}

TEST_F(BatchingSessionTest, OneThatIsAloneWaitsNoLongerThanTheLimit) {
  const auto session = make_session({.wait_limit = milliseconds(1)});
  const Asked asked{.first = 7, .pick = 1, .steps = 4};
  for (int i = 0; i < 3; ++i) {
    const auto outputs = session->run(inputs(asked));
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_TRUE(is_right(asked, *outputs));
  }
  Submitted submitted = submit(*session, asked);
  expect_right(submitted);
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {1, 1}, {1, 1}, {1, 1}}));
}

TEST_F(BatchingSessionTest, WhatDoesNotFitRunsApart) {
  const auto session = make_busy({.max_samples = 4});
  std::vector<Submitted> all;
  all.push_back(submit(*session, {.num_samples = 3, .steps = 1}));
  all.push_back(submit(*session, {.num_samples = 2, .steps = 1}));  // no room beside it
  all.push_back(submit(*session, {.num_samples = 5, .steps = 1}));  // more than a batch has
  all.push_back(submit(*session, {.steps = 2}));                    // another number of trips
  all.push_back(submit(*session, {.num_samples = 2, .steps = 1}));  // beside the second: full
  all.push_back(submit(*session, {.steps = 1}));
  gate_.open();
  for (Submitted& one : all) expect_right(one);
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {1, 3}, {2, 4}, {1, 5}, {1, 1}, {1, 1}}));
}

TEST_F(BatchingSessionTest, HigherPrioritiesGoFirstAndTogether) {
  const auto session = make_busy();
  std::vector<Submitted> all;
  all.push_back(submit(*session, {}, {.priority = Priority::kLow}));
  all.push_back(submit(*session, {}, {.priority = Priority::kHigh}));
  all.push_back(submit(*session, {}, {.priority = Priority::kLow}));
  all.push_back(submit(*session, {}, {.priority = Priority::kHigh}));
  all.push_back(submit(*session, {.num_samples = 2}, {.priority = Priority::kHigh}));
  gate_.open();
  for (Submitted& one : all) expect_right(one);
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {3, 4}, {2, 2}}));
}

TEST_F(BatchingSessionTest, OneThatWaitsLeavesItsBatchWhenStopped) {
  const auto session = make_busy();
  std::vector<Submitted> all;
  for (int64_t i = 0; i < 3; ++i) all.push_back(submit(*session, {.pick = i}));
  Submitted late = submit(*session, {}, {.timeout = milliseconds(2)});
  Submitted too_late = submit(*session, {}, {.timeout = milliseconds(0)});
  all[1].handle.cancel();
  expect_ends_with(all[1], StatusCode::kCancelled, "while it waited for its batch");
  expect_ends_with(late, StatusCode::kDeadlineExceeded, "while it waited for its batch");
  expect_ends_with(too_late, StatusCode::kDeadlineExceeded, "while it waited for its batch");
  const auto waited = session->run(inputs({}), {.timeout = milliseconds(2)});
  EXPECT_EQ(waited.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(first_->handle.is_done());
  gate_.open();
  expect_right(all[0]);
  expect_right(all[2]);
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {2, 2}}));
}

TEST_F(BatchingSessionTest, OneWhoseBatchRunsEndsAtOnceAndTheOthersGoOn) {
  const auto session = make_busy();
  Submitted stays = submit(*session, {.first = 5, .pick = 2});
  Submitted leaves = submit(*session, {.first = 6});
  Submitted late = submit(*session, {.first = 6}, {.timeout = milliseconds(500)});
  let_first_through();
  leaves.handle.cancel();
  expect_ends_with(leaves, StatusCode::kCancelled, "while its batch ran");
  expect_ends_with(late, StatusCode::kDeadlineExceeded, "while");
  EXPECT_FALSE(stays.handle.is_done());
  gate_.open();
  expect_right(stays);
}

TEST_F(BatchingSessionTest, ABatchStopsWhenNobodyWantsItAnyMore) {
  const auto session = make_busy();
  Submitted a = submit(*session, {}), b = submit(*session, {});
  let_first_through();
  a.handle.cancel();
  b.handle.cancel();
  expect_ends_with(a, StatusCode::kCancelled, "while its batch ran");
  expect_ends_with(b, StatusCode::kCancelled, "while its batch ran");
  // Its turn comes free though the gate is shut, as does that of one alone.
  Submitted alone = submit(*session, {});
  gate_.wait_until_held(1);
  alone.handle.cancel();
  expect_ends_with(alone, StatusCode::kCancelled, "cancelled");
  Submitted later = submit(*session, {}, {.timeout = milliseconds(2)});
  expect_ends_with(later, StatusCode::kDeadlineExceeded, "deadline");
  gate_.open();
  Submitted last = submit(*session, {.pick = 3});
  expect_right(last);
}

TEST_F(BatchingSessionTest, AFailureIsOfTheRequestWhoseFaultItIs) {
  const auto session = make_busy();
  std::vector<Submitted> all;
  for (int64_t i = 0; i < 4; ++i) all.push_back(submit(*session, {.pick = i == 2 ? 99 : i}));
  gate_.open();
  for (size_t i : {0, 1, 3}) expect_right(all[i]);
  const Result<NamedTensors> failed = all[2].outputs.get();
  EXPECT_EQ(failed.status().to_string(),
            session->session().run(inputs({.pick = 99})).status().to_string());
  EXPECT_THAT(failed.status().to_string(), HasSubstr("look_up"));
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}));
}

TEST_F(BatchingSessionTest, BadInputsAreRefusedAsASessionDoes) {
  const auto session = make_session({.wait_limit = kLong});
  const NamedTensors good = inputs({.num_samples = 2});
  NamedTensors lacks = good, unknown = good, twice = good, wrong_type = good, wrong_size = good;
  lacks.pop_back();
  unknown[0].first = "X";
  twice[1] = twice[0];
  wrong_type[0].second = Tensor::scalar(1.0);
  wrong_size[1].second = Tensor::of<int64_t>({3}, {1, 2, 3});
  for (const NamedTensors& bad : {lacks, unknown, twice, wrong_type, wrong_size}) {
    const Status expected = session->session().run(bad).status();
    const bool is_unknown = bad[0].first == "X";
    EXPECT_EQ(expected.code(), is_unknown ? StatusCode::kNotFound : StatusCode::kInvalidArgument);
    EXPECT_EQ(session->run(bad).status().to_string(), expected.to_string());
  }
  // No samples: a run of its own, as it would be.
  const auto none = session->run(inputs({.num_samples = 0}));
  ASSERT_TRUE(none.is_ok()) << none.status().to_string();
  EXPECT_TRUE(is_right({.num_samples = 0}, *none));
}

TEST_F(BatchingSessionTest, WhatMayWaitIsBounded) {
  const auto session = make_busy({}, {.max_runs_waiting = 2});
  Submitted a = submit(*session, {}), b = submit(*session, {});
  Submitted c = submit(*session, {});
  expect_ends_with(c, StatusCode::kResourceExhausted, "2 runs wait already");
  EXPECT_EQ(session->run(inputs({})).status().code(), StatusCode::kResourceExhausted);
  gate_.open();
  expect_right(a);
  expect_right(b);
}

TEST_F(BatchingSessionTest, TheEndOfASessionWaitsForWhatGathers) {
  for (const bool is_gathering : {false, true}) {
    gate_.open();
    auto session = is_gathering ? make_session({.wait_limit = kLong}) : make_busy();
    std::vector<Submitted> all;
    for (int64_t i = 0; i < 3; ++i) all.push_back(submit(*session, {.pick = i}));
    std::thread opener([&] { gate_.open(); });
    session = nullptr;
    opener.join();
    for (Submitted& one : all) {
      EXPECT_TRUE(one.handle.is_done());
      one.handle.cancel();
      expect_right(one);
    }
  }
}

TEST_F(BatchingSessionTest, CloseAndCancelAllEndEverything) {
  for (const bool is_closing : {false, true}) {
    gate_.shut();
    const auto session = make_session({.max_samples = 32, .wait_limit = kLong});
    first_ = submit(*session, {.num_samples = 32});
    gate_.wait_until_held(1);
    std::vector<Submitted> all;
    for (int64_t i = 0; i < 3; ++i) all.push_back(submit(*session, {.steps = i}));
    is_closing ? session->close() : session->cancel_all();
    for (Submitted& one : all) expect_ends_with(one, StatusCode::kCancelled, "cancelled");
    expect_ends_with(*first_, StatusCode::kCancelled, "cancelled");
    gate_.open();
    Submitted next = submit(*session, {.num_samples = 32});
    if (is_closing) {
      expect_ends_with(next, StatusCode::kCancelled, "the session is closed");
    } else {
      expect_right(next);
    }
  }
}

TEST_F(BatchingSessionTest, ARunningBatchIsCancelledAndNotRepeated) {
  const auto session = make_busy();
  Submitted a = submit(*session, {}), b = submit(*session, {});
  let_first_through();
  session->cancel_all();
  expect_ends_with(a, StatusCode::kCancelled, "cancelled");
  expect_ends_with(b, StatusCode::kCancelled, "cancelled");
  EXPECT_EQ(batches(), (Sizes{{1, 1}, {2, 2}}));
  gate_.open();
}

TEST_F(BatchingSessionTest, CallbacksMayRunAndThrowButNotWaitForThemselves) {
  const auto session = make_session();
  std::promise<Result<NamedTensors>> inner;
  std::promise<Status> own;
  std::promise<void> is_set;
  std::optional<BatchHandle> handle;
  handle = session->run_async(inputs({.pick = 1}), [&](const Result<NamedTensors>&) {
    is_set.get_future().wait();
    own.set_value(handle->wait());
    inner.set_value(session->run(inputs({.pick = 2})));
    throw std::runtime_error("of the caller's");
  });
  is_set.set_value();
  EXPECT_EQ(own.get_future().get().code(), StatusCode::kWouldDeadlock);
  const auto outputs = inner.get_future().get();
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_TRUE(is_right({.pick = 2}, *outputs));
  EXPECT_TRUE(handle->wait().is_ok());
}

TEST_F(BatchingSessionTest, WhatCannotBeBatchedIsRefusedWhenItIsMade) {
  const auto refusal = [&](const Batching& batching, const SessionOptions& options = {}) {
    const auto session = BatchingSession::create(library_, graph(), options, batching);
    return session.is_ok() ? "made" : session.status().to_string();
  };
  EXPECT_EQ(refusal({.dimension = "M"}),
            "invalid argument: no input has a dimension 'M' to batch along; there are: 'N'");
  EXPECT_EQ(refusal({.dimension = "N"}, {.dims = {{"N", 4}}}),
            "invalid argument: dimension 'N' is fixed to 4; leave it open to batch along it");
  EXPECT_THAT(refusal({.dimension = "N", .max_samples = 0}), HasSubstr("max_samples is 0"));
  EXPECT_THAT(refusal({.dimension = "N"}, {.make_device = []() -> Result<std::shared_ptr<Device>> {
                        return internal_error("not asked");
                      }}),
              HasSubstr("leave make_device empty"));
}

}  // namespace
}  // namespace eddy
