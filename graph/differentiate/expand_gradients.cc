#include "graph/differentiate/expand_gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/differentiate/copy_parameters.h"
#include "graph/differentiate/differentiate.h"
#include "graph/ir/expansion.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

bool is_gradient(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->name == "Gradient" &&
         node.op->domain == "ai.onnx.preview.training";
}

// The first one: none of its forward pass is a Gradient node, since that would stand before it.
NodeId first_gradient(const Graph& graph) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (is_gradient(graph.node(NodeId(n)))) return NodeId(n);
  }
  return {};
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// What one Gradient node names, and the nodes between.
class Differentiated {
 public:
  Differentiated(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {}

  Status find() {
    EDDY_DCHECK(names_.empty() && nodes_.empty()) << "names are looked up twice";
    EDDY_RETURN_IF_ERROR(find_all("xs"));
    num_xs_ = names_.size();
    EDDY_RETURN_IF_ERROR(find_all("zs"));
    if (names_.size() != node_.inputs.size()) {
      return invalid_argument("xs and zs name " + std::to_string(names_.size()) +
                              " tensors, but the node has " + std::to_string(node_.inputs.size()) +
                              " inputs");
    }
    const std::string y(node_.attributes.get_string("y", ""));
    EDDY_ASSIGN_OR_RETURN(y_, find_visible(y, "y"));
    const ValueType& type = graph_.value(y_).type;
    if (!type.is_tensor() || !kFloatTypes.contains(type.tensor.element)) {
      return invalid_argument("the y " + quoted(y) + " is " + to_string(type) +
                              ", which has no derivative; name a floating-point tensor");
    }
    for (size_t i = 0; i < cut_.size(); ++i) EDDY_RETURN_IF_ERROR(check_input(i));
    collect();
    return Status::ok();
  }

  const Node& node() const { return node_; }
  const std::vector<std::string>& names() const { return names_; }  // xs, zs
  const std::vector<ValueId>& cut() const { return cut_; }          // the values so named
  size_t num_xs() const { return num_xs_; }
  ValueId y() const { return y_; }
  const std::set<NodeId>& nodes() const { return nodes_; }         // in an order of execution
  const std::set<ValueId>& captured() const { return captured_; }  // other values they read

 private:
  Status find_all(const char* attribute) {
    for (const std::string& name : node_.attributes.get_strings(attribute)) {
      if (std::ranges::count(names_, name) > 0) {
        return invalid_argument(quoted(name) + " stands twice in xs and zs; name it once");
      }
      EDDY_ASSIGN_OR_RETURN(const ValueId value, find_visible(name, attribute));
      names_.push_back(name);
      cut_.push_back(value);
    }
    return Status::ok();
  }

  // Of the innermost region that has one.
  Result<ValueId> find_visible(const std::string& name, const char* attribute) const {
    const RegionTree tree(graph_);
    ValueId found;
    for (uint32_t v = 0; v < graph_.num_values() && !name.empty(); ++v) {
      const ValueInfo& info = graph_.value(ValueId(v));
      if (info.name != name || !tree.is_within(node_.region, info.region)) continue;
      if (found.is_none() || info.region > graph_.value(found).region) found = ValueId(v);
    }
    if (!found.is_none()) return found;
    return invalid_argument("attribute " + std::string(attribute) + " names " + quoted(name) +
                            ", which is no tensor that the node can see");
  }

  Status check_input(size_t i) const {
    const ValueType& named = graph_.value(cut_[i]).type;
    const ValueType& given = graph_.value(node_.inputs[i]).type;
    const bool is_alike =
        named.is_tensor() && given.is_tensor() && named.tensor.element == given.tensor.element;
    if (is_alike) return Status::ok();
    return invalid_argument("input " + std::to_string(i) + " is " + to_string(given) + ", but " +
                            quoted(names_[i]) + " is " + to_string(named));
  }

  void collect() {
    std::vector<ValueId> pending = {y_};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId id = pending.back();
      pending.pop_back();
      if (id.is_none() || !seen.insert(id).second || std::ranges::count(cut_, id) > 0) continue;
      const ValueInfo& info = graph_.value(id);
      if (info.origin == ValueOrigin::kConstant) continue;
      if (info.origin == ValueOrigin::kNodeOutput) {
        add(info.producer, pending);
      } else {
        captured_.insert(id);
      }
    }
  }

