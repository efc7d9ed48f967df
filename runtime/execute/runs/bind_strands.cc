#include "runtime/execute/runs/bind_strands.h"

#include <map>
#include <string>

#include "graph/base/check.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/execute/exec_start.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

using What = ResolvedProgram::What;

int32_t drive_from_host(void*) { return ResolvedProgram::kByHost; }

DeviceControl* control_or_null(const DeviceControls& device_controls, NodeId node) {
  EDDY_DCHECK(device_controls.empty() || node.index() < device_controls.size())
      << "node " << node.index() << " of " << device_controls.size();
  return device_controls.empty() ? nullptr : device_controls[node.index()].get();
}

class Binder {
 public:
  Binder(const ResolvedProgram& program, RunState& state, const DeviceControls& device_controls,
         TraceRecorder* trace_or_null)
      : program_(program),
        state_(state),
        device_controls_(device_controls),
        trace_(trace_or_null),
        captures_(state.captures()),
        observer_(state.executable().observer_or_null()),
        times_or_null_(state.executable().operator_times_or_null()) {}

  BoundStrands run() {
    for (const StrandCode::Command& command : program_.code.commands) {
      note_ = {};
      if (!StrandCode::calls(command.op)) {
        made_.bindings.calls.push_back({});
        note({});
        continue;
      }
      EDDY_DCHECK(command.operand < program_.calls.size())
          << "there is no call " << command.operand;
      const ResolvedProgram::Call& call = program_.calls[command.operand];
      Binding binding = bind(call);
      if (command.op == StrandCode::Op::kStart && call.what == What::kStep) {
        binding = later(call);
      } else if (observer_ != nullptr && call.what == What::kStep) {
        binding = observe(call, binding);
      }
      // A trace wants every span, an observer every step.
      const bool is_seen = trace_ != nullptr || observer_ != nullptr;
      const bool is_opaque = is_seen && note_.kind != CallNote::Kind::kChoice;
      made_.bindings.calls.push_back(binding);
      note(is_opaque ? CallNote() : note_);
    }
    if (state_.has_faults()) check(RunState::check_faults, &state_);
    return std::move(made_);
  }

 private:
  using Note = CallNote::Kind;

  // Only a capture needs them.
  void note(const CallNote& note) {
    if (!captures_.empty()) made_.bindings.notes.push_back(note);
  }
  static Binding work(WorkFunction run, void* context) { return {{run}, context}; }
  static Binding decision(DecideFunction decide, void* context) {
    return {{.decide = decide}, context};
  }
  Binding books(WorkFunction run, void* context) {
    note_.kind = Note::kBooks;
    return work(run, context);
  }
  void check(DecideFunction decide, void* context) {
    made_.bindings.checks.push_back(decision(decide, context));
  }

  Binding bind(const ResolvedProgram::Call& call) {
    const NodeId id = call.step.node;
    switch (call.what) {
      case What::kStep:
        return step(call);
      case What::kRelease:
        return books(ReleaseList::run, &release_list(id));
      case What::kBeginTail:
        return begin_tail(call);
      case What::kChoose:
      case What::kDrive:
      case What::kDeviceEnded:
      case What::kHandBack:
        return drive(call.what, id);
      case What::kAwaitRoom:
        return {
            {.start = RowGate::start},
            &made_.row_gates.emplace_back(state_.control, state_.loop(id).sinks(call.step.branch))};
      case What::kBeginSpan:
        return work(TraceMark::begin, &span(call));
      case What::kEndSpan:
        return work(TraceMark::end, &span(call));
    }
    EDDY_CHECK(false) << "a call of no kind";
    return {};
  }

  Binding step(const ResolvedProgram::Call& call) {
    const NodeId id = call.step.node;
    switch (call.step.kind) {
      case StepKind::kExec:
        return exec(call);
      case StepKind::kEnter:
        return loop(LoopState::enter, id);
      case StepKind::kAdvance:
        return loop(LoopState::advance, id);
      case StepKind::kLeave:
        return loop(LoopState::leave, id);
      case StepKind::kTest:
        return decision(LoopState::test, &state_.loop(id));
      case StepKind::kRow:
        return work(LoopState::push_row_apart, &state_.loop(id).row_apart(call.step.branch));
      case StepKind::kTake:
        return work(LoopState::take, &state_.loop(id).taking(call.step.branch));
      case StepKind::kSelect:
        return decision(CaseState::select, &state_.branch(id));
      case StepKind::kFinishBranch:
        return books(CaseState::finish_branch, &state_.branch(id).branch(call.step.branch));
    }
    EDDY_CHECK(false) << "a step of no kind";
    return {};
  }

  Binding exec(const ResolvedProgram::Call& call) {
    ExecNode& node = state_.exec_node(call.step.node);
    node.args.scratch = &state_.scratch(call.stream);
    node.current_node = &state_.current_node(call.step.strand);
    if (node.may_be_recorded) note_ = {Note::kRecordable, &node};
    if (node.work == run_view) note_.kind = Note::kBooks;
    if (node.work == run_still) note_.kind = Note::kNothing;
    const Binding plain = work(node.work, &node);
    if (times_or_null_ == nullptr || node.work == run_still) return plain;
    auto& cell = times_or_null_->cell(node.id);
    return work(TimedCall::run, &made_.timed_calls.emplace_back(TimedCall{&cell, plain}));
  }

