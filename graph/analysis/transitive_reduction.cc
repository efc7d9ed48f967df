#include "graph/analysis/transitive_reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "graph/analysis/rank.h"
#include "graph/analysis/short_edge_order.h"
#include "graph/analysis/topological_order.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kBlock = 512;
// One cache line, so that a visit to a distant node is one miss.
struct alignas(64) Row : std::array<uint64_t, kBlock / 64> {};
static_assert(sizeof(Row) == 64);

// Finds the redundant edges of a graph whose ids are a topological order, leaving out those in
// `given`, which the caller does not need.
class RedundantEdges {
 public:
  RedundantEdges(const Dag& dag, std::span<const Edge> given);
  // One flag for each edge, counted by target as in Dag::parent_offset.
  std::vector<bool> find();
  bool is_given(uint32_t edge) const { return !given_.empty() && given_[edge]; }

 private:
  // Sources first .. last (exclusive) of sources_, swept up to node `stop`.
  struct Block {
    uint32_t first_node, last_node, first_bit, num_bits, stop;
  };

  bool is_suspect(uint32_t from, uint32_t to) const;
  void mark_given(std::span<const Edge> given);
  void collect_sources();
  void sweep(const Block& block);
  void visit(const Block& block, uint32_t node);
  void add_direct_sources(const Block& block, uint32_t node);
  void push(const Block& block, uint32_t node, bool is_source);
  void activate(uint32_t node) { active_[node / 64] |= uint64_t{1} << (node % 64); }

  const Dag& dag_;
  std::vector<uint32_t> depth_;
  std::vector<uint32_t> rank_;
  std::vector<uint32_t> sources_;      // nodes with a suspect edge, ascending
  std::vector<uint32_t> last_target_;  // of source i
  std::vector<uint32_t> bit_of_;       // index into sources_, or kNoBit
  std::vector<Row> rows_;              // sources of the block that reach the node
  std::vector<uint8_t> is_full_;       // all of them do; the row is not written then
  std::vector<uint64_t> active_;
  std::vector<uint32_t> next_parent_;  // parents before this offset are in earlier blocks
  std::vector<bool> given_;            // for each edge; empty: none
  std::vector<bool> redundant_;
  Row full_row_;

  static constexpr uint32_t kNoBit = UINT32_MAX;
};

RedundantEdges::RedundantEdges(const Dag& dag, std::span<const Edge> given) : dag_(dag) {
  std::vector<uint32_t> order(dag.num_nodes());
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) order[node] = node;
  EDDY_DCHECK(is_topological(dag, order)) << "the ids are no topological order";
  depth_ = unit_depths(dag, order);
  rank_ = unit_ranks(dag, order);
  mark_given(given);
}

void RedundantEdges::mark_given(std::span<const Edge> given) {
  if (given.empty()) return;
  given_.assign(dag_.num_edges(), false);
  for (const Edge& edge : given) {
    const std::span<const uint32_t> parents = dag_.parents(edge.to);
    const auto place = std::lower_bound(parents.begin(), parents.end(), edge.from);
    EDDY_CHECK(place != parents.end() && *place == edge.from)
        << edge.from << " -> " << edge.to << " is given, but no edge of the graph";
    given_[dag_.parent_offset(edge.to) + static_cast<size_t>(place - parents.begin())] = true;
  }
}

// Another path has at least one node in between, which costs a level on either side.
bool RedundantEdges::is_suspect(uint32_t from, uint32_t to) const {
  return depth_[to] - depth_[from] >= 2 && rank_[from] - rank_[to] >= 2;
}

void RedundantEdges::collect_sources() {
  std::vector<uint32_t> last_target(dag_.num_nodes());  // node 0 is no target
  for (uint32_t node = 0; node < dag_.num_nodes(); ++node) {
    uint32_t index = dag_.parent_offset(node);
    for (uint32_t parent : dag_.parents(node)) {
      if (!is_given(index++) && is_suspect(parent, node)) last_target[parent] = node;
    }
  }
  bit_of_.assign(dag_.num_nodes(), kNoBit);
  for (uint32_t node = 0; node < dag_.num_nodes(); ++node) {
    if (last_target[node] == 0) continue;
    bit_of_[node] = static_cast<uint32_t>(sources_.size());
    sources_.push_back(node);
    last_target_.push_back(last_target[node]);
  }
}

std::vector<bool> RedundantEdges::find() {
  redundant_.assign(dag_.num_edges(), false);
  collect_sources();
  if (sources_.empty()) return std::move(redundant_);
  rows_.assign(dag_.num_nodes(), Row{});
  is_full_.assign(dag_.num_nodes(), 0);
  active_.assign(dag_.num_nodes() / 64 + 1, 0);
  next_parent_.resize(dag_.num_nodes());
  for (uint32_t v = 0; v < dag_.num_nodes(); ++v) next_parent_[v] = dag_.parent_offset(v);

  EDDY_DCHECK(std::ranges::is_sorted(sources_)) << "a block's sources are a range of nodes";
  const uint32_t num_sources = static_cast<uint32_t>(sources_.size());
  for (uint32_t first = 0; first < num_sources; first += kBlock) {
    const uint32_t last = std::min(first + kBlock, num_sources);
    const uint32_t stop =
        *std::max_element(last_target_.begin() + first, last_target_.begin() + last);
    sweep({sources_[first], sources_[last - 1] + 1, first, last - first, stop});
  }
  return std::move(redundant_);
}

