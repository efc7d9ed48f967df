#include "runtime/execute/lowering.h"

#include "runtime/execute/program.h"

namespace eddy {
namespace {

class Lowering {
 public:
  Lowering(const Plan& plan, RunState& state, TraceRecorder* trace_or_null)
      : plan_(plan),
        state_(state),
        commands_(*state.commands),
        trace_(trace_or_null),
        observer_(state.program().observer_or_null()) {}

  void region(RegionId id, uint32_t strand) {
    const RegionPlan& plan = plan_.regions[id.index()];
    std::vector<uint32_t> events;
    for (uint32_t e = 0; e < plan.num_events + plan.num_streams; ++e) {
      const bool is_used = plan.num_streams > 1;
      events.push_back(is_used ? commands_.add_event() : 0);
      if (is_used) commands_.reset(events.back());
    }
    for (uint32_t stream = 1; stream < plan.num_streams; ++stream) {
      commands_.begin_fork();
      stream_commands(plan, stream, ++num_strands_, events);
      commands_.record(events[plan.num_events + stream]);
      commands_.end_fork();
    }
    stream_commands(plan, 0, strand, events);
    for (uint32_t stream = 1; stream < plan.num_streams; ++stream) {
      commands_.wait(events[plan.num_events + stream]);
    }
  }

  // Ends recording; from here on strands have streams, which kernels are told.
  void finish() {
    commands_.finish();
    for (const auto& [node, strand] : issued_on_) {
      node->args.stream = commands_.native_stream(strand);
    }
  }

 private:
  void stream_commands(const RegionPlan& plan, uint32_t stream, uint32_t strand,
                       const std::vector<uint32_t>& events) {
    for (const PlanCommand& command : plan.commands) {
      if (command.stream != stream) continue;
      switch (command.kind) {
        case PlanCommand::Kind::kLaunch: node(command.node, strand); break;
        case PlanCommand::Kind::kRecord: commands_.record(events[command.event]); break;
        case PlanCommand::Kind::kWait: commands_.wait(events[command.event]); break;
      }
    }
  }

  void node(NodeId id, uint32_t strand) {
    switch (state_.graph().node(id).kind) {
      case NodeKind::kExec: exec(id, strand); break;
      case NodeKind::kWhile: loop(id, strand); break;
      case NodeKind::kCaseOf: branch(id, strand); break;
    }
    ReleaseList* list = state_.release_list_or_null(id);
    if (list != nullptr) commands_.launch(ReleaseList::run, list);
  }

  void exec(NodeId id, uint32_t strand) {
    ExecNode& node = state_.exec_node(id);
    node.args.scratch = &state_.scratch(strand);
    node.current_node = &state_.current_node(strand);
    issued_on_.emplace_back(&node, strand);
    TraceMark* mark = begin_span(strand, node.node->name);
    launch({StepKind::kExec, id, strand}, node.work, &node, state_.program().is_cheap(id));
    end_span(mark);
  }

  void loop(NodeId id, uint32_t strand) {
    const Node& node = state_.graph().node(id);
    LoopState& loop = state_.loop(id);
    TraceMark* whole = begin_span(strand, node.name);
    launch({StepKind::kEnter, id, strand}, LoopState::enter, &loop);
    commands_.begin_while();
    TraceMark* iteration = begin_span(strand, node.name, &loop);
    region(node.regions[0], strand);
    const auto [decide, context] = decision({StepKind::kTest, id, strand}, LoopState::test, &loop);
    commands_.test_while(decide, context);
    region(node.regions[1], strand);
    launch({StepKind::kAdvance, id, strand}, LoopState::advance, &loop);
    end_span(iteration);
    commands_.end_while();
    end_span(iteration);  // of the round in which the test was false
    launch({StepKind::kLeave, id, strand}, LoopState::leave, &loop);
    end_span(whole);
  }

  void branch(NodeId id, uint32_t strand) {
    const Node& node = state_.graph().node(id);
    CaseState& state = state_.branch(id);
    const auto [decide, context] =
        decision({StepKind::kSelect, id, strand}, CaseState::select, &state);
    commands_.begin_case(decide, context, static_cast<uint32_t>(node.regions.size()));
    for (size_t r = 0; r < node.regions.size(); ++r) {
      commands_.begin_branch();
      TraceMark* mark =
          begin_span(strand, node.name + " " + state_.graph().region(node.regions[r]).name);
      region(node.regions[r], strand);
      launch({StepKind::kFinishBranch, id, strand, static_cast<uint32_t>(r)},
             CaseState::finish_branch, &state.branch(r));
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
  TraceMark* begin_span(uint32_t strand, std::string_view name,
                        const LoopState* loop_or_null = nullptr) {
    if (trace_ == nullptr) return nullptr;
    const LaneId lane = trace_->lane("stream " + std::to_string(strand));
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
  uint32_t num_strands_ = 0;  // forked so far; strand 0 is the main one
  std::vector<std::pair<ExecNode*, uint32_t>> issued_on_;  // nodes and their strands
};

}  // namespace

void lower(const Plan& plan, RunState& state, TraceRecorder* trace_or_null) {
  Lowering lowering(plan, state, trace_or_null);
  lowering.region(Graph::kRoot, 0);
  lowering.finish();
}

}  // namespace eddy
