#include "runtime/net/rank_session.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

using Kind = RankMessage::Kind;

std::unique_ptr<RankSession> RankSession::create(const RankOptions& options) {
  return std::unique_ptr<RankSession>(new RankSession(options));
}

RankSession::RankSession(const RankOptions& options)
    : options_(options),
      world_(options.world),
      hellos_(world_->num_ranks()),
      ledger_(world_->num_ranks()) {
  World::Turn turn(*world_);
  number_ = turn.add_session(*this);
  // Others' runs begin by what rank 0 says, and all are asked where they are, also while they have
  // no run.
  turn.want(1);
}

RankSession::~RankSession() {
  World::Turn turn(*world_);
  EDDY_CHECK(runs_.empty()) << "a session goes before its runs have ended on all ranks";
  if (!has_said_hello_) say_hello(turn, cancelled("its session was not made"), {});
  const RankMessage gone{.kind = Kind::kGone, .session = number_};
  if (world_->rank() != 0) turn.send(0, gone);
  for (uint32_t r = 1; world_->rank() == 0 && r < world_->num_ranks(); ++r) turn.send(r, gone);
  for (const Channel& channel : channels_) {
    for (const uint32_t communicator : channel.communicators) turn.close(communicator);
  }
  turn.want(-1);
  turn.remove_session(number_);
}

uint32_t RankSession::add_channel(RankSkeleton::Channel channel) {
  const auto is_it = [&](const Channel& each) { return each.key == channel; };
  const auto found = std::ranges::find_if(channels_, is_it);
  if (found != channels_.end()) return static_cast<uint32_t>(found - channels_.begin());
  channels_.push_back({.key = std::move(channel)});
  return static_cast<uint32_t>(channels_.size() - 1);
}

void RankSession::say_hello(World::Turn& turn, const Status& status, std::string facts) {
  EDDY_DCHECK(!has_said_hello_) << "session " << number_ << " is told of twice";
  has_said_hello_ = true;
  RankMessage hello{.kind = Kind::kHello, .session = number_, .status = status};
  hello.text = std::move(facts);
  for (uint32_t r = 0; r < world_->num_ranks(); ++r) turn.send(r, hello);
}

void RankSession::refuse(const Status& why) {
  World::Turn turn(*world_);
  if (!has_said_hello_) say_hello(turn, why, {});
}

Status RankSession::hear_all(const std::function<Status()>& check) {
  for (;;) {
    {
      World::Turn turn(*world_);
      EDDY_RETURN_IF_ERROR(turn.health());
      const auto has_come = [](const auto& hello) { return hello.has_value(); };
      if (std::ranges::all_of(hellos_, has_come)) return Status::ok();
    }
    EDDY_RETURN_IF_ERROR(check());
    if (!world_->poll()) std::this_thread::yield();
  }
}

Status RankSession::agree(const RankFacts& own, const std::function<Status()>& check) {
  {
    World::Turn turn(*world_);
    say_hello(turn, Status::ok(), write_facts(own));
  }
  EDDY_RETURN_IF_ERROR(hear_all(check));
  World::Turn turn(*world_);
  std::vector<RankFacts> facts;
  for (uint32_t r = 0; r < hellos_.size(); ++r) {
    if (!hellos_[r]->status.is_ok()) return of_rank(r, hellos_[r]->status);
    Result<RankFacts> read = read_facts(hellos_[r]->text);
    if (!read.is_ok()) return of_rank(r, read.status());
    facts.push_back(std::move(*read));
    hellos_[r].reset();
  }
  EDDY_RETURN_IF_ERROR(compare_facts(facts));
  EDDY_RETURN_IF_ERROR(open_channels(turn, all_channels(facts)));
  return Status::ok();
}

// In one order on all ranks, as opening one may wait for its ranks.
Status RankSession::open_channels(World::Turn& turn,
                                  const std::vector<RankSkeleton::Channel>& all) {
  for (uint32_t g = 0; g < all.size(); ++g) {
    const auto is_it = [&](const Channel& each) { return each.key == all[g]; };
    const auto own = std::ranges::find_if(channels_, is_it);
    if (own == channels_.end()) continue;
    EDDY_DCHECK(own->communicators.empty()) << "channel " << g << " is opened twice";
    own->global = g;
    for (uint32_t s = 0; s < options_.num_run_slots; ++s) {
      EDDY_ASSIGN_OR_RETURN(const uint32_t communicator, turn.open(own->key.group));
      own->communicators.push_back(communicator);
    }
  }
  for (const Channel& each : channels_) {
    EDDY_CHECK(!each.communicators.empty()) << "a channel that no skeleton has";
  }
  return Status::ok();
}

