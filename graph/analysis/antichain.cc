#include "graph/analysis/antichain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

// Dinic's maximum flow, without recursion.
class Flow {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX / 4;

  explicit Flow(uint32_t num_nodes) : arcs_of_(num_nodes) {}

  void add(uint32_t from, uint32_t to, uint64_t capacity) {
    arcs_of_[from].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({to, capacity});
    arcs_of_[to].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({from, 0});
  }

  uint64_t run(uint32_t source, uint32_t sink) {
    uint64_t total = 0;
    while (find_levels(source, sink)) {
      next_.assign(arcs_of_.size(), 0);
      while (const uint64_t pushed = push_path(source, sink)) total += pushed;
    }
    return total;
  }

  // After run(): whether the source still reaches the node.
  bool is_on_source_side(uint32_t node) const { return level_[node] != kUnseen; }

 private:
  static constexpr uint32_t kUnseen = UINT32_MAX;
  struct Arc {
    uint32_t to;
    uint64_t left;
  };

  bool find_levels(uint32_t source, uint32_t sink) {
    level_.assign(arcs_of_.size(), kUnseen);
    level_[source] = 0;
    queue_.assign(1, source);
    for (size_t i = 0; i < queue_.size(); ++i) {
      for (const uint32_t a : arcs_of_[queue_[i]]) {
        const Arc& arc = arcs_[a];
        if (arc.left == 0 || level_[arc.to] != kUnseen) continue;
        level_[arc.to] = level_[queue_[i]] + 1;
        queue_.push_back(arc.to);
      }
    }
    return level_[sink] != kUnseen;
  }

  // One path along rising levels; dead ends are left for good.
  uint64_t push_path(uint32_t source, uint32_t sink) {
    path_.clear();
    uint32_t at = source;
    while (at != sink) {
      uint32_t& next = next_[at];
      while (next < arcs_of_[at].size() && !leads_on(at, arcs_of_[at][next])) ++next;
      if (next < arcs_of_[at].size()) {
        path_.push_back(arcs_of_[at][next]);
        at = arcs_[path_.back()].to;
        continue;
      }
      if (at == source) return 0;
      at = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
      ++next_[at];
    }
    uint64_t pushed = UINT64_MAX;
    for (const uint32_t a : path_) pushed = std::min(pushed, arcs_[a].left);
    for (const uint32_t a : path_) {
      arcs_[a].left -= pushed;
      arcs_[a ^ 1].left += pushed;
    }
    return pushed;
  }
  bool leads_on(uint32_t from, uint32_t a) const {
    return arcs_[a].left > 0 && level_[arcs_[a].to] == level_[from] + 1;
  }

  std::vector<Arc> arcs_;  // an arc and its reverse next to each other
  std::vector<std::vector<uint32_t>> arcs_of_;
  std::vector<uint32_t> level_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> queue_;
  std::vector<uint32_t> path_;
};

}  // namespace

Antichain heaviest_antichain(const Dag& dag, std::span<const uint64_t> weights) {
  const uint32_t n = dag.num_nodes();
  EDDY_CHECK(weights.size() == n) << "one weight for each node";
  // Node v's path ends stand at v, its path starts at n + v.
  const uint32_t source = 2 * n;
  const uint32_t sink = 2 * n + 1;
  Flow flow(2 * n + 2);
  uint64_t total = 0;
  for (uint32_t v = 0; v < n; ++v) {
    total += weights[v];
    flow.add(source, v, weights[v]);
    flow.add(n + v, sink, weights[v]);
    flow.add(n + v, v, Flow::kUnlimited);  // through v, beyond its own weight
    for (const uint32_t child : dag.children(v)) flow.add(v, n + child, Flow::kUnlimited);
  }
  Antichain result;
  const uint64_t joined = flow.run(source, sink);
  EDDY_DCHECK(joined <= total) << joined << " paths are joined, of " << total;
  result.weight = total - joined;
  for (uint32_t v = 0; v < n; ++v) {
    const bool is_member = flow.is_on_source_side(v) && !flow.is_on_source_side(n + v);
    if (is_member && weights[v] > 0) result.nodes.push_back(v);
  }
  return result;
}

uint64_t heaviest_weight_of_few(std::span<const uint32_t> comparable,
                                std::span<const uint64_t> weights) {
  const size_t count = weights.size();
  EDDY_CHECK(count <= kFewNodes && comparable.size() == count) << "few nodes, one set for each";
  struct Set {
    bool is_unordered = true;
    uint64_t weight = 0;
  };
  std::array<Set, size_t{1} << kFewNodes> sets;
  uint64_t heaviest = 0;
  for (uint32_t members = 1; members < uint32_t{1} << count; ++members) {
    const auto lowest = static_cast<size_t>(std::countr_zero(members));
    const uint32_t others = members & (members - 1);
    sets[members] = {sets[others].is_unordered && (comparable[lowest] & others) == 0,
                     sets[others].weight + weights[lowest]};
    if (sets[members].is_unordered) heaviest = std::max(heaviest, sets[members].weight);
  }
  return heaviest;
}

uint64_t heaviest_weight_of_intervals(std::span<const WeightedInterval> intervals) {
  using Change = std::pair<uint32_t, uint64_t>;
  std::vector<Change> begun, ended;
  for (const WeightedInterval& each : intervals) {
    EDDY_CHECK(each.first <= each.last) << each.first << " is behind " << each.last;
    begun.emplace_back(each.first, each.weight);
    ended.emplace_back(each.last, each.weight);
  }
  std::ranges::sort(begun);
  std::ranges::sort(ended);
  uint64_t now = 0, heaviest = 0;
  auto end = ended.begin();
  for (const auto& [place, weight] : begun) {
    for (; end->first < place; ++end) now -= end->second;
    now += weight;
    heaviest = std::max(heaviest, now);
  }
  return heaviest;
}

}  // namespace eddy
