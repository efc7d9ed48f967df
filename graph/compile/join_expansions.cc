#include "graph/compile/join_expansions.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/compile/only_readers.h"

namespace eddy {
namespace {

constexpr int64_t kMinBytes = int64_t{1} << 20;

// Of an operand that may be omitted.
bool has(const Node& node, size_t input) {
  return input < node.inputs.size() && !node.inputs[input].is_none();
}

bool are_all(const Node& node, std::string_view attribute, int64_t value) {
  return std::ranges::all_of(node.attributes.get_ints(attribute),
                             [value](int64_t n) { return n == value; });
}

class ExpansionFinder {
 public:
  explicit ExpansionFinder(const Graph& graph) : graph_(graph), readers_(only_readers(graph)) {}

  // By the depthwise convolution, the expansion.
  std::map<NodeId, NodeId> find() const {
    std::map<NodeId, NodeId> found;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const NodeId id(n);
      if (!is_expansion(graph_.node(id))) continue;
      const NodeId reader = readers_[graph_.node(id).outputs[0].index()];
      if (!reader.is_none() && is_depthwise(graph_.node(reader)) &&
          graph_.node(reader).inputs[0] == graph_.node(id).outputs[0]) {
        found.emplace(reader, id);
      }
    }
    return found;
  }

 private:
  const Dims& dims(ValueId value) const { return graph_.value(value).type.tensor.dims; }
  bool is_constant(const Node& node, size_t input) const {
    return !has(node, input) || graph_.value(node.inputs[input]).origin == ValueOrigin::kConstant;
  }

  bool is_blocked_conv(const Node& node) const {
    return node.kind == NodeKind::kExec && node.op->domain == "eddy" &&
           node.op->name == "BlockedConv" && !has(node, 3) && !node.attributes.has("x_block") &&
           is_constant(node, 1) && is_constant(node, 2) &&
           node.attributes.get_string("auto_pad", "NOTSET") == "NOTSET";
  }

  bool is_expansion(const Node& node) const {
    if (!is_blocked_conv(node)) return false;
    const Dims& w = dims(node.inputs[1]);
    const ValueType& made = graph_.value(node.outputs[0]).type;
    return w[2] == 1 && w[3] == 1 && node.attributes.get_int("group", 1) == 1 &&
           are_all(node, "strides", 1) && are_all(node, "pads", 0) && made.is_static_tensor() &&
           *made.tensor.dims.count() * int64_t{sizeof(float)} >= kMinBytes;
  }

  bool is_depthwise(const Node& node) const {
    if (!is_blocked_conv(node)) return false;
    const Dims& w = dims(node.inputs[1]);
    const std::span<const int64_t> pads = node.attributes.get_ints("pads");
    for (size_t i = 0; i < pads.size(); ++i) {
      if (pads[i] >= w[2 + static_cast<int>(i % 2)]) return false;
    }
    return w[1] == 1 && w[0] > 1 && w[0] == node.attributes.get_int("group", 1) &&
           are_all(node, "dilations", 1);
  }

  const Graph& graph_;
  const std::vector<NodeId> readers_;
};

class ExpansionJoiner : public GraphCopier {
 public:
  ExpansionJoiner(const Graph& source, GraphBuilder& builder,
                  const std::map<NodeId, NodeId>& expansions)
      : GraphCopier(source, builder), expansions_(expansions) {
    for (const auto& [depthwise, expansion] : expansions) inner_.insert(expansion);
  }

 private:
  void exec(NodeId id) override {
    if (inner_.contains(id)) return;
    const auto found = expansions_.find(id);
    if (found == expansions_.end()) return copy_exec(id);
    const Node &outer = source_.node(id), &inner = source_.node(found->second);
    Attributes attributes;
    for (const Attributes::Entry& entry : outer.attributes.entries()) {
      if (entry.name != "group") attributes.set(entry.name, entry.value);
    }
    for (const char* name : {"activation", "alpha", "beta", "clamp"}) {
      for (const Attributes::Entry& entry : inner.attributes.entries()) {
        if (entry.name == name) attributes.set("inner_" + entry.name, entry.value);
      }
    }
    const auto input = [&](const Node& node, size_t i) {
      return has(node, i) ? value(node.inputs[i]) : Value();
    };
    define(outer.outputs[0], builder_.op("ExpandedConv",
                                         {input(inner, 0), input(inner, 1), input(inner, 2),
                                          input(outer, 1), input(outer, 2)},
                                         std::move(attributes),
                                         {.name = name_of(id),
                                          .domain = "eddy",
                                          .device = outer.device,
                                          .output_names = {source_.value(outer.outputs[0]).name}}));
  }

  const std::map<NodeId, NodeId>& expansions_;
  std::set<NodeId> inner_;
};

}  // namespace

Result<JoinedExpansions> join_expansions(Graph graph, const OpTable& ops) {
  const std::map<NodeId, NodeId> expansions = ExpansionFinder(graph).find();
  if (expansions.empty()) return JoinedExpansions{std::move(graph), 0};
  GraphBuilder builder(ops, graph.name());
  ExpansionJoiner(graph, builder, expansions).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder.finish());
  return JoinedExpansions{std::move(made), expansions.size()};
}

}  // namespace eddy