void RedundantEdges::sweep(const Block& block) {
  EDDY_CHECK(block.num_bits <= kBlock && block.stop < dag_.num_nodes()) << "a block has its bits";
  for (uint32_t bit = 0; bit < kBlock; ++bit) {
    if (bit % 64 == 0) full_row_[bit / 64] = 0;
    if (bit < block.num_bits) full_row_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  for (uint32_t bit = 0; bit < block.num_bits; ++bit) activate(sources_[block.first_bit + bit]);
  // push activates no node past stop, so that every row written is read and cleared here.
  for (uint32_t word = block.first_node / 64; word <= block.stop / 64; ++word) {
    while (active_[word] != 0) {
      const uint32_t bit = static_cast<uint32_t>(std::countr_zero(active_[word]));
      active_[word] &= active_[word] - 1;
      visit(block, word * 64 + bit);
    }
  }
}

void RedundantEdges::visit(const Block& block, uint32_t node) {
  add_direct_sources(block, node);
  const bool is_source =
      bit_of_[node] != kNoBit && bit_of_[node] - block.first_bit < block.num_bits;
  push(block, node, is_source);
  rows_[node] = Row{};
  is_full_[node] = 0;
}

// The row holds the sources with a path of two edges or more; a parent among them is redundant.
void RedundantEdges::add_direct_sources(const Block& block, uint32_t node) {
  const std::span<const uint32_t> parents = dag_.parents(node);
  const uint32_t offset = dag_.parent_offset(node);
  uint32_t i = next_parent_[node] - offset;
  while (i < parents.size() && parents[i] < block.first_node) ++i;
  Row direct{};
  for (; i < parents.size() && parents[i] < block.last_node; ++i) {
    if (bit_of_[parents[i]] == kNoBit) continue;
    const uint32_t bit = bit_of_[parents[i]] - block.first_bit;
    const uint64_t mask = uint64_t{1} << (bit % 64);
    if (is_full_[node] || (rows_[node][bit / 64] & mask)) redundant_[offset + i] = true;
    direct[bit / 64] |= mask;
  }
  next_parent_[node] = offset + i;
  for (size_t w = 0; w < direct.size(); ++w) rows_[node][w] |= direct[w];
}

void RedundantEdges::push(const Block& block, uint32_t node, bool is_source) {
  const Row row = rows_[node];
  const bool is_full = is_full_[node] || row == full_row_;
  uint64_t any = is_source || is_full;
  for (uint64_t word : row) any |= word;
  if (any == 0) return;
  for (uint32_t child : dag_.children(node)) {
    if (child > block.stop) break;
    activate(child);
    if (is_full_[child]) continue;
    if (is_full) {
      is_full_[child] = 1;
    } else {
      for (size_t w = 0; w < row.size(); ++w) rows_[child][w] |= row[w];
    }
  }
}

// Calls RedundantEdges on `dag` under ids with short edges; returns what is neither redundant
// nor given, under the old ids.
std::vector<Edge> essential_edges(const Dag& dag, std::vector<Edge> given) {
  const std::vector<uint32_t> order = short_edge_order(dag);
  std::optional<Dag> renamed;
  if (!std::is_sorted(order.begin(), order.end())) {
    const std::vector<uint32_t> position = position_of(order);
    renamed = relabel(dag, position);
    for (Edge& edge : given) edge = {position[edge.from], position[edge.to]};
  }
  const Dag& ordered = renamed ? *renamed : dag;
  RedundantEdges analysis(ordered, given);
  const std::vector<bool> redundant = analysis.find();
  std::vector<Edge> edges;
  edges.reserve(ordered.num_edges());
  for (uint32_t node = 0; node < ordered.num_nodes(); ++node) {
    uint32_t index = ordered.parent_offset(node);
    for (uint32_t parent : ordered.parents(node)) {
      const bool is_essential = !redundant[index] && !analysis.is_given(index);
      if (is_essential) edges.push_back({order[parent], order[node]});
      ++index;
    }
  }
  return edges;
}

}  // namespace

Dag transitive_reduction(const Dag& dag) {
  return Dag::from_acyclic_edges(dag.num_nodes(), essential_edges(dag, {}));
}

// The lowest node that is behind none of those taken has nothing in between.
Dag transitive_reduction(const BitMatrix& later) {
  EDDY_CHECK(later.rows() == later.columns()) << "an order of two sets";
  std::vector<Edge> edges;
  std::vector<uint64_t> left;
  for (uint32_t a = 0; a < later.rows(); ++a) {
    const std::span<const uint64_t> row = later.row(a);
    left.assign(row.begin(), row.end());
    for (size_t word = a / 64; word < left.size(); ++word) {
      while (left[word] != 0) {
        const auto b =
            static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(left[word]));
        EDDY_DCHECK(b > a) << b << " is behind " << a;
        edges.push_back({a, b});
        left[word] &= left[word] - 1;
        const std::span<const uint64_t> behind = later.row(b);
        for (size_t w = word; w < left.size(); ++w) left[w] &= ~behind[w];
      }
    }
  }
  return Dag::from_acyclic_edges(later.rows(), edges);
}

std::vector<Edge> edges_beyond(const Dag& dag, std::span<const Edge> given) {
  std::vector<Edge> all = dag.edges();
  all.insert(all.end(), given.begin(), given.end());
  const Dag joined = Dag::from_acyclic_edges(dag.num_nodes(), all);
  std::vector<Edge> edges = essential_edges(joined, std::vector<Edge>(given.begin(), given.end()));
  std::sort(edges.begin(), edges.end());
  return edges;
}

}  // namespace eddy
