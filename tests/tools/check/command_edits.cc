#include "tests/tools/check/command_edits.h"

#include <algorithm>

#include "runtime/execute/runs/observed_step.h"

namespace eddy::check {
namespace {

using Op = StrandCode::Op;
using Command = StrandCode::Command;
// Whether an edit may apply to the command at that place.
using Fits = std::function<bool(const EditedCode& edited, uint32_t at)>;
// Changes the code around place `at`; false when nothing can be changed there.
using EditAt = std::function<bool(EditedCode& edited, uint32_t at)>;

const ObservedStep* step_or_null(const EditedCode& edited, uint32_t at) {
  const Op op = edited.code.commands[at].op;
  if (!StrandCode::calls(op)) return nullptr;
  const bool decides = op != Op::kCall;
  const Binding& binding = edited.bindings.calls[at];
  const bool is_observed =
      decides ? binding.decide == ObservedStep::decide_step : binding.run == ObservedStep::run_step;
  return is_observed ? static_cast<const ObservedStep*>(binding.context) : nullptr;
}
bool is_step(const EditedCode& edited, uint32_t at, StepKind kind) {
  const ObservedStep* observed = step_or_null(edited, at);
  return observed != nullptr && observed->step.kind == kind;
}
Fits step(StepKind kind) {
  return [kind](const EditedCode& edited, uint32_t at) { return is_step(edited, at, kind); };
}
Fits op(Op wanted) {
  return [wanted](const EditedCode& edited, uint32_t at) {
    return edited.code.commands[at].op == wanted;
  };
}
// Where a strand rests: that place is no order that could be lost, but the strand's beginning.
bool is_first(const EditedCode& edited, uint32_t at) {
  return std::ranges::any_of(edited.code.strands,
                             [at](const StrandCode::Strand& strand) { return strand.first == at; });
}
bool waits_inside(const EditedCode& edited, uint32_t at) {
  return edited.code.commands[at].op == Op::kWait && !is_first(edited, at);
}

// The n-th command that fits and where the edit can be made.
CommandEdit at_nth(Fits fits, EditAt edit) {
  return [fits, edit](EditedCode& edited, size_t n) {
    for (uint32_t at = 0; at < edited.code.commands.size(); ++at) {
      if (!fits(edited, at)) continue;
      const StrandCode before = edited.code;
      const Bindings bound = edited.bindings;
      if (!edit(edited, at)) continue;
      if (n-- == 0) return true;
      edited.code = before;
      edited.bindings = bound;
    }
    return false;
  };
}

// In front of what stands there.
void insert(EditedCode& edited, uint32_t at, const Command& command, const Binding& binding) {
  StrandCode& code = edited.code;
  for (Command& each : code.commands) {
    const bool jumps = each.op == Op::kTest || each.op == Op::kRepeat || each.op == Op::kJump;
    if (jumps && each.target > at) ++each.target;
  }
  for (uint32_t& target : code.targets) target += target > at ? 1 : 0;
  for (StrandCode::Strand& strand : code.strands) strand.first += strand.first > at ? 1 : 0;
  code.commands.insert(code.commands.begin() + at, command);
  edited.bindings.calls.insert(edited.bindings.calls.begin() + at, binding);
  if (!edited.bindings.notes.empty()) {
    edited.bindings.notes.insert(edited.bindings.notes.begin() + at, CallNote());
  }
}

bool drop(EditedCode& edited, uint32_t at) {
  edited.code.commands[at] = {.op = Op::kJump, .target = at + 1};
  return true;
}
bool repeat(EditedCode& edited, uint32_t at) {
  insert(edited, at, Command(edited.code.commands[at]), Binding(edited.bindings.calls[at]));
  return true;
}
bool swap_with(EditedCode& edited, uint32_t at, uint32_t other) {
  std::vector<Command>& commands = edited.code.commands;
  if (other >= commands.size() || commands[other].op != Op::kCall) return false;
  std::swap(commands[at], commands[other]);
  std::swap(edited.bindings.calls[at], edited.bindings.calls[other]);
  return true;
}
bool swap_with_next(EditedCode& edited, uint32_t at) { return swap_with(edited, at, at + 1); }
bool swap_with_previous(EditedCode& edited, uint32_t at) {
  return at > 0 && swap_with(edited, at, at - 1);
}
// Names an event of the same kind of command elsewhere.
bool name_another_event(EditedCode& edited, uint32_t at) {
  Command& command = edited.code.commands[at];
  for (const Command& other : edited.code.commands) {
    if (other.op != Op::kRecord || other.operand == command.operand) continue;
    command.operand = other.operand;
    return true;
  }
  return false;
}
bool wait_for_round_before(EditedCode& edited, uint32_t at) {
  edited.code.commands[at].lag += 1;
  return true;
}
// The last wait of the list that is in front of a loop's advance: the join of its body.
bool drop_join(EditedCode& edited, uint32_t at) {
  uint32_t i = at + 1;
  while (edited.code.commands[i].op == Op::kWait) ++i;
  return is_step(edited, i, StepKind::kAdvance) && drop(edited, at);
}

// --- decisions and launches that lie ---

Liar& lie(EditedCode& edited, uint32_t at) {
  const ObservedStep& observed = *step_or_null(edited, at);
  const Binding& binding = edited.bindings.calls[at];
  const size_t branches = observed.state->graph().node(observed.step.node).regions.size();
  const bool decides = edited.code.commands[at].op != Op::kCall;
  return edited.liars.emplace_back(Liar{decides ? binding.decide : nullptr,
                                        decides ? nullptr : binding.run, binding.context,
                                        static_cast<uint32_t>(branches), false});
}
EditAt decide_with(DecideFunction liar) {
  return [liar](EditedCode& edited, uint32_t at) {
    edited.bindings.calls[at] = {{.decide = liar}, &lie(edited, at)};
    return true;
  };
}
EditAt run_with(WorkFunction liar) {
  return [liar](EditedCode& edited, uint32_t at) {
    edited.bindings.calls[at] = {{.run = liar}, &lie(edited, at)};
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
      {"a wait is lost", at_nth(waits_inside, drop)},
      {"a record is lost", at_nth(op(Op::kRecord), drop)},
      {"a round is not counted", at_nth(op(Op::kBegin), drop)},
      {"an event is recorded twice", at_nth(op(Op::kRecord), repeat)},
      {"a wait names another event", at_nth(waits_inside, name_another_event)},
      {"a record names another event", at_nth(op(Op::kRecord), name_another_event)},
      {"a record comes too early", at_nth(op(Op::kRecord), swap_with_previous)},
      {"a wait comes too late", at_nth(waits_inside, swap_with_next)},
      {"a wait is for the round before", at_nth(waits_inside, wait_for_round_before)},
      {"a body's strands are not joined", at_nth(waits_inside, drop_join)},
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
      {"a loop makes one round more", at_nth(step(StepKind::kTest), decide_with(once_more))},
      {"a loop makes no round", at_nth(step(StepKind::kTest), decide_with(ends_at_once))},
      {"a loop never ends", at_nth(step(StepKind::kTest), decide_with(never_ends))},
      {"a decision is made twice", at_nth(step(StepKind::kTest), decide_with(decides_twice))},
      {"another branch is taken", at_nth(step(StepKind::kSelect), decide_with(next_branch))},
  };
}

CommandEdit count_wait(uint64_t& count) {
  return at_nth(waits_inside, [&count](EditedCode& edited, uint32_t at) {
    insert(edited, at, {.op = Op::kCall},
           {{.run =
                 [](void* context) {
                   ++*static_cast<uint64_t*>(context);
                   return true;
                 }},
            &count});
    return true;
  });
}

}  // namespace eddy::check
