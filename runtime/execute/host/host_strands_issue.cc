// HostStrands: how calls come to their streams: at once on the scheduler's thread, one by
// one, as segments, or by a worker.
#include <algorithm>

#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"
#include "runtime/device/run_scope.h"
#include "runtime/execute/host/await.h"
#include "runtime/execute/host/host_strands.h"

namespace eddy {

// Kernels' host halves are not ours to bound, so they never run on a task's small stack.
void HostStrands::check_stack() {
  EDDY_CHECK(!Scheduler::is_in_task()) << "work runs on a task's stack";
}

bool HostStrands::run_issued(void* issued) {
  check_stack();
  Issued& self = *static_cast<Issued*>(issued);
  RunControl& control = self.owner->control();
  if (control.is_stopped()) return false;
  const RunScope scope(control.owner);
  if (self.binding->run(self.binding->context)) return true;
  if (NoWaiting::has_refused_here()) {
    self.was_refused = true;
  } else {
    control.request_stop(StopReason::kFailed);
  }
  return false;
}

bool HostStrands::run_segment(void* issued_segment) {
  check_stack();
  auto& self = *static_cast<IssuedSegment*>(issued_segment);
  RunControl& control = self.owner->control();
  if (control.is_stopped()) return false;
  const RunScope scope(control.owner);
  Status why;
  EDDY_DCHECK(self.segment != nullptr) << "no segment begins there";
  const bool goes_on = std::exchange(self.goes_on, false);
  if (self.segment->run(self.owner->stream_of(self.strand).native(), why, goes_on)) return true;
  if (NoWaiting::has_refused_here()) {
    self.was_refused = true;
  } else if (!why.is_ok()) {
    control.fail(std::move(why), self.strand);
  } else {
    control.request_stop(StopReason::kFailed);
  }
  return false;
}

// Below the budget for what runs on the scheduler's thread, as far as known.
bool HostStrands::may_run_here(uint32_t at, uint32_t strand) {
  return code_.commands[at].is_cheap && !is_cold(issued_[at].is_warm, strand) &&
         times_.is_short(at);
}

// Executes what needs neither a wait nor a hand-off: cheap work and decisions on an idle stream.
// False answers leave the command to the task.
struct HostStrands::Batch {
  HostStrands& owner;
  const StrandCode& code;
  const Command* const commands;
  uint32_t* const rounds;
  Place& place;
  bool must_yield = false;

