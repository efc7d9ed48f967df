#include "graph/strategy/operators/memory_meter.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/strategy/operators/memory_use.h"
#include "graph/strategy/operators/weight_slices.h"

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
  EDDY_CHECK(strategy.size() == graph_.operators.size())
      << strategy.size() << " configurations for " << graph_.operators.size() << " operators";
  const std::vector<int64_t> used = memory_use(graph_, topology_, strategy);
  bytes_.assign(used.begin(), used.end());
  weight_bytes_.assign(groups_.size(), {});
}

void MemoryMeter::count_tiles(uint32_t op, const OperatorConfig& config, int64_t sign) {
  const Operator& changed = graph_.operators[op];
  const Bytes elements = *tile_of(changed, config).count();
  const Bytes tile_bytes = elements * graph_.bytes_per_element * sign;
  for (const uint32_t device : config.devices) {
    EDDY_DCHECK(device < tried_.size()) << changed.name << " is on device " << device;
    tried_[device] += tile_bytes;
  }
}

// By device, under the strategy as it is.
std::vector<MemoryMeter::Bytes> MemoryMeter::weight_bytes(uint32_t group) const {
  std::vector<Bytes> bytes(bytes_.size());
  const Bytes scale = (graph_.is_training ? 3 : 1) * graph_.bytes_per_element;
  for (const WeightSlice& slice : weight_slices(graph_, strategy_, groups_[group])) {
    for (const SliceShard& shard : slice.shards) {
      bytes[shard.device] += scale * slice.elements;
    }
  }
  return bytes;
}

bool MemoryMeter::try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config) {
  if (!is_limited_) return true;
  EDDY_CHECK(!ops.empty() && bytes_.size() == topology_.num_nodes())
      << ops.size() << " operators change, after reset()";
  ops_ = ops;
  config_ = config;
  tried_ = bytes_;
  // All of them share their weights, if they have any.
  const uint32_t group = graph_.operators[ops[0]].weight_group;
  const bool has_weights = graph_.operators[ops[0]].weight_elements > 0;
  if (has_weights && weight_bytes_[group].empty()) weight_bytes_[group] = weight_bytes(group);
  std::vector<OperatorConfig> old;
  EDDY_DCHECK(std::ranges::all_of(ops, [&](uint32_t op) {
    return !has_weights || graph_.operators[op].weight_group == group;
  })) << "operators of several groups change at once";
  for (const uint32_t op : ops) {
    count_tiles(op, strategy_[op], -1);
    count_tiles(op, config, 1);
    old.push_back(std::exchange(strategy_[op], config));
  }
  tried_weights_.clear();
  if (has_weights) {
    tried_weights_ = weight_bytes(group);
    for (size_t d = 0; d < tried_.size(); ++d) {
      tried_[d] += tried_weights_[d] - weight_bytes_[group][d];
    }
  }
  for (size_t i = 0; i < ops.size(); ++i) strategy_[ops[i]] = std::move(old[i]);
  return fits();
}

void MemoryMeter::keep() {
  if (!is_limited_) return;
  EDDY_CHECK(!ops_.empty() && tried_.size() == bytes_.size()) << "keep() follows try_change()";
  for (const uint32_t op : ops_) strategy_[op] = config_;
  bytes_.swap(tried_);
  if (!tried_weights_.empty()) {
    weight_bytes_[graph_.operators[ops_[0]].weight_group].swap(tried_weights_);
  }
}

bool MemoryMeter::fits() const {
  return std::none_of(topology_.devices().begin(), topology_.devices().end(), [&](uint32_t d) {
    const int64_t limit = topology_.node(d).memory_bytes;
    return limit > 0 && tried_[d] > limit;
  });
}

}  // namespace eddy
