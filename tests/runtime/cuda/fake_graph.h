// FakeGraphs: CUDA graphs of a fake GPU: explicit nodes, conditional bodies, executables.
//
// Contract: nodes run in a random topological order; other calls may come between the rounds of a
// WHILE; more than five unfinished launches with WHILE nodes lose the device; a kernel launched
// programmatically behind kernels alone may run before them, unless it waits by itself, as all do
// but those of begin_early(). A node runs after those it names; bodies hold only kernels, copies,
// fills, empty nodes and conditionals; a conditional handle belongs to the graph of the one node
// that uses it, and takes its default once per launch, so an inner WHILE that no kernel re-arms
// runs only the first time; a graph with conditionals has one executable at a time. What is
// captured into is freed when the capture fails (fake_capture.cc). Threads: guarded by the fake's
// mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "runtime/cuda/cuda_types.h"

namespace eddy::testing {

struct FakeExecutable;

// What a kernel's stand-in sees. The parameters are the bytes given at the launch.
struct FakeKernelCall {
  unsigned grid[3];
  unsigned block[3];
  const void* params;
  FakeExecutable* graph_or_null;
  // For kernels that run long: lets others call meanwhile. False: the device is lost.
  std::function<bool()> let_others_in = {};
  // For kernels that do what they must not: the device is lost.
  std::function<void()> fault = {};

  template <typename T>
  const T& params_as() const {
    return *static_cast<const T*>(params);
  }
  // cudaGraphSetConditional.
  void set_conditional(CuConditionalHandle handle, uint32_t value) const;
};
using FakeKernel = std::function<void(const FakeKernelCall&)>;

struct FakeKernelLaunch {
  std::string name;
  const FakeKernel* kernel = nullptr;
  std::vector<std::byte> params;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  bool is_programmatic = false;
  const uint32_t* guard = nullptr;  // of kernels that have one
};

struct FakeGraph;

struct FakeNode {
  CuGraphNodeType type = CuGraphNodeType::kEmpty;
  std::vector<size_t> after;
  bool is_early = false;  // it may run before these
  FakeKernelLaunch launch = {};
  uint64_t to = 0;  // copies and fills
  uint64_t from = 0;
  size_t bytes = 0;
  uint32_t value = 0;
  CuConditionalHandle handle = 0;
  CuConditionalType condition = CuConditionalType::kIf;
  std::vector<std::shared_ptr<FakeGraph>> bodies = {};
};

struct FakeGraph {
  std::vector<FakeNode> nodes;
  bool is_body = false;
  bool has_conditionals = false;
  bool is_freed = false;  // by the end of a spoilt capture, whoever owns it
  int num_executables = 0;
  struct Default {
    uint32_t value;
    bool is_assigned_at_launch;
    bool is_used;
  };
  std::map<CuConditionalHandle, Default> handles;
};

struct FakeExecutable {
  std::shared_ptr<FakeGraph> source;
  std::vector<FakeNode> nodes;  // bodies copied too
  bool has_while = false;
  bool is_uploaded = false;
  std::map<CuConditionalHandle, FakeGraph::Default> handles;  // of bodies too
  std::map<CuConditionalHandle, uint32_t> values;
  // Violations met while running, and whether a handle was set that is none of ours.
  std::vector<std::string> problems;
};

// What the body of the first WHILE among the nodes holds; kernels by their names.
std::vector<std::string> first_round(const std::vector<FakeNode>& nodes);

class FakeGraphs {
 public:
  // Runs one kernel, copy or fill; false stops the launch (the device is lost).
  using RunNode = std::function<bool(const FakeNode&)>;
  // Called before each round of a WHILE.
  using NextRound = std::function<void()>;

  CuGraph create();
  // `problem`: it, or a body that it owns, has been freed already.
  CuResult destroy(CuGraph graph, std::string& problem);
  // What the driver does with a graph whose capture fails, though others hold or own it.
  void free_spoilt(CuGraph graph);
  bool has(CuGraph graph) const { return graphs_.count(graph) != 0; }
  // `kernel`: resolved by the caller, for kernel nodes. `problem` receives the error text.
  CuResult add_node(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t num_after,
                    CuGraphNodeParams& params, FakeKernelLaunch kernel, std::string& problem);
  // The number of nodes of an existing graph.
  size_t num_nodes(CuGraph graph) const { return graphs_.at(graph)->nodes.size(); }
  bool are_kernels(const std::vector<CuGraphNode>& nodes) const;
  // Appends a node as a capture does.
  CuGraphNode append(CuGraph graph, const std::vector<CuGraphNode>& after, FakeNode made);
  bool is_node_of(CuGraphNode node, CuGraph graph) const;
  // Whether every one of `nodes` is among `last` or before them.
  bool are_all_before(const std::vector<CuGraphNode>& nodes,
                      const std::vector<CuGraphNode>& last) const;
  CuResult add_handle(CuConditionalHandle* handle, CuGraph graph, uint32_t value, unsigned flags);
  CuResult instantiate(CuGraphExec* executable, CuGraph graph, std::string& problem);
  CuResult destroy_executable(CuGraphExec executable);
  std::shared_ptr<FakeExecutable> executable_or_null(CuGraphExec executable) const;
  static void run(FakeExecutable& executable, Random& random, const RunNode& run_node,
                  const NextRound& next_round);

  // Without bodies, which go with their graph, and without those that can't be destroyed any more.
  size_t num_graphs() const;
  size_t num_executables() const { return executables_.size(); }
  size_t num_loop_executables() const {
    return static_cast<size_t>(std::ranges::count_if(
        executables_, [](const auto& entry) { return entry.second->has_while; }));
  }

 private:
  CuResult add_conditional(FakeGraph& graph, FakeNode& node, CuConditionalNodeParams& params,
                           std::string& problem);
  void forget(FakeGraph& graph);

  uintptr_t next_ = 0x100000;
  std::map<CuGraph, std::shared_ptr<FakeGraph>> graphs_;
  std::set<CuGraph> freed_;  // ever, by a spoilt capture
  std::map<CuGraphNode, std::pair<FakeGraph*, size_t>> nodes_;
  std::map<CuGraphExec, std::shared_ptr<FakeExecutable>> executables_;
  std::vector<std::unique_ptr<std::vector<CuGraph>>> body_arrays_;  // what bodies_out points to
};

}  // namespace eddy::testing
