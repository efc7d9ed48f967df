#include "runtime/execute/region_strands.h"

#include <algorithm>

namespace eddy {

using Op = Program::Op;

bool RegionStrands::has_stream(uint32_t stream) const {
  return std::ranges::any_of(strands,
                             [stream](const Strand& strand) { return strand.stream == stream; });
}

std::optional<Program::Block> RegionStrands::issue_order() const {
  Program::Block region;
  for (const Strand& strand : strands) region.streams.push_back(strand.stream);
  region.num_events = begin_event(strands.size());
  region.steps.push_back({Op::kBegin, strands[0].stream, 0});
  std::vector<bool> is_recorded(region.num_events);
  std::vector<size_t> next(strands.size());
  size_t num_left = 0;
  for (const Strand& strand : strands) num_left += strand.commands.size();
  for (size_t num_before = num_left + 1; num_left > 0 && num_left < num_before;) {
    num_before = num_left;
    for (size_t s = 0; s < strands.size(); ++s) {
      const std::vector<Program::Step>& commands = strands[s].commands;
      for (; next[s] < commands.size(); ++next[s], --num_left) {
        const Program::Step& command = commands[next[s]];
        if (command.op == Op::kWait && !is_recorded[command.operand]) break;
        if (command.op == Op::kRecord) is_recorded[command.operand] = true;
        region.steps.push_back(command);
      }
    }
  }
  if (num_left > 0) return std::nullopt;
  return region;
}

}  // namespace eddy
