#include "graph/schedule/streams/edge_devices.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = Slots::kNoSlot;
static_assert(kNone == Matching::kUnmatched);

struct Pair {
  uint32_t from;  // slots of one device
  uint32_t to;
};

// The edges whose ends share a device, each with its pairs, in order of devices.
struct PairedEdges {
  std::vector<Pair> pairs;
  std::vector<uint32_t> begin = {0};
  uint32_t num_shared = 0;

  uint32_t size() const { return static_cast<uint32_t>(begin.size()) - 1; }
  std::span<const Pair> of(uint32_t edge) const {
    return {pairs.data() + begin[edge], pairs.data() + begin[edge + 1]};
  }
  bool is_shared(uint32_t edge) const { return begin[edge + 1] - begin[edge] > 1; }
};

PairedEdges list_edges(const Dag& reduced, const Slots& slots) {
  PairedEdges edges;
  for (uint32_t node = 0; node < reduced.num_nodes(); ++node) {
    for (uint32_t child : reduced.children(node)) {
      slots.for_each_of(node, [&](uint32_t from) {
        const uint32_t to = slots.find(child, slots.device(from));
        if (to != kNone) edges.pairs.push_back({from, to});
      });
      const auto end = static_cast<uint32_t>(edges.pairs.size());
      if (end == edges.begin.back()) continue;
      edges.begin.push_back(end);
      edges.num_shared += end - edges.begin[edges.size() - 1] > 1 ? 1 : 0;
    }
  }
  return edges;
}

// Rows from pairs in any order; a row's targets keep it.
Bipartite rows_of(std::span<const Pair> pairs, uint32_t num_left, uint32_t num_right) {
  Bipartite graph;
  graph.num_right = num_right;
  graph.begin.assign(num_left + size_t{1}, 0);
  for (const Pair& pair : pairs) ++graph.begin[pair.from + size_t{1}];
  for (uint32_t left = 0; left < num_left; ++left) graph.begin[left + 1] += graph.begin[left];
  graph.targets.resize(pairs.size());
  std::vector<uint32_t> next(graph.begin.begin(), graph.begin.end() - 1);
  for (const Pair& pair : pairs) graph.targets[next[pair.from]++] = pair.to;
  return graph;
}

// Which edges are covered, and by which slots: each leaves one slot (`from`) and enters one (`to`)
// that no other edge leaves or enters. While the two are of different devices the edge is split.
class Cover {
 public:
  // As many edges as can be covered by the pairs that are allowed, some of them split.
  Cover(const PairedEdges& edges, const std::vector<bool>& is_allowed, uint32_t num_slots)
      : edges_(edges), is_allowed_(is_allowed), num_slots_(num_slots) {
    for (Side& side : sides_) {
      side.pair_of_edge.assign(edges.size(), kNone);
      side.edge_of_slot.assign(num_slots, kNone);
    }
    cover_most();
    while (unsplit_some()) {
    }
  }

  uint32_t num_covered() const { return num_covered_; }
  uint32_t num_split() const {
    uint32_t count = 0;
    for (uint32_t edge = 0; edge < edges_.size(); ++edge) count += is_split(edge) ? 1 : 0;
    return count;
  }
  bool is_split(uint32_t edge) const { return pair_left_by(edge) != sides_[1].pair_of_edge[edge]; }
  // kNone: not covered.
  uint32_t pair_left_by(uint32_t edge) const { return sides_[0].pair_of_edge[edge]; }

 private:
  struct Side {
    std::vector<uint32_t> pair_of_edge;
    std::vector<uint32_t> edge_of_slot;
  };
  struct Move {
    uint32_t edge;
    uint32_t side;
    uint32_t old_pair;
  };

  Matching cover_greedily() const;
  void cover_most();
  bool unsplit_some();
  bool unsplit(uint32_t edge, uint32_t side);
  void move(uint32_t edge, uint32_t side, uint32_t pair);
  void take_back();

  uint32_t slot(uint32_t pair, uint32_t side) const {
    return side == 0 ? edges_.pairs[pair].from : edges_.pairs[pair].to;
  }
  // The edge's pair that has this slot, if it is allowed.
  uint32_t find_pair(uint32_t edge, uint32_t slot_wanted, uint32_t side) const {
    for (uint32_t pair = edges_.begin[edge]; pair < edges_.begin[edge + 1]; ++pair) {
      if (slot(pair, side) == slot_wanted) return is_allowed_[pair] ? pair : kNone;
    }
    return kNone;
  }

