#include "graph/analysis/dag.h"

#include <algorithm>
#include <string>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;

std::string edge_name(size_t index, Edge edge) {
  return "edge " + std::to_string(index) + " [" + std::to_string(edge.from) + ", " +
         std::to_string(edge.to) + "]";
}

Status check_edges(uint32_t num_nodes, std::span<const Edge> edges) {
  if (num_nodes == kNoNode || edges.size() >= kNoNode) {
    return resource_exhausted("a graph holds at most 2^32 - 2 nodes and as many edges");
  }
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to] = edges[i];
    if (from >= num_nodes || to >= num_nodes) {
      return invalid_argument(
          edge_name(i, edges[i]) + ": id " + std::to_string(from >= num_nodes ? from : to) +
          " is out of range, the graph has " + std::to_string(num_nodes) + " nodes");
    }
    if (from == to) {
      return invalid_argument(edge_name(i, edges[i]) + ": a node cannot depend on itself");
    }
  }
  return Status::ok();
}

// Counting sort into rows: row key(edge) receives value(edge), in the order of `edges`.
template <typename Key, typename Value>
void fill_rows(uint32_t num_rows, std::span<const Edge> edges, Key key, Value value,
               std::vector<uint32_t>& begin, std::vector<uint32_t>& items) {
  begin.assign(num_rows + size_t{1}, 0);
  const auto is_inside = [&](Edge e) { return e.from < num_rows && e.to < num_rows; };
  EDDY_DCHECK(std::ranges::all_of(edges, is_inside)) << "an edge leads out of the graph";
  for (const Edge& edge : edges) ++begin[key(edge) + size_t{1}];
  for (uint32_t row = 0; row < num_rows; ++row) begin[row + size_t{1}] += begin[row];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  items.resize(edges.size());
  for (const Edge& edge : edges) items[next[key(edge)]++] = value(edge);
}

// The rows of the opposite direction; those of the result are ascending.
void transpose(const std::vector<uint32_t>& begin, const std::vector<uint32_t>& items,
               std::vector<uint32_t>& out_begin, std::vector<uint32_t>& out_items) {
  const size_t num_rows = begin.size() - 1;
  out_begin.assign(num_rows + 1, 0);
  for (uint32_t item : items) ++out_begin[item + size_t{1}];
  for (size_t row = 0; row < num_rows; ++row) out_begin[row + 1] += out_begin[row];
  std::vector<uint32_t> next(out_begin.begin(), out_begin.end() - 1);
  out_items.resize(items.size());
  for (size_t row = 0; row < num_rows; ++row) {
    for (uint32_t i = begin[row]; i < begin[row + 1]; ++i) {
      out_items[next[items[i]]++] = static_cast<uint32_t>(row);
    }
  }
}

void remove_adjacent_duplicates(std::vector<uint32_t>& begin, std::vector<uint32_t>& items) {
  uint32_t kept = 0;
  uint32_t row_begin = 0;
  for (size_t row = 0; row + 1 < begin.size(); ++row) {
    const uint32_t row_end = begin[row + 1];
    const uint32_t kept_begin = kept;
    for (uint32_t i = row_begin; i < row_end; ++i) {
      if (kept == kept_begin || items[kept - 1] != items[i]) items[kept++] = items[i];
    }
    row_begin = row_end;
    begin[row + 1] = kept;
  }
  items.resize(kept);
}

// Nodes that Kahn's algorithm cannot reach keep a positive count of unvisited parents.
std::vector<uint32_t> unvisited_parents(const Dag& graph) {
  std::vector<uint32_t> pending(graph.num_nodes());
  std::vector<uint32_t> ready;
  for (uint32_t node = 0; node < graph.num_nodes(); ++node) {
    pending[node] = static_cast<uint32_t>(graph.parents(node).size());
    if (pending[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const uint32_t node = ready.back();
    ready.pop_back();
    for (uint32_t child : graph.children(node)) {
      if (--pending[child] == 0) ready.push_back(child);
    }
  }
  return pending;
}

// Walks from one unvisited node to an unvisited parent of it until a node repeats.
std::vector<uint32_t> find_cycle(const Dag& graph, std::span<const uint32_t> pending,
                                 uint32_t start) {
  std::vector<uint32_t> path;
  std::vector<uint32_t> place(graph.num_nodes(), kNoNode);
  uint32_t node = start;
  while (place[node] == kNoNode) {
    EDDY_DCHECK(pending[node] > 0) << "node " << node << " was visited, so it is on no cycle";
    place[node] = static_cast<uint32_t>(path.size());
    path.push_back(node);
    for (uint32_t parent : graph.parents(node)) {
      if (pending[parent] != 0) {
        node = parent;
        break;
      }
    }
  }
  path.erase(path.begin(), path.begin() + place[node]);
  std::reverse(path.begin(), path.end());
  return path;
}

Status cycle_error(std::span<const uint32_t> cycle, std::span<const Edge> edges) {
  const Edge closing = {cycle.back(), cycle.front()};
  const auto index = static_cast<size_t>(std::ranges::find(edges, closing) - edges.begin());
  EDDY_CHECK(index < edges.size()) << "there is no edge " << closing.from << " -> " << closing.to;
  std::string text = edge_name(index, closing) + " closes a cycle: ";
  constexpr size_t kShown = 16;
  for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
    text += std::to_string(cycle[i]) + " -> ";
  }
  if (cycle.size() > kShown) {
    text += "... (" + std::to_string(cycle.size() - kShown) + " more) -> ";
  }
  return invalid_argument(text + std::to_string(cycle.front()));
}

}  // namespace

Dag Dag::from_acyclic_edges(uint32_t num_nodes, std::span<const Edge> edges) {
  std::vector<uint32_t> begin;
  std::vector<uint32_t> items;
  fill_rows(
      num_nodes, edges, [](Edge e) { return e.to; }, [](Edge e) { return e.from; }, begin, items);
  Dag dag;
  transpose(begin, items, dag.child_begin_, dag.children_);
  remove_adjacent_duplicates(dag.child_begin_, dag.children_);
  transpose(dag.child_begin_, dag.children_, dag.parent_begin_, dag.parents_);
  return dag;
}

std::vector<Edge> Dag::edges() const {
  std::vector<Edge> edges;
  edges.reserve(num_edges());
  for (uint32_t node = 0; node < num_nodes(); ++node) {
    for (uint32_t child : children(node)) edges.push_back({node, child});
  }
  return edges;
}

Result<Dag> build_dag(uint32_t num_nodes, std::span<const Edge> edges) {
  EDDY_RETURN_IF_ERROR(check_edges(num_nodes, edges));
  Dag graph = Dag::from_acyclic_edges(num_nodes, edges);
  const std::vector<uint32_t> pending = unvisited_parents(graph);
  const auto stuck = std::find_if(pending.begin(), pending.end(), [](uint32_t n) { return n; });
  if (stuck == pending.end()) return graph;
  const auto start = static_cast<uint32_t>(stuck - pending.begin());
  return cycle_error(find_cycle(graph, pending, start), edges);
}

Dag relabel(const Dag& dag, std::span<const uint32_t> new_id) {
  EDDY_CHECK(new_id.size() == dag.num_nodes()) << "a name for each node";
  std::vector<Edge> edges = dag.edges();
  for (Edge& edge : edges) edge = {new_id[edge.from], new_id[edge.to]};
  return Dag::from_acyclic_edges(dag.num_nodes(), edges);
}

}  // namespace eddy
