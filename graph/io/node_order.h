// order_nodes: a topological order of one graph's nodes, as close to the file's as can be.
//
// A node depends on the nodes of the same graph whose outputs it reads, itself or in the graphs
// among its attributes (FreeNames: what a graph reads and does not define; inner definitions hide
// outer ones).
//
// Errors: kInvalidArgument naming the nodes of a cycle.
// Cost: O((nodes + inputs) log nodes); O(inputs) where the file is in order already.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/onnx_model.h"

namespace eddy {

class FreeNames {
 public:
  // Each name once, in order of first use. Kept for later calls.
  const std::vector<std::string_view>& of(const OnnxGraph& graph);

 private:
  std::unordered_map<const OnnxGraph*, std::vector<std::string_view>> known_;
};

Result<std::vector<uint32_t>> order_nodes(std::span<const OnnxNode> nodes, FreeNames& free_names);

}  // namespace eddy
