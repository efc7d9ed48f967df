#include "graph/compile/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

constexpr uint32_t kNoTree = UINT32_MAX;

struct Tree {
  NodeId root;
  std::vector<NodeId> members;  // issue order; the root last
  std::vector<ValueId> inputs;  // values read from outside, by first use
  size_t size() const { return members.size(); }
};

// What a Split makes of its input.
struct Part {
  NodeId split;
  int64_t axis, first, size;
};

// Finds the trees, bottom up: a node is met after all readers of its result.
class TreeFinder {
 public:
  TreeFinder(const Graph& graph, const FuseOptions& options) : graph_(graph), options_(options) {}

  std::vector<Tree> run() {
    find_functions();
    find_readers();
    find_shapes();
    find_parts();
    tree_of_.assign(graph_.num_nodes(), kNoTree);
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      const std::vector<NodeId>& nodes = graph_.region(RegionId(r)).nodes;
      for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        if (functions_[node->index()]) plant_or_join(*node);
      }
    }
    std::erase_if(parts_, [&](const auto& part) { return !is_for_trees(part.second.split); });
    for (Tree& tree : trees_) {
      std::reverse(tree.members.begin(), tree.members.end());
      EDDY_CHECK(tree.members.back() == tree.root) << "a tree ends in its root";
    }
    return std::move(trees_);
  }
  // By value: parts that trees alone read, all others of their Split, too.
  const std::map<ValueId, Part>& parts() const { return parts_; }
  const ElementFunction& function(NodeId node) const {
    EDDY_DCHECK(functions_[node.index()].has_value()) << "node " << node.index() << " has none";
    return *functions_[node.index()];
  }

 private:
  ValueId result_of(NodeId node) const { return graph_.node(node).outputs[0]; }

  void find_functions() {
    functions_.resize(graph_.num_nodes());
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      const bool fits = node.kind == NodeKind::kExec && node.device == options_.device &&
                        node.outputs.size() == 1 && node.op->domain.empty() &&
                        std::ranges::none_of(node.inputs, &ValueId::is_none);
      if (fits) functions_[n] = options_.function_of(graph_, NodeId(n));
    }
  }

  // By value: its readers, where they are exec nodes of its own region; else it must stay.
  void find_readers() {
    readers_.resize(graph_.num_values());
    must_stay_.resize(graph_.num_values(), false);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      for (const ValueId value : node.inputs) {
        if (value.is_none()) continue;
        const bool is_near =
            node.kind == NodeKind::kExec && graph_.value(value).region == node.region;
        if (!is_near) must_stay_[value.index()] = true;
        readers_[value.index()].push_back(NodeId(n));
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      for (const ValueId value : graph_.region(RegionId(r)).results) {
        if (!value.is_none()) must_stay_[value.index()] = true;
      }
    }
  }

  void find_parts() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      const bool is_split = node.kind == NodeKind::kExec && node.device == options_.device &&
                            node.op->domain.empty() && node.op->name == "Split";
      if (!is_split || !graph_.value(node.inputs[0]).type.is_static_tensor()) continue;
      const bool are_known = std::ranges::all_of(node.outputs, [&](ValueId output) {
        return graph_.value(output).type.is_static_tensor();
      });
      if (!are_known) continue;
      const int rank = graph_.value(node.inputs[0]).type.tensor.dims.rank();
      const int64_t given = node.attributes.get_int("axis", 0);
      Part part{NodeId(n), given < 0 ? given + rank : given, 0, 0};
      for (const ValueId output : node.outputs) {
        part.size = graph_.value(output).type.tensor.dims[static_cast<int>(part.axis)];
        parts_.emplace(output, part);
        part.first += part.size;
      }
    }
  }

  bool is_for_trees(NodeId split) const {
    return std::ranges::all_of(graph_.node(split).outputs, [&](ValueId output) {
      return !must_stay_[output.index()] &&
             std::ranges::all_of(readers_[output.index()], [&](NodeId reader) {
               return tree_of_[reader.index()] != kNoTree;
             });
    });
  }

  // Numbers that are equal for results of equal shapes.
  void find_shapes() {
    shapes_.resize(graph_.num_values());
    std::map<std::vector<int64_t>, uint32_t> known;
    uint32_t num_shapes = 0;
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      for (const NodeId id : graph_.region(RegionId(r)).nodes) {
        if (!functions_[id.index()]) continue;
        const ValueId result = result_of(id);
        const TensorType& type = graph_.value(result).type.tensor;
        const std::span<const int64_t> dims = type.dims.span();
        const bool is_known = type.is_ranked && std::ranges::find(dims, kUnknownDim) == dims.end();
        if (is_known) {
          const auto [at, is_new] = known.try_emplace({dims.begin(), dims.end()}, num_shapes);
          num_shapes += is_new ? 1 : 0;
          shapes_[result.index()] = at->second;
        } else {
          shapes_[result.index()] = shape_of_input(id, num_shapes);
        }
      }
    }
  }

  // The shape of a result whose sizes are not known.
  uint32_t shape_of_input(NodeId id, uint32_t& num_shapes) const {
    const Node& node = graph_.node(id);
    EDDY_DCHECK(!node.inputs.empty()) << node.name << " is elementwise and reads nothing";
    const ValueInfo& input = graph_.value(node.inputs[0]);
    const bool is_elementwise =
        input.origin == ValueOrigin::kNodeOutput && functions_[input.producer.index()].has_value();
    return node.inputs.size() == 1 && is_elementwise ? shapes_[node.inputs[0].index()]
                                                     : num_shapes++;
  }

  void plant_or_join(NodeId id) {
    EDDY_DCHECK(tree_of_[id.index()] == kNoTree) << "node " << id.index() << " is in a tree";
    const uint32_t tree = joinable_tree(id);
    if (tree != kNoTree && join(id, trees_[tree])) {
      tree_of_[id.index()] = tree;
      return;
    }
    Tree planted{id, {}, {}};
    if (!join(id, planted)) return;
    tree_of_[id.index()] = static_cast<uint32_t>(trees_.size());
    trees_.push_back(std::move(planted));
  }

  // The tree that all readers of its result are in.
  uint32_t joinable_tree(NodeId id) const {
    const ValueId result = result_of(id);
    const std::vector<NodeId>& readers = readers_[result.index()];
    if (must_stay_[result.index()] || readers.empty()) return kNoTree;
    const uint32_t tree = tree_of_[readers[0].index()];
    if (tree == kNoTree) return kNoTree;
    const bool is_same_shape =
        shapes_[result.index()] == shapes_[result_of(trees_[tree].root).index()];
    const bool are_all_in = std::ranges::all_of(
        readers, [&](NodeId reader) { return tree_of_[reader.index()] == tree; });
    return is_same_shape && are_all_in ? tree : kNoTree;
  }

  // False: there would be too many steps or inputs.
  bool join(NodeId id, Tree& tree) const {
    EDDY_DCHECK(tree.size() <= options_.max_steps) << tree.size() << " steps are too many";
    std::vector<ValueId> inputs = tree.inputs;
    std::erase(inputs, result_of(id));
    for (const ValueId input : graph_.node(id).inputs) {
      if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    }
    if (inputs.size() > options_.max_inputs || tree.size() == options_.max_steps) return false;
    tree.inputs = std::move(inputs);
    tree.members.push_back(id);
    return true;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<std::optional<ElementFunction>> functions_;  // by NodeId
  std::vector<std::vector<NodeId>> readers_;               // by ValueId
  std::vector<bool> must_stay_;                            // by ValueId
  std::vector<uint32_t> shapes_;                           // by ValueId
  std::vector<uint32_t> tree_of_;                          // by NodeId
  std::vector<Tree> trees_;
  std::map<ValueId, Part> parts_;
};

