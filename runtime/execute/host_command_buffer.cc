#include "runtime/execute/host_command_buffer.h"

#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"
#include "runtime/execute/await.h"

namespace eddy {
HostCommandBuffer::HostCommandBuffer(std::vector<Device*> devices,
                                     std::vector<uint32_t> stream_devices, Scheduler& scheduler,
                                     Recorder* recorder_or_null, InlineTimes::Now now)
    : devices_(std::move(devices)),
      stream_devices_(std::move(stream_devices)),
      scheduler_(scheduler),
      workers_(*devices_[0]),
      may_refuse_(devices_.size() > 1 && workers_.has_workers()),
      times_(now),
      recorder_or_null_(recorder_or_null) {}

HostCommandBuffer::~HostCommandBuffer() = default;

void HostCommandBuffer::note_recordable(RecordableWork* work_or_null) {
  notes_.resize(code().size());
  notes_.back() = {.is_known = true, .work_or_null = work_or_null};
}

void HostCommandBuffer::note_nothing() {
  notes_.resize(code().size());
  notes_.back() = {.is_known = true, .is_nothing = true};
}

void HostCommandBuffer::note_apart() {
  notes_.resize(code().size());
  notes_.back().is_apart = true;
}

void HostCommandBuffer::note_choice() {
  is_choice_.resize(code().size());
  is_choice_.back() = true;
}

void HostCommandBuffer::finish() {
  CommandCode::finish();
  for (const Command& command : code()) issued_.push_back({this, &command});
  times_.resize(code().size());
  for (size_t i = 0; i < strand_entries().size(); ++i) states_.emplace_back(StrandState::kIdle);
  find_parents();
  setup_error_ = set_up();
}

// A fork's commands stand within those of its parent, behind a jump around them.
void HostCommandBuffer::find_parents() {
  parents_.assign(strand_entries().size(), 0);
  for (uint32_t strand = 1; strand < parents_.size(); ++strand) {
    const uint32_t entry = strand_entries()[strand];
    for (uint32_t outer = 1; outer < strand; ++outer) {  // the innermost was begun last
      const uint32_t first = strand_entries()[outer];
      if (first < entry && entry < code()[first - 1].target) parents_[strand] = outer;
    }
  }
}

Status HostCommandBuffer::set_up() {
  while (streams_.size() < num_streams()) {
    Device& device = *devices_[device_of_stream(static_cast<uint32_t>(streams_.size()))];
    EDDY_ASSIGN_OR_RETURN(auto stream, device.create_stream());
    streams_.push_back(std::move(stream));
  }
  while (events_.size() < num_events()) events_.emplace_back();
  for (HostEvent& event : events_) {
    while (event.by_device.size() < devices_.size()) {
      EDDY_ASSIGN_OR_RETURN(auto made, devices_[event.by_device.size()]->create_event());
      event.by_device.push_back(std::move(made));
    }
  }
  while (forks_.size() < strand_entries().size()) {
    const uint32_t parent = parents_[forks_.size()];
    EDDY_ASSIGN_OR_RETURN(auto event, device(parent).create_event());
    forks_.push_back(std::move(event));
  }
  return Status::ok();
}

// Ends the run when the device is lost: what its streams have done cannot be told.
bool HostCommandBuffer::is_fine(const Device& device, uint32_t strand) {
  Status health = device.health();
  if (health.is_ok()) [[likely]]
    return true;
  control_->fail(std::move(health), strand);
  return false;
}

void HostCommandBuffer::refused(uint32_t strand) {
  if (!is_device_fine(strand)) return;
  control_->fail(internal_error("the device refused a command and does not say why"), strand);
}

void HostCommandBuffer::start(RunControl& control) {
  EDDY_CHECK(is_finished()) << "launching a command buffer that is still being recorded";
  control_ = &control;
  control.begin();
  num_live_.store(1, std::memory_order_relaxed);
  for (HostEvent& event : events_) event.recorded.reset();
  if (!setup_error_.is_ok()) {
    setup_error_ = set_up();  // what was missing then may be there now
    if (tell_streams_) tell_streams_();
  }
  Status status = setup_error_;
  if (status.is_ok()) {
    status = scheduler_.spawn([this] { execute(0); }, "run");
  }
  if (status.is_ok()) return;
  control.fail(std::move(status));
  if (control.on_complete != nullptr) control.on_complete(control.context);
}

void HostCommandBuffer::fork(uint32_t parent, uint32_t strand) {
  await_room(parent);
  await_room(strand);
  if (!stream_of(parent).record(*forks_[strand])) return refused(parent);
  // Another device's strand awaits the event itself, so that its parent goes on.
  const bool is_same_device = device_index(parent) == device_index(strand);
  if (is_same_device && !stream_of(strand).wait(*forks_[strand])) return refused(strand);
  num_live_.fetch_add(1, std::memory_order_relaxed);
  Status status = scheduler_.spawn([this, strand] { execute(strand); }, "strand");
  if (status.is_ok()) return;
  num_live_.fetch_sub(1, std::memory_order_relaxed);
  control_->fail(std::move(status), strand);
}

void HostCommandBuffer::await_stream(uint32_t strand) {
  if (stream_of(strand).is_idle()) return;
  set_state(strand, StrandState::kWaitingForDevice);
  await_idle(stream_of(strand));
  set_state(strand, StrandState::kRunning);
}

uint32_t HostCommandBuffer::after(uint32_t at, int32_t decision) const {
  const Command& command = code()[at];
  if (command.op == Op::kSwitch) {
    const uint32_t entry = command.target + static_cast<uint32_t>(decision);
    EDDY_CHECK(entry < targets().size()) << "a case has no branch " << decision;
    return targets()[entry];
  }
  return decision != 0 ? at + 1 : command.target;
}

Segment* HostCommandBuffer::segment_or_null(uint32_t at, uint32_t strand) {
  if (recorder_or_null_ == nullptr || device_index(strand) == 0) return nullptr;
  const auto known = segments_.find(at);
  if (known != segments_.end()) return known->second.segment.get();
  const SegmentSource source{code(), strand_entries(), notes_, [this, strand](uint32_t other) {
                               return device_index(other) == device_index(strand);
                             }};
  std::optional<FoundSegment> found = find_segment(source, at, strand);
  IssuedSegment& made = segments_[at];
  made.owner = this;
  made.strand = strand;
  if (!found) return nullptr;
  made.segment = std::make_unique<Segment>(std::move(found->steps), found->next,
                                           SegmentShared{recorder_or_null_, tell_refusal_});
  return made.segment.get();
}

void HostCommandBuffer::run_checks() {
  for (const Check& each : checks_) {
    if (each.check(each.context) < 0) control_->request_stop(StopReason::kFailed);
  }
}

// What the stream has made is there, and nothing has failed.
bool HostCommandBuffer::may_decide(uint32_t strand) {
  await_stream(strand);
  run_checks();
  return !control_->is_stopped() && is_device_fine(strand);
}

int32_t HostCommandBuffer::decide(const Command& command, uint32_t strand) {
  const auto at = static_cast<size_t>(&command - code().data());
  const bool is_choice = at < is_choice_.size() && is_choice_[at];
  struct Call {
    const Command& command;
    int32_t decision;
    static void run(void* context) {
      auto& self = *static_cast<Call*>(context);
      self.decision = self.command.decide(self.command.context);
    }
    static void run_without_waiting(void* context) {
      const NoWaiting scope;
      run(context);
    }
  } call{command, kAskWhenIdle};
  const auto ask = may_refuse_ ? Call::run_without_waiting : Call::run;
  if (is_choice) Scheduler::call_on_thread_stack(ask, &call);
  if (call.decision == kAskWhenIdle) {
    if (!may_decide(strand)) return -1;
    is_choice ? Scheduler::call_on_thread_stack(ask, &call) : Call::run(&call);
  }
  if (call.decision == kAskAside) workers_.call(Call::run, &call);
  if (call.decision < 0) control_->request_stop(StopReason::kFailed);
  return call.decision;
}

void HostCommandBuffer::record(HostEvent& event, uint32_t strand) {
  await_room(strand);
  event.device = device_index(strand);
  if (!stream_of(strand).record(*event.by_device[event.device])) refused(strand);
  event.recorded.notify();
}

void HostCommandBuffer::wait(HostEvent& event, uint32_t strand) {
  set_state(strand, StrandState::kWaitingForStrand);
  event.recorded.wait("another strand to reach its record");
  set_state(strand, StrandState::kRunning);
  Event& recorded = *event.by_device[event.device];
  if (event.device != device_index(strand)) {
    await_event(recorded, strand);
    is_fine(*devices_[event.device], strand);
    return;
  }
  await_room(strand);
  if (!stream_of(strand).wait(recorded)) refused(strand);
}

void HostCommandBuffer::await_event(Event& event, uint32_t strand) {
  if (event.is_complete()) return;
  set_state(strand, StrandState::kWaitingForDevice);
  CompletionListener listener;
  if (!event.listen_or_complete(listener)) listener.wait("another device's event");
  set_state(strand, StrandState::kRunning);
}

// A strand that ends leaves its stream to others; what was issued to any has ended when the last
// strand does.
void HostCommandBuffer::await_all(uint32_t last_strand) {
  set_state(last_strand, StrandState::kWaitingForDevice);
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (!stream->is_idle()) await_idle(*stream);
  }
  for (const Device* device : devices_) is_fine(*device, last_strand);
  run_checks();
  set_state(last_strand, StrandState::kIdle);
}

