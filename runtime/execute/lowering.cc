#include "runtime/execute/lowering.h"

#include <map>

#include "runtime/execute/executable.h"

namespace eddy {
namespace {

class Lowering {
 public:
  Lowering(const Plan& plan, RunState& state, TraceRecorder* trace_or_null)
      : plan_(plan),
        state_(state),
        commands_(*state.commands),
        trace_(trace_or_null),
        observer_(state.executable().observer_or_null()) {}

  // Records everything. From there on strands have streams, which kernels are told.
  void run() {
    region(Graph::kRoot, {});
    if (state_.has_faults()) commands_.add_check(RunState::check_faults, &state_);
    commands_.finish();
    commands_.tell_streams(
        [nodes = issued_on_, loops = device_controls_, &commands = commands_, &state = state_] {
          for (const auto& [node, strand] : nodes)
            node->args.stream = commands.native_stream(strand);
          for (const auto& [loop, strand] : loops) {
            loop->set_strand(commands.native_stream(strand), state.current_node(strand));
          }
        });
  }

 private:
  // A strand and the machine's stream that it runs on.
  struct Place {
    uint32_t strand = 0;
    uint32_t stream = 0;
  };

  const Program::Block& block(RegionId id) const { return plan_.program.blocks[id.index()]; }
  static uint32_t num_streams(const Program::Block& block) {
    return static_cast<uint32_t>(block.streams.size());
  }
  // Its events but for those of entry and ends of streams, which forks and joins stand for here.
  static uint32_t num_own_events(const Program::Block& block) { return first_frame_event(block); }

  void region(RegionId id, Place at) {
    const Program::Block& plan = block(id);
    if (num_streams(plan) > 1) {
      for (uint32_t e = 0; e < num_own_events(plan); ++e) commands_.reset(event(plan, e));
      for (uint32_t s = 1; s < num_streams(plan); ++s) commands_.reset(end_event(plan, s));
    }
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      const Place fork = new_strand(id, s);
      commands_.begin_fork(fork.stream);
      stream_commands(id, s, fork);
      commands_.record(end_event(plan, s));
      commands_.end_fork();
    }
    stream_commands(id, 0, at);
    for (uint32_t s = 1; s < num_streams(plan); ++s) commands_.wait(end_event(plan, s));
  }

  // Regions are recorded once for each set of an open loop around them; strands that run the same
  // nodes are twins.
  Place new_strand(RegionId region, uint32_t stream) {
    const Place place{++num_strands_, block(region).streams[stream]};
    const auto [first, is_new] = first_strand_.emplace(std::pair(region, stream), place.strand);
    if (!is_new) state_.add_twin(place.strand, first->second);
    return place;
  }

  // The buffer's event for one of the block's, of one of the sets of a pipelined block; made when
  // it is first used. Behind the block's own come one for the entry, one for the end of each
  // further stream and, where it is pipelined, as many more.
  uint32_t event(const Program::Block& plan, uint32_t e, uint32_t set = 0) {
    const uint32_t events_of_a_set =
        num_own_events(plan) + (is_pipelined(plan_.program, plan) ? 2 : 1) * num_streams(plan);
    const size_t number = size_t{plan.first_machine_event} + set * events_of_a_set + e;
    if (events_.size() <= number) events_.resize(number + 1, kNoEvent);
    if (events_[number] == kNoEvent) events_[number] = commands_.add_event();
    return events_[number];
  }
  uint32_t end_event(const Program::Block& plan, uint32_t stream, uint32_t set = 0) {
    return event(plan, num_own_events(plan) + stream, set);
  }
  // Of a pipelined block: the stream has begun its part of an iteration, so that it has ended that
  // of the iteration before.
  uint32_t begun_event(const Program::Block& plan, uint32_t stream, uint32_t set) {
    return event(plan, num_own_events(plan) + num_streams(plan) + stream, set);
  }

