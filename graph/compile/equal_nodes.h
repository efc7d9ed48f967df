// EqualNodes: nodes that a pass has made, so that an equal one later need not be made again
// (common subexpressions; Aho, Lam, Sethi, Ullman, "Compilers", section 8.5).
//
// Nodes are equal when operator, version, device, attributes and inputs are. What a loop's or
// branch's region makes is known in it and in those inside, and forgotten at its end: open() and
// close() go around it. Nodes that draw random numbers, call the caller's functions or may wait are
// never merged, nor are those of other domains than ONNX's and Eddy's own: their kernels may have
// effects.
//
// Borrows the source's nodes. Threads: one at a time. Cost: O(log) and a comparison for each node
// of the same operator and first input.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/compile/node_equality.h"
#include "graph/ir/builder.h"

namespace eddy {

// It draws from a generator: equal ones differ.
bool draws_random_numbers(const Node& node);

class EqualNodes {
 public:
  // What stands for the node's outputs; null: no equal one is known, or it may not be merged.
  const std::vector<Value>* find_or_null(const GraphBuilder& builder, const Node& node,
                                         std::span<const Value> inputs) const;
  // The node was made with these results. Nothing where it may not be merged.
  void add(const GraphBuilder& builder, const Node& node, std::span<const Value> inputs,
           std::vector<Value> results);
  void open() { marks_.push_back(order_.size()); }
  void close();

 private:
  struct Input {
    ValueId value;  // none: a constant, or left out
    std::optional<ComparedInput> constant;
    bool operator==(const Input& other) const {
      return value == other.value && constant == other.constant;
    }
  };
  struct Entry {
    const Node* node;
    std::vector<Input> inputs;
    std::vector<Value> results;
  };
  using Key = std::pair<const OpDef*, uint32_t>;  // and the first input that is no constant
  using Entries = std::multimap<Key, Entry>;

  // Empty where the node may not be merged.
  static std::vector<Input> inputs_of(const GraphBuilder& builder, const Node& node,
                                      std::span<const Value> inputs);
  static Key key(const Node& node, std::span<const Input> inputs);

  Entries entries_;
  std::vector<Entries::iterator> order_;  // as added
  std::vector<size_t> marks_;             // of `order_`, where each open region begins
};

}  // namespace eddy
