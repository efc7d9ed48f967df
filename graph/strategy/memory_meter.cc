#include "graph/strategy/memory_meter.h"

#include <algorithm>
#include <utility>

#include "graph/strategy/weight_slices.h"

namespace eddy {

MemoryMeter::MemoryMeter(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph), topology_(topology), groups_(weight_groups(graph)) {
  for (const uint32_t device : topology.devices()) {
    is_limited_ |= topology.node(device).memory_bytes > 0;
  }
}

void MemoryMeter::reset(const Strategy& strategy) {
  if (!is_limited_) return;
  strategy_ = strategy;
  bytes_ = memory_use(graph_, topology_, strategy);
}

void MemoryMeter::count_tiles(uint32_t op, const OperatorConfig& config, int64_t sign) {
  const Operator& changed = graph_.operators[op];
  const int64_t tile_bytes = *tile_of(changed, config).count() * graph_.bytes_per_element * sign;
  for (const uint32_t device : config.devices) tried_[device] += tile_bytes;
}

void MemoryMeter::count_weights(uint32_t op, int64_t sign) {
  const Operator& changed = graph_.operators[op];
  if (changed.weight_elements == 0) return;
  const int64_t scale = sign * (graph_.is_training ? 3 : 1) * graph_.bytes_per_element;
  for (const WeightSlice& slice : weight_slices(graph_, strategy_, groups_[changed.weight_group])) {
    for (const SliceHolder& holder : slice.holders) {
      tried_[holder.device] += scale * slice.elements;
    }
  }
}

bool MemoryMeter::try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config) {
  if (!is_limited_) return true;
  ops_ = ops;
  config_ = config;
  tried_ = bytes_;
  // All of them share their weights, if they have any.
  count_weights(ops[0], -1);
  std::vector<OperatorConfig> old;
  for (const uint32_t op : ops) {
    count_tiles(op, strategy_[op], -1);
    count_tiles(op, config, 1);
    old.push_back(std::exchange(strategy_[op], config));
  }
  count_weights(ops[0], 1);
  for (size_t i = 0; i < ops.size(); ++i) strategy_[ops[i]] = std::move(old[i]);
  return fits();
}

void MemoryMeter::keep() {
  if (!is_limited_) return;
  for (const uint32_t op : ops_) strategy_[op] = config_;
  bytes_.swap(tried_);
}

bool MemoryMeter::fits() const {
  return std::none_of(topology_.devices().begin(), topology_.devices().end(), [&](uint32_t d) {
    const int64_t limit = topology_.node(d).memory_bytes;
    return limit > 0 && tried_[d] > limit;
  });
}

}  // namespace eddy