  bool call(uint32_t strand, uint32_t& at) {
    if (!owner.may_run_here(at, strand)) return false;
    Issued& issued = owner.issued_[at];
    const Work work{run_issued, &issued, true};
    Launch launch{owner.stream_of(strand), work, false};
    owner.times_.before(at);
    owner.may_refuse_ ? Launch::run_without_waiting(&launch) : Launch::run(&launch);
    if (!launch.is_taken) owner.refused(strand);
    if (!launch.is_taken || issued.was_refused) return false;
    must_yield = !owner.times_.after(at++);
    return !must_yield;
  }
  bool start(uint32_t, uint32_t) { return false; }
  int32_t decide(uint32_t, uint32_t at) {
    const Binding& binding = owner.bindings_.calls[at];
    const int32_t decision = binding.decide(binding.context);
    if (decision < 0) owner.control().request_stop(StopReason::kFailed);
    return decision;
  }
  bool repeat(uint32_t, uint32_t) {
    must_yield = --place.decisions == 0;
    return !must_yield;
  }
  bool wait(uint32_t, uint32_t) { return false; }
  bool record(uint32_t, uint32_t) { return false; }
  bool rest(uint32_t, uint32_t) { return false; }
  bool end(uint32_t) { return false; }
};

void HostStrands::run_batch(void* batch) {
  Batch& self = *static_cast<Batch*>(batch);
  HostStrands& owner = self.owner;
  Place& place = self.place;
  Stream& stream = owner.stream_of(place.strand);
  while (stream.is_idle() && owner.is_running()) {
    const Op op = owner.code_.commands[place.at].op;
    // Where something is checked, decide() looks whether what is read may be trusted.
    const bool is_checked =
        !owner.bindings_.checks.empty() && (op == Op::kTest || op == Op::kSelect);
    if (is_checked || owner.segment_or_null(place.at, place.strand) != nullptr) return;
    if (!run_command(self, place.strand, place.at)) return;
  }
}

// Issues the next call, or executes it and what follows, and moves on.
void HostStrands::issue(Place& place) {
  Stream& stream = stream_of(place.strand);
  const bool is_cheap = code_.commands[place.at].is_cheap;
  Issued& issued = issued_[place.at];
  const bool may_run_here = this->may_run_here(place.at, place.strand);
  if (may_run_here && stream.is_idle()) return issue_batch(place);
  take_credit(place);
  if (is_cheap && !may_run_here) return issue_aside(place);
  times_.begin_batch();
  times_.before(place.at);
  if (!enqueue_work(stream, {run_issued, &issued, is_cheap})) return refused(place.strand);
  if (std::exchange(issued.was_refused, false)) return issue_aside(place);
  times_.after(place.at++);
  times_.end_batch();
  give_way(place);
}

void HostStrands::issue_batch(Place& place) {
  if (!is_device_fine(place.strand)) return;
  place.in_flight = 0;
  times_.begin_batch();
  Batch batch{*this, code_, code_.commands.data(), rounds(), place};
  Scheduler::call_on_thread_stack(run_batch, &batch);
  times_.end_batch();
  if (std::exchange(issued_[place.at].was_refused, false)) return issue_aside(place);
  if (batch.must_yield) return go_on(place);
  // Workers may have ended what stands between short batches before this task would wait for it.
  give_way(place);
}

// A worker issues the call, or executes it.
void HostStrands::issue_aside(Place& place) {
  EDDY_DCHECK(StrandCode::calls(code_.commands[place.at].op)) << "a worker is given no call";
  Issued& issued = issued_[place.at];
  issued.is_warm = true;
  times_.run_elsewhere(place.at);
  const Work work{run_issued, &issued, false};
  const bool is_taken = device_index(place.strand) == 0
                            ? enqueue_work(stream_of(place.strand), work)
                            : enqueue_aside(stream_of(place.strand), work);
  if (!is_taken) return refused(place.strand);
  ++place.at;
}

void HostStrands::give_way(Place& place) {
  if (times_.now() - place.since_ns > InlineTimes::kLongestNs) yield(place);
}

void HostStrands::yield(Place& place) {
  Scheduler::yield();
  place.decisions = kInlineDecisions;
  place.since_ns = times_.now();
}

// --- loops that workers execute ---

std::vector<HostStrands::Span> HostStrands::spans_of_strands() const {
  std::vector<Span> spans;
  for (uint32_t s = 0; s < code_.strands.size(); ++s)
    spans.push_back({s, code_.strands[s].first, 0});
  std::ranges::sort(spans, {}, &Span::begin);
  for (size_t i = 0; i < spans.size(); ++i) {
    const bool is_last = i + 1 == spans.size();
    spans[i].end = is_last ? static_cast<uint32_t>(code_.commands.size()) : spans[i + 1].begin;
  }
  return spans;
}

void HostStrands::find_loops() {
  const std::vector<Command>& commands = code_.commands;
  for (const auto& [strand, begin, end] : spans_of_strands()) {
    if (device_index(strand) != 0) continue;
    uint32_t last_sync = begin;  // behind it nothing has been waited for
    for (uint32_t at = begin; at < end; ++at) {
      const Op op = commands[at].op;
      const bool is_sync = op == Op::kRecord || op == Op::kWait || op == Op::kRest;
      if (is_sync) last_sync = at + 1;
      if (op != Op::kRepeat || commands[at].target < last_sync) continue;
      // An outer loop's kRepeat stands behind those of its inner ones.
      while (!loops_.empty() && loops_.back().begin >= commands[at].target) loops_.pop_back();
      loops_.push_back({commands[at].target, at + 1});
    }
  }
  EDDY_DCHECK(std::ranges::is_sorted(loops_, {}, &Loop::begin)) << "loops are looked up by begin";
}

HostStrands::Loop HostStrands::loop_around(uint32_t at) const {
  const auto behind = std::ranges::upper_bound(loops_, at, {}, &Loop::begin);
  if (behind == loops_.begin() || !std::prev(behind)->has(at)) return {};
  return *std::prev(behind);
}

struct HostStrands::LoopOnWorker {
  HostStrands& owner;
  const StrandCode& code;
  const Command* const commands;
  uint32_t* const rounds;
  const Loop& loop;
  const uint32_t strand;
  uint32_t at;
  const int64_t began_ns;
  bool is_parked = false;  // a call is to answer

