#include "runtime/net/run_ledger.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Kind = RankMessage::Kind;

// Of one line, "input NAME=DIGEST" or "shape NODE=SHAPE", that is another one on a rank.
Status unlike_facts(std::string_view on_first, std::string_view on_rank, uint32_t rank) {
  const auto value = [](std::string_view line) {
    return std::string(line.substr(line.rfind('=') + 1));
  };
  const std::string_view kind = on_first.substr(0, on_first.find(' '));
  std::string name(on_first.substr(0, on_first.rfind('=')));
  name.erase(0, kind.size() + 1);
  const std::string which = "rank " + std::to_string(rank);
  if (kind == "shape") {
    return invalid_argument(
        "node '" + name + "' communicates what has one shape on all ranks, but " + which +
        " was given inputs that make it " + value(on_rank) + ", and rank 0 " + value(on_first));
  }
  return invalid_argument("input '" + name + "' is declared equal on all ranks, but " + which +
                          " was given other values than rank 0");
}

// Lines of what is to be equal; ok, or which is not.
Status compare_facts(const std::vector<std::optional<RankMessage>>& begins) {
  const std::string& first = begins[0]->text;
  for (uint32_t r = 1; r < begins.size(); ++r) {
    std::string_view a = first, b = begins[r]->text;
    while (!a.empty() || !b.empty()) {
      const std::string_view x = a.substr(0, a.find('\n')), y = b.substr(0, b.find('\n'));
      if (x != y) return unlike_facts(x, y, r);
      a.remove_prefix(std::min(a.size(), x.size() + 1));
      b.remove_prefix(std::min(b.size(), y.size() + 1));
    }
  }
  return Status::ok();
}

// The graver first.
int gravity(const RankMessage& settled) {
  if (settled.status.is_ok() || !settled.is_own) return 0;
  switch (settled.status.code()) {
    case StatusCode::kCancelled:
      return 1;
    case StatusCode::kDeadlineExceeded:
      return 2;
    default:
      return 3;
  }
}

Status gravest(const std::vector<std::optional<RankMessage>>& settled) {
  const auto is_less = [](const auto& a, const auto& b) { return gravity(*a) < gravity(*b); };
  const auto found = std::ranges::max_element(settled, is_less);
  if (gravity(**found) == 0) return cancelled("the run was stopped on a rank");
  return of_rank(static_cast<uint32_t>(found - settled.begin()), (*found)->status);
}

}  // namespace

Status of_rank(uint32_t rank, const Status& status) {
  if (status.is_ok()) return status;
  Status result = status;
  return std::move(result.prepend_message("rank " + std::to_string(rank)));
}

std::vector<LaneCount> furthest(const std::vector<std::optional<RankMessage>>& counts) {
  std::map<LaneName, LaneCount> found;
  for (const std::optional<RankMessage>& each : counts) {
    EDDY_DCHECK(each.has_value()) << "a rank has not said how far it is";
    for (const LaneCount& lane : each->lanes) {
      LaneCount& most = found[lane.lane];
      if (lane.count > most.count) most = lane;
    }
  }
  std::vector<LaneCount> lanes;
  for (auto& [name, lane] : found) lanes.push_back(std::move(lane));
  return lanes;
}

RunLedger::OpenRun& RunLedger::open(uint64_t number) {
  OpenRun& run = runs_[number];
  if (run.said.empty()) {
    run.said.resize(num_ranks_);
    run.has_begun.resize(num_ranks_, false);
  }
  return run;
}

void RunLedger::enter(OpenRun& run, Phase phase) {
  run.phase = phase;
  run.num_said = 0;
  std::ranges::fill(run.said, std::nullopt);
}

bool RunLedger::note(uint32_t from, OpenRun& run, RankMessage message) {
  if (run.said[from].has_value()) return false;
  EDDY_DCHECK(run.num_said < num_ranks_) << "more ranks have spoken than there are";
  run.said[from] = std::move(message);
  return ++run.num_said == num_ranks_;
}

void RunLedger::tell_all(Kind kind, const RankMessage& about, std::vector<Out>& out, Status status,
                         std::vector<LaneCount> lanes) {
  RankMessage message;
  message.kind = kind;
  message.session = about.session;
  message.run = about.run;
  message.status = std::move(status);
  message.lanes = std::move(lanes);
  for (uint32_t r = 0; r < num_ranks_; ++r) out.push_back({r, message});
}

