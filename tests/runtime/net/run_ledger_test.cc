// Claim: whatever order messages come in, each run begins on all ranks or on none, all ranks that
// begin it get one status and as many transfers on each lane, and nothing of it is kept.
#include "runtime/net/run_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Kind = RankMessage::Kind;

// A rank of the protocol, without transfers: what it says next, and what it has been told.
struct Rank {
  enum class At { kOut, kBeginning, kRunning, kStopping, kCounted, kCut, kDone };
  At at = At::kOut;
  Status own;
  Status told;
  bool is_refusing = false;
  bool is_refused = false;  // before it has begun
  uint64_t count = 0;       // of lane 0
  uint64_t target = 0;      // where it goes by itself
  bool has_ended = false;
};

class Protocol {
 public:
  Protocol(uint32_t num_ranks, uint64_t seed)
      : ranks_(num_ranks),
        ledger_(num_ranks),
        random_(seed),
        to_ledger_(num_ranks),
        to_ranks_(num_ranks) {}

  std::vector<Rank>& ranks() { return ranks_; }
  size_t num_open() const { return ledger_.num_open(); }

  // False: nothing can move.
  bool step() {
    std::vector<std::pair<int, uint32_t>> able;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      if (!to_ledger_[r].empty()) able.emplace_back(0, r);
      if (!to_ranks_[r].empty()) able.emplace_back(1, r);
      if (may_act(ranks_[r])) able.emplace_back(2, r);
    }
    if (able.empty()) return false;
    const auto [what, r] = able[random_.below(able.size())];
    if (what == 0) {
      RankMessage message = std::move(to_ledger_[r].front());
      to_ledger_[r].erase(to_ledger_[r].begin());
      std::vector<RunLedger::Out> out;
      ledger_.accept(r, std::move(message), out);
      for (RunLedger::Out& each : out) to_ranks_[each.to].push_back(std::move(each.message));
    } else if (what == 1) {
      const RankMessage message = std::move(to_ranks_[r].front());
      to_ranks_[r].erase(to_ranks_[r].begin());
      hear(r, message);
    } else {
      act(r);
    }
    return true;
  }

  // Who fails, when it has come so far.
  std::vector<std::pair<uint32_t, uint64_t>> failures;

 private:
  void say(uint32_t r, Kind kind, Status status = {}) {
    RankMessage message{.kind = kind, .run = 4, .status = std::move(status)};
    if (kind == Kind::kSettled) message.is_own = !ranks_[r].own.is_ok();
    if (kind == Kind::kCount && ranks_[r].count > 0) {
      const TransferShape shape{.bytes = 8};
      message.lanes = {{{}, ranks_[r].count, {{shape, ranks_[r].count}}}};
    }
    to_ledger_[r].push_back(std::move(message));
  }
  bool may_act(const Rank& rank) const {
    return rank.at == Rank::At::kOut || (rank.at == Rank::At::kRunning && !rank.has_ended);
  }
  void act(uint32_t r) {
    Rank& rank = ranks_[r];
    if (rank.at == Rank::At::kOut) {
      say(r, Kind::kBegin, rank.is_refusing ? invalid_argument("no input") : Status());
      const bool is_over = rank.is_refusing || rank.is_refused;
      rank.at = is_over ? Rank::At::kDone : Rank::At::kBeginning;
      return;
    }
    for (const auto& [who, when] : failures) {
      if (who != r || when != rank.count) continue;
      rank.own = run_failed("it failed");
      rank.at = Rank::At::kStopping;
      return say(r, Kind::kStop, rank.own);
    }
    if (rank.count < rank.target) {
      ++rank.count;
    } else {
      rank.has_ended = true;
      say(r, Kind::kEnd);
    }
  }
  void hear(uint32_t r, const RankMessage& message) {
    Rank& rank = ranks_[r];
    if (message.kind == Kind::kBegun && rank.at == Rank::At::kBeginning) {
      rank.told = message.status;
      rank.at = message.status.is_ok() ? Rank::At::kRunning : Rank::At::kDone;
    } else if (message.kind == Kind::kBegun && rank.at == Rank::At::kOut) {
      ASSERT_FALSE(message.status.is_ok()) << "a run begins without rank " << r;
      rank.told = message.status;
      rank.is_refused = true;
    } else if (message.kind == Kind::kStopped) {
      rank.at = Rank::At::kCounted;
      say(r, Kind::kCount);
    } else if (message.kind == Kind::kCut) {
      ASSERT_EQ(rank.at, Rank::At::kCounted);
      for (const LaneCount& lane : message.lanes) {
        ASSERT_GE(lane.count, rank.count);
        rank.count = lane.count;
      }
      rank.at = Rank::At::kCut;
      say(r, Kind::kSettled, rank.own);
    } else if (message.kind == Kind::kDone) {
      ASSERT_NE(rank.at, Rank::At::kDone);
      rank.told = message.status;
      rank.at = Rank::At::kDone;
    }
  }

  std::vector<Rank> ranks_;
  RunLedger ledger_;
  Random random_;
  std::vector<std::vector<RankMessage>> to_ledger_, to_ranks_;
};

