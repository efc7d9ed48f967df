#include "runtime/execute/host/host_strands.h"

#include <algorithm>

#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"
#include "runtime/execute/host/await.h"

namespace eddy {

namespace {

Device& first_of(const std::vector<Device*>& devices) {
  EDDY_DCHECK(!devices.empty()) << "strands of no device";
  return *devices[0];
}

}  // namespace

HostStrands::HostStrands(const StrandCode& code, const Bindings& bindings, Scheduler& scheduler,
                         Options options)
    : RunningStrands(code, bindings),
      options_(std::move(options)),
      scheduler_(scheduler),
      workers_(first_of(options_.devices)),
      num_waits_(count_waits(code)),
      is_for_host_(find_events_for_host()),
      may_refuse_(options_.devices.size() > 1 && workers_.has_workers()),
      times_(options_.now) {
  for (const Binding& binding : bindings.calls) issued_.push_back({this, &binding});
  times_.resize(bindings.calls.size());
  for (size_t i = 0; i < code.strands.size(); ++i) tasks_.emplace_back();
  device_events_.resize(code.events.size());
  if (workers_.has_workers()) find_loops();
  is_polled_ = std::ranges::any_of(options_.devices, &Device::needs_polling);
  setup_error_ = set_up();
}

HostStrands::~HostStrands() = default;

Status HostStrands::set_up() {
  while (streams_.size() < code_.num_streams) {
    const uint32_t on = device_of_stream(static_cast<uint32_t>(streams_.size()));
    EDDY_CHECK(on < options_.devices.size()) << "a stream of device " << on;
    Device& device = *options_.devices[on];
    EDDY_ASSIGN_OR_RETURN(auto stream, device.create_stream());
    streams_.push_back(std::move(stream));
  }
  return make_device_events();
}

Status HostStrands::make_device_events() {
  for (size_t i = 0; i < code_.events.size(); ++i) {
    const StrandCode::Event& event = code_.events[i];
    if (event.strand == StrandCode::kNone) continue;
    for (size_t parity = 0; parity < 2; ++parity) {
      const uint32_t on = device_index(event.strand);
      const bool is_host = is_for_host(static_cast<uint32_t>(i));
      std::unique_ptr<Event>& made = machine_events_[{event.machine[parity], on, is_host}];
      if (made == nullptr) {
        Device& device = *options_.devices[on];
        EDDY_ASSIGN_OR_RETURN(made, is_host ? device.create_host_event() : device.create_event());
      }
      device_events_[i][parity] = made.get();
    }
  }
  return Status::ok();
}

std::vector<bool> HostStrands::find_events_for_host() const {
  std::vector<bool> found(code_.events.size(), false);
  std::vector<bool> is_streams(code_.events.size(), false);
  for (const auto& [strand, begin, end] : spans_of_strands()) {
    for (uint32_t at = begin; at < end; ++at) {
      const Command& command = code_.commands[at];
      if (command.op != Op::kWait) continue;
      const uint32_t recorder = code_.events[command.operand].strand;
      const bool is_near =
          recorder == StrandCode::kNone || device_index(recorder) == device_index(strand);
      (is_near ? is_streams : found)[command.operand] = true;
    }
  }
  for (size_t i = 0; i < found.size(); ++i) found[i] = found[i] && !is_streams[i];
  return found;
}

// Ends the run when the device is lost: what its streams have done is not known.
bool HostStrands::is_fine(const Device& device, uint32_t strand) {
  Status health = device.health();
  if (health.is_ok()) [[likely]]
    return true;
  control().fail(std::move(health), strand);
  return false;
}

void HostStrands::refused(uint32_t strand) {
  if (!is_device_fine(strand)) return;
  control().fail(internal_error("the device refused a command and does not say why"), strand);
}

// Of long runs it is not worth a processor.
void HostStrands::expect_end() {
  began_ns_ = times_.now();
  const int64_t most_ns = last_ns_ * kHalvesOfTheLast / 2;
  if (!is_polled_ || most_ns == 0 || most_ns > IdlePace::kLongestSpin.count()) return;
  scheduler_.expect_end(
      Scheduler::Clock::time_point(std::chrono::nanoseconds(began_ns_ + most_ns)));
}

void HostStrands::start(RunControl& control) {
  prepare(control);
  expect_end();
  control.begin();
  if (!setup_error_.is_ok()) {
    setup_error_ = set_up();  // what was missing then may be there now
    if (tell_streams_) tell_streams_();
  }
  Status status = setup_error_;
  if (status.is_ok()) status = spawn(0);
  if (status.is_ok()) return;
  control.fail(std::move(status));
  leave(control);
}

Status HostStrands::spawn(uint32_t strand) {
  EDDY_DCHECK(strand < tasks_.size()) << "strand " << strand << " of " << tasks_.size();
  EDDY_DCHECK(!tasks_[strand].is_there) << "strand " << strand << " has a task";
  tasks_[strand].is_there = true;  // said before: it may run at once, on the scheduler's thread
  Status status =
      scheduler_.spawn([this, strand] { execute(strand); }, strand == 0 ? "run" : "strand");
  if (!status.is_ok()) tasks_[strand].is_there = false;
  return status;
}

void HostStrands::enqueue(uint32_t strand) {
  EDDY_DCHECK(strand < tasks_.size()) << "strand " << strand << " of " << tasks_.size();
  Task& task = tasks_[strand];
  if (task.is_there) return task.woken.notify();
  Status status = spawn(strand);
  if (status.is_ok()) return;
  control().fail(std::move(status), strand);
  end_strand(strand);
}

void HostStrands::await_stream(uint32_t strand) {
  if (stream_of(strand).is_idle()) return;
  set_state(strand, StrandState::kWaitingForDevice);
  await_idle(stream_of(strand));
  set_state(strand, StrandState::kRunning);
}

Segment* HostStrands::segment_or_null(uint32_t at, uint32_t strand) {
  const uint32_t device = device_index(strand);
  if (device >= options_.captures.size() || options_.captures[device] == nullptr) return nullptr;
  const auto known = segments_.find(at);
  if (known != segments_.end()) return known->second.segment.get();
  const SegmentSource source{code_, num_waits_, bindings_, [this, device](uint32_t other) {
                               return device_index(other) == device;
                             }};
  std::optional<FoundSegment> found = find_segment(source, at, strand);
  IssuedSegment& made = segments_[at];
  made.owner = this;
  made.strand = strand;
  if (!found) return nullptr;
  const Command& next = code_.commands[found->next];
  const bool is_host_record =
      (next.op == Op::kRecord || next.op == Op::kRest) && is_for_host(next.operand);
  const bool is_awaited =
      next.op == Op::kTest || next.op == Op::kSelect || next.op == Op::kEnd || is_host_record;
  made.segment = std::make_unique<Segment>(
      std::move(found->steps), found->next,
      SegmentShared{options_.captures[device], options_.on_refusal, is_awaited});
  return made.segment.get();
}

void HostStrands::run_checks() {
  for (const Binding& check : bindings_.checks) {
    if (check.decide(check.context) < 0) control().request_stop(StopReason::kFailed);
  }
}

// What the stream has made is there, and nothing has failed.
bool HostStrands::may_decide(uint32_t strand) {
  await_stream(strand);
  run_checks();
  return is_running() && is_device_fine(strand);
}

int32_t HostStrands::decide(uint32_t strand, uint32_t at) {
  EDDY_DCHECK(at < bindings_.calls.size() && bindings_.calls[at].decide != nullptr)
      << "command " << at << " decides nothing";
  struct Call {
    const Binding& binding;
    int32_t decision;
    static void run(void* context) {
      auto& self = *static_cast<Call*>(context);
      self.decision = self.binding.decide(self.binding.context);
    }
    static void run_without_waiting(void* context) {
      const NoWaiting scope;
      run(context);
    }
  } call{bindings_.calls[at], kAskWhenIdle};
  const bool is_choice =
      !bindings_.notes.empty() && bindings_.notes[at].kind == CallNote::Kind::kChoice;
  const auto ask = may_refuse_ ? Call::run_without_waiting : Call::run;
  if (is_choice) Scheduler::call_on_thread_stack(ask, &call);
  if (call.decision == kAskWhenIdle) {
    if (!may_decide(strand)) return -1;
    is_choice ? Scheduler::call_on_thread_stack(ask, &call) : Call::run(&call);
  }
  if (call.decision == kAskAside) workers_.call(Call::run, &call);
  if (call.decision < 0) control().request_stop(StopReason::kFailed);
  return call.decision;
}

void HostStrands::record_on_device(uint32_t strand, uint32_t index) {
  await_room(strand);
  if (!stream_of(strand).record(device_event(index, event(index).count() + 1))) refused(strand);
}

bool HostStrands::wait(uint32_t strand, uint32_t at) {
  const Command& command = code_.commands[at];
  EDDY_DCHECK(command.op == Op::kWait) << "command " << at << " waits for nothing";
  const uint32_t count = wanted(command);
  tasks_[strand].woken.reset();
  while (!wait_or_park(strand, at)) {
    tasks_[strand].woken.wait("another strand to reach its record");
    tasks_[strand].woken.reset();
    set_state(strand, StrandState::kRunning);
  }
  const uint32_t recorder = code_.events[command.operand].strand;
  if (!is_running() || recorder == StrandCode::kNone) return true;
  Event& recorded = device_event(command.operand, count);
  if (device_index(recorder) != device_index(strand)) {
    await_event(recorded, strand);
    is_fine(device(recorder), strand);
    return true;
  }
  await_room(strand);
  if (!stream_of(strand).wait(recorded)) refused(strand);
  return true;
}

// What the call reads is there, and its strand's task waits for the answer. A worker makes the
// call, unless it is cheap.
void HostStrands::start(uint32_t strand, uint32_t at) {
  await_stream(strand);
  if (!is_running()) return;
  struct Call {
    HostStrands& owner;
    uint32_t strand;
    uint32_t at;
    bool goes_on = false;
    static void run(void* call) {
      auto& self = *static_cast<Call*>(call);
      self.goes_on = self.owner.start_call(self.strand, self.at);
    }
  } call{*this, strand, at};
  tasks_[strand].woken.reset();
  if (code_.commands[at].is_cheap) {
    Scheduler::call_on_thread_stack(Call::run, &call);
  } else {
    workers_.call(Call::run, &call);
  }
  if (call.goes_on) return;
  tasks_[strand].woken.wait("the answer of a call");
  set_state(strand, StrandState::kRunning);
}

// A run that has been stopped ends with a strand that sees to its streams.
bool HostStrands::rest(uint32_t strand, uint32_t at) {
  record_on_device(strand, code_.commands[at].operand);
  if (!is_running()) return true;
  tasks_[strand].is_there = false;
  if (!RunningStrands::rest(strand, at)) return false;
  return tasks_[strand].is_there = true;
}

void HostStrands::await_event(Event& event, uint32_t strand) {
  if (event.is_complete()) return;
  set_state(strand, StrandState::kWaitingForDevice);
  CompletionListener listener;
  if (!event.listen_or_complete(listener)) listener.wait("another device's event");
  set_state(strand, StrandState::kRunning);
}

// A strand that rests leaves its stream to others; what was issued to any has ended when the last
// strand does.
void HostStrands::await_all(uint32_t last_strand) {
  set_state(last_strand, StrandState::kWaitingForDevice);
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (!stream->is_idle()) await_idle(*stream);
  }
  for (const Device* device : options_.devices) is_fine(*device, last_strand);
  run_checks();
}