  void add(NodeId id, std::vector<ValueId>& pending) {
    if (!nodes_.insert(id).second) return;
    const Node& node = graph_.node(id);
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
    const RegionTree tree(graph_);
    for_each_use_inside(graph_, node, [&](ValueId value) {
      if (value.is_none() || graph_.value(value).origin == ValueOrigin::kConstant) return;
      if (!tree.is_inside(graph_.value(value).region, id)) pending.push_back(value);
    });
  }

  const Graph& graph_;
  const Node& node_;
  std::vector<std::string> names_;
  std::vector<ValueId> cut_;
  size_t num_xs_ = 0;
  ValueId y_;
  std::set<NodeId> nodes_;
  std::set<ValueId> captured_;
};

// The forward pass as a graph: inputs for xs, zs and what else it reads, and the sum of y.
class ForwardPass : public ParameterCopier {
 public:
  ForwardPass(const Graph& source, GraphBuilder& builder, const Differentiated& of)
      : ParameterCopier(source, builder), of_(of) {}

  void run() {
    EDDY_DCHECK(of_.cut().size() == of_.node().inputs.size() &&
                of_.cut().size() == of_.names().size())
        << "a name, a value and an input for each place";
    for (size_t i = 0; i < of_.cut().size(); ++i) {
      const ValueType type = input_type(source_.value(of_.node().inputs[i]));
      cut_[of_.cut()[i]] = builder_.input(of_.names()[i], type);
    }
    size_t number = 0;
    for (const ValueId id : of_.captured()) {
      std::string name = "captured " + std::to_string(number++);
      while (std::ranges::count(of_.names(), name) > 0) name += "'";
      define(id, builder_.input(name, input_type(source_.value(id))));
    }
    for (const NodeId id : of_.nodes()) {
      if (!builder_.status().is_ok()) return;
      const NodeKind kind = source_.node(id).kind;
      kind == NodeKind::kExec ? exec(id) : kind == NodeKind::kWhile ? loop(id) : branch(id);
    }
    const std::string name(of_.node().attributes.get_string("y", ""));
    builder_.output(name, builder_.op("ReduceSum", {value(of_.y())}, {{"keepdims", int64_t{0}}},
                                      {.name = "sum", .opset_version = Expansion::kOldestInner}));
  }

 protected:
  Value value(ValueId id) override {
    const auto at = cut_.find(id);
    return at != cut_.end() ? at->second : ParameterCopier::value(id);
  }
  // The names stay with the graph's own values.
  void exec(NodeId id) override {
    copy_exec(id);
    for (const ValueId output : source_.node(id).outputs) {
      if (builder_.status().is_ok()) builder_.set_name(GraphCopier::value(output), "");
    }
  }

 private:
  const Differentiated& of_;
  std::map<ValueId, Value> cut_;
};

// The whole graph, with the gradient in the node's place.
class Inlined : public ParameterCopier {
 public:
  Inlined(const Graph& source, GraphBuilder& builder, const Differentiated& of, NodeId id,
          const GradientGraph& gradient)
      : ParameterCopier(source, builder), of_(of), id_(id), gradient_(gradient) {
    for (uint32_t v = 0; v < source.num_values(); ++v) {
      const ValueInfo& info = source.value(ValueId(v));
      if (info.origin != ValueOrigin::kConstant || info.name.empty()) continue;
      parameters_.emplace(info.name, ValueId(v));
    }
  }