Expression expression_of(const Graph& graph, const Tree& tree, const TreeFinder& finder) {
  Expression expression;
  expression.num_inputs = static_cast<uint32_t>(tree.inputs.size());
  std::map<ValueId, uint32_t> elements;
  for (const ValueId input : tree.inputs) {
    elements.emplace(input, static_cast<uint32_t>(elements.size()));
  }
  EDDY_CHECK(elements.size() == tree.inputs.size()) << "a tree reads an input twice";
  for (const NodeId id : tree.members) {
    ExpressionStep step{finder.function(id), {}};
    for (const ValueId input : graph.node(id).inputs) step.arguments.push_back(elements.at(input));
    elements.emplace(graph.node(id).outputs[0], static_cast<uint32_t>(elements.size()));
    expression.steps.push_back(std::move(step));
  }
  return expression;
}

bool reads_parts(const Tree& tree, const std::map<ValueId, Part>& parts) {
  return std::ranges::any_of(tree.inputs, [&](ValueId input) { return parts.contains(input); });
}

class Fuser : public GraphCopier {
 public:
  Fuser(const Graph& source, GraphBuilder& builder, const std::vector<uint32_t>& value_devices)
      : GraphCopier(source, builder), given_devices_(value_devices) {
    EDDY_CHECK(value_devices.size() == source.num_values())
        << value_devices.size() << " devices for " << source.num_values() << " values";
    is_inner_.resize(source.num_nodes(), false);
  }

