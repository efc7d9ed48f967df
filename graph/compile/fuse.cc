#include "graph/compile/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/base/check.h"
#include "graph/compile/placed_copier.h"
#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

constexpr uint32_t kNoTree = UINT32_MAX;

struct Tree {
  NodeId root;
  std::vector<NodeId> members;  // issue order; the root last
  std::vector<ValueId> inputs;  // values read from outside, by first use
  // Of other members whose results are read from outside; issue order.
  std::vector<NodeId> givers;
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
      std::reverse(tree.givers.begin(), tree.givers.end());
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

  // By value: its readers, those inside loops and branches among them, and whether others than exec
  // nodes of its own region read it, so that it stays a value.
  void find_readers() {
    places_.resize(graph_.num_nodes());
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      uint32_t place = 0;
      for (const NodeId id : graph_.region(RegionId(r)).nodes) places_[id.index()] = place++;
    }
    readers_.resize(graph_.num_values());
    must_stay_.resize(graph_.num_values(), false);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind == NodeKind::kWhile) predicates_.insert(LoopView(graph_, node).predicate());
      for (const ValueId value : node.inputs) {
        if (value.is_none()) continue;
        const bool is_near =
            node.kind == NodeKind::kExec && graph_.value(value).region == node.region;
        if (!is_near) must_stay_[value.index()] = true;
        readers_[value.index()].push_back(NodeId(n));
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      const Region& region = graph_.region(RegionId(r));
      for (const ValueId value : region.results) {
        if (value.is_none()) continue;
        must_stay_[value.index()] = true;
        // What a loop or branch inside hands on must be there before it.
        const bool is_outer = graph_.value(value).region != RegionId(r);
        if (is_outer) readers_[value.index()].push_back(region.owner);
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
    if (tree != kNoTree && join(id, trees_[tree], is_read_outside(id, tree))) {
      tree_of_[id.index()] = tree;
      return;
    }
    Tree planted{id, {}, {}, {}};
    if (!join(id, planted, false)) return;
    tree_of_[id.index()] = static_cast<uint32_t>(trees_.size());
    trees_.push_back(std::move(planted));
  }

  // A tree of its region that reads its result; a reader that is not in it stands behind it.
  uint32_t joinable_tree(NodeId id) const {
    const ValueId result = result_of(id);
    uint32_t first = kNoTree;
    for (const NodeId reader : readers_[result.index()]) {
      const uint32_t tree = tree_of_[reader.index()];
      if (tree == kNoTree || graph_.node(reader).region != graph_.node(id).region) continue;
      if (first == kNoTree || end_of(tree) < end_of(first)) first = tree;
    }
    if (first == kNoTree) return kNoTree;
    const bool is_same_shape =
        shapes_[result.index()] == shapes_[result_of(trees_[first].root).index()];
    const bool are_behind = std::ranges::all_of(readers_[result.index()], [&](NodeId reader) {
      return tree_of_[reader.index()] == first || place_of(reader, id) > end_of(first);
    });
    const bool fits =
        is_same_shape && are_behind && (!is_read_outside(id, first) || may_give(id, trees_[first]));
    return fits ? first : kNoTree;
  }

  // A predicate stays what find_trip_rule knows, and nobody waits for what the node itself does
  // not.
  bool may_give(NodeId id, const Tree& tree) const {
    return !predicates_.contains(result_of(id)) &&
           std::ranges::all_of(tree.inputs, [&](ValueId input) {
             const ValueInfo& info = graph_.value(input);
             const bool is_beside =
                 info.origin == ValueOrigin::kNodeOutput && info.region == graph_.node(id).region;
             return !is_beside || places_[info.producer.index()] <= places_[id.index()];
           });
  }

  // The fused node stands where the tree's root did.
  uint32_t end_of(uint32_t tree) const { return places_[trees_[tree].root.index()]; }
  // Of the reader, or of the loop or branch that it is in, among the nodes beside `id`.
  uint32_t place_of(NodeId reader, NodeId id) const {
    const RegionId region = graph_.node(id).region, inner = graph_.node(reader).region;
    const NodeId beside = inner == region ? reader : RegionTree(graph_).container(inner, region);
    return places_[beside.index()];
  }
  bool is_read_outside(NodeId id, uint32_t tree) const {
    const uint32_t result = result_of(id).index();
    return must_stay_[result] || std::ranges::any_of(readers_[result], [&](NodeId reader) {
             return tree_of_[reader.index()] != tree;
           });
  }

  // False: there would be too many steps, inputs or results.
  bool join(NodeId id, Tree& tree, bool gives) const {
    EDDY_DCHECK(tree.size() <= options_.max_steps) << tree.size() << " steps are too many";
    std::vector<ValueId> inputs = tree.inputs;
    std::erase(inputs, result_of(id));
    for (const ValueId input : graph_.node(id).inputs) {
      if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    }
    if (inputs.size() > options_.max_inputs || tree.size() == options_.max_steps) return false;
    if (gives && tree.givers.size() + 1 == options_.max_results) return false;
    if (gives) tree.givers.push_back(id);
    tree.inputs = std::move(inputs);
    tree.members.push_back(id);
    return true;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<std::optional<ElementFunction>> functions_;  // by NodeId
  std::vector<std::vector<NodeId>> readers_;               // by ValueId
  std::vector<uint32_t> places_;                           // by NodeId: in its region
  std::vector<bool> must_stay_;                            // by ValueId
  std::set<ValueId> predicates_;                           // of loops
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
  for (const NodeId id : tree.givers) {
    expression.more_results.push_back(elements.at(graph.node(id).outputs[0]));
  }
  return expression;
}

// By the results of the tree's expression.
std::vector<ValueId> results_of(const Graph& graph, const Tree& tree) {
  std::vector<ValueId> results = {graph.node(tree.root).outputs[0]};
  for (const NodeId id : tree.givers) results.push_back(graph.node(id).outputs[0]);
  return results;
}

bool reads_parts(const Tree& tree, const std::map<ValueId, Part>& parts) {
  return std::ranges::any_of(tree.inputs, [&](ValueId input) { return parts.contains(input); });
}

class Fuser : public PlacedCopier {
 public:
  Fuser(const Graph& source, GraphBuilder& builder, const std::vector<uint32_t>& value_devices)
      : PlacedCopier(source, builder, value_devices) {
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

 private:
  void exec(NodeId id) override {
    const auto fused = fused_.find(id);
    if (fused != fused_.end()) return emit(id, fused->second.first, fused->second.second);
    if (!is_inner_[id.index()]) copy_exec(id);
  }

  void emit(NodeId root, const Tree& tree, const std::string& program) {
    const Node& node = source_.node(root);
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
    const std::vector<ValueId> results = results_of(source_, tree);
    std::vector<int64_t> to;
    std::vector<std::string> names;
    for (const ValueId result : results) {
      to.push_back(static_cast<int64_t>(source_.value(result).type.tensor.element));
      names.push_back(source_.value(result).name);
    }
    Attributes attributes = {{"program", program}, {"to", to}};
    const bool has_parts = reads_parts(tree, parts_);
    if (has_parts) attributes.set("parts", parts);
    define_all(results,
               builder_.ops(has_parts ? "FusedParts" : "Fused", inputs, std::move(attributes),
                            {.name = node.name,
                             .domain = "eddy",
                             .opset_version = 1,
                             .num_outputs = static_cast<int>(results.size()),
                             .device = node.device,
                             .output_names = names}));
  }

  std::vector<bool> is_inner_;  // by NodeId: of a tree
  std::map<ValueId, Part> parts_;
  std::map<NodeId, std::pair<Tree, std::string>> fused_;
};

std::vector<ElementType> types_of(const Graph& graph, std::span<const ValueId> values) {
  std::vector<ElementType> types;
  for (const ValueId value : values) types.push_back(graph.value(value).type.tensor.element);
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
    const Status status =
        options.prepare(expression_of(graph, tree, finder), types_of(graph, tree.inputs),
                        types_of(graph, results_of(graph, tree)));
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
  EDDY_ASSIGN_OR_RETURN(PlacedCopy made, fuser.finish(std::move(graph)));
  return FusedGraph{std::move(made.graph), std::move(made.value_devices), std::move(report)};
}

}  // namespace eddy
