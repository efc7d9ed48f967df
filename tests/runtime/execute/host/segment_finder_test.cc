// Claim: a segment is as long as it may be and no longer: it holds straight work and books, goes
// over jumps once, takes in strands that rest again inside, and ends before decisions, before what
// the host must see, before other devices' strands and before waits for what is not recorded
// inside.
#include "runtime/execute/host/segment_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/runtime/device/strand_builder.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using Kind = SegmentStep::Kind;

class NoWork : public RecordableWork {
 public:
  bool prepare() override { return true; }
  bool may_move() const override { return true; }
  void reach() override {}
  bool is_recordable() const override { return true; }
  void add_addresses(std::vector<const void*>&) const override {}
  bool enqueue(void*, bool) override { return true; }
  bool tell_error() override { return false; }
  void forget_error() override {}
};

// Commands with what a runner may make of them.
class Commands : public testing::StrandBuilder {
 public:
  void work() { note({CallNote::Kind::kRecordable, &works_.emplace_back()}); }
  void books() { note({CallNote::Kind::kBooks, nullptr}); }
  void nothing_to_do() { note({CallNote::Kind::kNothing, nullptr}); }
  void host_work() { note({}); }
  void finish() {
    StrandBuilder::finish();
    for (const StrandCode::Command& command : code().commands) {
      const bool is_known = command.op == StrandCode::Op::kCall && command.operand < notes_.size();
      bindings().notes.push_back(is_known ? notes_[command.operand] : CallNote());
    }
  }

  std::optional<FoundSegment> find(uint32_t at, uint32_t strand = 0) {
    const std::vector<uint32_t> num_waits = count_waits(code());
    const SegmentSource source{code(), num_waits, bindings(),
                               [this](uint32_t other) { return other != other_devices_strand_; }};
    return find_segment(source, at, strand);
  }
  static std::vector<Kind> kinds(const FoundSegment& found) {
    std::vector<Kind> kinds;
    for (const SegmentStep& step : found.steps) {
      if (step.kind != Kind::kRound) kinds.push_back(step.kind);
    }
    return kinds;
  }
  StrandCode::Op op_at(uint32_t at) const { return code().commands[at].op; }
  // The number of a call's command.
  uint32_t place_of(uint32_t call) const {
    uint32_t at = 0;
    while (code().commands[at].op != StrandCode::Op::kCall || code().commands[at].operand != call) {
      ++at;
    }
    return at;
  }
  void put_on_other_device(uint32_t strand) { other_devices_strand_ = strand; }

 private:
  void note(const CallNote& note) {
    const uint32_t call = launch([](void*) { return true; }, nullptr);
    notes_.resize(call + 1);
    notes_.back() = note;
  }

  std::deque<NoWork> works_;
  std::vector<CallNote> notes_;
  uint32_t other_devices_strand_ = UINT32_MAX;
};

int32_t decide(void*) { return 0; }

TEST(SegmentFinder, StraightWorkAndBooksGoTogetherUpToADecision) {
  Commands c;
  c.begin_while();
  c.work();
  c.books();
  c.work();
  c.test_while(decide, nullptr);
  c.end_while();
  c.finish();
  const auto found = c.find(0);
  ASSERT_TRUE(found);
  EXPECT_THAT(Commands::kinds(*found), ElementsAre(Kind::kWork, Kind::kBooks, Kind::kWork));
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kTest);
}

TEST(SegmentFinder, WhatDoesNothingIsLeftOutAndEndsNoSegment) {
  Commands c;
  c.nothing_to_do();
  c.work();
  c.nothing_to_do();
  c.work();
  c.nothing_to_do();
  c.finish();
  const auto found = c.find(0);
  ASSERT_TRUE(found);
  EXPECT_THAT(Commands::kinds(*found), ElementsAre(Kind::kWork, Kind::kWork));
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kEnd);
}

TEST(SegmentFinder, OneWorkIsNoSegment) {
  Commands c;
  c.work();
  c.host_work();
  c.work();
  c.finish();
  EXPECT_FALSE(c.find(0));
  EXPECT_FALSE(c.find(c.place_of(1))) << "the host must see it";
}

