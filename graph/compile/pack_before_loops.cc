#include "graph/compile/pack_before_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

// A product of fewer terms takes B as it lies, without a copy.
constexpr int64_t kMinPackedTerms = int64_t{1} << 20;
// Where the number of rows is not known.
constexpr int64_t kLikelyRows = 16;

// How products read a matrix.
struct Layout {
  ValueId matrix;  // behind all transpositions
  bool is_turned = false;
  auto operator<=>(const Layout&) const = default;
};

struct Product {
  NodeId node;
  Layout b;
  NodeId loop;  // before which b is laid out; none: it is read as it lies, or as it was laid out
  bool is_packed = false;
};

class ProductFinder {
 public:
  ProductFinder(const Graph& graph, const PackOptions& options)
      : graph_(graph), options_(options) {}

  std::vector<Product> find() const {
    std::vector<Product> found;
    std::set<Layout> packed;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (!is_here(node, "MatMul") && !is_here(node, "Gemm")) continue;
      Product product{.node = NodeId(n), .b = {}, .loop = {}};
      product.b.is_turned = find_operand(node, product.b.matrix);
      if (!is_matrix_of_floats(product.b.matrix)) continue;
      product.loop = outermost_loop(node.region, graph_.value(product.b.matrix).region);
      product.is_packed = has_many_terms(node, product.b) && has_row_added(node);
      if (product.is_packed && !product.loop.is_none()) packed.insert(product.b);
      found.push_back(product);
    }
    std::erase_if(found, [&](Product& product) {
      const Node& node = graph_.node(product.node);
      // Behind a loop, without transpositions that would have to stay.
      const bool is_like = !product.loop.is_none() || product.b.matrix == node.inputs[1];
      product.is_packed = product.is_packed && is_like && packed.contains(product.b);
      if (product.is_packed) return false;
      return product.b.is_turned ? !is_turned_in_each_round(node, product)
                                 : product.b.matrix == node.inputs[1];
    });
    return found;
  }

  // Transpositions that only these products read, directly or one through another.
  std::set<NodeId> find_unread(const std::vector<Product>& products) const {
    std::vector<size_t> num_uses(graph_.num_values(), 0);
    const auto count = [&](ValueId value) {
      if (!value.is_none()) ++num_uses[value.index()];
    };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      for (const ValueId value : graph_.node(NodeId(n)).inputs) count(value);
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      for (const ValueId value : graph_.region(RegionId(r)).results) count(value);
    }
    std::set<NodeId> unread;
    for (const Product& product : products) {
      ValueId value = graph_.node(product.node).inputs[1];
      while (value != product.b.matrix && --num_uses[value.index()] == 0) {
        unread.insert(graph_.value(value).producer);
        value = graph_.node(graph_.value(value).producer).inputs[0];
      }
    }
    return unread;
  }

 private:
  const Dims& dims(ValueId value) const { return graph_.value(value).type.tensor.dims; }

  static bool is_here(const Node& node, std::string_view op) {
    return node.kind == NodeKind::kExec && node.device.empty() && node.op->domain.empty() &&
           node.op->name == op;
  }

  // What stands behind the transpositions of B, and whether they turn it over in all.
  bool find_operand(const Node& product, ValueId& b) const {
    bool is_turned = is_here(product, "Gemm") && product.attributes.get_int("transB", 0) != 0;
    b = product.inputs[1];
    while (graph_.value(b).origin == ValueOrigin::kNodeOutput) {
      const Node& node = graph_.node(graph_.value(b).producer);
      if (!is_here(node, "Transpose") || dims(node.outputs[0]).rank() != 2) break;
      const std::span<const int64_t> perm = node.attributes.get_ints("perm");
      is_turned = is_turned != (perm.empty() || perm[0] == 1);
      b = node.inputs[0];
    }
    return is_turned;
  }

  bool is_matrix_of_floats(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    return info.origin != ValueOrigin::kConstant && info.type.is_tensor() &&
           info.type.tensor.element == ElementType::kFloat && dims(value).rank() == 2;
  }

  // Where the matrix is turned over in each round, and need not be.
  bool is_turned_in_each_round(const Node& node, const Product& product) const {
    if (product.loop.is_none() || has_one_row(node.inputs[0])) return false;
    if (node.attributes.get_int("transB", 0) != 0) return true;
    const RegionId outside = graph_.value(product.b.matrix).region;
    return !outermost_loop(graph_.value(node.inputs[1]).region, outside).is_none();
  }

  // Of rows times columns times what each sum adds up, as far as is known.
  bool has_many_terms(const Node& node, const Layout& b) const {
    const std::optional<int64_t> size = dims(b.matrix).count();
    const TensorType& a = graph_.value(node.inputs[0]).type.tensor;
    if (options_.panel_width == 0 || !size.has_value() || !a.is_ranked || a.dims.rank() < 2) {
      return false;
    }
    if (has_one_row(node.inputs[0]) || node.attributes.get_int("transA", 0) != 0) return false;
    int64_t rows = 1;
    for (const int64_t each : std::span(a.dims.begin(), a.dims.end() - 1)) {
      if (__builtin_mul_overflow(rows, each < 0 ? kLikelyRows : each, &rows)) return false;
    }
    int64_t terms = 0;
    return !__builtin_mul_overflow(rows, *size, &terms) && terms > kMinPackedTerms;
  }

  // Nothing is added to the product, or a row.
  bool has_row_added(const Node& node) const {
    if (node.attributes.get_float("alpha", 1) != 1) return false;
    if (node.inputs.size() < 3 || node.inputs[2].is_none()) return true;
    if (node.attributes.get_float("beta", 1) != 1) return false;
    const Dims& c = dims(node.inputs[2]);
    const int64_t columns = graph_.value(node.outputs[0]).type.tensor.dims[1];
    return graph_.value(node.inputs[2]).type.tensor.is_ranked && columns > 0 && c.rank() > 0 &&
           c[c.rank() - 1] == columns && (c.rank() == 1 || c[0] == 1);
  }

  bool has_one_row(ValueId a) const {
    const TensorType& type = graph_.value(a).type.tensor;
    return type.is_ranked && std::all_of(type.dims.begin(), type.dims.end() - 1,
                                         [](int64_t size) { return size == 1; });
  }

  // Of the loops around a region that are inside another one around it.
  NodeId outermost_loop(RegionId inside, RegionId outside) const {
    NodeId loop;
    while (inside != outside) {
      const NodeId owner = graph_.region(inside).owner;
      EDDY_CHECK(!owner.is_none()) << "a value is read outside of its region";
      if (graph_.node(owner).kind == NodeKind::kWhile) loop = owner;
      inside = graph_.node(owner).region;
    }
    return loop;
  }

  const Graph& graph_;
  const PackOptions options_;
};

