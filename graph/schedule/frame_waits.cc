#include "graph/schedule/frame_waits.h"

#include "graph/base/check.h"

namespace eddy {
namespace {

// By stream: the source that it begins with and the sink that it ends with; none where another node
// is waited for or waits there, or the stream is empty.
struct StreamEnds {
  NodeId source;
  NodeId sink;
};

std::vector<StreamEnds> ends_of_streams(const RegionSchedule& plan) {
  using Op = Program::Op;
  std::vector<const Program::Step*> first(plan.num_streams), last(plan.num_streams);
  for (const Program::Step& step : plan.steps) {
    if (step.op == Op::kRetain) continue;  // part of the node behind it
    if (first[step.stream] == nullptr) first[step.stream] = &step;
    last[step.stream] = &step;
  }
  std::vector<StreamEnds> ends(plan.num_streams);
  for (uint32_t s = 0; s < plan.num_streams; ++s) {
    if (first[s] == nullptr) continue;
    if (first[s]->op == Op::kLaunch) ends[s].source = NodeId(first[s]->operand);
    if (last[s]->op == Op::kLaunch && !plan.is_pipelined) {
      ends[s].sink = NodeId(last[s]->operand);
    };
  }
  return ends;
}

}  // namespace

FrameWaits frame_waits(const RegionSchedule& plan) {
  const std::vector<StreamEnds> ends = ends_of_streams(plan);
  FrameWaits waits;
  for (uint32_t s = 1; s < plan.num_streams; ++s) {
    if (!ends[s].source.is_none()) waits.entry.push_back({s, ends[s].source});
    if (!ends[s].sink.is_none()) waits.exit.push_back({s, ends[s].sink});
  }
  return waits;
}

void put_fewest_frame_waits_first(RegionSchedule& plan) {
  EDDY_CHECK(!plan.is_pipelined && plan.streams.empty()) << "streams have not been given out";
  const std::vector<StreamEnds> ends = ends_of_streams(plan);
  const auto saved = [&](uint32_t s) {
    return (ends[s].source.is_none() ? 0 : 1) + (ends[s].sink.is_none() ? 0 : 1);
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
