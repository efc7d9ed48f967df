#include "graph/compile/split_concats.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/compile/only_readers.h"
#include "graph/compile/placed_copier.h"
#include "graph/ir/aliases.h"

namespace eddy {
namespace {

// A part of the depth, and the rows of the matrix that meet it.
struct Part {
  ValueId value;
  int64_t first = 0;
  int64_t size = 0;
};
// By the product.
using Splits = std::map<NodeId, std::vector<Part>>;

bool is_op(const Node& node, std::string_view domain, std::string_view name) {
  return node.kind == NodeKind::kExec && node.op->domain == domain && node.op->name == name;
}

class Finder {
 public:
  Finder(const Graph& graph, const std::string& device)
      : graph_(graph), device_(device), readers_(only_readers(graph)) {}

  Splits splits() const {
    Splits found;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (!is_product(node)) continue;
      std::vector<Part> parts = parts_of(NodeId(n));
      if (!parts.empty()) found.emplace(NodeId(n), std::move(parts));
    }
    return found;
  }

 private:
  // Of operands and results as they lie, plus a row at most.
  bool is_product(const Node& node) const {
    const bool is_plain = is_op(node, "", "MatMul");
    const char* const orders[] = {"perm_a", "perm_b", "perm_y", "place_a", "place_b", "alpha"};
    const bool is_folded =
        is_op(node, "eddy", "PermutedMatMul") &&
        (node.inputs.size() < 4 || node.inputs[3].is_none()) &&
        std::ranges::none_of(orders, [&](const char* name) { return node.attributes.has(name); });
    if (node.device != device_ || !(is_plain || is_folded)) return false;
    const ValueInfo& matrix = graph_.value(node.inputs[1]);
    const ValueInfo& result = graph_.value(node.outputs[0]);
    return matrix.origin == ValueOrigin::kConstant && matrix.type.tensor.dims.rank() == 2 &&
           kFloatTypes.contains(result.type.tensor.element) && result.type.is_static_tensor() &&
           result.type.tensor.dims.rank() >= 2 &&
           result.type.tensor.dims.count().value_or(SplitConcats::kMostElements + 1) <=
               SplitConcats::kMostElements;
  }

  // In the order of their making; empty: the operand is no such Concat.
  std::vector<Part> parts_of(NodeId product) const {
    const ValueId operand = graph_.node(product).inputs[0];
    const ValueInfo& info = graph_.value(operand);
    if (info.origin != ValueOrigin::kNodeOutput || readers_[operand.index()] != product) return {};
    const Node& concat = graph_.node(info.producer);
    if (!is_op(concat, "", "Concat") || concat.device != device_) return {};
    const int rank = info.type.tensor.dims.rank();
    const int64_t axis = concat.attributes.get_int("axis", 0);
    if ((axis != rank - 1 && axis != -1) || rank < 2) return {};
    if (concat.inputs.size() < 2 || concat.inputs.size() > SplitConcats::kMostParts) return {};
    std::vector<Part> parts;
    int64_t first = 0;
    for (const ValueId input : concat.inputs) {
      const ValueType& type = graph_.value(input).type;
      if (!type.is_static_tensor() || type.tensor.dims[rank - 1] == 0) return {};
      parts.push_back({input, first, type.tensor.dims[rank - 1]});
      first += type.tensor.dims[rank - 1];
    }
    std::ranges::stable_sort(parts, {}, [&](const Part& part) { return made_at(part, product); });
    return parts;
  }

  // The place of what makes it, in the product's region; 0: it is there when that begins.
  uint32_t made_at(const Part& part, NodeId product) const {
    const ValueInfo& info = graph_.value(resolve_views(graph_, part.value));
    const bool is_beside =
        info.origin == ValueOrigin::kNodeOutput && info.region == graph_.node(product).region;
    return is_beside ? info.producer.index() + 1 : 0;
  }

  const Graph& graph_;
  const std::string& device_;
  const std::vector<NodeId> readers_;
};

class ConcatSplitter : public PlacedCopier {
 public:
  ConcatSplitter(const Graph& source, GraphBuilder& builder, const Splits& splits,
                 const std::vector<uint32_t>& value_devices)
      : PlacedCopier(source, builder, value_devices), splits_(splits) {
    for (const auto& [product, parts] : splits) {
      gone_.insert(source.value(source.node(product).inputs[0]).producer);
    }
  }

 private:
  void exec(NodeId id) override {
    if (gone_.contains(id)) return;
    const auto split = splits_.find(id);
    if (split == splits_.end()) return copy_exec(id);
    const Node& node = source_.node(id);
    const ValueInfo& result = source_.value(node.outputs[0]);
    const bool has_row = node.inputs.size() > 2 && !node.inputs[2].is_none();
    Value sum;
    for (const Part& part : split->second) {
      const bool is_last = &part == &split->second.back();
      std::vector<Value> inputs = {value(part.value), rows_of(node, part)};
      if (is_last || !sum.is_none()) {
        inputs.push_back(is_last && has_row ? value(node.inputs[2]) : Value());
        if (!sum.is_none()) inputs.push_back(sum);
      }
      const std::string of = is_last ? "" : "_of_" + std::to_string(part.first);
      OpOptions options{.name = node.name + of,
                        .domain = "eddy",
                        .opset_version = 1,
                        .device = node.device,
                        .output_names = {result.name + of}};
      sum = builder_.op("PermutedMatMul", inputs, {}, options);
      if (!is_last) set_as(node.outputs[0], sum);
    }
    define(node.outputs[0], sum);
  }

  // Of the matrix; where they lie.
  Value rows_of(const Node& product, const Part& part) {
    const ValueInfo& info = source_.value(product.inputs[1]);
    const TensorView whole = source_.constant(info.constant).view();
    const int64_t dims[] = {part.size, whole.dims[1]};
    const auto row_bytes = static_cast<size_t>(whole.dims[1]) * element_size_bytes(whole.element);
    const TensorView rows = {
        static_cast<std::byte*>(whole.data) + static_cast<size_t>(part.first) * row_bytes, dims, 2,
        whole.element};
    return builder_.constant_in_blob(rows, info.name + "_from_" + std::to_string(part.first));
  }

  const Splits& splits_;
  std::set<NodeId> gone_;
};

}  // namespace

Result<SplitConcats> split_concats(Graph graph, const OpTable& ops,
                                   std::vector<uint32_t> value_devices, const std::string& device) {
  const Splits splits = Finder(graph, device).splits();
  if (splits.empty()) return SplitConcats{std::move(graph), std::move(value_devices), 0};
  GraphBuilder builder(ops, graph.name());
  ConcatSplitter splitter(graph, builder, splits, value_devices);
  EDDY_ASSIGN_OR_RETURN(PlacedCopy made, splitter.finish(std::move(graph)));
  return SplitConcats{std::move(made.graph), std::move(made.value_devices), splits.size()};
}

}  // namespace eddy