  void stream_commands(RegionId id, uint32_t stream, Place at, uint32_t set = 0) {
    const Program::Block& plan = block(id);
    uint32_t num_retained = 0;
    for (size_t i = num_first_waits(plan) + 1; i < plan.steps.size(); ++i) {
      const Program::Step& step = plan.steps[i];
      if (step.stream == plan.streams[stream]) stream_step(plan, step, num_retained, at, set);
      num_retained += step.op == Program::Op::kRetain ? 1 : 0;
    }
  }

  // `retained`: the how manieth kRetain of the block it is.
  void stream_step(const Program::Block& plan, const Program::Step& step, uint32_t retained,
                   Place at, uint32_t set) {
    using Op = Program::Op;
    const bool is_frame = is_sync(step.op) && step.operand >= num_own_events(plan);
    if (is_frame) return;
    switch (step.op) {
      case Op::kLaunch:
      case Op::kLoop:
      case Op::kCase:
        return node(node_of(plan_.program, step), at);
      case Op::kRetain: {
        const NodeId loop = node_of(plan_.program, step);
        return launch({StepKind::kTake, loop, at.strand, retained}, LoopState::take,
                      &state_.loop(loop).taking(retained));
      }
      case Op::kPushRow:
        return push_row(step, at);
      case Op::kRecord:
        return commands_.record(event(plan, step.operand, set));
      case Op::kWait:
        return commands_.wait(event(plan, step.operand, set));
      case Op::kWaitPrevious:
        return commands_.wait(event(plan, step.operand, 1 - set));
      default:
        return;
    }
  }

  // --- pipelined loops: two sets of strands and events take turns ---

  // Waits for the iteration before that stand right behind the block's begin, where none of its
  // further streams has begun.
  static size_t num_first_waits(const Program::Block& plan) {
    size_t count = 0;
    while (plan.steps[count + 1].op == Program::Op::kWaitPrevious) ++count;
    return count;
  }