uint32_t RankSession::communicator(uint32_t channel, uint64_t run) const {
  EDDY_DCHECK(channel < channels_.size() &&
              channels_[channel].communicators.size() == options_.num_run_slots)
      << "channel " << channel << " is not open";
  return channels_[channel].communicators[run % options_.num_run_slots];
}

std::optional<uint32_t> RankSession::own_channel(uint32_t global) const {
  const auto is_it = [&](const Channel& each) { return each.global == global; };
  const auto found = std::ranges::find_if(channels_, is_it);
  if (found == channels_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - channels_.begin());
}

uint64_t RankSession::take_ticket() {
  World::Turn turn(*world_);
  tickets_.insert(next_ticket_);
  return next_ticket_++;
}

void RankSession::abandon(uint64_t ticket, const Status& why) {
  World::Turn turn(*world_);
  EDDY_DCHECK(tickets_.contains(ticket)) << "run " << ticket << " was begun, or abandoned";
  tickets_.erase(ticket);
  refused_.erase(ticket);
  RankMessage message{.kind = Kind::kBegin, .session = number_, .run = ticket, .status = why};
  if (world_->rank() != 0) return turn.send(0, message);
  account(turn, 0, std::move(message));  // now: the session may go before it is polled again
}

bool RankSession::is_slot_free(uint64_t run) const {
  return std::ranges::none_of(runs_, [&](const auto& each) {
    return each.first < run && each.first % options_.num_run_slots == run % options_.num_run_slots;
  });
}

void RankSession::begin(uint64_t ticket, RankRun::Own own, RankRun*& run, RankRun::Then begun) {
  auto made = std::make_unique<RankRun>(*this, ticket, std::move(own), std::move(begun));
  made->listen();
  World::Turn turn(*world_);
  EDDY_DCHECK(tickets_.contains(ticket)) << "run " << ticket << " was begun, or abandoned";
  run = made.get();
  runs_[ticket] = std::move(made);
  tickets_.erase(ticket);
  turn.begin_run();
  const auto refusal = refused_.extract(ticket);
  if (!refusal.empty()) return run->enter_refused(turn, refusal.mapped());
  run->enter(turn, is_slot_free(ticket));
}

void RankSession::end(RankRun& run, Status own, RankRun::Then ended) {
  World::Turn turn(*world_);
  run.end(turn, std::move(own), std::move(ended));
}

void RankSession::leave(World::Turn& turn, RankRun& run) {
  const uint64_t number = run.number();
  auto node = runs_.extract(number);
  EDDY_CHECK(!node.empty()) << "run " << number << " is done twice";
  turn.end_run();
  turn.defer([gone = std::shared_ptr<RankRun>(std::move(node.mapped()))] {});
  for (const auto& [next, waiting] : runs_) {
    if (waiting->is_waiting() && is_slot_free(next)) waiting->begin(turn);
  }
}

void RankSession::on_message(World::Turn& turn, uint32_t from, RankMessage message) {
  switch (message.kind) {
    case Kind::kHello:
      hellos_[from] = std::move(message);
      return;
    case Kind::kBegun:
    case Kind::kStopped:
    case Kind::kCut:
    case Kind::kDone: {
      const auto found = runs_.find(message.run);
      if (found != runs_.end()) return found->second->accept(turn, message);
      const bool is_to_come = message.run >= next_ticket_ || tickets_.contains(message.run);
      const bool is_refusal = message.kind == Kind::kBegun && !message.status.is_ok();
      if (is_to_come && is_refusal) refused_[message.run] = message.status;
      return;
    }
    case Kind::kGone:
      if (world_->rank() != 0) {
        first_has_gone_ = true;
        return end_all(turn, of_rank(0, cancelled("its session has ended")));
      }
      [[fallthrough]];
    default:
      return account(turn, from, std::move(message));
  }
}

void RankSession::account(World::Turn& turn, uint32_t from, RankMessage message) {
  std::vector<RunLedger::Out> out;
  ledger_.accept(from, std::move(message), out);
  for (const RunLedger::Out& each : out) turn.send(each.to, each.message);
}

void RankSession::on_lost(World::Turn& turn, const Status& why) { end_all(turn, why); }

void RankSession::end_all(World::Turn& turn, const Status& why) {
  std::vector<RankRun*> runs;
  for (const auto& [number, run] : runs_) runs.push_back(run.get());
  for (RankRun* const run : runs) run->lose(turn, why);
}

}  // namespace eddy
