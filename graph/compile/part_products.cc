#include "graph/compile/part_products.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/compile/only_readers.h"

namespace eddy {
namespace {

bool is_op(const Node& node, std::string_view op) {
  return node.kind == NodeKind::kExec && node.device.empty() && node.op->domain.empty() &&
         node.op->name == op;
}

struct Found {
  std::set<NodeId> splits;
  std::set<NodeId> parted;  // products and sums that only these read
};

class SplitFinder {
 public:
  explicit SplitFinder(const Graph& graph) : graph_(graph), readers_(only_readers(graph)) {}

  Found find() const {
    Found found;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const NodeId id(n);
      if (!is_op(graph_.node(id), "Split") || !has_wide_parts(graph_.node(id))) continue;
      std::vector<NodeId> above;
      if (!may_be_parted(graph_.node(id).inputs[0], id, above)) continue;
      found.splits.insert(id);
      found.parted.insert(above.begin(), above.end());
    }
    return found;
  }

 private:
  const Dims& dims(ValueId value) const { return graph_.value(value).type.tensor.dims; }
  bool is_constant(ValueId value) const {
    return graph_.value(value).origin == ValueOrigin::kConstant;
  }

  // Along the last axis, of a matrix of floats with enough rows.
  bool has_wide_parts(const Node& split) const {
    const ValueId whole = split.inputs[0];
    const ValueType& type = graph_.value(whole).type;
    if (!type.is_static_tensor() || type.tensor.element != ElementType::kFloat) return false;
    const int rank = type.tensor.dims.rank();
    const int64_t axis = split.attributes.get_int("axis", 0);
    if (rank < 2 || (axis != rank - 1 && axis != -1)) return false;
    const int64_t columns = type.tensor.dims[rank - 1];
    if (columns <= 0 || *type.tensor.dims.count() / columns < kMinRowsOfParts) return false;
    return std::ranges::all_of(split.outputs, [&](ValueId part) {
      return graph_.value(part).type.is_static_tensor() &&
             dims(part)[rank - 1] >= kMinColumnsOfParts;
    });
  }

  // `reader` alone reads the value, which is made of products by constants; they and the sums of
  // them are added to `above`.
  bool may_be_parted(ValueId value, NodeId reader, std::vector<NodeId>& above) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kNodeOutput || readers_[value.index()] != reader) return false;
    const Node& maker = graph_.node(info.producer);
    above.push_back(info.producer);
    if (is_op(maker, "Add")) {
      const bool has_product = !is_constant(maker.inputs[0]) || !is_constant(maker.inputs[1]);
      return has_product && std::ranges::all_of(maker.inputs, [&](ValueId term) {
               return is_row(term, value) ||
                      (has_shape_of(term, value) && may_be_parted(term, info.producer, above));
             });
    }
    const bool is_gemm = is_op(maker, "Gemm");
    if (!is_gemm && !is_op(maker, "MatMul")) return false;
    if (!is_constant(maker.inputs[1]) || dims(maker.inputs[1]).rank() != 2) return false;
    const bool has_addend = is_gemm && maker.inputs.size() > 2 && !maker.inputs[2].is_none();
    return !has_addend || is_row(maker.inputs[2], value);
  }

  bool has_shape_of(ValueId term, ValueId sum) const {
    const ValueType& type = graph_.value(term).type;
    return type.is_static_tensor() && std::ranges::equal(type.tensor.dims.span(), dims(sum).span());
  }
  // A constant that is added to each row.
  bool is_row(ValueId term, ValueId sum) const {
    if (!is_constant(term) || dims(term).rank() == 0) return false;
    const Dims& row = dims(term);
    const int64_t columns = dims(sum)[dims(sum).rank() - 1];
    return row[row.rank() - 1] == columns && row.count() == columns &&
           row.rank() <= dims(sum).rank();
  }

  const Graph& graph_;
  const std::vector<NodeId> readers_;
};

class ProductParter : public GraphCopier {
 public:
  ProductParter(const Graph& source, GraphBuilder& builder, const Found& found)
      : GraphCopier(source, builder), found_(found) {}

