// Claim: addresses that come back are recorded once and launched; what more take turns than are
// kept is issued and nothing is recorded anew; addresses that have long not been seen make room for
// others; a capture that refuses is asked once, its reason is told, and
// what it has recorded before, some of it perhaps still running, is kept and launched. Nothing is
// prepared but what may move. A thread that may not wait records nothing, and what it was refused
// is gone on with from there.
#include "runtime/execute/host/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/device/no_waiting.h"

namespace eddy {
namespace {

using Kind = SegmentStep::Kind;

// Work on one address, which the test chooses.
class OneWork : public RecordableWork {
 public:
  bool prepare() override {
    ++num_prepared;
    return !waits_to_prepare || !NoWaiting::refuses();
  }
  bool may_move() const override { return !is_still; }
  void reach() override { ++num_reached; }
  bool is_recordable() const override { return is_recorded; }
  void add_addresses(std::vector<const void*>& addresses) const override {
    addresses.push_back(reinterpret_cast<const void*>(address));
  }
  bool enqueue(void*, bool is_recorded) override {
    ++num_enqueued;
    num_recorded += is_recorded ? 1 : 0;
    return !waits_to_enqueue || !NoWaiting::refuses();
  }
  bool tell_error() override { return false; }
  void forget_error() override {}

  uintptr_t address = 0;
  bool is_still = false;
  bool is_recorded = true;
  bool waits_to_prepare = false;
  bool waits_to_enqueue = false;
  int num_prepared = 0;
  int num_reached = 0;
  int num_enqueued = 0;
  int num_recorded = 0;
};

class CountingCapture : public GraphCapture {
 public:
  Status begin() override { return Status::ok(); }
  Result<void*> stream(uint32_t) override { return static_cast<void*>(this); }
  Result<uint32_t> record(uint32_t) override { return 0u; }
  Status wait(uint32_t, uint32_t) override { return Status::ok(); }
  Status copy(void*, const void*, size_t) override { return Status::ok(); }
  Status copy_all(std::span<const MemoryCopy>) override { return Status::ok(); }
  Status copy_now(void*, void*, const void*, size_t) override { return Status::ok(); }
  Result<std::unique_ptr<CapturedGraph>> finish() override {
    ++num_asked;
    if (!refusal.is_ok()) return refusal;
    return std::unique_ptr<CapturedGraph>(std::make_unique<Counted>(*this));
  }
  void abandon() override {}
  Status start_counter(const LoopWords&) override { return Status::ok(); }
  Status advance_counter(const LoopWords&) override { return Status::ok(); }
  Status begin_while(const LoopTest&) override { return Status::ok(); }
  Result<uint32_t> count_launches() override { return 0u; }
  Status begin_again() override { return Status::ok(); }
  Status end_while() override { return Status::ok(); }
  Status begin_case(const CaseChoice&, uint32_t) override { return Status::ok(); }
  Status begin_branch() override { return Status::ok(); }
  Status end_case() override { return Status::ok(); }

  Status refusal;
  int num_asked = 0;
  int num_alive = 0;
  int num_launches = 0;

 private:
  struct Counted : CapturedGraph {
    explicit Counted(CountingCapture& of) : owner(of) { ++owner.num_alive; }
    ~Counted() override { --owner.num_alive; }
    Status launch(void*) override {
      ++owner.num_launches;
      return Status::ok();
    }
    CountingCapture& owner;
  };
};

class SegmentTest : public ::testing::Test {
 protected:
  SegmentTest()
      : segment_({{.kind = Kind::kWork, .work = &work_}}, 1,
                 {&capture_, [this](const Status& why) { refusals_.push_back(why.to_string()); }}) {
  }
  // Whether it was launched as one.
  bool run(uintptr_t address) {
    work_.address = address;
    Status why;
    EXPECT_TRUE(segment_.run(nullptr, why)) << why.to_string();
    return segment_.num_issued() == 0;
  }

