#include "runtime/cpu/cpu_command_buffer.h"

#include <x86intrin.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int kSliceRounds = 64;               // looked at every so many rounds
constexpr uint64_t kSliceCycles = 200'000;     // some 60 to 100 µs

}  // namespace

CpuCommandBuffer::CpuCommandBuffer(WorkerPool& pool) : pool_(pool) {
  strands_.push_back({this, 0, 0, nullptr});
}

void CpuCommandBuffer::emit(Op op, uint32_t target, void* context) {
  EDDY_CHECK(!is_finished_) << "recording into a finished command buffer";
  Command command;
  command.op = op;
  command.target = target;
  command.context = context;
  code_.push_back(command);
}

CpuCommandBuffer::OpenScope& CpuCommandBuffer::innermost(OpenScope::Kind kind,
                                                         const char* caller) {
  EDDY_CHECK(!open_.empty() && open_.back().kind == kind) << caller << " does not fit what is open";
  return open_.back();
}

void CpuCommandBuffer::launch(WorkFunction run, void* context) {
  emit(Op::kLaunch, 0, context);
  code_.back().run = run;
}

void CpuCommandBuffer::begin_while() {
  open_.push_back({.kind = OpenScope::Kind::kWhile, .start = here(), .branch_ends = {}});
}

void CpuCommandBuffer::test_while(DecideFunction decide, void* context) {
  innermost(OpenScope::Kind::kWhile, "test_while").test = here();
  emit(Op::kTest, 0, context);
  code_.back().decide = decide;
}

void CpuCommandBuffer::end_while() {
  const OpenScope& scope = innermost(OpenScope::Kind::kWhile, "end_while");
  EDDY_CHECK(code_[scope.test].op == Op::kTest) << "a while without test_while";
  emit(Op::kRepeat, scope.start);
  code_[scope.test].target = here();
  open_.pop_back();
}

void CpuCommandBuffer::begin_case(DecideFunction decide, void* context, uint32_t num_branches) {
  const uint32_t table = static_cast<uint32_t>(targets_.size());
  emit(Op::kSwitch, table, context);
  code_.back().decide = decide;
  targets_.resize(targets_.size() + num_branches + 1);
  open_.push_back({.kind = OpenScope::Kind::kCase,
                   .table = table,
                   .num_branches = num_branches,
                   .branch_ends = {}});
}

void CpuCommandBuffer::begin_branch() {
  OpenScope& scope = innermost(OpenScope::Kind::kCase, "begin_branch");
  EDDY_CHECK(scope.next_branch < scope.num_branches) << "more branches than announced";
  if (scope.next_branch > 0) {
    scope.branch_ends.push_back(here());
    emit(Op::kJump);
  }
  targets_[scope.table + scope.next_branch++] = here();
}

void CpuCommandBuffer::end_case() {
  const OpenScope& scope = innermost(OpenScope::Kind::kCase, "end_case");
  EDDY_CHECK(scope.next_branch == scope.num_branches) << "fewer branches than announced";
  for (uint32_t jump : scope.branch_ends) code_[jump].target = here();
  targets_[scope.table + scope.num_branches] = here();
  open_.pop_back();
}

void CpuCommandBuffer::begin_fork() {
  const uint32_t strand = static_cast<uint32_t>(strands_.size());
  emit(Op::kFork, strand);
  open_.push_back({.kind = OpenScope::Kind::kFork, .start = here(), .branch_ends = {}});
  emit(Op::kJump);
  strands_.push_back({this, here(), 0, nullptr});
}

void CpuCommandBuffer::end_fork() {
  const OpenScope& scope = innermost(OpenScope::Kind::kFork, "end_fork");
  emit(Op::kEnd);
  code_[scope.start].target = here();
  open_.pop_back();
}

uint32_t CpuCommandBuffer::add_event() {
  events_.emplace_back();
  return static_cast<uint32_t>(events_.size() - 1);
}

void CpuCommandBuffer::reset(uint32_t event) { emit(Op::kReset, event); }
void CpuCommandBuffer::record(uint32_t event) { emit(Op::kRecord, event); }
void CpuCommandBuffer::wait(uint32_t event) { emit(Op::kWait, event); }

