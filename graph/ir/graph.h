// Graph: an immutable dataflow program with control flow.
//
// A graph is flat: all regions, nodes, values and constants of every level live in four vectors
// and refer to each other by id. A region lists its parameters, its nodes in a valid topological
// order and its results. A value is assigned once: it is a region's parameter, an output of a
// node, or a constant; a region may use values of the regions around it (captures, listed).
//
//   exec      op, inputs -> outputs
//   while     inputs = [trip limit or none, initial carried values...]
//             regions[0] `before`: (iteration, carried...) -> (predicate, forwarded...)
//             regions[1] `after`:  (iteration, forwarded...) -> (next carried..., scan rows...)
//             outputs = (forwarded..., stacked scan rows...)
//             `iteration` is an int64 scalar counting from 0, parameter 0 of both regions.
//   case-of   inputs = [selector, pass-through...]
//             regions: (no parameters) -> one result for each output
//             The selector is one bool, int32 or int64 (false = 0). Out of range: the default
//             region if there is one, else the pass-through inputs if given, else an error.
//
// Only GraphBuilder makes graphs, and only valid ones leave it. Movable; copied only by name. The
// bytes of constants are owned here or by blobs that the graph owns, together with its copies. The
// OpTable used must outlive it.
// Threads: const access from any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/ids.h"
#include "graph/ir/attributes.h"
#include "graph/ir/op.h"
#include "graph/ir/types.h"

namespace eddy {

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using RegionId = Id<struct RegionTag>;
using ConstantId = Id<struct ConstantTag>;

enum class NodeKind : uint8_t { kExec, kWhile, kCaseOf };
enum class ValueOrigin : uint8_t { kParameter, kNodeOutput, kConstant };

struct ValueInfo {
  std::string name;  // as in the file or given by the builder; may be empty
  ValueType type;
  ValueOrigin origin = ValueOrigin::kParameter;
  RegionId region;      // where it is defined; the root for constants
  NodeId producer;      // kNodeOutput
  uint32_t index = 0;   // position among the parameters or outputs
  ConstantId constant;  // kConstant
};

struct Node {
  NodeKind kind = NodeKind::kExec;
  std::string name;             // unique within its region; made up when the file gave none
  RegionId region;              // the region it stands in
  std::vector<ValueId> inputs;  // none: an omitted optional input
  std::vector<ValueId> outputs;
  std::vector<RegionId> regions;

  const OpDef* op = nullptr;  // kExec
  int opset_version = 0;      // kExec: of the operator's domain
  Attributes attributes;

  uint32_t num_scan_outputs = 0;  // kWhile
  int32_t default_region = -1;    // kCaseOf: index into regions, or -1
  std::string device;             // placement hint; empty: anywhere
};

struct Region {
  NodeId owner;      // none for the root
  std::string name;  // "before", "after", "case 2"; empty for the root
  std::vector<ValueId> parameters;
  std::vector<NodeId> nodes;  // topological order
  std::vector<ValueId> results;
  std::vector<ValueId>
      captures;  // values of outer regions used here or deeper; sorted, no constants
};

// Bytes that constants point into; released with the graph.
class Blob {
 public:
  virtual ~Blob() = default;
  // Where constants may point to; empty: somewhere else, so the blob stays as long as its graph.
  virtual std::span<const std::byte> bytes() const { return {}; }
  // Gives back memory that the system fills again when it is read (a mapped file's).
  virtual void evict() {}
};

class Graph {
 public:
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  // The same graph with ids and names; the bytes of constants are not copied. For another session.
  Graph copy() const { return *this; }

  static constexpr RegionId kRoot{0};

  const std::string& name() const { return name_; }
  const Region& root() const { return regions_[0]; }
  const Region& region(RegionId id) const {
    EDDY_DCHECK(id.index() < regions_.size()) << "region " << id.index();
    return regions_[id.index()];
  }
  const Node& node(NodeId id) const {
    EDDY_DCHECK(id.index() < nodes_.size()) << "node " << id.index();
    return nodes_[id.index()];
  }
  const ValueInfo& value(ValueId id) const {
    EDDY_DCHECK(id.index() < values_.size()) << "value " << id.index();
    return values_[id.index()];
  }
  const Constant& constant(ConstantId id) const {
    EDDY_DCHECK(id.index() < constants_.size()) << "constant " << id.index();
    return constants_[id.index()];
  }

  size_t num_regions() const { return regions_.size(); }
  size_t num_nodes() const { return nodes_.size(); }
  size_t num_values() const { return values_.size(); }
  size_t num_constants() const { return constants_.size(); }

  // The root's parameters and results, with the names callers use.
  std::span<const ValueId> inputs() const { return root().parameters; }
  std::span<const ValueId> outputs() const { return root().results; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  // Symbol of a dimension <= -2: "batch".
  const std::string& symbol(int64_t dim) const {
    EDDY_DCHECK(dim <= -2 && -2 - dim < static_cast<int64_t>(symbols_.size()))
        << "dimension " << dim << " stands for no symbol";
    return symbols_[static_cast<size_t>(-2 - dim)];
  }
  // "decode/attend/MatMul_3": names of the owning nodes from the root down, regions with more
  // than one sibling in between.
  std::string path(NodeId node) const;

  // Releases bytes that are read no more: the constants named have null data afterwards, blobs
  // without other constants are freed once no copy needs them either, and of mapped files only what
  // is read again comes back. Afterwards the graph can run, but not be exported.
  void release_constants(std::span<const ConstantId> unread);

 private:
  friend class GraphBuilder;  // the only maker
  Graph() = default;
  Graph(const Graph&) = default;

  std::string name_;
  std::vector<Region> regions_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<Constant> constants_;
  std::vector<std::string> output_names_;
  std::vector<std::string> symbols_;
  std::vector<std::shared_ptr<Blob>> blobs_;  // shared with copies
};

}  // namespace eddy
