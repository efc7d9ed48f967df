#include "graph/simulate/fluid_frames.h"

#include "graph/simulate/decision_draw.h"

namespace eddy {

FluidLists::FluidLists(const FluidProgram& program) : program_(program) {
  for (const FluidRegion& region : program.regions) {
    auto& lists = lists_.emplace_back(region.num_streams);
    for (uint32_t i = 0; i < region.commands.size(); ++i) {
      lists[region.commands[i].stream].push_back({region.commands[i], i});
    }
  }
}

uint32_t FluidLists::position(const FluidFrame& frame) const {
  const std::vector<Item>& list = of(frame);
  return frame.at < list.size() ? list[frame.at].position : UINT32_MAX;
}

FluidWait FluidLists::next_wait(const FluidFrame& frame) const {
  if (frame.kind == FluidFrame::Kind::kLoop && frame.phase == kLoopTails) {
    const FluidRegion& after = program_.regions[program_.loops[frame.id].after];
    if (frame.entered + 1 < after.num_streams) {
      return {frame.previous, end_event(after, frame.entered + 1)};
    }
  }
  if (frame.kind != FluidFrame::Kind::kRegion || frame.instance == kNoInstance) return {};
  const FluidRegion& region = program_.regions[frame.id];
  if (frame.is_entering) return entry_wait(frame, region);
  const std::vector<Item>& list = of(frame);
  if (frame.at < list.size()) {
    const Program::Step& command = list[frame.at].command;
    if (command.op == Program::Op::kWait) return {frame.instance, command.operand};
    if (command.op == Program::Op::kWaitPrevious) return {frame.previous, command.operand};
  } else if (joins_left(frame) > 0) {
    return {frame.instance, end_event(region, region.num_streams - joins_left(frame))};
  }
  return {};
}

// Of an open region behind another iteration. Stream 0 waits until the others have begun there,
// then for what it must not overtake; a further stream for its own end.
FluidWait FluidLists::entry_wait(const FluidFrame& frame, const FluidRegion& region) {
  if (frame.stream > 0) {
    return frame.entered == 0 ? FluidWait{frame.previous, end_event(region, frame.stream)}
                              : FluidWait{};
  }
  const uint32_t others = region.num_streams - 1;
  if (frame.entered < others) return {frame.previous, begun_event(region, frame.entered + 1)};
  if (frame.entered - others >= region.entry_waits.size()) return {};
  return {frame.previous, region.entry_waits[frame.entered - others]};
}

// Ends of further streams that stream 0 still waits for.
uint32_t FluidLists::joins_left(const FluidFrame& frame) const {
  const FluidRegion& region = program_.regions[frame.id];
  if (frame.stream > 0 || region.is_open) return 0;
  const auto done = static_cast<uint32_t>(frame.at - of(frame).size());
  return region.num_streams - 1 - done;
}

double FluidLists::host_cost(const FluidFrame& frame, const FluidMachine::Costs& host) const {
  if (frame.kind == FluidFrame::Kind::kLoop) return host_cost_of_loop(frame, host);
  if (frame.kind == FluidFrame::Kind::kCase) return frame.phase == 0 ? host.decision_ns : 0;
  if (next_wait(frame)) return host.wait_ns;
  if (frame.is_entering) return frame.stream > 0 ? host.record_ns : 0;
  const std::vector<Item>& list = of(frame);
  if (frame.at >= list.size()) return 0;
  switch (list[frame.at].command.op) {
    case Program::Op::kLaunch:
      return host.launch_ns;
    case Program::Op::kRecord:
      return host.record_ns;
    default:
      return 0;
  }
}

double FluidLists::host_cost_of_loop(const FluidFrame& frame,
                                     const FluidMachine::Costs& host) const {
  const FluidLoop& loop = program_.loops[frame.id];
  if (frame.phase == kLoopTest) return host.decision_ns;
  if (next_wait(frame)) return host.wait_ns;
  const bool launches = (frame.phase == kLoopAdvance && loop.advance.solo_ns > 0) ||
                        (frame.phase == kLoopEnter && loop.enter.solo_ns > 0);
  return launches ? host.launch_ns : 0;
}

int64_t choose_value(const Decision& decision, const std::string& name, uint64_t execution,
                     const FluidOptions& options) {
  if (!decision.trace.empty()) return decision.trace[execution % decision.trace.size()];
  double draw = draw_uniform(options.seed, options.sample, name_hash(name), execution);
  for (const Decision::Likely& likely : decision.distribution) {
    if (draw < likely.probability) return likely.value;
    draw -= likely.probability;
  }
  return decision.distribution.back().value;
}

}  // namespace eddy