  // Before any tree: parts that are read where they lie, whose Splits go.
  void read_in_place(const std::map<ValueId, Part>& parts) {
    parts_ = parts;
    for (const auto& [value, part] : parts) is_inner_[part.split.index()] = true;
  }

  void replace(const Tree& tree, const Expression& expression) {
    for (const NodeId id : tree.members) {
      EDDY_CHECK(!is_inner_[id.index()]) << "node " << id.index() << " is in two trees";
      is_inner_[id.index()] = true;
    }
    fused_[tree.root] = {tree, expression.text()};
  }
  std::vector<uint32_t> take_value_devices() { return std::move(value_devices_); }

 private:
  void exec(NodeId id) override {
    const auto fused = fused_.find(id);
    if (fused != fused_.end()) return emit(id, fused->second.first, fused->second.second);
    if (!is_inner_[id.index()]) copy_exec(id);
  }

  void emit(NodeId root, const Tree& tree, const std::string& program) {
    const Node& node = source_.node(root);
    const ValueInfo& result = source_.value(node.outputs[0]);
    EDDY_CHECK(root == tree.root && node.outputs.size() == 1) << node.name << " is no root";
    std::vector<Value> inputs;
    std::vector<int64_t> parts;  // an axis, a first index and a size for each input
    for (const ValueId input : tree.inputs) {
      const auto found = parts_.find(input);
      const bool is_part = found != parts_.end();
      const Part part = is_part ? found->second : Part{NodeId(), -1, 0, 0};
      inputs.push_back(value(is_part ? source_.node(part.split).inputs[0] : input));
      parts.insert(parts.end(), {part.axis, part.first, part.size});
    }
    Attributes attributes = {{"program", program},
                             {"to", static_cast<int64_t>(result.type.tensor.element)}};
    const bool has_parts = reads_parts(tree, parts_);
    if (has_parts) attributes.set("parts", parts);
    define(node.outputs[0],
           builder_.op(has_parts ? "FusedParts" : "Fused", inputs, std::move(attributes),
                       {.name = node.name,
                        .domain = "eddy",
                        .opset_version = 1,
                        .device = node.device,
                        .output_names = {result.name}}));
  }

  void defined(ValueId id, Value value) override {
    const uint32_t index = value.id.index();
    if (value_devices_.size() <= index) value_devices_.resize(index + 1, 0);
    value_devices_[index] = given_devices_[id.index()];
  }

  const std::vector<uint32_t>& given_devices_;
  std::vector<bool> is_inner_;  // by NodeId: of a tree
  std::map<ValueId, Part> parts_;
  std::map<NodeId, std::pair<Tree, std::string>> fused_;
  std::vector<uint32_t> value_devices_;  // by the new graph's ValueId
};

