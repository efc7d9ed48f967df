// FoldedResults: large results of nodes that were evaluated before any run.
//
// The same node in two branches, or in a loop's body that is built again because a type widened,
// is evaluated once and its result stored once. Nodes are compared by node_equality.h; large inputs
// must outlive this.
// Threads: one at a time. Cost: O(log) and a comparison for each node of the same first input.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "graph/compile/node_equality.h"
#include "graph/ir/builder.h"
#include "graph/ir/owned_tensor.h"

namespace eddy {

class FoldedResults {
 public:
  // Less is not worth a search; smaller inputs are compared by value.
  static constexpr size_t kMinBytes = ComparedInput::kMinBytes;

  const std::vector<OwnedTensor>* find_or_null(const Node& node,
                                               std::span<const TensorView> inputs) const;
  // `node` must outlive this. Returns the results, which stay where they are.
  const std::vector<OwnedTensor>& add(const Node& node, std::span<const TensorView> inputs,
                                      std::vector<OwnedTensor> results);
  // The builder's graph owns the bytes from now on.
  void give_to(GraphBuilder& builder);

 private:
  struct Entry {
    const Node* node;
    std::vector<ComparedInput> inputs;
    std::vector<OwnedTensor> results;
  };
  using Key = std::pair<const OpDef*, const void*>;  // the operator and its first large input
  static Key key(const Node& node, std::span<const TensorView> inputs);

  std::multimap<Key, Entry> entries_;
};

}  // namespace eddy
