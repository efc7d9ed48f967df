#include "graph/compile/plan_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "graph/base/check.h"
#include "graph/program/step_nodes.h"
#include "graph/simulate/timeline_svg.h"

namespace eddy {
namespace {

using What = FluidSpan::What;

NodeId node_of(const Program& program, const FluidSpan& span) {
  EDDY_DCHECK(span.what != What::kKernel || span.id < program.launches.size())
      << "a span of launch " << span.id;
  if (span.what == What::kKernel) return NodeId(program.launches[span.id].node);
  const bool is_case = span.what == What::kSelect || span.what == What::kFinish;
  EDDY_DCHECK(span.id < (is_case ? program.cases.size() : program.loops.size()))
      << "a span of the program's " << (is_case ? "case " : "loop ") << span.id;
  return NodeId(is_case ? program.cases[span.id].node : program.loops[span.id].node);
}

// The verbs by What.
constexpr const char* kVerbs[] = {"",       "enter ",  "test ",  "advance ",
                                  "leave ", "select ", "finish "};
static_assert(std::size(kVerbs) == static_cast<size_t>(What::kFinish) + 1, "each step has a verb");
constexpr size_t kMostDrawn = 2000;

bool is_first(What what) { return what == What::kEnter || what == What::kSelect; }
bool is_last(What what) { return what == What::kLeave || what == What::kFinish; }

// The labels of a plan's spans, by start.
class Surroundings {
 public:
  using View = TimelineView<double>;

  Surroundings(const Graph& graph, const Program& program, const std::vector<FluidSpan>& spans,
               const Timeline<double>& times)
      : graph_(graph), program_(program), spans_(spans), times_(times) {
    EDDY_CHECK(times.tasks.size() == spans.size()) << "each span has its times";
    EDDY_DCHECK(std::ranges::is_sorted(spans, {}, &FluidSpan::start_ns)) << "spans come by start";
  }

  // Outer ones first, as they begin first.
  std::vector<View::Frame> frames() const {
    std::map<NodeId, std::pair<uint32_t, uint32_t>> lanes;  // of all that a control node holds
    for (const FluidSpan& span : spans_) {
      const NodeId node = node_of(program_, span);
      if (span.what != What::kKernel) widen(lanes, node, span.lane);
      for (RegionId at = graph_.node(node).region; !graph_.region(at).owner.is_none();) {
        widen(lanes, graph_.region(at).owner, span.lane);
        at = graph_.node(graph_.region(at).owner).region;
      }
    }
    std::map<NodeId, size_t> open;  // the frame that has begun
    std::vector<View::Frame> frames;
    for (size_t i = 0; i < spans_.size(); ++i) {
      const FluidSpan& span = spans_[i];
      if (span.what == What::kKernel) continue;
      const NodeId node = node_of(program_, span);
      const TaskTimes<double>& time = times_.tasks[i];
      if (is_first(span.what) && frames.size() < kMostDrawn) {
        open[node] = frames.size();
        const auto& [first, last] = lanes.at(node);
        frames.push_back({time.start, time.end, first, last, graph_.path(node)});
      }
      const auto begun = open.find(node);
      if (begun != open.end()) {
        frames[begun->second].end = std::max(frames[begun->second].end, time.end);
      }
    }
    return frames;
  }

  std::vector<View::Arrow> arrows() const {
    std::map<NodeId, std::vector<uint32_t>> begins;  // by start
    std::map<NodeId, std::vector<uint32_t>> ends;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const What what = spans_[i].what;
      const NodeId node = node_of(program_, spans_[i]);
      if (what == What::kKernel || is_first(what)) begins[node].push_back(i);
      if (what == What::kKernel || is_last(what)) ends[node].push_back(i);
    }
    std::vector<View::Arrow> arrows;
    for (const Program::Block& block : program_.blocks) {
      const std::vector<uint32_t> beside = find_step_nodes(block);
      std::map<uint32_t, NodeId> recorder;
      for (size_t i = 0; i < block.steps.size(); ++i) {
        const Program::Step& step = block.steps[i];
        if (beside[i] == Program::kNone) continue;
        const Program::Step& at = block.steps[beside[i]];
        if (at.op == Program::Op::kRetain) continue;
        const NodeId node = eddy::node_of(program_, at);
        if (step.op == Program::Op::kRecord) recorder[step.operand] = node;
        const bool is_wait = step.op == Program::Op::kWait;
        if (!is_wait || !recorder.contains(step.operand)) continue;
        add_arrows(ends[recorder[step.operand]], begins[node], step.operand, arrows);
      }
    }
    return arrows;
  }

 private:
  static void widen(std::map<NodeId, std::pair<uint32_t, uint32_t>>& lanes, NodeId node,
                    uint32_t lane) {
    auto& [first, last] = lanes.try_emplace(node, lane, lane).first->second;
    first = std::min(first, lane);
    last = std::max(last, lane);
  }
  // Draws an arrow to each beginning from the latest end before it.
  void add_arrows(const std::vector<uint32_t>& ends, const std::vector<uint32_t>& begins,
                  uint32_t event, std::vector<View::Arrow>& arrows) const {
    for (const uint32_t to : begins) {
      const double start = times_.tasks[to].start;
      const auto after = std::ranges::upper_bound(
          ends, start, {}, [&](uint32_t slot) { return times_.tasks[slot].end; });
      if (after == ends.begin() || arrows.size() == kMostDrawn) continue;
      const uint32_t from = *(after - 1);
      arrows.push_back({from, to,
                        "e" + std::to_string(event) + " of " +
                            graph_.node(node_of(program_, spans_[from])).name});
    }
  }

  const Graph& graph_;
  const Program& program_;
  const std::vector<FluidSpan>& spans_;
  const Timeline<double>& times_;
};

}  // namespace

std::string plan_timeline_svg(const Graph& graph, const Plan& plan, const FluidTimeline& timeline,
                              const std::string& title) {
  std::vector<FluidSpan> spans = timeline.spans;
  std::ranges::stable_sort(spans, {}, &FluidSpan::start_ns);
  std::vector<TaskSpec<double>> specs;
  Timeline<double> times;
  for (const FluidSpan& span : spans) {
    const auto slot = static_cast<uint32_t>(specs.size());
    // Readers need whole nanoseconds.
    const double start_ns = std::round(span.start_ns);
    const double end_ns = std::round(span.end_ns);
    specs.push_back({end_ns - start_ns, span.lane, slot});
    times.tasks.push_back({start_ns, start_ns, end_ns, slot});
  }
  times.order.resize(specs.size());
  std::iota(times.order.begin(), times.order.end(), 0u);
  times.makespan = std::round(timeline.makespan_ns);
  TaskGraph<double> tasks;
  tasks.assign(specs, {});
  tasks.make_predecessors();
  const Surroundings around(graph, plan.program, spans, times);
  const TimelineView<double> view{tasks,
                                  times,
                                  times.order,
                                  [&](uint32_t slot) {
                                    const FluidSpan& span = spans[slot];
                                    return kVerbs[static_cast<size_t>(span.what)] +
                                           graph.node(node_of(plan.program, span)).name;
                                  },
                                  [](uint32_t lane) { return "stream " + std::to_string(lane); },
                                  [](uint32_t) { return false; },
                                  true,
                                  around.frames(),
                                  around.arrows()};
  return timeline_svg(view, title);
}

}  // namespace eddy
