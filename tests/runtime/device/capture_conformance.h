// What GraphCapture promises (runtime/device/graph_capture.h), on every device that has it:
//
//   INSTANTIATE_TEST_SUITE_P(Cuda, CaptureConformance, testing::Values(make_fake_gpu));
//
// What is captured are copies between words that the host sees, which need no kernel of a test's.
#pragma once

#include "tests/runtime/device/staging_conformance.h"

namespace eddy::testing {

class CaptureConformance : public StagingConformance {
 protected:
  CaptureConformance() {
    std::fill_n(words_, kNumWords, 0);
    const int64_t zeros[kNumWords] = {};
    EXPECT_TRUE(staging_->write(there_.data(), zeros, sizeof(zeros)).is_ok());
  }
  // Captured, in a capture stream: word `to` becomes word `from`.
  Status copy(uint32_t stream, int to, int from) {
    EDDY_ASSIGN_OR_RETURN(void* const native, capture_->stream(stream));
    return capture_->copy_now(native, words_ + to, words_ + from, sizeof(int64_t));
  }
  // The same, by the capture's own copies.
  Status copy(int to, int from) {
    return capture_->copy(words_ + to, words_ + from, sizeof(int64_t));
  }
  Status play(CapturedGraph& graph) {
    return issue(*stream_, [&](void* native) { return graph.launch(native); });
  }
  // Words 16 to 18 are the host's of a loop.
  LoopWords loop_words() const {
    auto* const there = static_cast<int64_t*>(there_.data());
    return {there, there + 1, reinterpret_cast<const uint32_t*>(words_ + 16), words_ + 17};
  }