  static constexpr uint64_t kMost = Segment::kMostRecordings;
  static constexpr uint64_t kStale = Segment::kStaleAfter;
  OneWork work_;
  CountingCapture capture_;
  std::vector<std::string> refusals_;
  Segment segment_;
};

TEST_F(SegmentTest, AddressesThatComeBackAreRecordedOnce) {
  EXPECT_FALSE(run(1));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(run(1));
  EXPECT_EQ(capture_.num_asked, 1);
  EXPECT_EQ(capture_.num_launches, 5);
  EXPECT_EQ(work_.num_enqueued, 2) << "issued, and recorded";
  EXPECT_EQ(work_.num_recorded, 1) << "it keeps the scratch memory of the recorded one alone";
}

TEST_F(SegmentTest, MoreThanAreKeptTakeTurnsWithoutBeingRecordedAnew) {
  for (uintptr_t address = 1; address <= kMost + 1; ++address) {
    run(address);
    EXPECT_EQ(run(address), address <= kMost);
  }
  uint64_t num_issued = 0;
  constexpr uint64_t kTurns = 500;
  for (uint64_t i = 0; i < kTurns * (kMost + 1); ++i)
    num_issued += run(i % (kMost + 1) + 1) ? 0 : 1;
  EXPECT_EQ(num_issued, kTurns);
  EXPECT_EQ(capture_.num_asked, static_cast<int>(kMost));
}

TEST_F(SegmentTest, WhatHasLongNotBeenSeenMakesRoom) {
  for (uintptr_t address = 1; address <= kMost; ++address) {
    run(address);
    EXPECT_TRUE(run(address));
  }
  // The first goes; the others are of use all the time.
  uint64_t num_runs = 0;
  while (num_runs < kStale) {
    for (uintptr_t address = 2; address <= kMost; ++address, ++num_runs) run(address);
  }
  EXPECT_FALSE(run(100));
  EXPECT_TRUE(run(100)) << "in the place of the first";
  EXPECT_EQ(capture_.num_asked, static_cast<int>(kMost) + 1);
  EXPECT_EQ(capture_.num_alive, static_cast<int>(kMost));
  for (uintptr_t address = 2; address <= kMost; ++address) EXPECT_TRUE(run(address));
  EXPECT_FALSE(run(1));
  EXPECT_FALSE(run(1)) << "all the others are of use";
  EXPECT_EQ(capture_.num_alive, static_cast<int>(kMost));
}

TEST_F(SegmentTest, OnlyWhatMayMoveIsPreparedAndEachStreamEndsAtItsLastWork) {
  std::array<OneWork, 5> works;  // on streams 0, 0, 0, 1, 1; the first and the last may move
  for (size_t i = 1; i < 4; ++i) works[i].is_still = true;
  std::vector<SegmentStep> steps;
  for (uint32_t i = 0; i < works.size(); ++i) {
    steps.push_back({.kind = Kind::kWork, .stream = i < 3 ? 0u : 1u, .work = &works[i]});
  }
  Segment segment(steps, 5, {&capture_, {}});
  Status why;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(segment.run(nullptr, why)) << why.to_string();
  EXPECT_EQ(capture_.num_launches, 9);
  for (size_t i = 0; i < works.size(); ++i) {
    EXPECT_EQ(works[i].num_prepared, works[i].is_still ? 0 : 10) << i;
    EXPECT_EQ(works[i].num_enqueued, 2) << "issued, and recorded";
  }
  EXPECT_EQ(works[2].num_reached, 10);
  EXPECT_EQ(works[1].num_reached + works[3].num_reached, 0);
}

TEST_F(SegmentTest, AThreadThatMayNotWaitRecordsNothing) {
  EXPECT_FALSE(run(1));
  Status why;
  {
    const NoWaiting scope;
    EXPECT_FALSE(segment_.run(nullptr, why));
    EXPECT_TRUE(scope.has_refused());
  }
  EXPECT_EQ(capture_.num_asked, 0);
  EXPECT_TRUE(segment_.run(nullptr, why, true)) << why.to_string();
  EXPECT_EQ(capture_.num_asked, 1);
  EXPECT_EQ(work_.num_prepared, 2) << "once a run";
  const NoWaiting scope;
  EXPECT_TRUE(run(1)) << "what is recorded is launched";
  EXPECT_FALSE(scope.has_refused());
}

TEST_F(SegmentTest, WhatWasRefusedIsGoneOnWithFromThere) {
  std::array<OneWork, 4> works;
  works[1].waits_to_prepare = true;
  works[2].waits_to_enqueue = true;
  std::vector<SegmentStep> steps;
  for (OneWork& work : works) steps.push_back({.kind = Kind::kWork, .work = &work});
  Segment segment(steps, 4, {&capture_, {}});
  Status why;
  for (const bool waits_to_prepare : {true, false}) {
    works[1].waits_to_prepare = waits_to_prepare;
    for (OneWork& work : works) work.num_prepared = work.num_enqueued = 0;
    for (OneWork& work : works) work.address += 1;  // nothing is recorded
    {
      const NoWaiting scope;
      EXPECT_FALSE(segment.run(nullptr, why));
      EXPECT_TRUE(scope.has_refused());
    }
    EXPECT_TRUE(segment.run(nullptr, why, true));
    for (size_t i = 0; i < works.size(); ++i) {
      EXPECT_EQ(works[i].num_prepared, i == 1 && waits_to_prepare ? 2 : 1) << i;
      EXPECT_EQ(works[i].num_enqueued, i == 2 && !waits_to_prepare ? 2 : 1) << i;
    }
  }
}

TEST_F(SegmentTest, StillWorkThatCannotBeRecordedIsIssuedEachTime) {
  OneWork still;
  still.is_still = true;
  still.is_recorded = false;
  Segment segment({{.kind = Kind::kWork, .work = &work_}, {.kind = Kind::kWork, .work = &still}}, 2,
                  {&capture_, {}});
  Status why;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(segment.run(nullptr, why)) << why.to_string();
  EXPECT_EQ(capture_.num_asked, 0);
  EXPECT_EQ(still.num_enqueued, 3);
}

TEST_F(SegmentTest, ARecorderThatRefusesIsAskedOnceAndItsReasonIsTold) {
  capture_.refusal = run_failed("cuGraphInstantiate answered no");
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(run(1));
  EXPECT_EQ(capture_.num_asked, 1);
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_THAT(refusals_[0], ::testing::HasSubstr("cuGraphInstantiate answered no"));
}

TEST_F(SegmentTest, WhatWasRecordedBeforeARefusalIsKeptAndLaunched) {
  EXPECT_FALSE(run(1));
  EXPECT_TRUE(run(1));
  capture_.refusal = run_failed("cuGraphInstantiate answered no");
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(run(2));
  EXPECT_EQ(capture_.num_alive, 1) << "its launch may not have ended";
  EXPECT_TRUE(run(1));
  EXPECT_EQ(capture_.num_asked, 2);
  EXPECT_EQ(refusals_.size(), 1u);
}

}  // namespace
}  // namespace eddy