 protected:
  void exec(NodeId id) override {
    if (id != id_) return copy_exec(id);
    Body body(*this);
    std::vector<Value> made = body.run();
    EDDY_DCHECK(made.size() == of_.num_xs() || !builder_.status().is_ok())
        << made.size() << " gradients of " << of_.num_xs() << " xs";
    made.resize(of_.num_xs());
    if (builder_.status().is_ok()) replace(id, made);
  }

 private:
  class Body : public GraphCopier {
   public:
    explicit Body(Inlined& around)
        : GraphCopier(around.gradient_.graph, around.builder_), around_(around) {}

    std::vector<Value> run() {
      const Differentiated& of = around_.of_;
      std::vector<Value> given = around_.values(of.node().inputs);
      for (const ValueId id : of.captured()) given.push_back(around_.value(id));
      EDDY_DCHECK(given.size() == source_.inputs().size())
          << given.size() << " values for " << source_.inputs().size() << " inputs";
      define_all(source_.inputs(), given);
      nodes(kRoot);
      std::vector<Value> made;
      const std::span<const ValueId> outputs = source_.outputs();
      for (size_t i = 1; i < outputs.size() && builder_.status().is_ok(); ++i) {
        made.push_back(value(outputs[i]));
      }
      return made;
    }

   protected:
    static constexpr RegionId kRoot = Graph::kRoot;
    Value value(ValueId id) override {
      const ValueInfo& info = source_.value(id);
      if (info.origin == ValueOrigin::kConstant && !info.name.empty()) {
        const auto at = around_.parameters_.find(info.name);
        if (at != around_.parameters_.end()) return around_.value(at->second);
      }
      return GraphCopier::value(id);
    }
    std::string name_of(NodeId id) override {
      return around_.of_.node().name + "/" + source_.node(id).name;
    }

   private:
    Inlined& around_;
  };

  const Differentiated& of_;
  const NodeId id_;
  const GradientGraph& gradient_;
  std::map<std::string, ValueId, std::less<>> parameters_;
};

Result<Graph> expand_one(Graph graph, NodeId id, const OpTable& ops, const GradientTable& rules) {
  Differentiated of(graph, id);
  EDDY_RETURN_IF_ERROR(of.find());
  GraphBuilder forward(ops, graph.name());
  ForwardPass(graph, forward, of).run();
  EDDY_RETURN_IF_ERROR(forward.status());
  forward.adopt_blobs_of(graph.copy());
  EDDY_ASSIGN_OR_RETURN(Graph pass, forward.finish());
  DifferentiateOptions options{.loss = std::string(of.node().attributes.get_string("y", ""))};
  options.wrt.assign(of.names().begin(),
                     of.names().begin() + static_cast<std::ptrdiff_t>(of.num_xs()));
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(pass), ops, rules, options));
  GraphBuilder builder(ops, graph.name());
  Inlined(graph, builder, of, id, gradient).run();
  EDDY_RETURN_IF_ERROR(builder.status());
  builder.adopt_blobs_of(std::move(gradient.graph));
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace

bool has_gradient_nodes(const Graph& graph) { return !first_gradient(graph).is_none(); }

Result<Graph> expand_gradients(Graph graph, const OpTable& ops, const GradientTable& rules) {
  size_t num_expanded = 0;
  for (NodeId id = first_gradient(graph); !id.is_none(); id = first_gradient(graph)) {
    const std::string where = "node '" + graph.path(id) + "' (Gradient)";
    Result<Graph> made = [&]() -> Result<Graph> {
      if (++num_expanded > kMaxGradientNodes || graph.num_nodes() > kMaxExpandedNodes) {
        return resource_exhausted("a graph has at most " + std::to_string(kMaxGradientNodes) +
                                  " of them, and " + std::to_string(kMaxExpandedNodes) +
                                  " nodes with what stands for them");
      }
      return expand_one(std::move(graph), id, ops, rules);
    }();
    if (!made.is_ok()) return std::move(made.take_status().prepend_message(where));
    graph = std::move(*made);
  }
  return graph;
}

}  // namespace eddy