void HostCommandBuffer::end_strand(uint32_t strand) {
  set_state(strand, StrandState::kIdle);
  if (control_->is_stopped()) {
    for (HostEvent& event : events_) event.recorded.notify();
  }
  RunControl* control = control_;
  if (num_live_.load(std::memory_order_relaxed) == 1) await_all(strand);
  if (num_live_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (control->on_complete != nullptr) control->on_complete(control->context);
}

// long: a switch over all commands, as in the CPU's interpreter; its cases share their state.
void HostCommandBuffer::execute(uint32_t strand) {
  const Command* const code = this->code().data();
  set_state(strand, StrandState::kRunning);
  if (strand != 0 && device_index(strand) != device_index(parents_[strand])) {
    await_event(*forks_[strand], strand);
    is_fine(device(parents_[strand]), strand);
  }
  Place place{strand, strand_entries()[strand], kInlineDecisions};
  place.since_ns = times_.now();
  uint32_t& at = place.at;
  while (!control_->is_stopped()) {
    if (Segment* const segment = segment_or_null(at, strand); segment != nullptr) {
      issue_segment(*segment, place);
      continue;
    }
    const Command& command = code[at];
    switch (command.op) {
      case Op::kLaunch:
        issue(place);
        break;
      case Op::kTest:
      case Op::kSwitch: {
        const int32_t decision = decide(command, strand);
        if (decision >= 0) at = after(at, decision);
        break;
      }
      case Op::kRepeat:
        at = command.target;
        if (--place.decisions == 0) yield(place);
        break;
      case Op::kJump:
        at = command.target;
        break;
      case Op::kFork:
        fork(strand, command.target);
        ++at;
        break;
      case Op::kReset:
        events_[command.target].recorded.reset();
        ++at;
        break;
      case Op::kRecord:
        record(events_[command.target], strand);
        ++at;
        break;
      case Op::kWait:
        wait(events_[command.target], strand);
        ++at;
        break;
      case Op::kEnd:
        return end_strand(strand);
    }
  }
  end_strand(strand);
}

}  // namespace eddy
