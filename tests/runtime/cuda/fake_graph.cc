#include "tests/runtime/cuda/fake_graph.h"

#include <algorithm>

namespace eddy::testing {
namespace {

constexpr int kMaxRounds = 1'000'000;  // of one WHILE in one launch

std::vector<FakeNode> copy_nodes(const FakeGraph& graph, FakeExecutable& executable) {
  std::vector<FakeNode> nodes = graph.nodes;
  for (const auto& [handle, value] : graph.handles) {
    executable.handles[handle] = value;
    executable.values[handle] = 0;
  }
  for (FakeNode& node : nodes) {
    executable.has_while |=
        node.type == CuGraphNodeType::kConditional && node.condition == CuConditionalType::kWhile;
    for (auto& body : node.bodies) {
      auto copy = std::make_shared<FakeGraph>();
      copy->nodes = copy_nodes(*body, executable);
      body = std::move(copy);
    }
  }
  return nodes;
}

// One launch: the nodes of each level in a random order that respects their edges.
class Launch {
 public:
  Launch(FakeExecutable& executable, Random& random, const FakeGraphs::RunNode& run_leaf,
         const FakeGraphs::NextRound& next_round)
      : executable_(executable), random_(random), run_leaf_(run_leaf), next_round_(next_round) {}

  bool run(const std::vector<FakeNode>& nodes) {
    std::vector<bool> is_done(nodes.size(), false);
    for (size_t count = 0; count < nodes.size(); ++count) {
      std::vector<size_t> ready;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const auto& after = nodes[i].after;
        if (!is_done[i] &&
            (nodes[i].is_early ||
             std::all_of(after.begin(), after.end(), [&](size_t n) { return is_done[n]; }))) {
          ready.push_back(i);
        }
      }
      const size_t chosen = ready[random_.below(ready.size())];
      if (!run_node(nodes[chosen])) return false;
      is_done[chosen] = true;
    }
    return true;
  }

 private:
  bool run_node(const FakeNode& node) {
    if (node.type == CuGraphNodeType::kEmpty) return true;
    if (node.type != CuGraphNodeType::kConditional) return run_leaf_(node);
    const auto value = [&] { return executable_.values[node.handle]; };
    switch (node.condition) {
      case CuConditionalType::kIf:
        if (value() != 0) return run(node.bodies[0]->nodes);
        return node.bodies.size() < 2 || run(node.bodies[1]->nodes);
      case CuConditionalType::kSwitch:
        return value() >= node.bodies.size() || run(node.bodies[value()]->nodes);
      case CuConditionalType::kWhile:
        for (int rounds = 0; value() != 0; ++rounds) {
          if (rounds == kMaxRounds) {
            executable_.problems.push_back("a WHILE node does not end");
            return false;
          }
          next_round_();
          if (!run(node.bodies[0]->nodes)) return false;
        }
        return true;
    }
    return false;
  }

  FakeExecutable& executable_;
  Random& random_;
  const FakeGraphs::RunNode& run_leaf_;
  const FakeGraphs::NextRound& next_round_;
};

// Whether a body in it has been freed.
bool owns_freed(const FakeGraph& graph) {
  return std::ranges::any_of(graph.nodes, [](const FakeNode& node) {
    return std::ranges::any_of(
        node.bodies, [](const auto& body) { return body->is_freed || owns_freed(*body); });
  });
}

}  // namespace

std::vector<std::string> first_round(const std::vector<FakeNode>& nodes) {
  std::vector<std::string> names;
  for (const FakeNode& node : nodes) {
    if (node.type != CuGraphNodeType::kConditional) continue;
    if (node.condition != CuConditionalType::kWhile) continue;
    for (const FakeNode& inside : node.bodies[0]->nodes) {
      const bool is_kernel = inside.type == CuGraphNodeType::kKernel;
      names.push_back(is_kernel                                      ? inside.launch.name
                      : inside.type == CuGraphNodeType::kConditional ? "conditional"
                                                                     : "copy or fill");
    }
    break;
  }
  return names;
}