class MatrixPacker : public GraphCopier {
 public:
  MatrixPacker(const Graph& source, GraphBuilder& builder, const std::vector<Product>& products,
               std::set<NodeId> unread, const PackOptions& options)
      : GraphCopier(source, builder), unread_(std::move(unread)), options_(options) {
    for (const Product& product : products) {
      by_node_[product.node] = &product;
      if (!product.loop.is_none()) before_[product.loop].push_back(&product);
    }
  }
  size_t num_packed() const { return packed_nodes_.size(); }
  size_t num_turned() const { return turned_nodes_.size(); }

 private:
  void exec(NodeId id) override {
    if (const auto found = by_node_.find(id); found != by_node_.end()) return emit(*found->second);
    if (!unread_.contains(id)) copy_exec(id);
  }

  void loop(NodeId id) override {
    if (const auto found = before_.find(id); found != before_.end()) {
      for (const Product* product : found->second) {
        if (product->is_packed) {
          pack(product->b);
        } else if (product->b.is_turned) {
          turn(product->b.matrix);
        }
      }
    }
    copy_loop(id);
  }

  void turn(ValueId matrix) {
    if (turned_.contains(matrix)) return;
    turned_[matrix] = {
        builder_.op("Transpose", {value(matrix)}, {{"perm", std::vector<int64_t>{1, 0}}}), depth_};
  }

  void pack(const Layout& b) {
    if (packed_.contains(b)) return;
    const Attributes how = {{"width", options_.panel_width}, {"turned", int64_t{b.is_turned}}};
    OpOptions options{.domain = "eddy", .opset_version = 1};
    packed_[b] = {builder_.op("PackMatrix", {value(b.matrix)}, how, std::move(options)), depth_};
  }

  void emit(const Product& product) {
    const Node& node = source_.node(product.node);
    if (product.is_packed) {
      const auto found = packed_.find(product.b);
      if (found != packed_.end()) return emit_packed(product, found->second.matrix);
      return copy_exec(product.node);
    }
    turned_nodes_.insert(product.node);
    std::vector<Value> inputs = values(node.inputs);
    inputs[1] = product.b.is_turned ? turned_[product.b.matrix].matrix : value(product.b.matrix);
    Attributes attributes = node.attributes;
    if (attributes.has("transB")) attributes.set("transB", int64_t{0});
    copy_exec(product.node, inputs, node.device, std::move(attributes));
  }

  void emit_packed(const Product& product, Value packed) {
    packed_nodes_.insert(product.node);
    const Node& node = source_.node(product.node);
    std::vector<Value> inputs = values(node.inputs);
    inputs[1] = packed;
    const Dims& dims = source_.value(product.b.matrix).type.tensor.dims;
    const Attributes how = {{"columns", dims[product.b.is_turned ? 0 : 1]},
                            {"width", options_.panel_width}};
    OpOptions options{.name = name_of(product.node),
                      .domain = "eddy",
                      .opset_version = 1,
                      .device = node.device,
                      .output_names = {source_.value(node.outputs[0]).name}};
    define(node.outputs[0], builder_.op("PackedMatMul", inputs, how, std::move(options)));
  }

  // What is laid out lives as long as its matrix and the region that it stands in.
  void defined(ValueId id, Value) override {
    turned_.erase(id);
    packed_.erase({id, false});
    packed_.erase({id, true});
  }
  void begin_region() override { ++depth_; }
  void end_region() override {
    --depth_;
    const auto is_gone = [&](const auto& each) { return each.second.depth > depth_; };
    std::erase_if(turned_, is_gone);
    std::erase_if(packed_, is_gone);
  }

  struct LaidOut {
    Value matrix;
    int depth = 0;  // regions around it
  };

  const std::set<NodeId> unread_;
  const PackOptions options_;
  std::map<NodeId, const Product*> by_node_;
  std::map<NodeId, std::vector<const Product*>> before_;  // by the loop
  std::map<ValueId, LaidOut> turned_;
  std::map<Layout, LaidOut> packed_;
  int depth_ = 0;
  std::set<NodeId> packed_nodes_, turned_nodes_;
};

}  // namespace

Result<PackedGraph> pack_before_loops(Graph graph, const OpTable& ops, const PackOptions& options) {
  const ProductFinder finder(graph, options);
  const std::vector<Product> products = finder.find();
  if (products.empty()) return PackedGraph{std::move(graph)};
  GraphBuilder builder(ops, graph.name());
  MatrixPacker packer(graph, builder, products, finder.find_unread(products), options);
  packer.run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph packed, builder.finish());
  return PackedGraph{std::move(packed), packer.num_turned(), packer.num_packed()};
}

}  // namespace eddy