  const PairedEdges& edges_;
  const std::vector<bool>& is_allowed_;
  const uint32_t num_slots_;
  uint32_t num_covered_ = 0;
  Side sides_[2];
  std::vector<Move> moves_;
};

// In a matching each edge stands on both sides, behind the slots: matched with itself it is not
// covered, else it has a slot on either side.
Matching Cover::cover_greedily() const {
  const uint32_t size = num_slots_ + edges_.size();
  Matching matching;
  matching.right_of_left.assign(size, kNone);
  matching.left_of_right.assign(size, kNone);
  const auto join = [&](uint32_t left, uint32_t right) {
    matching.right_of_left[left] = right;
    matching.left_of_right[right] = left;
    ++matching.size;
  };
  for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
    const uint32_t itself = num_slots_ + edge;
    for (uint32_t i = edges_.begin[edge]; i < edges_.begin[edge + 1]; ++i) {
      const Pair& pair = edges_.pairs[i];
      const bool is_free =
          matching.right_of_left[pair.from] == kNone && matching.left_of_right[pair.to] == kNone;
      if (!is_allowed_[i] || !is_free) continue;
      join(pair.from, itself);
      join(itself, pair.to);
      break;
    }
    if (matching.right_of_left[itself] == kNone) join(itself, itself);
  }
  return matching;
}

void Cover::cover_most() {
  std::vector<Pair> pairs;
  for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
    const uint32_t itself = num_slots_ + edge;
    for (uint32_t pair = edges_.begin[edge]; pair < edges_.begin[edge + 1]; ++pair) {
      if (!is_allowed_[pair]) continue;
      pairs.push_back({edges_.pairs[pair].from, itself});
      pairs.push_back({itself, edges_.pairs[pair].to});
    }
    pairs.push_back({itself, itself});
  }
  const uint32_t size = num_slots_ + edges_.size();
  const Matching most = maximum_matching(rows_of(pairs, size, size), cover_greedily());
  for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
    const uint32_t from = most.left_of_right[num_slots_ + edge];
    const uint32_t to = most.right_of_left[num_slots_ + edge];
    if (from >= num_slots_ || to >= num_slots_) continue;
    move(edge, 0, find_pair(edge, from, 0));
    move(edge, 1, find_pair(edge, to, 1));
    ++num_covered_;
  }
  moves_.clear();
}

void Cover::move(uint32_t edge, uint32_t side, uint32_t pair) {
  moves_.push_back({edge, side, sides_[side].pair_of_edge[edge]});
  EDDY_DCHECK(pair >= edges_.begin[edge] && pair < edges_.begin[edge + 1])
      << "edge " << edge << " has no pair " << pair;
  sides_[side].pair_of_edge[edge] = pair;
  sides_[side].edge_of_slot[slot(pair, side)] = edge;
}

// All moves since the last success. The path of moves visits each end of an edge at most once.
void Cover::take_back() {
  for (const Move& move : moves_) {
    Side& side = sides_[move.side];
    side.edge_of_slot[slot(side.pair_of_edge[move.edge], move.side)] = kNone;
  }
  for (const Move& move : moves_) {
    Side& side = sides_[move.side];
    EDDY_DCHECK(move.old_pair != kNone) << "edge " << move.edge << " was not covered";
    side.pair_of_edge[move.edge] = move.old_pair;
    side.edge_of_slot[slot(move.old_pair, move.side)] = move.edge;
  }
  moves_.clear();
}

bool Cover::unsplit_some() {
  bool is_any = false;
  for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
    if (is_split(edge)) is_any |= unsplit(edge, 1) || unsplit(edge, 0);
  }
  return is_any;
}

