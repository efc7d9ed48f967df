#include "graph/simulate/memory_meter.h"

#include "graph/simulate/weight_slices.h"

namespace eddy {

MemoryMeter::MemoryMeter(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph), topology_(topology), groups_(weight_groups(graph)) {
  for (const uint32_t device : topology.devices()) {
    is_limited_ |= topology.node(device).memory_bytes > 0;
  }
}

void MemoryMeter::reset(const Strategy& strategy) {
  if (is_limited_) bytes_ = memory_use(graph_, topology_, strategy);
}

void MemoryMeter::count(const Strategy& strategy, uint32_t op, int64_t sign) {
  if (!is_limited_) return;
  const Operator& changed = graph_.operators[op];
  const int64_t tile_bytes =
      *tile_of(changed, strategy[op]).count() * graph_.bytes_per_element * sign;
  for (const uint32_t device : strategy[op].devices) bytes_[device] += tile_bytes;
  if (changed.weight_elements == 0) return;
  const int64_t copies = graph_.is_training ? 3 : 1;
  for (const WeightSlice& slice : weight_slices(graph_, strategy, groups_[changed.weight_group])) {
    for (const SliceHolder& holder : slice.holders) {
      bytes_[holder.device] += sign * copies * slice.elements * graph_.bytes_per_element;
    }
  }
}

bool MemoryMeter::fits() const {
  if (!is_limited_) return true;
  for (const uint32_t device : topology_.devices()) {
    const int64_t limit = topology_.node(device).memory_bytes;
    if (limit > 0 && bytes_[device] > limit) return false;
  }
  return true;
}

}  // namespace eddy