  static constexpr int kNumWords = 32;
  const BufferRef here_ = *staging_->staging().allocate(kNumWords * sizeof(int64_t));
  const BufferRef there_ = *device_->allocator().allocate(kNumWords * sizeof(int64_t));
  int64_t* const words_ = static_cast<int64_t*>(here_.data());
};

TEST_P(CaptureConformance, WhatIsCapturedRunsAtEachLaunchAndNotBefore) {
  ASSERT_TRUE(capture_->begin().is_ok());
  ASSERT_TRUE(copy(0, 1, 0).is_ok());
  ASSERT_TRUE(copy(2, 1).is_ok());
  const std::unique_ptr<CapturedGraph> graph = *capture_->finish();
  words_[0] = 5;
  settle();
  EXPECT_EQ(words_[2], 0);
  for (const int64_t value : {5, 6, 7}) {
    words_[0] = value;
    ASSERT_TRUE(play(*graph).is_ok());
    EXPECT_EQ(words_[2], value);
  }
}

TEST_P(CaptureConformance, StreamsRunInTheOrderOfTheirEvents) {
  const auto diamond = [&]() -> Status {
    EDDY_RETURN_IF_ERROR(capture_->begin());
    EDDY_RETURN_IF_ERROR(copy(0, 1, 0));
    EDDY_ASSIGN_OR_RETURN(const uint32_t forked, capture_->record(0));
    EDDY_RETURN_IF_ERROR(capture_->wait(1, forked));
    EDDY_RETURN_IF_ERROR(copy(1, 2, 1));
    EDDY_RETURN_IF_ERROR(copy(0, 3, 1));
    EDDY_ASSIGN_OR_RETURN(const uint32_t joined, capture_->record(1));
    EDDY_RETURN_IF_ERROR(capture_->wait(0, joined));
    EDDY_RETURN_IF_ERROR(copy(0, 4, 2));
    return copy(0, 5, 3);
  };
  const Status captured = diamond();
  ASSERT_TRUE(captured.is_ok()) << captured.to_string();
  const std::unique_ptr<CapturedGraph> graph = *capture_->finish();
  for (int64_t round = 1; round <= 20; ++round) {
    words_[0] = round;
    ASSERT_TRUE(play(*graph).is_ok());
    EXPECT_EQ(words_[4], round);
    EXPECT_EQ(words_[5], round);
  }
}

TEST_P(CaptureConformance, UsesAgainstTheRulesAreErrorsAndTheNextCaptureWorks) {
  EXPECT_EQ(capture_->stream(0).status().code(), StatusCode::kInternal) << "it has not begun";
  ASSERT_TRUE(capture_->begin().is_ok());
  EXPECT_EQ(capture_->begin().code(), StatusCode::kInternal) << "it has begun";
  EXPECT_EQ(capture_->stream(3).status().code(), StatusCode::kInternal) << "it waits for nothing";
  EXPECT_EQ(capture_->wait(1, 9).code(), StatusCode::kInternal) << "there is no such event";
  capture_->abandon();
  ASSERT_TRUE(capture_->begin().is_ok());
  ASSERT_TRUE(copy(0, 1, 0).is_ok());
  const std::unique_ptr<CapturedGraph> graph = *capture_->finish();
  words_[0] = 3;
  ASSERT_TRUE(play(*graph).is_ok());
  EXPECT_EQ(words_[1], 3);
}

TEST_P(CaptureConformance, TheDeviceDecidesHowOftenALoopRunsOrRefusesIt) {
  const LoopWords loop = loop_words();
  words_[0] = 3;  // the limit
  words_[1] = 1;  // the predicate
  const auto captured = [&]() -> Status {
    EDDY_RETURN_IF_ERROR(capture_->begin());
    EDDY_RETURN_IF_ERROR(capture_->copy(loop.limit, words_, sizeof(int64_t)));
    EDDY_RETURN_IF_ERROR(capture_->start_counter(loop));
    EDDY_RETURN_IF_ERROR(capture_->begin_while({loop, words_ + 1}));
    EDDY_RETURN_IF_ERROR(capture_->copy(words_ + 2, loop.counter, sizeof(int64_t)));
    EDDY_RETURN_IF_ERROR(capture_->advance_counter(loop));
    return capture_->end_while();
  }();
  EXPECT_EQ(captured.is_ok(), can_decide_loops(*device_)) << captured.to_string();
  if (!captured.is_ok()) return capture_->abandon();
  const std::unique_ptr<CapturedGraph> graph = *capture_->finish();
  for (const int64_t limit : {3, 0, 5}) {
    words_[0] = limit;
    words_[2] = -1;
    ASSERT_TRUE(play(*graph).is_ok());
    EXPECT_EQ(words_[2], limit - 1) << "what the last round has seen";
    EXPECT_EQ(words_[17], limit);
    EXPECT_EQ(words_[18], 1) << "it is over";
  }
  words_[16] = 1;  // stopped
  ASSERT_TRUE(play(*graph).is_ok());
  EXPECT_EQ(words_[17], 0);
}

TEST_P(CaptureConformance, TheDeviceDecidesWhichBranchOfACaseRuns) {
  if (!can_decide_loops(*device_)) GTEST_SKIP() << "it decides nothing";
  CaseChoice choice;
  choice.type = CaseChoice::Type::kInt64;
  choice.selector = words_ + 3;
  choice.num_choices = 3;
  choice.fallback = 1;
  choice.stop = reinterpret_cast<const uint32_t*>(words_ + 16);
  choice.failure = words_ + 17;
  const Status captured = [&]() -> Status {
    EDDY_RETURN_IF_ERROR(capture_->begin());
    EDDY_RETURN_IF_ERROR(capture_->begin_case(choice, 3));
    for (int branch = 0; branch < 3; ++branch) {
      EDDY_RETURN_IF_ERROR(capture_->begin_branch());
      EDDY_RETURN_IF_ERROR(copy(4, branch));
    }
    return capture_->end_case();
  }();
  ASSERT_TRUE(captured.is_ok()) << captured.to_string();
  const std::unique_ptr<CapturedGraph> graph = *capture_->finish();
  for (int64_t branch = 0; branch < 3; ++branch) words_[branch] = 10 * branch;
  for (const int64_t selector : {2, 0, 1, 7}) {
    words_[3] = selector;
    ASSERT_TRUE(play(*graph).is_ok());
    EXPECT_EQ(words_[4], selector == 7 ? 10 : 10 * selector);
  }
}

}  // namespace eddy::testing
