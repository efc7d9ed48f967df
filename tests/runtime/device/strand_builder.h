// StrandBuilder: the code of strands, written down by hand, with what its calls call.
//
//   launch(work)                              calls work
//   begin_while, <before>, test_while(d), <after>, end_while
//                                             repeats while d returns 1, ends when 0
//   begin_case(d, n), begin_branch, <branch 0>, begin_branch, <branch 1>, …, end_case
//                                             d returns 0 … n-1, or n to run no branch
//   begin_fork(s), <commands>, end_fork       the commands are a strand of their own, on stream s;
//                                             it begins, in each round, where the fork stands
//   record(e), wait(e)                        events between strands, once in each round
//
// What stands before a loop's test, what stands behind it, each branch and the root have rounds of
// their own. A fork ends with
// the record that stands last in it, else with one that nothing waits for.
#pragma once

#include <deque>
#include <vector>

#include "graph/base/check.h"
#include "runtime/device/strand_runner.h"

namespace eddy::testing {

class StrandBuilder {
 public:
  static constexpr uint32_t kNewStream = UINT32_MAX;

  StrandBuilder() {
    add_strand(0, StrandCode::kNone);
    begin_scope();
  }

  // The call's number.
  uint32_t launch(WorkFunction run, void* context, bool is_cheap = true) {
    emit({Op::kCall, is_cheap, 0, add_call({{run}, context}), 0});
    return static_cast<uint32_t>(calls_.size()) - 1;
  }
  void begin_while() {
    Open& open = open_.emplace_back();
    open.start = here();
    begin_scope();
  }
  void test_while(DecideFunction decide, void* context) {
    end_scope();
    open_.back().test = here();
    emit({Op::kTest, true, 0, add_call({{.decide = decide}, context}), 0});
    begin_scope();
  }
  void end_while() {
    emit({Op::kRepeat, true, 0, 0, open_.back().start});
    commands()[open_.back().test].target = here();
    end_scope();
    open_.pop_back();
  }
  void begin_case(DecideFunction decide, void* context, uint32_t num_branches) {
    Open& open = open_.emplace_back();
    open.table = static_cast<uint32_t>(code_.targets.size());
    open.num_branches = num_branches;
    code_.targets.resize(open.table + num_branches + 1);
    table_strands_.resize(code_.targets.size(), strands_in_work_.back());
    emit({Op::kSelect, true, 0, add_call({{.decide = decide}, context}), open.table});
  }
  void begin_branch() {
    end_branch();
    Open& open = open_.back();
    code_.targets[open.table + open.next_branch++] = here();
    begin_scope();
  }
  void end_case() {
    end_branch();
    Open& open = open_.back();
    EDDY_CHECK(open.next_branch == open.num_branches);
    code_.targets[open.table + open.num_branches] = here();
    for (const uint32_t end : open.branch_ends) commands()[end].target = here();
    open_.pop_back();
  }
  void begin_fork(uint32_t stream) {
    const uint32_t entry = add_event();
    record(entry);
    const uint32_t round = add_round();
    add_strand(stream == kNewStream ? code_.num_streams : stream, round);
    scopes_.push_back(round);
    wait(entry);
  }
  void end_fork() {
    if (commands().back().op != Op::kRecord) record(add_event());
    commands().back().op = Op::kRest;
    commands().back().target = scopes_.back();
    scopes_.pop_back();
    strands_in_work_.pop_back();
  }
  uint32_t add_event() {
    code_.events.push_back({});
    const auto number = static_cast<uint32_t>(code_.events.size()) - 1;
    code_.events.back().machine[0] = code_.events.back().machine[1] = number;
    return number;
  }
  void record(uint32_t event) {
    code_.events[event].strand = strands_in_work_.back();
    code_.events[event].round = scopes_.back();
    emit({Op::kRecord, true, 0, event, 0});
  }
  void wait(uint32_t event) { emit({Op::kWait, true, 0, event, scopes_.back()}); }

  // Nothing is added afterwards.
  void finish() {
    emit({Op::kEnd, true, 0, 0, 0});
    std::vector<uint32_t> first;
    for (size_t s = 0; s < code_of_strands_.size(); ++s) {
      first.push_back(static_cast<uint32_t>(code_.commands.size()));
      code_.strands[s].first = first[s];
      for (StrandCode::Command command : code_of_strands_[s]) {
        const bool jumps =
            command.op == Op::kTest || command.op == Op::kRepeat || command.op == Op::kJump;
        if (jumps) command.target += first[s];
        code_.commands.push_back(command);
        const bool calls = StrandCode::calls(command.op);
        bindings_.calls.push_back(calls ? calls_[command.operand] : Binding());
      }
    }
    for (size_t t = 0; t < code_.targets.size(); ++t) code_.targets[t] += first[table_strands_[t]];
  }
  const StrandCode& code() const { return code_; }
  const Bindings& bindings() const { return bindings_; }
  Bindings& bindings() { return bindings_; }

 private:
  using Op = StrandCode::Op;
  // A loop or case that has not ended.
  struct Open {
    uint32_t start = 0;
    uint32_t test = 0;
    uint32_t table = 0;
    uint32_t num_branches = 0;
    uint32_t next_branch = 0;
    std::vector<uint32_t> branch_ends = {};
  };

  std::vector<StrandCode::Command>& commands() { return code_of_strands_[strands_in_work_.back()]; }
  uint32_t here() { return static_cast<uint32_t>(commands().size()); }
  void emit(StrandCode::Command command) { commands().push_back(command); }
  uint32_t add_call(const Binding& binding) {
    calls_.push_back(binding);
    return static_cast<uint32_t>(calls_.size()) - 1;
  }
  uint32_t add_round() {
    code_.rounds.push_back({});
    return static_cast<uint32_t>(code_.rounds.size()) - 1;
  }
  void add_strand(uint32_t stream, uint32_t round) {
    strands_in_work_.push_back(static_cast<uint32_t>(code_.strands.size()));
    code_.strands.push_back({0, stream, round});
    code_.num_streams = std::max(code_.num_streams, stream + 1);
    code_of_strands_.emplace_back();
  }
  void begin_scope() {
    scopes_.push_back(add_round());
    emit({Op::kBegin, true, 0, scopes_.back(), 0});
  }
  void end_scope() { scopes_.pop_back(); }
  void end_branch() {
    if (open_.back().next_branch == 0) return;
    open_.back().branch_ends.push_back(here());
    emit({Op::kJump, true, 0, 0, 0});
    end_scope();
  }

  StrandCode code_;
  Bindings bindings_;
  std::vector<Binding> calls_;  // as the commands' operands number them
  std::deque<std::vector<StrandCode::Command>> code_of_strands_;  // jumps within each
  std::vector<uint32_t> table_strands_;                           // by entry of targets
  std::vector<uint32_t> strands_in_work_;
  std::vector<uint32_t> scopes_;  // their round counters
  std::vector<Open> open_;
};

}  // namespace eddy::testing