TEST(SegmentFinder, ABodyGoesOnOverItsRepetitionWithTheNextTest) {
  Commands c;
  c.begin_while();
  c.work();  // before
  c.test_while(decide, nullptr);
  c.work();  // after
  c.work();
  c.end_while();
  c.finish();
  const auto found = c.find(c.place_of(2));
  ASSERT_TRUE(found);
  EXPECT_THAT(Commands::kinds(*found), ElementsAre(Kind::kWork, Kind::kWork, Kind::kWork));
  EXPECT_EQ(found->next, c.place_of(0) + 1) << "the next round's test";
}

// A fork with one work, beside one of the parent's; `joined`: the parent waits for its end.
void fork_and_join(Commands& c, bool is_joined) {
  const uint32_t end = c.add_event();
  c.work();
  c.begin_fork(1);
  c.work();
  c.record(end);
  c.end_fork();
  c.work();
  if (is_joined) c.wait(end);
  c.work();
  c.finish();
}

TEST(SegmentFinder, ForksThatAreJoinedInsideBecomeLanes) {
  Commands c;
  fork_and_join(c, true);
  const auto found = c.find(0);
  ASSERT_TRUE(found);
  std::vector<uint32_t> streams;
  for (const SegmentStep& step : found->steps) {
    if (step.kind == Kind::kWork) streams.push_back(step.stream);
  }
  EXPECT_THAT(streams, ::testing::UnorderedElementsAre(0, 0, 0, 1));
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kEnd);
}

TEST(SegmentFinder, AForkThatNobodyJoinsIsLeftOut) {
  Commands c;
  fork_and_join(c, false);
  EXPECT_FALSE(c.find(0)) << "before the fork there is one work";
}

TEST(SegmentFinder, AnotherDevicesStrandIsLeftOut) {
  Commands c;
  fork_and_join(c, true);
  c.put_on_other_device(1);
  EXPECT_FALSE(c.find(0));
  EXPECT_FALSE(c.find(c.code().strands[1].first, 1)) << "nothing is recorded of that device";
}

// A round's first work is the host's, so a segment begins behind its begin; then a fork, joined by
// the parent, and waited for by a second fork as well where that is `early`, awake before.
void fork_in_a_round_under_way(Commands& c, bool is_early) {
  const uint32_t middle = c.add_event();
  const uint32_t end = c.add_event();
  const uint32_t early_end = c.add_event();
  if (is_early) {
    c.begin_fork(2);
    c.work();
    c.wait(middle);
    c.work();
    c.record(early_end);
    c.end_fork();
  }
  c.host_work();
  c.work();
  c.begin_fork(1);
  c.work();
  c.record(end);
  c.end_fork();
  c.work();
  c.wait(end);
  c.record(middle);
  if (is_early) c.wait(early_end);
  c.work();
  c.finish();
}

TEST(SegmentFinder, ForksOfARoundUnderWayAreLanesWhereAllThatWaitForItsRecordsAreInside) {
  Commands c;
  fork_in_a_round_under_way(c, false);
  const auto found = c.find(c.place_of(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(std::ranges::count(Commands::kinds(*found), Kind::kWork), 4);
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kEnd);
}

TEST(SegmentFinder, ARecordThatAStrandOutsideWaitsForIsLeftOut) {
  Commands c;
  fork_in_a_round_under_way(c, true);
  const auto found = c.find(c.place_of(3));
  ASSERT_TRUE(found);
  EXPECT_EQ(std::ranges::count(Commands::kinds(*found), Kind::kWork), 3);
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kRecord) << "of the event that it waits for";
}

TEST(SegmentFinder, AWaitForWhatIsRecordedOutsideEndsIt) {
  Commands c;
  const uint32_t outside = c.add_event();
  c.work();
  c.work();
  c.wait(outside);
  c.work();
  c.finish();
  const auto found = c.find(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(c.op_at(found->next), StrandCode::Op::kWait);
}

}  // namespace
}  // namespace eddy
