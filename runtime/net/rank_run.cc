#include "runtime/net/rank_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "runtime/net/rank_session.h"

namespace eddy {
namespace {

using Kind = RankMessage::Kind;

// A quarter of what memory shared by ranks moves, both ways: a copy takes a core of each.
constexpr size_t kCopiedBytesPerNs = 2;

// Entries of a lane's last transfers (LaneCount).
constexpr size_t kMostUnconfirmed = 256;

// What nodes fail with that may not go on because the run is being stopped elsewhere.
constexpr const char* kStoppedElsewhere = "the run was stopped on another rank";

Status stopped_elsewhere() { return cancelled(kStoppedElsewhere); }

Status stop_text(StopReason reason) {
  switch (reason) {
    case StopReason::kCancelled:
      return cancelled("the run was cancelled");
    case StopReason::kDeadline:
      return deadline_exceeded("the run passed its deadline");
    default:
      return run_failed("the run failed");
  }
}

// All ranks of the group have started it once one sees it complete.
bool tells_of_all(Transfer::Kind kind) {
  return kind != Transfer::Kind::kBroadcast && kind != Transfer::Kind::kSend &&
         kind != Transfer::Kind::kShift;
}

TransferShape shape_of(const Transfer& transfer) {
  TransferShape shape{transfer.kind, transfer.bytes, transfer.root, transfer.element,
                      transfer.reduction};
  // The same for both sides of a message.
  if (shape.kind == Transfer::Kind::kRecv) shape.kind = Transfer::Kind::kSend;
  if (shape.kind == Transfer::Kind::kSend) shape.root = 0;
  return shape;
}

}  // namespace

struct RankRun::Operation final : World::TransferOwner {
  Operation(RankRun& r, const BoundCollective& b, const KernelArgs& a)
      : run(r), bound(b), places(b.places), args(a) {}

  void on_done(World::Turn& turn, uint64_t /*token*/, const Status& status) override {
    run.step_done(turn, *this, status);
  }

  RankRun& run;
  const BoundCollective& bound;
  CollectivePlaces places;  // with the communicator of the run's slot
  const KernelArgs& args;
  LaneName lane;
  CollectiveSteps steps;
  // Empty while the thread that starts it still waits for it.
  PendingCall call;
  std::atomic<bool> is_over{false};  // releases `result` and outputs; partner: await_or_leave()
  Status result;
};

class RankRun::Listener final : public StopListener {
 public:
  Listener(World& world, RankRun& run) : world_(&world), run_(&run) {}
  void on_stop() override {
    World::Turn turn(*world_);
    if (run_ != nullptr && is_known_) run_->stop_here(turn, run_->control_.stop.load());
  }
  // Within a Turn.
  void know() { is_known_ = true; }
  void leave() { run_ = nullptr; }