struct HostStrands::Agent {
  HostStrands& owner;
  const StrandCode& code;
  const Command* const commands;
  uint32_t* const rounds;
  Place& place;

  bool call(uint32_t, uint32_t&) {
    owner.issue(place);
    return true;
  }
  bool start(uint32_t strand, uint32_t at) {
    owner.start(strand, at);
    return true;
  }
  int32_t decide(uint32_t strand, uint32_t at) { return owner.decide(strand, at); }
  bool repeat(uint32_t, uint32_t) {
    const bool is_over = --place.decisions == 0 || owner.loop_around(place.at).has(place.at);
    if (is_over) owner.go_on(place);
    return true;
  }
  bool wait(uint32_t strand, uint32_t at) { return owner.wait(strand, at); }
  bool record(uint32_t strand, uint32_t at) {
    owner.record_on_device(strand, commands[at].operand);
    owner.record(commands[at].operand);
    return true;
  }
  bool rest(uint32_t strand, uint32_t at) { return owner.rest(strand, at); }
  bool end(uint32_t strand) {
    if (owner.num_live() == 1) {
      owner.await_all(strand);
      if (owner.is_running()) owner.last_ns_ = owner.times_.now() - owner.began_ns_;
    }
    EDDY_DCHECK(owner.tasks_[strand].is_there) << "strand " << strand << " ends without a task";
    owner.tasks_[strand].is_there = false;
    owner.end_strand(strand);
    return false;
  }
};

void HostStrands::execute(uint32_t index) {
  EDDY_DCHECK(index < tasks_.size() && tasks_[index].is_there) << "strand " << index;
  set_state(index, StrandState::kRunning);
  Place place{index, strand(index).at, kInlineDecisions};
  place.since_ns = times_.now();
  Agent agent{*this, code_, code_.commands.data(), rounds(), place};
  while (is_running()) {
    if (Segment* const segment = segment_or_null(place.at, index); segment != nullptr) {
      issue_segment(*segment, place);
    } else if (!run_command(agent, index, place.at)) {
      return;
    }
  }
  agent.end(index);
}

}  // namespace eddy
