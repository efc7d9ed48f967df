// GraphCopier: a graph rebuilt as it is, for passes that change only some exec nodes.
//
//   class Pass : public GraphCopier {
//     void exec(NodeId id) override { … copy_exec(id) for those that stay … }
//   };
//
// A pass overrides exec(), loop() or branch(), and names with define() what stands for a value of
// the source; loops, branches, types, symbols, names and devices are copied. Where a value has
// several versions, a pass chooses which one loops, branches and the graph's outputs get. Bodies
// may be built more than once (WhileOptions::rebuild_on_widening), so a pass must decide alike each
// time.
//
// Ownership: borrows source and builder; the caller hands over blobs (adopt_blobs_of) and finishes.
// Errors: the builder's. Cost: O(nodes).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/builder.h"

namespace eddy {

class GraphCopier {
 public:
  GraphCopier(const Graph& source, GraphBuilder& builder);
  virtual ~GraphCopier() = default;
  void run();

 protected:
  virtual void exec(NodeId id) { copy_exec(id); }
  virtual void loop(NodeId id) { copy_loop(id); }
  virtual void branch(NodeId id) { copy_branch(id, read_by_host(source_.node(id).inputs[0])); }
  // Called before each node; by default it returns whether the builder has no error.
  virtual bool may_go_on() { return builder_.status().is_ok(); }
  // A region's nodes as they are copied: any topological order; those left out are not.
  virtual std::vector<NodeId> order(RegionId region) { return source_.region(region).nodes; }
  // Called around the nodes of a loop's or branch's region.
  virtual void begin_region() {}
  virtual void end_region() {}
  virtual std::string name_of(NodeId id) { return source_.node(id).name; }
  virtual ValueType input_type(const ValueInfo& input) { return with_symbols(input.type); }
  // A type among the attributes of a node.
  virtual ValueType attribute_type(const ValueType& type) { return with_symbols(type); }
  // The types of a loop's carried values; they may be wider than those of its initial values.
  virtual std::vector<std::optional<ValueType>> carried_types(NodeId id);
  // What a loop's carried values are at first.
  virtual std::vector<Value> initial_values(NodeId id);
  // Called for every value of the source once something stands for it.
  virtual void defined(ValueId, Value) {}

  // What the host reads: predicates, selectors, outputs of the graph; and what it reads before it
  // goes on: trip limits and rows.
  virtual Value read_by_host(ValueId id) { return value(id); }
  virtual Value awaited_by_host(ValueId id) { return value(id); }
  // What a loop or branch hands on under the name `to`.
  virtual Value handed_on(ValueId from, ValueId /*to*/) { return value(from); }

  // With the builder's symbols for the source's.
  ValueType with_symbols(ValueType type);
  // A node's, with the builder's symbols in types.
  Attributes attributes(const Node& node);
  void copy_exec(NodeId id);
  void copy_exec(NodeId id, std::span<const Value> inputs, const std::string& device);
  // The same node, with inputs and attributes of one's own; its outputs are defined, too.
  std::vector<Value> copy_exec(NodeId id, std::span<const Value> inputs, const std::string& device,
                               Attributes attributes);
  void copy_loop(NodeId id) { copy_loop(id, {}); }
  // A loop that carries more, behind its own values; gives what these are behind the loop, or
  // nothing where the builder has an error.
  struct CarriedToo {
    std::vector<Value> initial;
    // What a region of the loop was given of them, before its nodes; and what it hands on.
    std::function<void(RegionId, ValueSpan)> begin;
    std::function<std::vector<Value>(RegionId)> end;
  };
  std::vector<Value> copy_loop(NodeId id, const CarriedToo& more);
  void copy_branch(NodeId id, Value selector);
  // All of a region, into the one that is open; and as a region of its own.
  void nodes(RegionId region);
  void region(RegionId region);
  void define(ValueId id, Value value);
  void define_all(std::span<const ValueId> ids, std::span<const Value> made);
  // What stands for it; constants are added anew at each use.
  virtual Value value(ValueId id);
  std::vector<Value> values(std::span<const ValueId> ids);

  const Graph& source_;
  GraphBuilder& builder_;

 private:
  std::vector<Value> handed_on(std::span<const ValueId> from, std::span<const ValueId> to);

  std::vector<Value> values_;  // by the source's ValueId
};

}  // namespace eddy
