#include "runtime/device/command_code.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

void CommandCode::emit(Op op, uint32_t target, void* context) {
  EDDY_CHECK(!is_finished_) << "recording into a finished command buffer";
  Command command;
  command.op = op;
  command.target = target;
  command.context = context;
  code_.push_back(command);
}

CommandCode::OpenScope& CommandCode::innermost(OpenScope::Kind kind, const char* caller) {
  EDDY_CHECK(!open_.empty() && open_.back().kind == kind) << caller << " does not fit what is open";
  return open_.back();
}

void CommandCode::launch(WorkFunction run, void* context, bool is_cheap) {
  emit(Op::kLaunch, 0, context);
  code_.back().run = run;
  code_.back().is_cheap = is_cheap;
}

void CommandCode::begin_while() {
  open_.push_back(
      {.kind = OpenScope::Kind::kWhile, .start = here(), .tests = {}, .branch_ends = {}});
}

void CommandCode::test_while(DecideFunction decide, void* context) {
  innermost(OpenScope::Kind::kWhile, "test_while").tests.push_back(here());
  emit(Op::kTest, 0, context);
  code_.back().decide = decide;
}

void CommandCode::end_while() {
  const OpenScope& scope = innermost(OpenScope::Kind::kWhile, "end_while");
  EDDY_CHECK(!scope.tests.empty()) << "a while without test_while";
  emit(Op::kRepeat, scope.start);
  for (const uint32_t test : scope.tests) code_[test].target = here();
  open_.pop_back();
}

void CommandCode::begin_case(DecideFunction decide, void* context, uint32_t num_branches) {
  const uint32_t table = static_cast<uint32_t>(targets_.size());
  emit(Op::kSwitch, table, context);
  code_.back().decide = decide;
  targets_.resize(targets_.size() + num_branches + 1);
  open_.push_back({.kind = OpenScope::Kind::kCase,
                   .tests = {},
                   .table = table,
                   .num_branches = num_branches,
                   .branch_ends = {}});
}

void CommandCode::begin_branch() {
  OpenScope& scope = innermost(OpenScope::Kind::kCase, "begin_branch");
  EDDY_CHECK(scope.next_branch < scope.num_branches) << "more branches than announced";
  if (scope.next_branch > 0) {
    scope.branch_ends.push_back(here());
    emit(Op::kJump);
  }
  targets_[scope.table + scope.next_branch++] = here();
}

void CommandCode::end_case() {
  const OpenScope& scope = innermost(OpenScope::Kind::kCase, "end_case");
  EDDY_CHECK(scope.next_branch == scope.num_branches) << "fewer branches than announced";
  for (uint32_t jump : scope.branch_ends) code_[jump].target = here();
  targets_[scope.table + scope.num_branches] = here();
  open_.pop_back();
}

void CommandCode::begin_fork(uint32_t stream) {
  const uint32_t strand = static_cast<uint32_t>(strand_entries_.size());
  emit(Op::kFork, strand);
  open_.push_back(
      {.kind = OpenScope::Kind::kFork, .start = here(), .tests = {}, .branch_ends = {}});
  emit(Op::kJump);
  strand_entries_.push_back(here());
  strand_streams_.push_back(stream == kNewStream ? num_streams_ : stream);
  num_streams_ = std::max(num_streams_, strand_streams_.back() + 1);
}

void CommandCode::end_fork() {
  const OpenScope& scope = innermost(OpenScope::Kind::kFork, "end_fork");
  emit(Op::kEnd);
  code_[scope.start].target = here();
  open_.pop_back();
}

uint32_t CommandCode::add_event() { return num_events_++; }

void CommandCode::reset(uint32_t event) { emit(Op::kReset, event); }
void CommandCode::record(uint32_t event) { emit(Op::kRecord, event); }
void CommandCode::wait(uint32_t event) { emit(Op::kWait, event); }

void CommandCode::finish() {
  EDDY_CHECK(open_.empty()) << "finish() with an open while, case or fork";
  emit(Op::kEnd);
  is_finished_ = true;
}

}  // namespace eddy