// Moves the edge's end on `side` to the device of its other end. The edge that stood there moves to
// the slot that became free, then that edge's other end follows it, and so on.
bool Cover::unsplit(uint32_t edge, uint32_t side) {
  for (;;) {
    const uint32_t freed = slot(sides_[side].pair_of_edge[edge], side);
    const uint32_t pair = sides_[1 - side].pair_of_edge[edge];
    const uint32_t other = sides_[side].edge_of_slot[slot(pair, side)];
    sides_[side].edge_of_slot[freed] = kNone;
    move(edge, side, pair);
    if (other == kNone) break;
    const bool was_split = is_split(other);
    const uint32_t pair_of_other = find_pair(other, freed, side);
    if (pair_of_other == kNone) {
      take_back();
      sides_[side].edge_of_slot[slot(sides_[side].pair_of_edge[other], side)] = other;
      return false;
    }
    move(other, side, pair_of_other);
    if (was_split || !is_split(other)) break;
    edge = other;
    side = 1 - side;
  }
  moves_.clear();
  return true;
}

// Branch and bound over the pairs of edges that stay split.
class Search {
 public:
  Search(const PairedEdges& edges, uint32_t num_slots, uint32_t max_matchings)
      : edges_(edges),
        num_slots_(num_slots),
        is_allowed_(edges.pairs.size(), true),
        matchings_left_(max_matchings) {
    visit();
  }

  // By edge; kNone: not covered.
  const std::vector<uint32_t>& pair_of_edge() const { return pair_of_edge_; }
  uint32_t below_bound() const { return is_complete_ ? 0 : bound_ - num_covered_; }

 private:
  void visit() {
    if (matchings_left_ == 0) {
      is_complete_ = false;
      return;
    }
    --matchings_left_;
    uint32_t split = kNone;
    uint32_t pair = kNone;
    const uint32_t most = cover_within(split, pair);
    if (split == kNone) return;
    const auto begin = is_allowed_.begin() + edges_.begin[split];
    const auto end = is_allowed_.begin() + edges_.begin[split + 1];
    const std::vector<bool> before(begin, end);
    std::fill(begin, end, false);  // by this pair only
    is_allowed_[pair] = true;
    visit();
    std::copy(before.begin(), before.end(), begin);
    is_allowed_[pair] = false;  // by any other
    if (num_covered_ < most) visit();
    is_allowed_[pair] = true;
  }

  // The most edges that what is allowed may cover, and an edge that is split there, if that leaves
  // something to be found.
  uint32_t cover_within(uint32_t& split, uint32_t& pair) {
    const Cover cover(edges_, is_allowed_, num_slots_);
    const uint32_t most = cover.num_covered();
    const uint32_t agreed = most - cover.num_split();
    if (pair_of_edge_.empty()) bound_ = most;
    if (pair_of_edge_.empty() || agreed > num_covered_) keep(cover, agreed);
    if (num_covered_ >= most) return most;
    EDDY_CHECK(cover.num_split() > 0) << "edges that are not covered, and none is split";
    for (split = 0; !cover.is_split(split);) ++split;
    pair = cover.pair_left_by(split);
    return most;
  }

  void keep(const Cover& cover, uint32_t num_covered) {
    num_covered_ = num_covered;
    pair_of_edge_.assign(edges_.size(), kNone);
    for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
      if (!cover.is_split(edge)) pair_of_edge_[edge] = cover.pair_left_by(edge);
    }
  }

  const PairedEdges& edges_;
  const uint32_t num_slots_;
  std::vector<bool> is_allowed_;  // by pair
  uint32_t matchings_left_;
  bool is_complete_ = true;
  uint32_t bound_ = 0;
  uint32_t num_covered_ = 0;  // by what is kept
  std::vector<uint32_t> pair_of_edge_;
};

// Edges that compete for slots, directly or over others, make a part; each is searched by itself.
class Parts {
 public:
  Parts(const PairedEdges& edges, const Slots& slots) : parent_(2 * size_t{slots.size()}) {
    std::iota(parent_.begin(), parent_.end(), 0);
    const uint32_t first_target = slots.size();
    for (const Pair& pair : edges.pairs) {
      // Joins the pair by its nodes' first slots.
      parent_[root(slots.node(pair.from))] = root(first_target + slots.node(pair.to));
    }
    for (uint32_t edge = 0; edge < edges.size(); ++edge) {
      order_.emplace_back(root(slots.node(edges.of(edge)[0].from)), edge);
    }
    std::sort(order_.begin(), order_.end());
  }

