#include "graph/strategy/weight_slices.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "graph/strategy/operator_graph.h"

namespace eddy {
namespace {

// Axis d < rank is an output dimension, axis kMaxRank the reduction.
using Cuts = std::array<int64_t, kMaxRank + 1>;

int64_t degree_along(const Operator& op, const OperatorConfig& config, int axis) {
  if (axis == kMaxRank) return config.reduce;
  if (axis >= op.shape.rank() || (op.weight_axes >> axis & 1) == 0) return 1;
  return config.degree[axis];
}

int64_t product(const Cuts& cuts) {
  return std::accumulate(cuts.begin(), cuts.end(), int64_t{1}, std::multiplies<>());
}

// Common multiples of the degrees along each axis; all 1 where they are too many.
Cuts common_cuts(const OperatorGraph& graph, const Strategy& strategy,
                 const std::vector<uint32_t>& group) {
  const int64_t most = group.size() > 1 ? kMaxSharedSlices : kMaxSlices;
  Cuts cuts;
  cuts.fill(1);
  for (const uint32_t op : group) {
    for (int axis = 0; axis <= kMaxRank; ++axis) {
      int64_t& cut = cuts[static_cast<size_t>(axis)];
      cut = std::lcm(cut, degree_along(graph.operators[op], strategy[op], axis));
      if (cut > most) cut = 1;
    }
    if (product(cuts) > most) cuts.fill(1);
  }
  return cuts;
}

// The slices [begin, end) along each axis that one part needs.
struct SliceBox {
  std::array<int64_t, kMaxRank + 1> begin{};
  std::array<int64_t, kMaxRank + 1> end{};
};

SliceBox box_of(const Operator& op, const OperatorConfig& config, const Cuts& cuts, int64_t part) {
  SliceBox box;
  int64_t rest = part / config.reduce;
  std::array<int64_t, kMaxRank + 1> at{};
  at[kMaxRank] = part % config.reduce;
  for (int d = op.shape.rank() - 1; d >= 0; --d) {
    at[static_cast<size_t>(d)] = rest % config.degree[d];
    rest /= config.degree[d];
  }
  for (size_t axis = 0; axis <= kMaxRank; ++axis) {
    const int64_t degree = degree_along(op, config, static_cast<int>(axis));
    const int64_t place = degree > 1 ? at[axis] : 0;
    const int64_t per_part = degree <= cuts[axis] ? cuts[axis] / degree : 0;
    box.begin[axis] = per_part > 0 ? place * per_part : 0;
    box.end[axis] = per_part > 0 ? (place + 1) * per_part : cuts[axis];
  }
  return box;
}

template <typename Visit>
void for_each_slice(const SliceBox& box, const Cuts& cuts, size_t axis, int64_t base,
                    const Visit& visit) {
  // Most axes are not cut.
  while (axis <= kMaxRank && cuts[axis] == 1) ++axis;
  if (axis > kMaxRank) return visit(static_cast<size_t>(base));
  for (int64_t i = box.begin[axis]; i < box.end[axis]; ++i) {
    for_each_slice(box, cuts, axis + 1, base * cuts[axis] + i, visit);
  }
}

std::vector<uint32_t> devices_of(const WeightSlice& slice) {
  std::vector<uint32_t> devices;
  for (const SliceHolder& holder : slice.holders) devices.push_back(holder.device);
  return devices;
}

// Orders holders by device, and joins slices that have the same ones.
std::vector<WeightSlice> join_equal(std::vector<WeightSlice> slices) {
  std::map<std::vector<uint32_t>, size_t> place_of;
  std::vector<WeightSlice> joined;
  const bool may_join = slices.size() > 1;
  for (WeightSlice& slice : slices) {
    std::sort(slice.holders.begin(), slice.holders.end(),
              [](const SliceHolder& a, const SliceHolder& b) { return a.device < b.device; });
    const auto [place, is_new] = may_join ? place_of.try_emplace(devices_of(slice), joined.size())
                                          : std::pair(place_of.end(), true);
    if (is_new) {
      joined.push_back(std::move(slice));
      continue;
    }
    WeightSlice& other = joined[place->second];
    other.elements += slice.elements;
    for (size_t h = 0; h < slice.holders.size(); ++h) {
      auto& parts = other.holders[h].parts;
      parts.insert(parts.end(), slice.holders[h].parts.begin(), slice.holders[h].parts.end());
    }
  }
  const auto before = [](const PartOfOperator& a, const PartOfOperator& b) {
    return a.op != b.op ? a.op < b.op : a.part < b.part;
  };
  const auto same = [](const PartOfOperator& a, const PartOfOperator& b) {
    return a.op == b.op && a.part == b.part;
  };
  for (WeightSlice& slice : joined) {
    for (SliceHolder& holder : slice.holders) {
      if (!may_join) break;  // they came in order, each once
      std::sort(holder.parts.begin(), holder.parts.end(), before);
      holder.parts.erase(std::unique(holder.parts.begin(), holder.parts.end(), same),
                         holder.parts.end());
    }
  }
  return joined;
}

}  // namespace

std::vector<std::vector<uint32_t>> weight_groups(const OperatorGraph& graph) {
  std::vector<std::vector<uint32_t>> groups(graph.num_weight_groups);
  for (uint32_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (op.weight_elements > 0) groups[op.weight_group].push_back(i);
  }
  return groups;
}

std::vector<WeightSlice> weight_slices(const OperatorGraph& graph, const Strategy& strategy,
                                       const std::vector<uint32_t>& group) {
  if (group.empty()) return {};
  const Cuts cuts = common_cuts(graph, strategy, group);
  const int64_t count = product(cuts);
  std::vector<WeightSlice> slices(static_cast<size_t>(count));
  const int64_t elements = graph.operators[group[0]].weight_elements;
  for (WeightSlice& slice : slices) slice.elements = (elements + count - 1) / count;
  // Where a device's holder stands among those of a slice, by slice * num_devices + device.
  uint32_t num_devices = 0;
  for (const uint32_t op : group) {
    for (const uint32_t device : strategy[op].devices) {
      num_devices = std::max(num_devices, device + 1);
    }
  }
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> place_of(slices.size() * num_devices, kNone);
  for (const uint32_t op : group) {
    const OperatorConfig& config = strategy[op];
    for (uint32_t part = 0; part < config.devices.size(); ++part) {
      const SliceBox box = box_of(graph.operators[op], config, cuts, part);
      for_each_slice(box, cuts, 0, 0, [&](size_t s) {
        auto& holders = slices[s].holders;
        uint32_t& place = place_of[s * num_devices + config.devices[part]];
        if (place == kNone) {
          place = static_cast<uint32_t>(holders.size());
          holders.push_back({config.devices[part], {}});
        }
        holders[place].parts.push_back({op, part});
      });
    }
  }
  return join_equal(std::move(slices));
}

}  // namespace eddy
