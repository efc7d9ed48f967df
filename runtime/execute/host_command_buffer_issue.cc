// HostCommandBuffer: how commands come to their streams: at once on the scheduler's thread, one by
// one, as segments, or by a worker.
#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"
#include "runtime/execute/host_command_buffer.h"

namespace eddy {

// Kernels' host halves are not ours to bound, so they never run on a task's small stack.
void HostCommandBuffer::check_stack() {
  EDDY_CHECK(!Scheduler::is_in_task()) << "work runs on a task's stack";
}

bool HostCommandBuffer::run_issued(void* issued) {
  check_stack();
  Issued& self = *static_cast<Issued*>(issued);
  RunControl& control = *self.owner->control_;
  if (control.is_stopped()) return false;
  if (self.command->run(self.command->context)) return true;
  if (NoWaiting::has_refused_here()) {
    self.was_refused = true;
  } else {
    control.request_stop(StopReason::kFailed);
  }
  return false;
}

bool HostCommandBuffer::run_segment(void* issued_segment) {
  check_stack();
  auto& self = *static_cast<IssuedSegment*>(issued_segment);
  RunControl& control = *self.owner->control_;
  if (control.is_stopped()) return false;
  Status why;
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
bool HostCommandBuffer::may_run_here(uint32_t at, uint32_t strand) {
  return code()[at].is_cheap && !is_cold(issued_[at].is_warm, strand) && times_.is_short(at);
}

// Runs what needs neither a wait nor a hand-off: cheap work and decisions on an idle stream.
void HostCommandBuffer::run_batch(void* batch) {
  Batch& self = *static_cast<Batch*>(batch);
  HostCommandBuffer& owner = self.owner;
  Place& place = self.place;
  Stream& stream = owner.stream_of(place.strand);
  const Command* const code = owner.code().data();
  while (stream.is_idle() && !owner.control_->is_stopped()) {
    const Command& command = code[place.at];
    if (owner.segment_or_null(place.at, place.strand) != nullptr) return;
    if (command.op == Op::kLaunch) {
      if (!owner.may_run_here(place.at, place.strand) || !owner.run_command(self)) return;
    } else if (command.op == Op::kTest || command.op == Op::kSwitch) {
      if (!owner.checks_.empty()) return;  // decide() looks whether what is read may be trusted
      const int32_t decision = command.decide(command.context);
      if (decision < 0) {
        owner.control_->request_stop(StopReason::kFailed);
        return;
      }
      place.at = owner.after(place.at, decision);
    } else if (command.op == Op::kRepeat && place.decisions > 1) {
      --place.decisions;
      place.at = command.target;
    } else if (command.op == Op::kJump) {
      place.at = command.target;
    } else {
      return;
    }
  }
}

// False: the batch ends.
bool HostCommandBuffer::run_command(Batch& batch) {
  Place& place = batch.place;
  Issued& issued = issued_[place.at];
  const Work work{run_issued, &issued, true};
  Launch launch{stream_of(place.strand), work, false};
  times_.before(place.at);
  may_refuse_ ? Launch::run_without_waiting(&launch) : Launch::run(&launch);
  if (!launch.is_taken) refused(place.strand);
  if (!launch.is_taken || issued.was_refused) return false;
  batch.is_over = !times_.after(place.at++);
  return !batch.is_over;
}

// Issues the next command, or runs it and what follows, and moves on.
void HostCommandBuffer::issue(Place& place) {
  Stream& stream = stream_of(place.strand);
  const Command& command = code()[place.at];
  Issued& issued = issued_[place.at];
  const bool may_run_here = this->may_run_here(place.at, place.strand);
  if (may_run_here && stream.is_idle()) return issue_batch(place);
  take_credit(place);
  if (command.is_cheap && !may_run_here) return issue_aside(place);
  times_.begin_batch();
  times_.before(place.at);
  if (!enqueue(stream, {run_issued, &issued, command.is_cheap})) return refused(place.strand);
  if (std::exchange(issued.was_refused, false)) return issue_aside(place);
  times_.after(place.at++);
  times_.end_batch();
  give_way(place);
}

void HostCommandBuffer::issue_batch(Place& place) {
  if (!is_device_fine(place.strand)) return;
  place.in_flight = 0;
  times_.begin_batch();
  Batch batch{*this, place};
  Scheduler::call_on_thread_stack(run_batch, &batch);
  times_.end_batch();
  if (std::exchange(issued_[place.at].was_refused, false)) return issue_aside(place);
  if (batch.is_over) yield(place);
}

// A worker issues the command, or runs it.
void HostCommandBuffer::issue_aside(Place& place) {
  Issued& issued = issued_[place.at];
  issued.is_warm = true;
  times_.run_elsewhere(place.at);
  const Work work{run_issued, &issued, false};
  const bool is_taken = device_index(place.strand) == 0
                            ? enqueue(stream_of(place.strand), work)
                            : enqueue_aside(stream_of(place.strand), work);
  if (!is_taken) return refused(place.strand);
  ++place.at;
}

void HostCommandBuffer::give_way(Place& place) {
  if (times_.now() - place.since_ns > InlineTimes::kLongestNs) yield(place);
}

void HostCommandBuffer::yield(Place& place) {
  Scheduler::yield();
  place.decisions = kInlineDecisions;
  place.since_ns = times_.now();
}

void HostCommandBuffer::Launch::run(void* launch) {
  auto& self = *static_cast<Launch*>(launch);
  self.is_taken = self.stream.launch(self.work);
}

void HostCommandBuffer::Launch::run_without_waiting(void* launch) {
  const NoWaiting scope;
  run(launch);
}

// Whatever the stream runs at once (all of it on a device, cheap work where the queue has emptied
// meanwhile) runs on the thread's own stack.
bool HostCommandBuffer::enqueue(Stream& stream, const Work& work) {
  Launch launch{stream, work, false};
  Scheduler::call_on_thread_stack(may_refuse_ ? Launch::run_without_waiting : Launch::run, &launch);
  return launch.is_taken;
}

bool HostCommandBuffer::enqueue_aside(Stream& stream, const Work& work) {
  Launch launch{stream, work, false};
  workers_.call(Launch::run, &launch);
  return launch.is_taken;
}

// What a stream keeps is issued by whoever polls it, who may not wait, or else holds others up.
void HostCommandBuffer::await_room(uint32_t strand) {
  if (!stream_of(strand).has_room()) await_stream(strand);
}

void HostCommandBuffer::take_credit(Place& place) {
  await_room(place.strand);
  if (!stream_of(place.strand).is_idle()) {
    if (++place.in_flight <= kCredit) return;
    await_stream(place.strand);
  }
  place.in_flight = 0;
}

void HostCommandBuffer::issue_segment(Segment& segment, Place& place) {
  for (const SegmentStep& step : segment.steps()) {
    if (step.kind == SegmentStep::Kind::kForget) events_[step.event].recorded.reset();
  }
  take_credit(place);
  IssuedSegment& issued = segments_.at(place.at);
  const Work work{run_segment, &issued, true};
  const bool is_cold = this->is_cold(std::exchange(issued.is_warm, true), place.strand);
  issued.goes_on = false;
  bool is_taken = is_cold ? enqueue_aside(stream_of(place.strand), work)
                          : enqueue(stream_of(place.strand), work);
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
