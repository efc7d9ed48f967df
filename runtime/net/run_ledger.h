// RunLedger: what rank 0 keeps of a session's runs, so that each begins on all ranks or on none,
// and ends with one status on all of them. A pure state machine: messages in, messages out.
//
//   kBegin of all ──> kBegun ──> kEnd of all ─────────────────────────────────> kDone: ok
//     │ one has refused            │ kStop of one
//     └──> kBegun: why             └──> kStopped ──> kCount of all ──> kCut ──> kSettled of all
//                                                                            ──> kDone: why
//
// A stop is a cut through the run: transfers that were started cannot be taken back, so each rank
// says how far it is in each lane, and all start what the furthest has started, and no more. Then
// everything completes, and the next run finds the world as new.
//
// The status of a stopped run is that of the lowest rank that failed by itself, before that of one
// that passed its deadline or was cancelled. It names the rank.
//
// Messages that come too late, of runs that are done, are dropped. Threads: one at a time. Cost: a
// run is kept from its first message until it is done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/net/rank_message.h"

namespace eddy {

class RunLedger {
 public:
  struct Out {
    uint32_t to = 0;
    RankMessage message;
  };

  explicit RunLedger(uint32_t num_ranks) : num_ranks_(num_ranks), gone_(num_ranks, false) {}

  // Appends what is to be sent, in order.
  void accept(uint32_t from, RankMessage message, std::vector<Out>& out);
  size_t num_open() const { return runs_.size(); }

 private:
  enum class Phase : uint8_t { kBeginning, kRefused, kRunning, kCounting, kSettling };
  struct OpenRun {
    Phase phase = Phase::kBeginning;
    std::vector<std::optional<RankMessage>> said;  // by rank, in this phase
    uint32_t num_said = 0;
    std::vector<bool> has_begun;
    Status why;  // of kRefused
  };

  OpenRun& open(uint64_t number);
  void begin(uint32_t from, OpenRun& run, RankMessage message, std::vector<Out>& out);
  void refuse(OpenRun& run, const RankMessage& about, Status why, std::vector<Out>& out);
  void go(uint32_t rank, std::vector<Out>& out, const RankMessage& about);
  bool is_refused_by_all(const OpenRun& run) const;
  // True: all have.
  bool note(uint32_t from, OpenRun& run, RankMessage message);
  void enter(OpenRun& run, Phase phase);
  void tell_all(RankMessage::Kind kind, const RankMessage& about, std::vector<Out>& out,
                Status status = {}, std::vector<LaneCount> lanes = {});

  const uint32_t num_ranks_;
  std::vector<bool> gone_;            // by rank: its session has ended
  std::map<uint64_t, OpenRun> runs_;  // by number
};

// "rank 2: …", with the status' code and path.
Status of_rank(uint32_t rank, const Status& status);
// How far all have to go, and what they start on the way there.
std::vector<LaneCount> furthest(const std::vector<std::optional<RankMessage>>& counts);

}  // namespace eddy