  // Of a kStart.
  Binding later(const ResolvedProgram::Call& call) {
    ExecNode& node = state_.exec_node(call.step.node);
    note_ = {};
    Binding started = {{.start = start_node}, &node};
    if (times_or_null_ != nullptr) {
      auto& cell = times_or_null_->cell(node.id);
      started = {{.start = TimedStart::start}, &made_.timed_starts.emplace_back(cell, started)};
    }
    if (observer_ == nullptr) return started;
    ObservedCall& observed = made_.observed_calls.emplace_back();
    observed.step = {observer_, &state_, call.step, started.context};
    observed.start = started.start;
    return {{.start = ObservedCall::start_call}, &observed};
  }

  Binding loop(WorkFunction run, NodeId id) {
    // Rows are stacked by the host, from bytes that must be there.
    if (state_.graph().node(id).num_scan_outputs == 0) return books(run, &state_.loop(id));
    return work(run, &state_.loop(id));
  }

  // Nodes of a stream that goes on into the next iteration count by themselves.
  Binding begin_tail(const ResolvedProgram::Call& call) {
    LoopState::Tail& tail = state_.loop(call.step.node).add_tail();
    const Program& program = state_.executable().plan().program;
    const RegionId after = state_.graph().node(call.step.node).regions[1];
    for (const Program::Step& step : program.blocks[after.index()].steps) {
      if (is_node(step.op) && step.stream == call.stream) {
        state_.set_tail(node_of(program, step), tail);
      }
    }
    return work(LoopState::begin_tail, &tail);
  }

  Binding drive(What what, NodeId id) {
    DeviceControl* const device = control_or_null(device_controls_, id);
    switch (what) {
      case What::kChoose:
        note_.kind = Note::kChoice;
        if (device == nullptr) return decision(drive_from_host, nullptr);
        check(DeviceControl::finish, device);
        return decision(DeviceControl::choose, device);
      case What::kDeviceEnded:
        return decision(DeviceControl::has_ended, device);
      case What::kHandBack:
        if (device == nullptr) return books([](void*) { return true; }, nullptr);
        return books(DeviceControl::left, device);
      default:
        return work(DeviceControl::launch, device);
    }
  }

  Binding observe(const ResolvedProgram::Call& call, const Binding& binding) {
    ObservedStep observed{observer_, &state_, call.step, binding.context};
    const bool decides = call.step.kind == StepKind::kTest || call.step.kind == StepKind::kSelect;
    if (decides) {
      observed.decide = binding.decide;
      return decision(ObservedStep::decide_step, &made_.observed_steps.emplace_back(observed));
    }
    observed.run = binding.run;
    return work(ObservedStep::run_step, &made_.observed_steps.emplace_back(observed));
  }

  ReleaseList& release_list(NodeId id) {
    const Executable& executable = state_.executable();
    ReleaseList& list = made_.release_lists.emplace_back();
    for (ValueId value : executable.releases(id)) list.slots.push_back(&state_.slot(value));
    list.min_bytes = executable.min_released_bytes();
    return list;
  }

  // Begin and end of one span share its mark.
  TraceMark& span(const ResolvedProgram::Call& call) {
    EDDY_DCHECK(trace_ != nullptr) << "spans of what is not traced";
    TraceMark*& mark = spans_[{call.step.node, call.step.branch}];
    if (mark != nullptr) return *mark;
    const Node& node = state_.graph().node(call.step.node);
    std::string name = node.name;
    const uint32_t kind = call.step.branch;
    if (kind >= kBranch) name += " " + state_.graph().region(node.regions[kind - kBranch]).name;
    const LoopState* loop = kind == kIteration ? &state_.loop(call.step.node) : nullptr;
    const LaneId lane = trace_->lane("stream " + std::to_string(call.stream));
    mark = &made_.trace_marks.emplace_back(TraceMark{trace_, lane, trace_->name(name), loop});
    return *mark;
  }

  const ResolvedProgram& program_;
  RunState& state_;
  const DeviceControls& device_controls_;
  TraceRecorder* const trace_;
  const GraphCaptures captures_;
  StepObserver* const observer_;
  OperatorTimes* const times_or_null_;
  CallNote note_;  // of the call that is bound
  std::map<std::pair<NodeId, uint32_t>, TraceMark*> spans_;
  BoundStrands made_;
};

}  // namespace

BoundStrands bind_strands(const ResolvedProgram& program, RunState& state,
                          const DeviceControls& device_controls, TraceRecorder* trace_or_null) {
  return Binder(program, state, device_controls, trace_or_null).run();
}

void bind_streams(const ResolvedProgram& program, RunState& state,
                  const DeviceControls& device_controls, StrandRunner& runner) {
  runner.tell_streams([&program, &state, &device_controls, &runner] {
    for (const ResolvedProgram::Call& call : program.calls) {
      void* const stream = runner.native_stream(call.stream);
      const bool is_exec = call.what == What::kStep && call.step.kind == StepKind::kExec;
      if (is_exec) {
        state.exec_node(call.step.node).args.stream = stream;
      } else if (call.what == What::kChoose) {
        DeviceControl* const device = control_or_null(device_controls, call.step.node);
        if (device == nullptr) continue;
        device->set_strand(stream, state.current_node(call.step.strand));
      }
    }
  });
}

}  // namespace eddy