  bool call(uint32_t, uint32_t& next) {
    const Binding& binding = owner.bindings_.calls[next];
    if (binding.run(binding.context)) {
      ++next;
    } else {
      owner.control().request_stop(StopReason::kFailed);
    }
    return true;
  }
  bool start(uint32_t, uint32_t next) {
    is_parked = !owner.start_call(strand, next);
    if (is_parked) ++at;
    return !is_parked;
  }
  int32_t decide(uint32_t, uint32_t next) {
    const Binding& binding = owner.bindings_.calls[next];
    const int32_t decision = binding.decide(binding.context);
    if (decision < 0) owner.control().request_stop(StopReason::kFailed);
    return decision;
  }
  bool repeat(uint32_t, uint32_t) {
    constexpr uint32_t kRounds = 64;  // between two looks at the clock
    if (++num_rounds % kRounds != 0) return true;
    const Workers* const workers = owner.device(strand).workers_or_null();
    const bool has_idle_worker = workers != nullptr && workers->num_idle() > 0;
    return has_idle_worker || owner.times_.now() - began_ns < kSliceNs;
  }
  bool wait(uint32_t, uint32_t) { return false; }
  bool record(uint32_t, uint32_t) { return false; }
  bool rest(uint32_t, uint32_t) { return false; }
  bool end(uint32_t) { return false; }

  static bool run(void* context) {
    auto& self = *static_cast<LoopOnWorker*>(context);
    const RunScope scope(self.owner.control().owner);
    while (self.owner.is_running() && self.loop.has(self.at)) {
      if (!run_command(self, self.strand, self.at)) break;
    }
    return true;
  }
  uint32_t num_rounds = 0;
};

// Behind a turn of the thread's: others have theirs, or a worker goes on.
void HostStrands::go_on(Place& place) {
  const Loop loop = loop_around(place.at);
  if (!loop.has(place.at)) return yield(place);
  run_on_worker(loop, place);
  place.decisions = kInlineDecisions;
  place.since_ns = times_.now();
}

// What the loop reads is there, and checked, so its decisions need no check.
void HostStrands::run_on_worker(const Loop& loop, Place& place) {
  if (!may_decide(place.strand)) return;
  place.in_flight = 0;
  while (is_running() && loop.has(place.at)) {
    LoopOnWorker work{*this,        code_,    code_.commands.data(), rounds(), loop,
                      place.strand, place.at, times_.now()};
    tasks_[place.strand].woken.reset();
    if (!stream_of(place.strand).launch({LoopOnWorker::run, &work, false})) {
      return refused(place.strand);
    }
    await_idle(stream_of(place.strand));
    place.at = work.at;
    if (!work.is_parked) continue;
    tasks_[place.strand].woken.wait("the answer of a call");
    set_state(place.strand, StrandState::kRunning);
  }
}

void HostStrands::Launch::run(void* launch) {
  auto& self = *static_cast<Launch*>(launch);
  self.is_taken = self.stream.launch(self.work);
}

void HostStrands::Launch::run_without_waiting(void* launch) {
  const NoWaiting scope;
  run(launch);
}

// Whatever the stream runs at once (all of it on a device, cheap work where the queue has emptied
// meanwhile) runs on the thread's own stack.
bool HostStrands::enqueue_work(Stream& stream, const Work& work) {
  Launch launch{stream, work, false};
  Scheduler::call_on_thread_stack(may_refuse_ ? Launch::run_without_waiting : Launch::run, &launch);
  return launch.is_taken;
}

bool HostStrands::enqueue_aside(Stream& stream, const Work& work) {
  Launch launch{stream, work, false};
  workers_.call(Launch::run, &launch);
  return launch.is_taken;
}

// What a stream keeps is issued by the thread that polls it, which may not wait, or else it holds
// others up.
void HostStrands::await_room(uint32_t strand) {
  if (!stream_of(strand).has_room()) await_stream(strand);
}

void HostStrands::take_credit(Place& place) {
  await_room(place.strand);
  if (!stream_of(place.strand).is_idle()) {
    if (++place.in_flight <= kCredit) return;
    await_stream(place.strand);
  }
  place.in_flight = 0;
}

// Strands whose rounds stand in the segment stay where they rest.
void HostStrands::pass_over(const Segment& segment) {
  for (const SegmentStep& step : segment.steps()) {
    if (step.kind == SegmentStep::Kind::kRound) pass_round(step.event);
    if (step.kind == SegmentStep::Kind::kRecord) pass_record(step.event);
  }
}

void HostStrands::issue_segment(Segment& segment, Place& place) {
  pass_over(segment);
  take_credit(place);
  IssuedSegment& issued = segments_.at(place.at);
  const Work work{run_segment, &issued, true};
  const bool is_cold = this->is_cold(std::exchange(issued.is_warm, true), place.strand);
  issued.goes_on = false;
  bool is_taken = is_cold ? enqueue_aside(stream_of(place.strand), work)
                          : enqueue_work(stream_of(place.strand), work);
  if (std::exchange(issued.was_refused, false)) {
    issued.goes_on = true;
    is_taken = enqueue_aside(stream_of(place.strand), work);
  }
  if (!is_taken) return refused(place.strand);
  place.in_flight += static_cast<uint32_t>(segment.num_issued());
  place.at = segment.next();
  give_way(place);
}

}  // namespace eddy
