#include "graph/compile/plan_timeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/simulate/timeline_svg.h"

namespace eddy {
namespace {

using What = FluidSpan::What;

std::string name_of(const Graph& graph, const PlanProgram& program, const FluidSpan& span) {
  switch (span.what) {
    case What::kKernel:
      return graph.node(program.kernels[span.id]).name;
    case What::kEnter:
      return "enter " + graph.node(program.loops[span.id]).name;
    case What::kTest:
      return "test " + graph.node(program.loops[span.id]).name;
    case What::kAdvance:
      return "advance " + graph.node(program.loops[span.id]).name;
    case What::kLeave:
      return "leave " + graph.node(program.loops[span.id]).name;
    case What::kSelect:
      return "select " + graph.node(program.cases[span.id]).name;
    case What::kFinish:
      return "finish " + graph.node(program.cases[span.id]).name;
  }
  return "";
}

}  // namespace

std::string plan_timeline_svg(const Graph& graph, const PlanProgram& program,
                              const FluidTimeline& timeline, const std::string& title) {
  std::vector<FluidSpan> spans = timeline.spans;
  std::ranges::stable_sort(spans, {}, &FluidSpan::start_ns);
  std::vector<TaskSpec<double>> specs;
  Timeline<double> times;
  for (const FluidSpan& span : spans) {
    const auto slot = static_cast<uint32_t>(specs.size());
    // Whole nanoseconds are what anybody reads.
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
  const TimelineView<double> view{
      tasks,
      times,
      times.order,
      [&](uint32_t slot) { return name_of(graph, program, spans[slot]); },
      [](uint32_t lane) { return "stream " + std::to_string(lane); },
      [](uint32_t) { return false; }};
  return timeline_svg(view, title);
}

}  // namespace eddy
