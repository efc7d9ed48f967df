#include "graph/io/node_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <string>

#include "graph/base/check.h"
#include "graph/base/name_map.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

template <typename Use>
void for_each_use(const OnnxNode& node, FreeNames& free_names, const Use& use) {
  for (std::string_view name : node.inputs) {
    if (!name.empty()) use(name);
  }
  for (const OnnxAttribute& attribute : node.attributes) {
    for (const OnnxGraph& graph : attribute.graphs) {
      for (std::string_view name : free_names.of(graph)) use(name);
    }
  }
}

using Edges = std::vector<std::vector<uint32_t>>;

NameMap<uint32_t> producers_of(std::span<const OnnxNode> nodes) {
  NameMap<uint32_t> producers;
  producers.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::string_view name : nodes[i].outputs) {
      if (!name.empty()) producers.emplace(name, i);
    }
  }
  return producers;
}

// visit(i, producer), for each name that node i uses of another of the nodes, or of itself.
template <typename Visit>
void for_each_dependence(std::span<const OnnxNode> nodes, FreeNames& free_names,
                         const Visit& visit) {
  const NameMap<uint32_t> producers = producers_of(nodes);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for_each_use(nodes[i], free_names, [&](std::string_view name) {
      const uint32_t* const producer = producers.find_or_null(name);
      if (producer != nullptr) visit(i, *producer);
    });
  }
}

// For each node the nodes it depends on.
Edges dependences(std::span<const OnnxNode> nodes, FreeNames& free_names) {
  Edges before(nodes.size());
  for_each_dependence(nodes, free_names,
                      [&](uint32_t i, uint32_t producer) { before[i].push_back(producer); });
  return before;
}

std::string describe(const OnnxNode& node) {
  const std::string_view name =
      !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
  return quoted(name) + " (" + std::string(node.op_type) + ")";
}

// Some unplaced node waits for another unplaced one; following that leads round a cycle.
Status cycle_error(std::span<const OnnxNode> nodes, const Edges& before,
                   const std::vector<uint32_t>& missing) {
  const auto waits = [&](uint32_t i) { return missing[i] > 0; };
  uint32_t at = 0;
  while (at < nodes.size() && !waits(at)) ++at;
  EDDY_CHECK(at < nodes.size()) << "no node waits for another";
  const auto follow = [&](uint32_t i) {
    const auto found = std::find_if(before[i].begin(), before[i].end(), waits);
    EDDY_CHECK(found != before[i].end()) << "node " << i << " waits for nobody";
    return *found;
  };
  for (size_t step = 0; step < nodes.size(); ++step) at = follow(at);
  constexpr int kMaxShown = 8;
  std::string text = describe(nodes[at]);
  uint32_t next = follow(at);
  for (int shown = 1; next != at && shown < kMaxShown; ++shown, next = follow(next)) {
    text += " needs " + describe(nodes[next]);
  }
  text += next == at ? " needs " + describe(nodes[at]) : " needs ...";
  return invalid_argument("the graph has a cycle: " + text +
                          "; cut it, or write it as a Loop that carries the value");
}

Result<std::vector<uint32_t>> sort_nodes(std::span<const OnnxNode> nodes, const Edges& before) {
  std::vector<uint32_t> missing(nodes.size());
  Edges after(nodes.size());
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    missing[i] = static_cast<uint32_t>(before[i].size());
    for (uint32_t producer : before[i]) after[producer].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (uint32_t user : after[node]) {
      EDDY_DCHECK(missing[user] > 0) << "node " << user << " is ready before " << node;
      if (--missing[user] == 0) ready.push(user);
    }
  }
  if (order.size() < nodes.size()) return cycle_error(nodes, before, missing);
  return order;
}

}  // namespace

const std::vector<std::string_view>& FreeNames::of(const OnnxGraph& graph) {
  const auto known = known_.find(&graph);
  if (known != known_.end()) return known->second;
  NameMap<bool> settled;  // defined here, or listed already
  settled.reserve(graph.nodes.size() + graph.initializers.size());
  const auto settle = [&](std::string_view name) { return settled.emplace(name, true).second; };
  for (const OnnxValueInfo& input : graph.inputs) settle(input.name);
  for (const OnnxTensor& initializer : graph.initializers) settle(initializer.name);
  for (const OnnxSparseTensor& sparse : graph.sparse_initializers) settle(sparse.values.name);
  for (const OnnxNode& node : graph.nodes) {
    for (std::string_view name : node.outputs) settle(name);
  }
  std::vector<std::string_view> names;
  const auto use = [&](std::string_view name) {
    if (settle(name)) names.push_back(name);
  };
  for (const OnnxNode& node : graph.nodes) for_each_use(node, *this, use);
  for (const OnnxValueInfo& output : graph.outputs) use(output.name);
  return known_.emplace(&graph, std::move(names)).first->second;
}

Result<std::vector<uint32_t>> order_nodes(std::span<const OnnxNode> nodes, FreeNames& free_names) {
  bool is_ordered = true;
  for_each_dependence(nodes, free_names,
                      [&](uint32_t i, uint32_t producer) { is_ordered &= producer < i; });
  if (!is_ordered) return sort_nodes(nodes, dependences(nodes, free_names));
  std::vector<uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace eddy