 private:
  World* const world_;  // stays until no thread stops a run of its sessions
  RankRun* run_;
  bool is_known_ = false;
};

RankRun::RankRun(RankSession& session, uint64_t number, Own own, Then begun)
    : session_(session),
      number_(number),
      control_(own.control),
      facts_(std::move(own.facts)),
      where_(std::move(own.where)),
      begun_(std::move(begun)),
      listener_(std::make_shared<Listener>(session.world(), *this)) {}

RankRun::~RankRun() {
  EDDY_CHECK(operations_.empty()) << "a run goes before its operations are over";
}

void RankRun::listen() { control_.add_listener(listener_); }

void RankRun::enter(World::Turn& turn, bool is_slot_free) {
  listener_->know();
  if (!turn.health().is_ok()) return lose(turn, turn.health());
  if (session_.has_first_gone()) return lose(turn, of_rank(0, cancelled("its session has ended")));
  if (control_.is_stopped()) return stop_here(turn, control_.stop.load());
  if (is_slot_free) begin(turn);
}

void RankRun::enter_refused(World::Turn& turn, const Status& why) {
  listener_->know();
  on_begun(turn, why);
}

void RankRun::pace(World::Turn& turn) {
  const bool is_over = phase_ == Phase::kWaiting || phase_ == Phase::kDone;
  const Pace now = is_over ? Pace::kNothing : may_post() ? Pace::kComputing : Pace::kAgreeing;
  const Pace before = std::exchange(pace_, now);
  turn.compute((now == Pace::kComputing) - (before == Pace::kComputing));
  turn.expect((now == Pace::kAgreeing) - (before == Pace::kAgreeing));
}

void RankRun::enter_phase(World::Turn& turn, Phase phase) {
  // Back only where nothing of other ranks comes any more.
  EDDY_DCHECK(phase > phase_ || !lost_.is_ok()) << "run " << number_ << " goes back";
  phase_ = phase;
  pace(turn);
}

void RankRun::begin(World::Turn& turn) {
  EDDY_CHECK(phase_ == Phase::kWaiting) << "a run begins twice";
  enter_phase(turn, Phase::kBeginning);
  say(turn, Kind::kBegin);
}

void RankRun::say(World::Turn& turn, Kind kind, Status status) {
  RankMessage message{
      .kind = kind, .session = session_.number(), .run = number_, .status = std::move(status)};
  if (kind == Kind::kBegin) message.text = facts_;
  if (kind == Kind::kSettled) message.is_own = !own_.is_ok() && !is_stopped_elsewhere_;
  for (auto& [name, lane] : lanes_) {
    if (kind == Kind::kCount) message.lanes.push_back({name, lane.count, lane.last});
  }
  turn.send(0, message);
}

Status RankRun::why_no_post() const {
  if (!lost_.is_ok()) return lost_;
  return stopped_here_.is_ok() ? stopped_elsewhere() : stopped_here_;
}

void RankRun::stop_here(World::Turn& turn, StopReason reason) {
  switch (phase_) {
    case Phase::kWaiting:
      enter_phase(turn, Phase::kBeginning);
      return say(turn, Kind::kBegin, stop_text(reason));
    case Phase::kBeginning:
      stopped_here_ = stop_text(reason);
      return say(turn, Kind::kStop, stopped_here_);
    case Phase::kRunning:
      enter_phase(turn, Phase::kStopping);
      stopped_here_ = stop_text(reason);
      // It was done, but for the others.
      if (has_ended_ && own_.is_ok()) own_ = stopped_here_;
      return say(turn, Kind::kStop, stopped_here_);
    default:
      return;
  }
}

void RankRun::accept(World::Turn& turn, const RankMessage& message) {
  switch (message.kind) {
    case Kind::kBegun:
      return on_begun(turn, message.status);
    case Kind::kStopped:
      return on_stopped(turn);
    case Kind::kCut:
      return on_cut(turn, message.lanes);
    case Kind::kDone:
      return leave(turn, message.status);
    default:
      EDDY_CHECK(false) << "a run takes no such message";
  }
}

void RankRun::on_begun(World::Turn& turn, const Status& status) {
  // Refused before it has a slot: rank 0 still gets the message, and keeps the run until then.
  if (phase_ == Phase::kWaiting && !status.is_ok()) begin(turn);
  if (phase_ != Phase::kBeginning) return;
  if (!status.is_ok()) return leave(turn, status);
  EDDY_DCHECK(begun_ != nullptr) << "run " << number_ << " begins twice";
  enter_phase(turn, Phase::kRunning);
  turn.defer([begun = std::exchange(begun_, {})] { begun(Status::ok()); });
}

void RankRun::on_stopped(World::Turn& turn) {
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  if (phase_ == Phase::kRunning) stop_strands(turn);
  enter_phase(turn, Phase::kCounted);
  say(turn, Kind::kCount);
}

void RankRun::stop_strands(World::Turn& turn) {
  if (has_ended_ || is_stopping_strands_) return;
  is_stopping_strands_ = true;
  turn.defer([this] {
    const bool is_first = control_.request_stop(StopReason::kCancelled);
    World::Turn after(session_.world());
    is_stopped_elsewhere_ |= is_first;
    is_stopping_strands_ = false;
    try_settle(after);
  });
}

void RankRun::on_cut(World::Turn& turn, const std::vector<LaneCount>& cut) {
  if (phase_ != Phase::kCounted) return;
  enter_phase(turn, Phase::kCutting);
  for (const LaneCount& lane : cut) {
    post_missing(turn, lane);
    if (!turn.health().is_ok()) return;  // lose() has been called
  }
  try_settle(turn);
}

void RankRun::post_missing(World::Turn& turn, const LaneCount& cut) {
  const std::optional<uint32_t> channel = session_.own_channel(cut.lane.channel);
  const uint32_t rank = session_.world().rank();
  const bool is_message = cut.lane.from != LaneName::kNone;
  if (!channel || (is_message && rank != cut.lane.from && rank != cut.lane.to)) return;
  const uint64_t own = lanes_[cut.lane].count;
  uint64_t at = cut.count;  // of the next entry, counted from behind
  std::vector<TransferShape> missing;
  for (size_t i = cut.last.size(); i > 0 && at > own; --i) {
    const uint64_t times = std::min(cut.last[i - 1].times, at - own);
    missing.insert(missing.end(), times, cut.last[i - 1].shape);
    at -= times;
  }
  EDDY_CHECK(at <= own) << "a rank has forgotten what others have yet to start";
  for (size_t i = missing.size(); i > 0; --i)
    post_scratch(turn, *channel, cut.lane, missing[i - 1]);
}

// What others wait for is started with memory that nobody reads.
void RankRun::post_scratch(World::Turn& turn, uint32_t channel, const LaneName& lane,
                           const TransferShape& shape) {
  const std::vector<uint32_t>& group = session_.group(channel);
  const size_t n = group.size();
  const bool has_parts = shape.kind == Transfer::Kind::kAllGather;
  const bool has_both_parts = shape.kind == Transfer::Kind::kAllToAll;
  auto buffers = std::make_shared<std::vector<std::byte>>();
  const size_t sent = shape.bytes * (has_both_parts ? n : 1);
  const size_t received = shape.bytes * (has_parts || has_both_parts ? n : 1);
  constexpr size_t kAlign = 64;
  buffers->resize(sent + received + 2 * kAlign);
  std::byte* const first =
      buffers->data() + (kAlign - reinterpret_cast<uintptr_t>(buffers->data()) % kAlign);
  Transfer transfer{.kind = shape.kind,
                    .communicator = session_.communicator(channel, number_),
                    .send = first,
                    .receive = first + (sent + kAlign - 1) / kAlign * kAlign,
                    .bytes = shape.bytes,
                    .root = shape.root,
                    .element = shape.element,
                    .reduction = shape.reduction};
  if (lane.from != LaneName::kNone) {
    const bool sends = session_.world().rank() == lane.from;
    transfer.kind = sends ? Transfer::Kind::kSend : Transfer::Kind::kRecv;
    const auto other = std::ranges::find(group, sends ? lane.to : lane.from);
    EDDY_DCHECK(other != group.end()) << "a message of ranks that are not in its group";
    transfer.root = static_cast<uint32_t>(other - group.begin());
  }
  const uint64_t token = turn.start(transfer, *this);
  if (token != 0) scratch_[token] = std::move(buffers);
}

void RankRun::on_done(World::Turn& turn, uint64_t token, const Status& status) {
  scratch_.erase(token);
  if (status.is_ok()) try_settle(turn);
}

void RankRun::end(World::Turn& turn, Status own, Then then) {
  EDDY_CHECK(!has_ended_) << "a run ends twice";
  has_ended_ = true;
  pace(turn);
  own_ = std::move(own);
  ended_ = std::move(then);
  is_stopped_elsewhere_ |= own_.message().find(kStoppedElsewhere) != std::string::npos;
  if (phase_ == Phase::kRunning && own_.is_ok()) say(turn, Kind::kEnd);
  if (phase_ == Phase::kRunning && !own_.is_ok()) {
    enter_phase(turn, Phase::kStopping);
    say(turn, Kind::kStop, own_);
  }
  try_settle(turn);
}

void RankRun::try_settle(World::Turn& turn) {
  if (!has_ended_ || is_stopping_strands_ || !operations_.empty()) return;
  if (!lost_.is_ok()) return leave(turn, lost_);
  if (phase_ != Phase::kCutting || !scratch_.empty()) return;
  enter_phase(turn, Phase::kSettled);
  say(turn, Kind::kSettled, own_);
}

void RankRun::leave(World::Turn& turn, const Status& status) {
  if (phase_ == Phase::kDone) return;
  EDDY_CHECK(has_ended_ || begun_) << "a run is done while its strands go on";
  enter_phase(turn, Phase::kDone);
  listener_->leave();
  control_.remove_listener(*listener_);
  turn.defer([then = has_ended_ ? std::move(ended_) : std::move(begun_), status] { then(status); });
  session_.leave(turn, *this);
}

void RankRun::lose(World::Turn& turn, const Status& why) {
  if (phase_ == Phase::kDone || !lost_.is_ok()) return;
  if (phase_ == Phase::kWaiting || phase_ == Phase::kBeginning) return leave(turn, why);
  lost_ = why;
  if (!waited_in_.empty()) lost_.append_message("this rank waited in " + waited_in_);
  enter_phase(turn, Phase::kStopping);
  stop_strands(turn);
  try_settle(turn);
}

LaneName RankRun::lane_of(const BoundCollective& bound) const {
  return {session_.global_channel(bound.channel), bound.from, bound.to};
}

// Of an operation that does not wait for all ranks: so many before it were such, too, that now a
// check is made, which does. So what others may lack stays short; it is the same on all ranks.
bool RankRun::is_far_ahead(const BoundCollective& bound) {
  const CollectiveKind kind = bound.collective.kind;
  if (kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kExchange) return false;
  World::Turn turn(session_.world());
  return lanes_[lane_of(bound)].last.size() >= kMostUnconfirmed;
}

CallOutcome RankRun::start(const BoundCollective& bound, const KernelArgs& args,
                           PendingCall& call) {
  auto made = std::make_unique<Operation>(*this, bound, args);
  Operation& operation = *made;
  operation.lane = lane_of(bound);
  operation.places.communicator = session_.communicator(bound.channel, number_);
  const bool has_input = bound.collective.kind != CollectiveKind::kRecv &&
                         bound.collective.kind != CollectiveKind::kBarrier;
  const bool checks = bound.checks || is_far_ahead(bound);
  Status status = operation.steps.plan(bound.collective, operation.places,
                                       has_input ? args.inputs[0] : TensorView(), args.outputs[0],
                                       session_.world(), session_.memory(), checks);
  if (!status.is_ok()) {
    args.fail(std::move(status));
    return CallOutcome::kFailed;
  }
  // From before it starts: else the schedulers would be woken to look for its end.
  World::Watch watch(session_.world());
  {
    World::Turn turn(session_.world());
    Lane& lane = lanes_[operation.lane];
    if (!may_post()) status = why_no_post();
    if (status.is_ok() && lane.is_busy) {
      status = internal_error("two operations of one channel run at once");
    }
    if (!status.is_ok()) {
      args.fail(std::move(status));
      return CallOutcome::kFailed;
    }
    lane.is_busy = true;
    operations_.push_back(std::move(made));
    start_step(turn, operation);
  }
  return await_or_leave(operation, args, call, watch);
}

// Most small operations are over in less than a thread takes to wake. What else there is to do goes
// first: it is what an operation under way is to be hidden behind.
CallOutcome RankRun::await_or_leave(Operation& operation, const KernelArgs& args, PendingCall& call,
                                    World::Watch& watch) {
  World& world = session_.world();
  const size_t bytes = args.outputs[0].size_bytes();
  const auto copying = std::chrono::nanoseconds(bytes / kCopiedBytesPerNs);
  const auto until = std::chrono::steady_clock::now() + world.spin() + copying;
  while (!operation.is_over.load(std::memory_order_acquire)) {
    if (session_.has_other_work() || std::chrono::steady_clock::now() >= until) break;
    if (!watch.poll()) cpu_relax();
  }
  World::Turn turn(world);
  if (!operation.is_over.load(std::memory_order_acquire)) {
    watch.leave();
    operation.call = std::move(call);
    return CallOutcome::kLater;
  }
  const Status result = std::move(operation.result);
  erase(operation);
  if (result.is_ok()) return CallOutcome::kDone;
  args.fail(result);
  return CallOutcome::kFailed;
}

void RankRun::start_step(World::Turn& turn, Operation& operation) {
  Lane& lane = lanes_[operation.lane];
  EDDY_DCHECK(lane.is_busy) << "a step of an operation that does not hold its lane";
  const Transfer& transfer = operation.steps.transfer();
  const TransferShape shape = shape_of(transfer);
  ++lane.count;
  if (!lane.last.empty() && lane.last.back().shape == shape) {
    ++lane.last.back().times;
  } else {
    lane.last.push_back({shape, 1});
  }
  if (turn.start(transfer, operation) == 0) finish(turn, operation, turn.health());
}

void RankRun::step_done(World::Turn& turn, Operation& operation, const Status& status) {
  if (!status.is_ok()) {
    if (waited_in_.empty()) waited_in_ = where_();
    if (waited_in_.empty()) waited_in_ = operation.bound.name;
    return finish(turn, operation, status);
  }
  if (tells_of_all(operation.steps.transfer().kind)) lanes_[operation.lane].last.clear();
  // Arithmetic needs no lock.
  turn.defer([this, &operation] { go_on(operation); });
}

void RankRun::go_on(Operation& operation) {
  Status status = operation.steps.advance();
  World::Turn turn(session_.world());
  if (!status.is_ok() || operation.steps.is_done()) {
    return finish(turn, operation, std::move(status));
  }
  if (!may_post()) return finish(turn, operation, why_no_post());
  start_step(turn, operation);
}

void RankRun::finish(World::Turn& turn, Operation& operation, Status status) {
  EDDY_DCHECK(lanes_[operation.lane].is_busy) << "an operation is over twice";
  lanes_[operation.lane].is_busy = false;
  if (!operation.call.is_open()) {
    operation.result = std::move(status);
    operation.is_over.store(true, std::memory_order_release);
    return;
  }
  const auto call = std::make_shared<PendingCall>(std::move(operation.call));
  turn.defer([call, status] { call->complete(status); });
  erase(operation);
}

void RankRun::erase(Operation& operation) {
  const auto is_it = [&](const auto& each) { return each.get() == &operation; };
  const auto found = std::ranges::find_if(operations_, is_it);
  EDDY_CHECK(found != operations_.end()) << "an operation that is over is over again";
  operations_.erase(found);
}

}  // namespace eddy