  // Calls visit(edges of the part) for each.
  template <typename Visit>
  void for_each(Visit visit) {
    std::vector<uint32_t> edges;
    for (size_t i = 0; i < order_.size(); ++i) {
      edges.push_back(order_[i].second);
      if (i + 1 < order_.size() && order_[i + 1].first == order_[i].first) continue;
      visit(edges);
      edges.clear();
    }
  }

 private:
  uint32_t root(uint32_t at) {
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }

  std::vector<uint32_t> parent_;
  std::vector<std::pair<uint32_t, uint32_t>> order_;  // root, edge
};

// Some edges alone, their slots numbered anew on either side.
class PartCopier {
 public:
  explicit PartCopier(uint32_t num_slots)
      : number_{std::vector<uint32_t>(num_slots, kNone), std::vector<uint32_t>(num_slots, kNone)} {}

  PairedEdges copy(const PairedEdges& all, std::span<const uint32_t> edges, uint32_t& num_slots) {
    PairedEdges part;
    for (const uint32_t edge : edges) {
      for (const Pair& pair : all.of(edge)) {
        part.pairs.push_back({number(0, pair.from), number(1, pair.to)});
      }
      part.begin.push_back(static_cast<uint32_t>(part.pairs.size()));
    }
    num_slots = static_cast<uint32_t>(std::max(seen_[0].size(), seen_[1].size()));
    for (int side : {0, 1}) {
      for (const uint32_t slot : seen_[side]) number_[side][slot] = kNone;
      seen_[side].clear();
    }
    return part;
  }

 private:
  uint32_t number(int side, uint32_t slot) {
    if (number_[side][slot] == kNone) {
      number_[side][slot] = static_cast<uint32_t>(seen_[side].size());
      seen_[side].push_back(slot);
    }
    return number_[side][slot];
  }

  std::vector<uint32_t> number_[2];  // by slot
  std::vector<uint32_t> seen_[2];
};

// One pair for each edge.
std::vector<Pair> choose_by_parts(const PairedEdges& edges, const Slots& slots,
                                  uint32_t max_matchings, uint32_t& above_fewest) {
  constexpr size_t kMaxPairs = 20'000'000;  // over all matchings
  max_matchings = static_cast<uint32_t>(
      std::clamp<size_t>(kMaxPairs / (edges.pairs.size() + 1), 1, max_matchings));
  std::vector<Pair> chosen(edges.size());
  PartCopier copier(slots.size());
  Parts(edges, slots).for_each([&](const std::vector<uint32_t>& part) {
    uint32_t num_slots = 0;
    const PairedEdges copy = copier.copy(edges, part, num_slots);
    const Search search(copy, num_slots, max_matchings);
    above_fewest += search.below_bound();
    for (size_t i = 0; i < part.size(); ++i) {
      const uint32_t pair = search.pair_of_edge()[i];
      const uint32_t offset = pair == kNone ? 0 : pair - copy.begin[i];
      EDDY_CHECK(offset < edges.of(part[i]).size()) << "a pair of another edge";
      chosen[part[i]] = edges.of(part[i])[offset];
    }
  });
  return chosen;
}

// Where no node is on several devices.
Bipartite pairs_of_edges(const Dag& reduced, const Slots& slots) {
  Bipartite graph;
  graph.num_right = slots.size();
  graph.targets.reserve(reduced.num_edges());
  for (uint32_t node = 0; node < reduced.num_nodes(); ++node) {
    for (uint32_t child : reduced.children(node)) {
      if (slots.device(child) == slots.device(node)) graph.targets.push_back(child);
    }
    graph.end_row();
  }
  return graph;
}

}  // namespace

EdgeDevices choose_edge_devices(const Dag& reduced, const Slots& slots, uint32_t max_matchings) {
  EdgeDevices result;
  if (slots.size() == reduced.num_nodes()) {
    result.pairs = pairs_of_edges(reduced, slots);
    return result;
  }
  PairedEdges edges = list_edges(reduced, slots);
  result.num_shared = edges.num_shared;
  if (edges.num_shared > 0) {
    edges.pairs = choose_by_parts(edges, slots, max_matchings, result.above_fewest);
  }
  result.pairs = rows_of(edges.pairs, slots.size(), slots.size());
  return result;
}

}  // namespace eddy
