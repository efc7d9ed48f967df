// RankRun: one run of a session on this rank: what it has started on which lane, and its way from
// the agreement at its begin to the one at its end (run_ledger.h).
//
//   phase        entered by                              posts    leaves it by
//   kWaiting     begin, its slot is another run's        no       that run's end kBeginning
//   kBeginning   kBegin is sent                          no       kBegun ok               kRunning
//                                                                 kBegun: why             kDone
//   kRunning                                             yes      its strands end: kEnd is sent,
//   stays
//                                                                 kDone                   kDone
//                                                                 a stop here: kStop      kStopping
//                                                                 kStopped: it is stopped kCounted
//   kStopping                                            no       kStopped: kCount        kCounted
//   kCounted     its counts are sent                     no       kCut: what others have started
//   and
//                                                                 this rank has not       kCutting
//   kCutting     all that is under way will complete     no       strands and transfers have ended:
//                                                                 kSettled                kSettled
//   kSettled                                                      kDone                   kDone
//
// An operation (a kernel's call) is steps of transfers. One that completes in a run that is being
// stopped goes no further, and its call fails. A lost world ends everything at once.
//
// Ownership: the session's, until it is done. Threads: all but start() within a Turn; calls of
// functions that go on with a run are deferred until the Turn is over.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/contract/kernel.h"
#include "runtime/device/strand_runner.h"
#include "runtime/net/collective_steps.h"
#include "runtime/net/world.h"

namespace eddy {

class RankSession;

// A node that communicates, bound (net_kernel.h).
struct BoundCollective : KernelState {
  RankSession* session = nullptr;
  Collective collective;
  uint32_t channel = 0;  // the session's own number
  CollectivePlaces places;
  uint32_t from = LaneName::kNone;  // of messages
  uint32_t to = LaneName::kNone;
  bool checks = false;
  std::string name;  // the node's
};

class RankRun final : public World::TransferOwner {
 public:
  using Then = std::function<void(Status)>;

  // The run as this rank has it.
  struct Own {
    RunControl& control;
    std::string facts;                   // what is to be equal on all ranks: RunLedger's lines
    std::function<std::string()> where;  // the nodes whose operations it waits for, right now
  };
  RankRun(RankSession& session, uint64_t number, Own own, Then begun);
  ~RankRun();

  uint64_t number() const { return number_; }
  bool is_waiting() const { return phase_ == Phase::kWaiting; }

  // Before it is known to others: stops of `control` reach it from now on.
  void listen();
  void enter(World::Turn& turn, bool is_slot_free);
  // The others know already that it does not begin.
  void enter_refused(World::Turn& turn, const Status& why);
  void begin(World::Turn& turn);  // its slot is free
  void accept(World::Turn& turn, const RankMessage& message);
  void lose(World::Turn& turn, const Status& why);
  // Its strands have ended, with `own`; `then` gets the status of all ranks, and may end the run.
  void end(World::Turn& turn, Status own, Then then);

  // Starts an operation, by its kernel (BoundKernel::start).
  CallOutcome start(const BoundCollective& bound, const KernelArgs& args, PendingCall& call);

 private:
  enum class Phase : uint8_t {
    kWaiting,
    kBeginning,
    kRunning,
    kStopping,
    kCounted,
    kCutting,
    kSettled,
    kDone
  };
  struct Operation;
  class Listener;
  struct Lane {
    uint64_t count = 0;
    std::vector<LaneCount::Entry> last;
    bool is_busy = false;
  };

  // What this rank's polls are for.
  enum class Pace : uint8_t { kNothing, kAgreeing, kComputing };

  bool may_post() const { return phase_ == Phase::kRunning && !has_ended_; }
  // Behind every change of the phase and of has_ended_: the world polls accordingly.
  void pace(World::Turn& turn);
  void enter_phase(World::Turn& turn, Phase phase);
  Status why_no_post() const;
  void say(World::Turn& turn, RankMessage::Kind kind, Status status = {});
  void stop_here(World::Turn& turn, StopReason reason);
  void on_begun(World::Turn& turn, const Status& status);
  void on_stopped(World::Turn& turn);
  void on_cut(World::Turn& turn, const std::vector<LaneCount>& cut);
  void stop_strands(World::Turn& turn);
  void post_missing(World::Turn& turn, const LaneCount& cut);
  void post_scratch(World::Turn& turn, uint32_t channel, const LaneName& lane,
                    const TransferShape& shape);
  void try_settle(World::Turn& turn);
  void leave(World::Turn& turn, const Status& status);

  void on_done(World::Turn& turn, uint64_t token, const Status& status) override;
  LaneName lane_of(const BoundCollective& bound) const;
  bool is_far_ahead(const BoundCollective& bound);
  void start_step(World::Turn& turn, Operation& operation);
  void step_done(World::Turn& turn, Operation& operation, const Status& status);
  void go_on(Operation& operation);
  void finish(World::Turn& turn, Operation& operation, Status status);
  void erase(Operation& operation);
  CallOutcome await_or_leave(Operation& operation, const KernelArgs& args, PendingCall& call,
                             World::Watch& watch);

  RankSession& session_;
  const uint64_t number_;
  RunControl& control_;
  const std::string facts_;
  const std::function<std::string()> where_;
  Then begun_;  // empty once called
  Then ended_;  // set once its strands have ended
  Phase phase_ = Phase::kWaiting;
  Pace pace_ = Pace::kNothing;
  bool has_ended_ = false;
  bool is_stopping_strands_ = false;   // a call that is deferred uses control_
  bool is_stopped_elsewhere_ = false;  // own_ is no failure of this rank
  Status own_;                         // once has_ended_
  Status stopped_here_;                // not ok: this rank has said so
  Status lost_;                        // why nothing of other ranks comes any more
  std::string waited_in_;              // then: nodes whose operations were under way
  std::map<LaneName, Lane> lanes_;
  std::vector<std::unique_ptr<Operation>> operations_;
  // By token: buffers of the cut's transfers.
  std::map<uint64_t, std::shared_ptr<std::vector<std::byte>>> scratch_;
  std::shared_ptr<Listener> listener_;
};

}  // namespace eddy
