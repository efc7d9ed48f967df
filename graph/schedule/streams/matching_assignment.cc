#include "graph/schedule/streams/matching_assignment.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/analysis/matching.h"
#include "graph/analysis/reachability.h"
#include "graph/base/check.h"
#include "graph/schedule/streams/chain_placement.h"
#include "graph/schedule/streams/edge_devices.h"
#include "graph/schedule/streams/slots.h"

namespace eddy {
namespace {

constexpr uint32_t kUnmatched = Matching::kUnmatched;
static_assert(kUnmatched == Slots::kNoSlot, "a matching's rows serve as successors");

// The pairs of the closure that an assignment with the fewest waits may use.
Bipartite tight_pairs(const Dag& reduced, const Slots& slots, const Bipartite& edges,
                      const VertexCover& cover) {
  EDDY_DCHECK(cover.left.size() == slots.size() && cover.right.size() == slots.size())
      << "a cover of another graph";
  const BitMatrix reach = reachability(reduced);
  Bipartite tight;
  tight.num_right = slots.size();
  std::vector<bool> is_edge(slots.size());
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    for (uint32_t target : edges.row(slot)) {
      is_edge[target] = true;
      if (cover.left[slot] != cover.right[target]) tight.targets.push_back(target);
    }
    if (!cover.left[slot]) {
      reach.for_each_in_row(slots.node(slot), [&](uint32_t node) {
        const uint32_t target = slots.find(node, slots.device(slot));
        if (target == Slots::kNoSlot || is_edge[target] || cover.right[target]) return;
        tight.targets.push_back(target);
      });
    }
    for (uint32_t target : edges.row(slot)) is_edge[target] = false;
    tight.end_row();
  }
  return tight;
}

// Lists, for each chain end, the chain starts on its device that it reaches.
class EndsAndStarts {
 public:
  EndsAndStarts(const Dag& reduced, const Slots& slots, const Matching& chains)
      : reduced_(reduced), slots_(slots), chains_(chains), seen_(reduced.num_nodes(), kUnmatched) {}

  // False if that would take more than `steps` nodes and edges.
  bool list(uint64_t steps) {
    steps_left_ = steps;
    pairs_.num_right = slots_.size();
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (chains_.right_of_left[slot] == kUnmatched && !list_row(slot)) return false;
      pairs_.end_row();
    }
    return true;
  }
  const Bipartite& pairs() const { return pairs_; }

 private:
  bool list_row(uint32_t slot) {
    stack_.assign(1, slots_.node(slot));
    while (!stack_.empty()) {
      const uint32_t node = stack_.back();
      stack_.pop_back();
      const std::span<const uint32_t> children = reduced_.children(node);
      if (steps_left_ < children.size() + 1) return false;
      steps_left_ -= children.size() + 1;
      for (uint32_t child : children) {
        if (std::exchange(seen_[child], slot) == slot) continue;
        stack_.push_back(child);
        const uint32_t target = slots_.find(child, slots_.device(slot));
        if (target == Slots::kNoSlot || chains_.left_of_right[target] != kUnmatched) continue;
        pairs_.targets.push_back(target);
      }
    }
    return true;
  }

  const Dag& reduced_;
  const Slots& slots_;
  const Matching& chains_;
  std::vector<uint32_t> seen_;
  std::vector<uint32_t> stack_;
  uint64_t steps_left_ = 0;
  Bipartite pairs_;
};

// The successors of the chains after the second pass.
std::vector<uint32_t> save_streams(const Dag& reduced, const Slots& slots, const EdgeDevices& edges,
                                   Matching first, uint32_t exact_nodes, FewestStreams& how) {
  if (reduced.num_nodes() <= exact_nodes && slots.size() <= kExactPlaces) {
    how = edges.num_shared == 0 ? FewestStreams::kExact : FewestStreams::kForChosenDevices;
    const Bipartite tight =
        tight_pairs(reduced, slots, edges.pairs, minimum_vertex_cover(edges.pairs, first));
    return maximum_matching(tight, std::move(first)).right_of_left;
  }
  how = FewestStreams::kGreedily;
  std::vector<uint32_t> successors = first.right_of_left;
  constexpr uint64_t kStepsPerEdge = 32;
  EndsAndStarts ends(reduced, slots, first);
  if (!ends.list(kStepsPerEdge * (uint64_t{slots.size()} + reduced.num_edges()))) {
    return successors;
  }
  how = FewestStreams::kJoined;
  const Matching joins = maximum_matching(ends.pairs());
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (successors[slot] == kUnmatched) successors[slot] = joins.right_of_left[slot];
  }
  return successors;
}

}  // namespace

MatchingAssignment assign_by_matching(const Dag& reduced, std::span<const uint32_t> issue_order,
                                      const StreamOptions& options) {
  const Slots slots(reduced.num_nodes(), options);
  const EdgeDevices edges = choose_edge_devices(reduced, slots);
  Matching first = maximum_matching(edges.pairs);
  MatchingAssignment result;
  result.matching_size = first.size;
  result.above_fewest = edges.above_fewest;
  FewestStreams fewest = FewestStreams::kExact;
  const std::vector<uint32_t> successors =
      save_streams(reduced, slots, edges, std::move(first), options.exact_nodes, fewest);
  result.streams = assign_chains(reduced, issue_order, options, successors);
  result.streams.fewest = std::max(result.streams.fewest, fewest);
  return result;
}

uint32_t matching_size(const Dag& reduced, const StreamOptions& options) {
  const Slots slots(reduced.num_nodes(), options);
  return maximum_matching(choose_edge_devices(reduced, slots).pairs).size;
}

}  // namespace eddy
