#include "graph/strategy/operators/weight_slices.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "graph/base/check.h"
#include "graph/strategy/operators/operator_graph.h"

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
  if (axis > kMaxRank) return visit(static_cast<uint32_t>(base));
  for (int64_t i = box.begin[axis]; i < box.end[axis]; ++i) {
    for_each_slice(box, cuts, axis + 1, base * cuts[axis] + i, visit);
  }
}

// The parts of a group, ascending, and the slices that each needs.
class Needs {
 public:
  Needs(const OperatorGraph& graph, const Strategy& strategy, const std::vector<uint32_t>& group,
        const Cuts& cuts) {
    for (const uint32_t op : group) {
      const OperatorConfig& config = strategy[op];
      for (uint32_t part = 0; part < config.devices.size(); ++part) {
        const SliceBox box = box_of(graph.operators[op], config, cuts, part);
        for_each_slice(box, cuts, 0, 0, [this](uint32_t slice) { slices_.push_back(slice); });
        parts_.push_back({op, part});
        ends_.push_back(slices_.size());
      }
    }
  }

  // visit(part, its slices)
  template <typename Visit>
  void for_each(const Visit& visit) const {
    size_t begin = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      visit(parts_[i], std::span(slices_).subspan(begin, ends_[i] - begin));
      begin = ends_[i];
    }
  }

 private:
  std::vector<PartOfOperator> parts_;
  std::vector<size_t> ends_;  // in slices_
  std::vector<uint32_t> slices_;
};

uint32_t num_devices_of(const Strategy& strategy, const std::vector<uint32_t>& group) {
  uint32_t count = 0;
  for (const uint32_t op : group) {
    for (const uint32_t device : strategy[op].devices) count = std::max(count, device + 1);
  }
  return count;
}

// Slices that have the same shards, by the first of them, still without parts; and where each
// slice went.
struct Joined {
  std::vector<WeightSlice> slices;
  std::vector<uint32_t> place_of;
};

Joined join_equal(const Strategy& strategy, const Needs& needs, size_t num_slices,
                  uint32_t num_devices) {
  using Bits = std::vector<uint64_t>;  // by device
  std::vector<Bits> bits_of(num_slices, Bits(num_devices / 64 + 1));
  needs.for_each([&](const PartOfOperator& part, std::span<const uint32_t> slices) {
    const uint32_t device = strategy[part.op].devices[part.part];
    for (const uint32_t slice : slices) {
      bits_of[slice][device / 64] |= uint64_t{1} << (device % 64);
    }
  });
  Joined joined;
  std::map<Bits, uint32_t> known;
  for (const Bits& bits : bits_of) {
    const auto place = static_cast<uint32_t>(joined.slices.size());
    const auto [found, is_new] = known.try_emplace(bits, place);
    joined.place_of.push_back(found->second);
    if (!is_new) continue;
    WeightSlice& slice = joined.slices.emplace_back();
    for (uint32_t device = 0; device < num_devices; ++device) {
      if ((bits[device / 64] >> (device % 64) & 1) != 0) slice.shards.push_back({device, {}});
    }
  }
  return joined;
}

// A part may need several of the slices that were joined: it is added once.
void add_parts(const Strategy& strategy, const Needs& needs, uint32_t num_devices, Joined& joined) {
  std::vector<std::vector<PartOfOperator>*> parts_on(joined.slices.size() * num_devices);
  for (size_t i = 0; i < joined.slices.size(); ++i) {
    for (SliceShard& shard : joined.slices[i].shards) {
      parts_on[i * num_devices + shard.device] = &shard.parts;
    }
  }
  std::vector<PartOfOperator> last(joined.slices.size(), {UINT32_MAX, UINT32_MAX});
  needs.for_each([&](const PartOfOperator& part, std::span<const uint32_t> slices) {
    const uint32_t device = strategy[part.op].devices[part.part];
    for (const uint32_t slice : slices) {
      EDDY_DCHECK(slice < joined.place_of.size()) << "slice " << slice << " does not exist";
      const uint32_t place = joined.place_of[slice];
      if (last[place].op == part.op && last[place].part == part.part) continue;
      last[place] = part;
      std::vector<PartOfOperator>* const parts = parts_on[size_t{place} * num_devices + device];
      EDDY_DCHECK(parts != nullptr) << "device " << device << " does not hold slice " << slice;
      parts->push_back(part);
    }
  });
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
  EDDY_CHECK(count >= 1 && count <= kMaxSlices) << count << " slices";
  const int64_t elements = (graph.operators[group[0]].weight_elements + count - 1) / count;
  const uint32_t num_devices = num_devices_of(strategy, group);
  const Needs needs(graph, strategy, group, cuts);
  Joined joined = join_equal(strategy, needs, static_cast<size_t>(count), num_devices);
  EDDY_CHECK(joined.place_of.size() == static_cast<size_t>(count)) << "a slice went nowhere";
  for (const uint32_t place : joined.place_of) joined.slices[place].elements += elements;
  add_parts(strategy, needs, num_devices, joined);
  return std::move(joined.slices);
}

}  // namespace eddy
