#include "tests/tools/check/command_edits.h"

#include <algorithm>

#include "runtime/execute/step_observer.h"

namespace eddy::check {
namespace {

using Op = Call::Op;
using Fits = std::function<bool(const Call& call)>;
// Changes the calls around position `at`; false when nothing can be changed there.
using EditAt = std::function<bool(Calls& calls, size_t at, std::deque<Liar>& liars)>;

bool is_step(const Call& call, StepKind kind) {
  if (call.op != Op::kLaunch || call.run != ObservedStep::run_step) return false;
  return static_cast<const ObservedStep*>(call.context)->step.kind == kind;
}
Fits step(StepKind kind) {
  return [kind](const Call& call) { return is_step(call, kind); };
}
Fits op(Op wanted) {
  return [wanted](const Call& call) { return call.op == wanted; };
}

// The n-th call that fits and where the edit can be made.
CommandEdit at_nth(Fits fits, EditAt edit) {
  return [fits, edit](Calls& calls, size_t n, std::deque<Liar>& liars) {
    for (size_t at = 0; at < calls.size(); ++at) {
      if (!fits(calls[at])) continue;
      Calls edited = calls;
      if (!edit(edited, at, liars)) continue;
      if (n-- > 0) continue;
      calls = std::move(edited);
      return true;
    }
    return false;
  };
}

bool drop(Calls& calls, size_t at, std::deque<Liar>&) {
  calls.erase(calls.begin() + static_cast<ptrdiff_t>(at));
  return true;
}
bool repeat(Calls& calls, size_t at, std::deque<Liar>&) {
  const Call again = calls[at];
  calls.insert(calls.begin() + static_cast<ptrdiff_t>(at), again);
  return true;
}
bool swap_with_next(Calls& calls, size_t at, std::deque<Liar>&) {
  if (at + 1 >= calls.size() || calls[at + 1].op != Op::kLaunch) return false;
  std::swap(calls[at], calls[at + 1]);
  return true;
}
bool swap_with_previous(Calls& calls, size_t at, std::deque<Liar>&) {
  if (at == 0 || calls[at - 1].op != Op::kLaunch) return false;
  std::swap(calls[at], calls[at - 1]);
  return true;
}
// Names an event of the same kind of call elsewhere in the list.
bool name_another_event(Calls& calls, size_t at, std::deque<Liar>&) {
  for (const Call& other : calls) {
    if (other.op != Op::kRecord || other.number == calls[at].number) continue;
    calls[at].number = other.number;
    return true;
  }
  return false;
}
// The reset comes behind the fork that records the event.
bool move_behind_fork(Calls& calls, size_t at, std::deque<Liar>&) {
  for (size_t i = at + 1; i < calls.size(); ++i) {
    if (calls[i].op != Op::kEndFork) continue;
    std::rotate(calls.begin() + static_cast<ptrdiff_t>(at),
                calls.begin() + static_cast<ptrdiff_t>(at) + 1,
                calls.begin() + static_cast<ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}
// The last wait of the list that is in front of a loop's advance: the join of its body.
bool is_last_wait_before(const Calls& calls, size_t at, StepKind kind) {
  size_t i = at + 1;
  while (i < calls.size() && calls[i].op == Op::kWait) ++i;
  return i < calls.size() && is_step(calls[i], kind);
}
bool drop_join(Calls& calls, size_t at, std::deque<Liar>& liars) {
  return is_last_wait_before(calls, at, StepKind::kAdvance) && drop(calls, at, liars);
}

// --- decisions and launches that lie ---

Liar& lie(Call& call, std::deque<Liar>& liars) {
  return liars.emplace_back(Liar{call.decide, call.run, call.context, call.number, false});
}
EditAt decide_with(DecideFunction liar) {
  return [liar](Calls& calls, size_t at, std::deque<Liar>& liars) {
    calls[at].context = &lie(calls[at], liars);
    calls[at].decide = liar;
    return true;
  };
}
EditAt run_with(WorkFunction liar) {
  return [liar](Calls& calls, size_t at, std::deque<Liar>& liars) {
    calls[at].context = &lie(calls[at], liars);
    calls[at].run = liar;
    return true;
  };
}

int32_t once_more(void* self) {  // a loop that should end makes one round more
  Liar& liar = *static_cast<Liar*>(self);
  const int32_t decision = liar.decide(liar.context);
  if (decision != 0 || liar.has_lied) return decision;
  liar.has_lied = true;
  return 1;
}
int32_t ends_at_once(void* self) {
  Liar& liar = *static_cast<Liar*>(self);
  return std::min(liar.decide(liar.context), 0);
}
int32_t never_ends(void* self) {
  Liar& liar = *static_cast<Liar*>(self);
  return std::max(liar.decide(liar.context), 1);
}
int32_t next_branch(void* self) {
  Liar& liar = *static_cast<Liar*>(self);
  const int32_t decision = liar.decide(liar.context);
  const auto count = static_cast<int32_t>(liar.branches);
  return decision < 0 ? decision : (decision + 1) % (count + 1);
}
int32_t decides_twice(void* self) {
  Liar& liar = *static_cast<Liar*>(self);
  (void)liar.decide(liar.context);
  return liar.decide(liar.context);
}
bool runs_once_only(void* self) {  // later rounds find the value of the first
  Liar& liar = *static_cast<Liar*>(self);
  if (liar.has_lied) return true;
  liar.has_lied = true;
  return liar.run(liar.context);
}
bool fails_silently(void* self) {
  Liar& liar = *static_cast<Liar*>(self);
  (void)liar.run(liar.context);
  return false;
}

}  // namespace

std::vector<std::pair<const char*, CommandEdit>> command_edits() {
  return {
      {"a wait is lost", at_nth(op(Op::kWait), drop)},
      {"a record is lost", at_nth(op(Op::kRecord), drop)},
      {"a reset is skipped", at_nth(op(Op::kReset), drop)},
      {"an event is recorded twice", at_nth(op(Op::kRecord), repeat)},
      {"a wait names another event", at_nth(op(Op::kWait), name_another_event)},
      {"a record names another event", at_nth(op(Op::kRecord), name_another_event)},
      {"a record comes too early", at_nth(op(Op::kRecord), swap_with_previous)},
      {"a wait comes too late", at_nth(op(Op::kWait), swap_with_next)},
      {"a reset comes too late", at_nth(op(Op::kReset), move_behind_fork)},
      {"a body's strands are not joined", at_nth(op(Op::kWait), drop_join)},
      {"a node is not launched", at_nth(step(StepKind::kExec), drop)},
      {"a node is launched twice", at_nth(step(StepKind::kExec), repeat)},
      {"two nodes change places", at_nth(step(StepKind::kExec), swap_with_next)},
      {"a node runs in the first round only",
       at_nth(step(StepKind::kExec), run_with(runs_once_only))},
      {"a node fails and does not say why",
       at_nth(step(StepKind::kExec), run_with(fails_silently))},
      {"a loop is not entered", at_nth(step(StepKind::kEnter), drop)},
      {"a round is not advanced", at_nth(step(StepKind::kAdvance), drop)},
      {"a round is advanced twice", at_nth(step(StepKind::kAdvance), repeat)},
      {"a tail takes no reference", at_nth(step(StepKind::kTake), drop)},
      {"a row is not stacked", at_nth(step(StepKind::kRow), drop)},
      {"a loop is not left", at_nth(step(StepKind::kLeave), drop)},
      {"a branch's results are lost", at_nth(step(StepKind::kFinishBranch), drop)},
      {"a loop makes one round more", at_nth(op(Op::kTest), decide_with(once_more))},
      {"a loop makes no round", at_nth(op(Op::kTest), decide_with(ends_at_once))},
      {"a loop never ends", at_nth(op(Op::kTest), decide_with(never_ends))},
      {"a decision is made twice", at_nth(op(Op::kTest), decide_with(decides_twice))},
      {"another branch is taken", at_nth(op(Op::kBeginCase), decide_with(next_branch))},
  };
}

CommandEdit count_wait(uint64_t& count) {
  return at_nth(op(Op::kWait), [&count](Calls& calls, size_t at, std::deque<Liar>&) {
    Call call;
    call.context = &count;
    call.run = [](void* context) {
      ++*static_cast<uint64_t*>(context);
      return true;
    };
    calls.insert(calls.begin() + static_cast<ptrdiff_t>(at), call);
    return true;
  });
}

}  // namespace eddy::check
