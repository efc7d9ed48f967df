#include "graph/schedule/boundary_waits.h"

#include "graph/base/check.h"

namespace eddy {
namespace {

// Whether a stream begins with a source and ends with a sink; neither where another node is waited
// for or waits there, or the stream is empty.
struct StreamEnds {
  bool has_source = false;
  bool has_sink = false;
};

std::vector<StreamEnds> ends_of_streams(const RegionSchedule& plan) {
  using Op = Program::Op;
  std::vector<const Program::Step*> first(plan.num_streams), last(plan.num_streams);
  for (const Program::Step& step : plan.steps) {
    EDDY_DCHECK(step.stream < plan.num_streams) << "stream " << step.stream << " of the region";
    if (first[step.stream] == nullptr) first[step.stream] = &step;
    last[step.stream] = &step;
  }
  std::vector<StreamEnds> ends(plan.num_streams);
  for (uint32_t s = 0; s < plan.num_streams; ++s) {
    if (first[s] == nullptr) continue;
    ends[s].has_source = first[s]->op == Op::kLaunch || first[s]->op == Op::kRetain;
    ends[s].has_sink = last[s]->op == Op::kLaunch && !plan.is_pipelined;
  }
  return ends;
}

}  // namespace

BoundaryWaits boundary_waits(const RegionSchedule& plan) {
  const std::vector<StreamEnds> ends = ends_of_streams(plan);
  BoundaryWaits waits;
  for (uint32_t s = 1; s < plan.num_streams; ++s) {
    if (ends[s].has_source) waits.entry.push_back(s);
    if (ends[s].has_sink) waits.exit.push_back(s);
  }
  return waits;
}

void put_fewest_boundary_waits_first(RegionSchedule& plan) {
  EDDY_CHECK(!plan.is_pipelined && plan.streams.empty()) << "streams have not been given out";
  EDDY_DCHECK(plan.devices.empty() || plan.devices.size() == plan.num_streams)
      << plan.devices.size() << " devices of " << plan.num_streams << " streams";
  const std::vector<StreamEnds> ends = ends_of_streams(plan);
  const auto saved = [&](uint32_t s) {
    return (ends[s].has_source ? 1 : 0) + (ends[s].has_sink ? 1 : 0);
  };
  uint32_t best = 0;
  for (uint32_t s = 1; s < plan.num_streams; ++s) {
    const bool is_near = plan.devices.empty() || plan.devices[s] == plan.devices[0];
    if (is_near && saved(s) > saved(best)) best = s;
  }
  for (Program::Step& step : plan.steps) {
    if (step.stream == 0 || step.stream == best) {
      step.stream = step.stream == 0 ? best : 0;
    }
  }
}

}  // namespace eddy
