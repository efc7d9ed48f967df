#include "runtime/execute/region_strands.h"

#include <algorithm>

namespace eddy {

using Kind = NestedCommand::Kind;

bool RegionStrands::has_stream(uint32_t stream) const {
  return std::ranges::any_of(strands,
                             [stream](const Strand& strand) { return strand.stream == stream; });
}

std::optional<NestedRegion> RegionStrands::issue_order() const {
  NestedRegion region;
  region.num_events = begin_event(strands.size());
  region.commands.push_back({Kind::kEnter, strands[0].stream, 0});
  std::vector<bool> is_recorded(region.num_events);
  std::vector<size_t> next(strands.size());
  size_t num_left = 0;
  for (const Strand& strand : strands) num_left += strand.commands.size();
  for (size_t num_before = num_left + 1; num_left > 0 && num_left < num_before;) {
    num_before = num_left;
    for (size_t s = 0; s < strands.size(); ++s) {
      const std::vector<NestedCommand>& commands = strands[s].commands;
      for (; next[s] < commands.size(); ++next[s], --num_left) {
        const NestedCommand& command = commands[next[s]];
        if (command.kind == Kind::kWait && !is_recorded[command.id]) break;
        if (command.kind == Kind::kRecord) is_recorded[command.id] = true;
        region.commands.push_back(command);
      }
    }
  }
  if (num_left > 0) return std::nullopt;
  region.commands.push_back({Kind::kExit, strands[0].stream, 0});
  return region;
}

}  // namespace eddy