void FakeKernelCall::set_conditional(CuConditionalHandle handle, uint32_t value) const {
  if (graph_or_null == nullptr) return;
  const auto found = graph_or_null->values.find(handle);
  if (found == graph_or_null->values.end()) {
    graph_or_null->problems.push_back("a kernel sets a conditional handle of another graph");
  } else {
    found->second = value;
  }
}

CuGraph FakeGraphs::create() {
  const auto graph = reinterpret_cast<CuGraph>(next_++);
  graphs_[graph] = std::make_shared<FakeGraph>();
  return graph;
}

// The handles of a graph and its bodies, and of their nodes.
void FakeGraphs::forget(FakeGraph& graph) {
  std::erase_if(nodes_, [&](const auto& node) { return node.second.first == &graph; });
  for (FakeNode& node : graph.nodes) {
    for (auto& body : node.bodies) forget(*body);
  }
  std::erase_if(graphs_, [&](const auto& entry) { return entry.second.get() == &graph; });
}

CuResult FakeGraphs::destroy(CuGraph graph, std::string& problem) {
  if (freed_.count(graph) != 0) problem = "a graph is destroyed that the driver has freed";
  const auto found = graphs_.find(graph);
  if (found == graphs_.end() || found->second->is_body) return CuResult::kInvalidValue;
  const std::shared_ptr<FakeGraph> keep = found->second;
  if (owns_freed(*keep)) {
    problem = "a graph is destroyed with a body that the driver has freed: the process crashes";
  }
  forget(*keep);
  return CuResult::kSuccess;
}

void FakeGraphs::free_spoilt(CuGraph graph) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  const std::shared_ptr<FakeGraph> keep = found->second;
  keep->is_freed = true;
  freed_.insert(graph);
  forget(*keep);
}

CuResult FakeGraphs::add_node(CuGraphNode* node, CuGraph graph, const CuGraphNode* after,
                              size_t num_after, CuGraphNodeParams& params, FakeKernelLaunch kernel,
                              std::string& problem) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return CuResult::kInvalidValue;
  FakeGraph& in = *found->second;
  FakeNode made;
  made.type = params.type;
  for (size_t i = 0; i < num_after; ++i) {
    const auto before = nodes_.find(after[i]);
    if (before == nodes_.end() || before->second.first != &in) {
      problem = "a graph node depends on a node of another graph";
      return CuResult::kInvalidValue;
    }
    made.after.push_back(before->second.second);
  }
  switch (params.type) {
    case CuGraphNodeType::kEmpty:
      break;
    case CuGraphNodeType::kKernel:
      made.launch = std::move(kernel);
      break;
    case CuGraphNodeType::kConditional: {
      const CuResult result = add_conditional(in, made, params.conditional, problem);
      if (result != CuResult::kSuccess) return result;
      break;
    }
    default:
      problem = "a graph node of a kind that the fake does not know";
      return CuResult::kNotSupported;
  }
  *node = reinterpret_cast<CuGraphNode>(next_++);
  nodes_[*node] = {&in, in.nodes.size()};
  in.nodes.push_back(std::move(made));
  return CuResult::kSuccess;
}

CuGraphNode FakeGraphs::append(CuGraph graph, const std::vector<CuGraphNode>& after,
                               FakeNode made) {
  FakeGraph& in = *graphs_.at(graph);
  for (CuGraphNode before : after) made.after.push_back(nodes_.at(before).second);
  const auto node = reinterpret_cast<CuGraphNode>(next_++);
  nodes_[node] = {&in, in.nodes.size()};
  in.nodes.push_back(std::move(made));
  return node;
}

bool FakeGraphs::is_node_of(CuGraphNode node, CuGraph graph) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.first == graphs_.at(graph).get();
}

bool FakeGraphs::are_kernels(const std::vector<CuGraphNode>& nodes) const {
  return std::all_of(nodes.begin(), nodes.end(), [&](CuGraphNode node) {
    const auto& [graph, index] = nodes_.at(node);
    return graph->nodes[index].type == CuGraphNodeType::kKernel;
  });
}