std::vector<ElementType> input_types(const Graph& graph, const Tree& tree) {
  std::vector<ElementType> types;
  for (const ValueId input : tree.inputs) types.push_back(graph.value(input).type.tensor.element);
  return types;
}

// Prepares the trees' kernels. `trees`: those that have one, and of single nodes those alone that
// read parts in place; `parts`: of Splits whose readers all have one.
void prepare_all(const Graph& graph, const FuseOptions& options, const TreeFinder& finder,
                 std::vector<Tree>& trees, std::map<ValueId, Part>& parts, FuseReport& report) {
  std::set<NodeId> kept_splits;
  const auto is_useful = [&](const Tree& tree) {
    return tree.size() > 1 || reads_parts(tree, parts);
  };
  std::erase_if(trees, [&](const Tree& tree) {
    if (!is_useful(tree)) return true;
    const ElementType output = graph.value(graph.node(tree.root).outputs[0]).type.tensor.element;
    const Status status =
        options.prepare(expression_of(graph, tree, finder), input_types(graph, tree), output);
    if (status.is_ok()) return false;
    report.refused.emplace_back(graph.path(tree.root), status.message());
    for (const ValueId input : tree.inputs) {
      if (const auto part = parts.find(input); part != parts.end()) {
        kept_splits.insert(part->second.split);
      }
    }
    return true;
  });
  std::erase_if(parts, [&](const auto& part) { return kept_splits.contains(part.second.split); });
  std::erase_if(trees, [&](const Tree& tree) { return !is_useful(tree); });
}

void tell(const Graph& graph, const std::vector<Tree>& trees, const std::map<ValueId, Part>& parts,
          FuseReport& report) {
  for (const Tree& tree : trees) {
    report.kernels.push_back({graph.path(tree.root), {}});
    FuseReport::Kernel& kernel = report.kernels.back();
    for (const NodeId id : tree.members) {
      kernel.nodes.push_back(graph.node(id).op->name + " " + graph.node(id).name);
    }
  }
  std::set<NodeId> splits;
  for (const auto& [value, part] : parts) {
    if (splits.insert(part.split).second) report.splits.push_back(graph.path(part.split));
  }
}

std::string counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

std::string FuseReport::text() const {
  if (kernels.empty() && refused.empty()) return "";
  size_t num_nodes = 0;
  for (const Kernel& kernel : kernels) num_nodes += kernel.nodes.size();
  std::string text = counted(kernels.size(), "fused kernel") + " of " +
                     counted(num_nodes, "elementwise node") + "\n";
  for (const Kernel& kernel : kernels) {
    text += "  fused into " + kernel.path + ":";
    for (size_t i = 0; i < kernel.nodes.size(); ++i) text += (i > 0 ? ", " : " ") + kernel.nodes[i];
    text += "\n";
  }
  for (const std::string& path : splits) text += "  read in place: parts of " + path + "\n";
  for (const auto& [path, reason] : refused) text += "  not fused: " + path + ": " + reason + "\n";
  return text;
}

Result<FusedGraph> fuse(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                        const FuseOptions& options) {
  FuseReport report;
  GraphBuilder builder(ops, graph.name());
  Fuser fuser(graph, builder, value_devices);
  TreeFinder finder(graph, options);
  std::vector<Tree> trees = finder.run();
  std::map<ValueId, Part> parts = finder.parts();
  prepare_all(graph, options, finder, trees, parts, report);
  if (trees.empty()) {
    return FusedGraph{std::move(graph), std::move(value_devices), std::move(report)};
  }
  tell(graph, trees, parts, report);
  fuser.read_in_place(parts);
  for (const Tree& tree : trees) fuser.replace(tree, expression_of(graph, tree, finder));
  fuser.run();
  std::vector<uint32_t> devices = fuser.take_value_devices();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph fused, builder.finish());
  devices.resize(fused.num_values(), 0);
  return FusedGraph{std::move(fused), std::move(devices), std::move(report)};
}

}  // namespace eddy