 private:
  // Columns of a result.
  struct Part {
    int64_t begin;
    int64_t size;
    std::string suffix;  // of names
  };

  void exec(NodeId id) override {
    if (found_.parted.contains(id)) return;
    if (!found_.splits.contains(id)) return copy_exec(id);
    const Node& split = source_.node(id);
    Part part = {0, 0, ""};
    for (size_t k = 0; k < split.outputs.size(); ++k) {
      const Dims& dims = source_.value(split.outputs[k]).type.tensor.dims;
      part.size = dims[dims.rank() - 1];
      part.suffix = "_part" + std::to_string(k);
      define(split.outputs[k], made(split.inputs[0], part));
      part.begin += part.size;
    }
  }

  // The part of a value that may be parted.
  Value made(ValueId whole, const Part& part) {
    if (source_.value(whole).origin == ValueOrigin::kConstant) return columns(whole, part);
    const Node& node = source_.node(source_.value(whole).producer);
    std::vector<Value> inputs;
    if (node.op->name == "Add") {
      for (const ValueId term : node.inputs) inputs.push_back(made(term, part));
    } else {
      const bool is_turned = node.attributes.get_int("transB", 0) != 0;
      inputs = {value(node.inputs[0]),
                is_turned ? rows(node.inputs[1], part) : columns(node.inputs[1], part)};
      if (node.inputs.size() > 2 && !node.inputs[2].is_none()) {
        inputs.push_back(columns(node.inputs[2], part));
      }
    }
    return builder_.op(node.op->name, inputs, node.attributes,
                       {.name = node.name.empty() ? "" : node.name + part.suffix,
                        .opset_version = node.opset_version,
                        .output_names = {source_.value(whole).name + part.suffix}});
  }

  // Of a constant's last axis.
  Value columns(ValueId whole, const Part& part) {
    const TensorView view = source_.constant(source_.value(whole).constant).view();
    const int64_t width = view.dims[view.rank - 1];
    const int64_t height = view.count() / width;
    EDDY_CHECK(part.begin + part.size <= width) << "a part ends behind column " << width;
    return constant(whole, part, view.rank - 1, [&](float* to) {
      for (int64_t row = 0; row < height; ++row) {
        std::copy_n(view.as<float>() + row * width + part.begin, part.size, to + row * part.size);
      }
    });
  }
  // Of a matrix.
  Value rows(ValueId whole, const Part& part) {
    const TensorView view = source_.constant(source_.value(whole).constant).view();
    EDDY_CHECK(part.begin + part.size <= view.dims[0]) << "a part ends behind row " << view.dims[0];
    return constant(whole, part, 0, [&](float* to) {
      std::copy_n(view.as<float>() + part.begin * view.dims[1], part.size * view.dims[1], to);
    });
  }

  // The constant with part.size elements along the axis, which `fill` copies; once for all readers.
  template <typename Fill>
  Value constant(ValueId whole, const Part& part, int axis, Fill fill) {
    const ValueInfo& info = source_.value(whole);
    const auto key = std::make_tuple(info.constant, axis, part.begin, part.size);
    auto made = constants_.find(key);
    if (made == constants_.end()) {
      Dims dims = info.type.tensor.dims;
      dims[axis] = part.size;
      std::vector<float> elements(static_cast<size_t>(*dims.count()));
      fill(elements.data());
      const TensorView view = {elements.data(), dims.data(), dims.rank(), ElementType::kFloat};
      made = constants_.emplace(key, builder_.make_constant(view)).first;
    }
    return builder_.constant_in_blob(made->second.view(), info.name + part.suffix);
  }

  const Found& found_;
  std::map<std::tuple<ConstantId, int, int64_t, int64_t>, Constant> constants_;
};

}  // namespace

Result<PartedGraph> part_products(Graph graph, const OpTable& ops) {
  const Found found = SplitFinder(graph).find();
  if (found.splits.empty()) return PartedGraph{std::move(graph), 0};
  GraphBuilder builder(ops, graph.name());
  ProductParter(graph, builder, found).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph parted, builder.finish());
  return PartedGraph{std::move(parted), found.splits.size()};
}

}  // namespace eddy