bool FakeGraphs::are_all_before(const std::vector<CuGraphNode>& nodes,
                                const std::vector<CuGraphNode>& last) const {
  if (nodes.empty()) return true;
  const FakeGraph& graph = *nodes_.at(nodes[0]).first;
  std::vector<bool> is_before(graph.nodes.size(), false);
  std::vector<size_t> open;
  for (CuGraphNode node : last) open.push_back(nodes_.at(node).second);
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (is_before[at]) continue;
    is_before[at] = true;
    open.insert(open.end(), graph.nodes[at].after.begin(), graph.nodes[at].after.end());
  }
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](CuGraphNode node) { return is_before[nodes_.at(node).second]; });
}

CuResult FakeGraphs::add_conditional(FakeGraph& graph, FakeNode& node,
                                     CuConditionalNodeParams& params, std::string& problem) {
  const auto place = graph.handles.find(params.handle);
  if (place == graph.handles.end() || place->second.is_used) {
    problem = "a conditional node needs a handle of its own, made for its graph";
    return CuResult::kInvalidValue;
  }
  FakeGraph::Default* const handle = &place->second;
  const bool is_size_fine = params.type == CuConditionalType::kWhile ? params.size == 1
                            : params.type == CuConditionalType::kIf  ? params.size - 1 <= 1
                                                                     : params.size > 0;
  if (!is_size_fine) return CuResult::kInvalidValue;
  handle->is_used = true;
  graph.has_conditionals = true;
  node.handle = params.handle;
  node.condition = params.type;
  auto& array = *body_arrays_.emplace_back(std::make_unique<std::vector<CuGraph>>());
  for (unsigned i = 0; i < params.size; ++i) {
    array.push_back(create());
    node.bodies.push_back(graphs_[array.back()]);
    node.bodies.back()->is_body = true;
  }
  params.bodies_out = array.data();
  return CuResult::kSuccess;
}

CuResult FakeGraphs::add_handle(CuConditionalHandle* handle, CuGraph graph, uint32_t value,
                                unsigned flags) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return CuResult::kInvalidValue;
  *handle = next_++;
  found->second->handles[*handle] = {value, flags == kCuConditionalAssignDefault, false};
  return CuResult::kSuccess;
}

CuResult FakeGraphs::instantiate(CuGraphExec* executable, CuGraph graph, std::string& problem) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end() || found->second->is_body) return CuResult::kInvalidValue;
  FakeGraph& source = *found->second;
  if (source.has_conditionals && source.num_executables > 0) {
    problem = "a graph with conditional nodes is instantiated twice";
    return CuResult::kNotSupported;
  }
  auto made = std::make_shared<FakeExecutable>();
  made->source = found->second;
  made->nodes = copy_nodes(source, *made);
  ++source.num_executables;
  *executable = reinterpret_cast<CuGraphExec>(next_++);
  executables_[*executable] = std::move(made);
  return CuResult::kSuccess;
}

CuResult FakeGraphs::destroy_executable(CuGraphExec executable) {
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return CuResult::kInvalidValue;
  --found->second->source->num_executables;
  executables_.erase(found);
  return CuResult::kSuccess;
}

std::shared_ptr<FakeExecutable> FakeGraphs::executable_or_null(CuGraphExec executable) const {
  const auto found = executables_.find(executable);
  return found == executables_.end() ? nullptr : found->second;
}

void FakeGraphs::run(FakeExecutable& executable, Random& random, const RunNode& run_node,
                     const NextRound& next_round) {
  for (const auto& [handle, value] : executable.handles) {
    if (value.is_assigned_at_launch) executable.values[handle] = value.value;
  }
  Launch(executable, random, run_node, next_round).run(executable.nodes);
}

size_t FakeGraphs::num_graphs() const {
  return static_cast<size_t>(std::ranges::count_if(graphs_, [](const auto& entry) {
    return !entry.second->is_body && !owns_freed(*entry.second);
  }));
}

}  // namespace eddy::testing