TEST(RunLedger, RunsEndWithOneStatusInEveryOrder) {
  constexpr uint64_t kSeeds = 20000;
  std::cout << "seeds 0 to " << kSeeds - 1 << "\n";
  int num_stopped = 0, num_refused = 0, num_fine = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed);
    const auto n = static_cast<uint32_t>(1 + random.below(5));
    Protocol protocol(n, seed);
    const uint64_t target = random.below(5);
    for (Rank& rank : protocol.ranks()) rank.target = target;
    for (uint64_t i = random.below(3); i > 0; --i) {
      protocol.failures.emplace_back(random.below(n), random.below(target + 1));
    }
    if (random.below(5) == 0) protocol.ranks()[random.below(n)].is_refusing = true;
    for (int i = 0; protocol.step(); ++i) ASSERT_LT(i, 10000) << "seed " << seed;
    const std::vector<Rank>& ranks = protocol.ranks();
    const auto refuses = [](const Rank& rank) { return rank.is_refusing; };
    const bool is_refused = std::ranges::any_of(ranks, refuses);
    for (const Rank& rank : ranks) {
      ASSERT_EQ(rank.at, Rank::At::kDone) << "seed " << seed;
      ASSERT_EQ(rank.count, is_refused ? 0 : ranks[0].count) << "seed " << seed;
      if (rank.is_refusing) continue;
      const Rank& first = *std::ranges::find_if_not(ranks, refuses);
      ASSERT_EQ(rank.told.to_string(), first.told.to_string()) << "seed " << seed;
      ASSERT_EQ(rank.told.is_ok(), !is_refused && protocol.failures.empty()) << "seed " << seed;
    }
    ASSERT_EQ(protocol.num_open(), 0u) << "seed " << seed;
    num_refused += is_refused;
    num_stopped += !is_refused && !protocol.failures.empty();
    num_fine += !is_refused && protocol.failures.empty();
  }
  std::cout << num_fine << " fine, " << num_stopped << " stopped, " << num_refused << " refused\n";
  EXPECT_GT(std::min({num_stopped, num_refused, num_fine}), 1000);
}

TEST(RunLedger, TheLowestRankThatFailedByItselfIsNamed) {
  RunLedger ledger(3);
  std::vector<RunLedger::Out> out;
  const auto say = [&](uint32_t rank, Kind kind, Status status = {}, bool is_own = false) {
    out.clear();
    ledger.accept(rank, {.kind = kind, .run = 0, .status = std::move(status), .is_own = is_own},
                  out);
  };
  for (uint32_t r = 0; r < 3; ++r) say(r, Kind::kBegin);
  say(1, Kind::kStop, cancelled("the run was cancelled"));
  for (uint32_t r = 0; r < 3; ++r) say(r, Kind::kCount);
  say(0, Kind::kSettled, cancelled("stopped elsewhere"), false);
  say(1, Kind::kSettled, cancelled("the run was cancelled"), true);
  Status failed = run_failed("index 7 is out of range");
  say(2, Kind::kSettled, failed.prepend_path("decode[17]/Gather"), true);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[1].message.status.to_string(),
            "run failed: at decode[17]/Gather: rank 2: index 7 is out of range");
}

TEST(RunLedger, ARankThatHasLeftEndsWhatItHasNotBegun) {
  RunLedger ledger(2);
  std::vector<RunLedger::Out> out;
  ledger.accept(0, {.kind = Kind::kBegin, .run = 0}, out);
  EXPECT_TRUE(out.empty());
  ledger.accept(1, {.kind = Kind::kGone}, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].message.status.message(), "rank 1: its session has ended");
  ledger.accept(0, {.kind = Kind::kBegin, .run = 1}, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(ledger.num_open(), 0u);
}

TEST(RunLedger, InputsThatShouldBeEqualAreNamed) {
  RunLedger ledger(3);
  std::vector<RunLedger::Out> out;
  ledger.accept(2, {.kind = Kind::kBegin, .text = "input a=1\ninput b=2\n"}, out);
  ledger.accept(0, {.kind = Kind::kBegin, .text = "input a=1\ninput b=2\n"}, out);
  ledger.accept(1, {.kind = Kind::kBegin, .text = "input a=1\ninput b=3\n"}, out);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(out[0].message.status.message(),
              ::testing::HasSubstr("input 'b' is declared equal on all ranks, but rank 1"));
  EXPECT_EQ(ledger.num_open(), 0u);
}

TEST(RunLedger, ShapesThatShouldBeEqualAreNamedWithBoth) {
  RunLedger ledger(2);
  std::vector<RunLedger::Out> out;
  ledger.accept(0, {.kind = Kind::kBegin, .text = "shape a=[2]\nshape loop/b=[2,3]\n"}, out);
  ledger.accept(1, {.kind = Kind::kBegin, .text = "shape a=[2]\nshape loop/b=[4,3]\n"}, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].message.status.message(),
            "node 'loop/b' communicates what has one shape on all ranks, but rank 1 was given "
            "inputs that make it [4,3], and rank 0 [2,3]");
}

TEST(RankMessage, BytesComeBackOrAreRefused) {
  Status status = run_failed("it failed");
  RankMessage message{.kind = Kind::kCut,
                      .session = 3,
                      .run = 9,
                      .status = status.prepend_path("a[2]/b"),
                      .is_own = true,
                      .lanes = {{{1, 0, 2}, 5, {{{Transfer::Kind::kSend, 12}, 3}}}},
                      .text = "facts"};
  const std::vector<std::byte> bytes = write_message(message);
  const Result<RankMessage> back = read_message(bytes);
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(back->kind, Kind::kCut);
  EXPECT_EQ(back->status.to_string(), message.status.to_string());
  EXPECT_EQ(back->lanes, message.lanes);
  EXPECT_EQ(back->text, "facts");
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(read_message(std::span(bytes).first(cut)).is_ok()) << cut;
  }
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> spoilt = bytes;
    for (int k = 0; k < 3; ++k) {
      spoilt[random.below(spoilt.size())] = static_cast<std::byte>(random.below(256));
    }
    (void)read_message(spoilt);
  }
}

}  // namespace
}  // namespace eddy