void CpuCommandBuffer::finish() {
  EDDY_CHECK(open_.empty()) << "finish() with an open while, case or fork";
  emit(Op::kEnd);
  is_finished_ = true;
}

void CpuCommandBuffer::prepare(RunControl& control) {
  EDDY_CHECK(is_finished_) << "launching a command buffer that is still being recorded";
  EDDY_CHECK(num_live_.load(std::memory_order_relaxed) == 0) << "a launch is still in progress";
  control_ = &control;
  for (CpuEvent& event : events_) event.reset();
  strands_[0].counter = strands_[0].entry;
  num_live_.store(1, std::memory_order_relaxed);
}

void CpuCommandBuffer::start(RunControl& control) {
  prepare(control);
  enqueue(strands_[0]);
}

void CpuCommandBuffer::run_here(RunControl& control) {
  prepare(control);
  execute(strands_[0], /*is_pool_thread=*/false);
}

void CpuCommandBuffer::enqueue(Strand& strand) {
  pool_.enqueue(
      [](void* context) {
        Strand& self = *static_cast<Strand*>(context);
        self.buffer->execute(self, /*is_pool_thread=*/true);
      },
      &strand);
}

void CpuCommandBuffer::enqueue_all(Strand* list) {
  while (list != nullptr) {
    Strand* next = list->next;  // read first: once enqueued, the strand is another thread's
    enqueue(*list);
    list = next;
  }
}

void CpuCommandBuffer::release_waits() {
  for (CpuEvent& event : events_) enqueue_all(event.record());
}

void CpuCommandBuffer::end_strand() {
  RunControl* control = control_;
  if (control->is_stopped()) release_waits();
  if (num_live_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (control->on_complete != nullptr) control->on_complete(control->context);
}

// One function although long: it is the interpreter's loop, and its cases share their state.
// long: a switch over all commands; splitting it would spill what the loop keeps in registers.
void CpuCommandBuffer::execute(Strand& strand, bool is_pool_thread) {
  const Command* const code = code_.data();
  const std::atomic<StopReason>& stop = control_->stop;
  uint32_t at = strand.counter;
  int rounds = kSliceRounds;
  uint64_t slice_start = 0;
  const auto is_running = [&] {
    return stop.load(std::memory_order_acquire) == StopReason::kRunning;
  };
  while (is_running()) {
    const Command& command = code[at];
    switch (command.op) {
      case Op::kLaunch:
        if (!command.run(command.context)) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        ++at;
        break;
      case Op::kTest: {
        const int32_t decision = command.decide(command.context);
        if (decision < 0) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        at = decision != 0 ? at + 1 : command.target;
        break;
      }
      case Op::kRepeat:
        at = command.target;
        if (--rounds > 0) [[likely]] break;
        rounds = kSliceRounds;
        if (slice_start == 0) slice_start = __rdtsc();
        if (is_pool_thread && pool_.has_waiting() && __rdtsc() - slice_start > kSliceCycles) {
          strand.counter = at;
          return enqueue(strand);
        }
        break;
      case Op::kJump:
        at = command.target;
        break;
      case Op::kSwitch: {
        const int32_t decision = command.decide(command.context);
        if (decision < 0) [[unlikely]] {
          control_->request_stop(StopReason::kFailed);
          break;
        }
        at = targets_[command.target + static_cast<uint32_t>(decision)];
        break;
      }
      case Op::kFork: {
        Strand& fork = strands_[command.target];
        fork.counter = fork.entry;
        num_live_.fetch_add(1, std::memory_order_relaxed);
        enqueue(fork);
        ++at;
        break;
      }
      case Op::kReset:
        events_[command.target].reset();
        ++at;
        break;
      case Op::kRecord:
        enqueue_all(events_[command.target].record());
        ++at;
        break;
      case Op::kWait:
        strand.counter = at + 1;
        if (!events_[command.target].wait_or_done(strand)) return;
        ++at;
        break;
      case Op::kEnd:
        return end_strand();
    }
  }
  end_strand();
}

}  // namespace eddy
