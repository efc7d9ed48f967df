// Claim: whatever many clients of one batching session do at once, each request ends once, with its
// own outputs or its own reason.
#include <thread>

#include "graph/base/random.h"
#include "tests/runtime/batching/gated_model.h"

namespace eddy {
namespace {

using testing::Asked;
using testing::GatedModelTest;

class BatchingClientsTest : public GatedModelTest {
 protected:
  struct Tally {
    std::atomic<int> called{0};
    std::atomic<int> submitted{0};
    std::atomic<int> wrong{0};
    std::atomic<int> right{0};
  };

  static bool is_stop(StatusCode code) {
    return code == StatusCode::kCancelled || code == StatusCode::kDeadlineExceeded;
  }
  static void judge(const Asked& asked, bool may_stop, const Result<NamedTensors>& outputs,
                    Tally& tally) {
    const StatusCode code = outputs.status().code();
    const bool has_failed = code == StatusCode::kRunFailed || code == StatusCode::kInvalidArgument;
    const bool is_fine = outputs.is_ok()
                             ? is_right(asked, *outputs)
                             : (asked.pick >= kRows && has_failed) || (may_stop && is_stop(code));
    if (outputs.is_ok()) ++tally.right;
    if (!is_fine) ++tally.wrong;
  }

  static void play(BatchingSession& session, uint64_t seed, int num_requests, bool is_closed_early,
                   Tally& tally) {
    Random random(seed);
    std::vector<BatchHandle> handles;
    for (int i = 0; i < num_requests; ++i) {
      const Asked asked{.num_samples = 1 + static_cast<int64_t>(random.below(3)),
                        .first = static_cast<float>(random.below(1000)),
                        .pick = random.below(32) == 0 ? 99 : static_cast<int64_t>(random.below(8)),
                        .steps = static_cast<int64_t>(random.below(2))};
      RunOptions options;
      const bool has_limit = random.below(8) == 0;
      if (has_limit) options.timeout = std::chrono::microseconds(random.below(2000));
      options.priority = static_cast<Priority>(random.below(8) == 0 ? 2 : 1);
      if (random.below(2) == 0) {
        judge(asked, has_limit || is_closed_early, session.run(inputs(asked), options), tally);
        continue;
      }
      const bool is_cancelled = random.below(4) == 0;
      const bool may_stop = has_limit || is_cancelled || is_closed_early;
      ++tally.submitted;
      handles.push_back(session.run_async(
          inputs(asked),
          [&tally, asked, may_stop](const Result<NamedTensors>& outputs) {
            ++tally.called;
            judge(asked, may_stop, outputs, tally);
          },
          options));
      if (is_cancelled) handles.back().cancel();
      if (random.below(8) == 0) (void)handles.back().wait();
    }
    for (BatchHandle& handle : handles) (void)handle.wait();
  }

  void play_all(Batching batching, bool is_closed_early, uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto session = make_session(batching);
    ASSERT_NE(session, nullptr);
    Tally tally;
    std::vector<std::thread> clients;
    for (uint64_t t = 0; t < 16; ++t) {
      clients.emplace_back([&, t] { play(*session, seed * 100 + t, 300, is_closed_early, tally); });
    }
    if (is_closed_early) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      session->close();
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(tally.called, tally.submitted);
    EXPECT_EQ(tally.wrong, 0);
    if (!is_closed_early) {
      EXPECT_GT(tally.right, 2000);
    }
  }
};

TEST_F(BatchingClientsTest, SixteenClientsWithoutAWaitLimit) {
  play_all({.max_samples = 8}, false, 1);
}

TEST_F(BatchingClientsTest, SixteenClientsThatWaitForEachOther) {
  play_all({.max_samples = 16, .wait_limit = std::chrono::microseconds(100)}, false, 2);
}

TEST_F(BatchingClientsTest, OneRunAtATime) {
  play_all({.max_samples = 64, .max_batches_in_flight = 1}, false, 3);
}

TEST_F(BatchingClientsTest, ClosedInTheMiddle) {
  for (uint64_t seed = 10; seed < 14; ++seed) {
    play_all({.wait_limit = std::chrono::microseconds(seed % 2 * 300)}, true, seed);
  }
}

TEST_F(BatchingClientsTest, SessionsThatEndWhileRequestsGather) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Tally tally;
    auto session = make_session({.wait_limit = std::chrono::microseconds(seed * 10)});
    for (int64_t i = 0; i < 5; ++i) {
      const Asked asked{.pick = i, .steps = i % 2};
      (void)session->run_async(inputs(asked), [&tally, asked](const Result<NamedTensors>& outputs) {
        ++tally.called;
        judge(asked, false, outputs, tally);
      });
    }
    session = nullptr;
    EXPECT_EQ(tally.called, 5);
    EXPECT_EQ(tally.wrong, 0);
  }
}

}  // namespace
}  // namespace eddy