// All get the message at once, those that have yet to begin, too: rank 0 may leave before they do.
void RunLedger::refuse(OpenRun& run, const RankMessage& about, Status why, std::vector<Out>& out) {
  EDDY_DCHECK(run.phase == Phase::kBeginning) << "run " << about.run << " is refused too late";
  run.phase = Phase::kRefused;
  run.why = std::move(why);
  for (uint32_t r = 0; r < num_ranks_; ++r) {
    if (gone_[r]) continue;
    out.push_back(
        {r, {.kind = Kind::kBegun, .session = about.session, .run = about.run, .status = run.why}});
  }
}

void RunLedger::begin(uint32_t from, OpenRun& run, RankMessage message, std::vector<Out>& out) {
  if (run.has_begun[from]) return;
  run.has_begun[from] = true;
  const RankMessage about{.session = message.session, .run = message.run};
  if (run.phase == Phase::kRefused) return;  // the rank has the message
  if (!message.status.is_ok()) return refuse(run, about, of_rank(from, message.status), out);
  if (const auto left = std::ranges::find(gone_, true); left != gone_.end()) {
    const auto rank = static_cast<uint32_t>(left - gone_.begin());
    return refuse(run, about, of_rank(rank, cancelled("its session has ended")), out);
  }
  if (!note(from, run, std::move(message))) return;
  if (Status status = compare_facts(run.said); !status.is_ok()) {
    return refuse(run, about, std::move(status), out);
  }
  enter(run, Phase::kRunning);
  tell_all(Kind::kBegun, about, out);
}

void RunLedger::go(uint32_t rank, std::vector<Out>& out, const RankMessage& about) {
  gone_[rank] = true;
  for (auto& [number, run] : runs_) {
    if (run.phase != Phase::kBeginning || run.has_begun[rank]) continue;
    refuse(run, {.session = about.session, .run = number},
           of_rank(rank, cancelled("its session has ended")), out);
  }
  std::erase_if(runs_, [this](const auto& each) { return is_refused_by_all(each.second); });
}

bool RunLedger::is_refused_by_all(const OpenRun& run) const {
  if (run.phase != Phase::kRefused) return false;
  for (uint32_t r = 0; r < num_ranks_; ++r) {
    if (!run.has_begun[r] && !gone_[r]) return false;
  }
  return true;
}

void RunLedger::accept(uint32_t from, RankMessage message, std::vector<Out>& out) {
  EDDY_CHECK(from < num_ranks_) << "a message of rank " << from << " of " << num_ranks_;
  if (message.kind == Kind::kGone) return go(from, out, message);
  // A rank begins before anything else, so other runs are done.
  if (message.kind != Kind::kBegin && !runs_.contains(message.run)) return;
  const RankMessage about{.session = message.session, .run = message.run};
  OpenRun& run = open(message.run);
  bool is_over = false;
  switch (message.kind) {
    case Kind::kBegin:
      begin(from, run, std::move(message), out);
      break;
    case Kind::kEnd:
      if (run.phase != Phase::kRunning || !note(from, run, std::move(message))) break;
      tell_all(Kind::kDone, about, out);
      is_over = true;
      break;
    case Kind::kStop:
      if (run.phase == Phase::kBeginning) {
        refuse(run, about, of_rank(from, message.status), out);
      } else if (run.phase == Phase::kRunning) {
        enter(run, Phase::kCounting);
        tell_all(Kind::kStopped, about, out, of_rank(from, message.status));
      }
      break;
    case Kind::kCount:
      if (run.phase != Phase::kCounting || !note(from, run, std::move(message))) break;
      tell_all(Kind::kCut, about, out, {}, furthest(run.said));
      enter(run, Phase::kSettling);
      break;
    case Kind::kSettled:
      if (run.phase != Phase::kSettling || !note(from, run, std::move(message))) break;
      tell_all(Kind::kDone, about, out, gravest(run.said));
      is_over = true;
      break;
    default:
      break;
  }
  if (is_over || is_refused_by_all(run)) runs_.erase(about.run);
}

}  // namespace eddy