  // As if the iterations before the first had ended.
  void enter_open(const Program::Block& plan) {
    reset_set(plan, 1);
    for (uint32_t s = 1; s < num_streams(plan); ++s) reset_apart(end_event(plan, s, 0));
    for (uint32_t e = 0; e < num_own_events(plan); ++e) commands_.record(event(plan, e, 1));
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      commands_.record(begun_event(plan, s, 1));
      for (uint32_t set = 0; set < 2; ++set) commands_.record(end_event(plan, s, set));
    }
  }
  void leave_open(const Program::Block& plan) {
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      for (uint32_t set = 0; set < 2; ++set) commands_.wait(end_event(plan, s, set));
    }
  }
  void reset_set(const Program::Block& plan, uint32_t set) {
    for (uint32_t e = 0; e < num_own_events(plan); ++e) reset_apart(event(plan, e, set));
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      reset_apart(end_event(plan, s, set));
      reset_apart(begun_event(plan, s, set));
    }
  }
  void reset_apart(uint32_t event) {
    commands_.reset(event);
    commands_.note_apart();
  }

  // Counts of what one loop's sets share, by stream from 1.
  using Tails = std::vector<LoopState::Tail*>;
  const Tails& find_tails(NodeId id, const Program::Block& plan) {
    const auto [found, is_new] = tails_.try_emplace(id);
    Tails& tails = found->second;
    if (!is_new) return tails;
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      tails.push_back(&state_.loop(id).add_tail());
      for (const Program::Step& step : plan.steps) {
        if (!is_node(step.op) || step.stream != plan.streams[s]) continue;
        state_.set_tail(node_of(plan_.program, step), *tails.back());
      }
    }
    return tails;
  }

  void open_region(RegionId id, const Tails& tails, Place at, uint32_t set) {
    const Program::Block& plan = block(id);
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      commands_.wait(begun_event(plan, s, 1 - set));
    }
    reset_set(plan, set);
    for (size_t i = 1; i <= num_first_waits(plan); ++i) {
      commands_.wait(event(plan, plan.steps[i].operand, 1 - set));
    }
    for (uint32_t s = 1; s < num_streams(plan); ++s) {
      const Place fork = new_strand(id, s);
      commands_.begin_fork(fork.stream);
      commands_.wait(end_event(plan, s, 1 - set));
      commands_.record(begun_event(plan, s, set));
      commands_.launch(LoopState::begin_tail, tails[s - 1]);
      stream_commands(id, s, fork, set);
      commands_.record(end_event(plan, s, set));
      commands_.end_fork();
    }
    stream_commands(id, 0, at, set);
  }

  // Rows of loops that are not pipelined are stacked by advance.
  void push_row(const Program::Step& step, Place at) {
    const Program::Row& row = plan_.program.rows[step.operand];
    const Program::Loop& loop = plan_.program.loops[row.loop];
    if (!loop.is_pipelined) return;
    const NodeId id(loop.node);
    const auto result = static_cast<uint32_t>(loop.advance.size()) + row.index;
    auto [push, is_new] = row_pushes_.try_emplace(step.operand, nullptr);
    if (is_new) push->second = &state_.loop(id).row_apart(result);
    launch({StepKind::kRow, id, at.strand, result}, LoopState::push_row_apart, push->second);
  }

  void node(NodeId id, Place at) {
    switch (state_.graph().node(id).kind) {
      case NodeKind::kExec:
        exec(id, at);
        break;
      case NodeKind::kWhile:
      case NodeKind::kCaseOf:
        control(id, at);
        break;
    }
    ReleaseList* list = state_.release_list_or_null(id);
    if (list == nullptr) return;
    commands_.launch(ReleaseList::run, list);
    note_bookkeeping();
  }

  // Says of the launch recorded last what a recording may make of it. A trace wants every span, an
  // observer every step.
  void note(RecordableWork* work_or_null) {
    if (trace_ == nullptr && observer_ == nullptr) commands_.note_recordable(work_or_null);
  }
  void note_bookkeeping() { note(nullptr); }

  void exec(NodeId id, Place at) {
    ExecNode& node = state_.exec_node(id);
    node.args.scratch = &state_.scratch(at.stream);
    node.current_node = &state_.current_node(at.strand);
    issued_on_.emplace_back(&node, at.strand);
    TraceMark* mark = begin_span(at.stream, node.node->name);
    launch({StepKind::kExec, id, at.strand}, node.work, &node, state_.executable().is_cheap(id));
    if (node.may_be_recorded) note(&node);
    if (node.work == run_view) note_bookkeeping();
    if (node.work == run_still && trace_ == nullptr && observer_ == nullptr) {
      commands_.note_nothing();
    }
    end_span(mark);
  }

  // By the device where that may be, else by these commands.
  void control(NodeId id, Place at) {
    DeviceControl* const device = state_.device_control_or_null(id);
    if (device == nullptr) return host_control(id, at);
    commands_.begin_case(DeviceControl::choose, device, DeviceControl::kNumBranches);
    commands_.note_choice();
    commands_.begin_branch();
    host_control(id, at);
    commands_.launch(DeviceControl::left, device);
    note_bookkeeping();
    commands_.begin_branch();
    commands_.launch(DeviceControl::launch, device);
    commands_.begin_branch();
    commands_.launch(DeviceControl::launch, device);
    commands_.begin_case(DeviceControl::heard, device, 1);
    commands_.begin_branch();
    commands_.end_case();
    commands_.end_case();
    commands_.add_check(DeviceControl::finish, device);
    device_controls_.emplace_back(device, at.strand);
  }

  void host_control(NodeId id, Place at) {
    state_.graph().node(id).kind == NodeKind::kWhile ? host_loop(id, at) : host_branch(id, at);
  }

  void host_loop(NodeId id, Place at) {
    const Node& node = state_.graph().node(id);
    LoopState& loop = state_.loop(id);
    TraceMark* whole = begin_span(at.stream, node.name);
    // Rows are stacked by the host, from bytes that must be there.
    const bool is_bookkeeping = node.num_scan_outputs == 0;
    launch({StepKind::kEnter, id, at.strand}, LoopState::enter, &loop);
    if (is_bookkeeping) note_bookkeeping();
    const Program::Block& after = block(node.regions[1]);
    const bool is_open = is_pipelined(plan_.program, after);
    if (is_open) enter_open(after);
    commands_.begin_while();
    TraceMark* iteration = nullptr;
    for (uint32_t set = 0; set < (is_open ? 2 : 1); ++set) {
      iteration = begin_span(at.stream, node.name, &loop);
      region(node.regions[0], at);
      const auto [decide, context] =
          decision({StepKind::kTest, id, at.strand}, LoopState::test, &loop);
      commands_.test_while(decide, context);
      if (is_open) {
        open_region(node.regions[1], find_tails(id, after), at, set);
      } else {
        region(node.regions[1], at);
      }
      launch({StepKind::kAdvance, id, at.strand}, LoopState::advance, &loop);
      if (is_bookkeeping) note_bookkeeping();
      end_span(iteration);
    }
    commands_.end_while();
    end_span(iteration);  // of the round in which the test was false
    if (is_open) leave_open(after);
    launch({StepKind::kLeave, id, at.strand}, LoopState::leave, &loop);
    if (is_bookkeeping) note_bookkeeping();
    end_span(whole);
  }

  void host_branch(NodeId id, Place at) {
    const Node& node = state_.graph().node(id);
    CaseState& state = state_.branch(id);
    const auto [decide, context] =
        decision({StepKind::kSelect, id, at.strand}, CaseState::select, &state);
    commands_.begin_case(decide, context, static_cast<uint32_t>(node.regions.size()));
    for (size_t r = 0; r < node.regions.size(); ++r) {
      commands_.begin_branch();
      TraceMark* mark =
          begin_span(at.stream, node.name + " " + state_.graph().region(node.regions[r]).name);
      region(node.regions[r], at);
      launch({StepKind::kFinishBranch, id, at.strand, static_cast<uint32_t>(r)},
             CaseState::finish_branch, &state.branch(r));
      note_bookkeeping();
      end_span(mark);
    }
    commands_.end_case();
  }

  void launch(const Step& step, WorkFunction run, void* context, bool is_cheap = true) {
    if (observer_ == nullptr) return commands_.launch(run, context, is_cheap);
    ObservedStep observed{observer_, &state_, step, context};
    observed.run = run;
    commands_.launch(ObservedStep::run_step, &state_.add_observed_step(observed), is_cheap);
  }
  std::pair<DecideFunction, void*> decision(const Step& step, DecideFunction decide,
                                            void* context) {
    if (observer_ == nullptr) return {decide, context};
    ObservedStep observed{observer_, &state_, step, context};
    observed.decide = decide;
    return {ObservedStep::decide_step, &state_.add_observed_step(observed)};
  }

  // Null without a trace.
  TraceMark* begin_span(uint32_t stream, std::string_view name,
                        const LoopState* loop_or_null = nullptr) {
    if (trace_ == nullptr) return nullptr;
    const LaneId lane = trace_->lane("stream " + std::to_string(stream));
    TraceMark& mark = state_.add_trace_mark({trace_, lane, trace_->name(name), loop_or_null});
    commands_.launch(TraceMark::begin, &mark);
    return &mark;
  }
  void end_span(TraceMark* mark) {
    if (mark != nullptr) commands_.launch(TraceMark::end, mark);
  }

  const Plan& plan_;
  RunState& state_;
  CommandBuffer& commands_;
  TraceRecorder* const trace_;
  StepObserver* const observer_;
  std::map<uint32_t, LoopState::RowPush*> row_pushes_;  // by the program's row
  std::map<NodeId, Tails> tails_;
  std::map<std::pair<RegionId, uint32_t>, uint32_t> first_strand_;  // of a region's stream
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  std::vector<uint32_t> events_;  // by the plan's
  uint32_t num_strands_ = 0;      // forked so far; strand 0 is the main one
  std::vector<std::pair<ExecNode*, uint32_t>> issued_on_;  // nodes and their strands
  std::vector<std::pair<DeviceControl*, uint32_t>> device_controls_;
};

}  // namespace

void lower(const Plan& plan, RunState& state, TraceRecorder* trace_or_null) {
  Lowering lowering(plan, state, trace_or_null);
  lowering.run();
}

}  // namespace eddy
