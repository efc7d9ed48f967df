#include "graph/compile/turn_before_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

struct Product {
  NodeId node;
  ValueId b;    // behind all transpositions
  NodeId loop;  // before which it is turned over; none: it is read as it lies
};

class ProductFinder {
 public:
  explicit ProductFinder(const Graph& graph) : graph_(graph) {}

  std::vector<Product> find() const {
    std::vector<Product> found;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (!is_here(node, "MatMul") && !is_here(node, "Gemm")) continue;
      Product product{.node = NodeId(n), .b = {}, .loop = {}};
      const bool is_turned = find_operand(node, product.b);
      if (!is_matrix_of_floats(product.b)) continue;
      if (is_turned ? find_loop(node, product) : product.b != node.inputs[1]) {
        found.push_back(product);
      }
    }
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
      while (value != product.b && --num_uses[value.index()] == 0) {
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
  bool find_loop(const Node& node, Product& product) const {
    const RegionId outside = graph_.value(product.b).region;
    product.loop = outermost_loop(node.region, outside);
    if (product.loop.is_none() || has_one_row(node.inputs[0])) return false;
    const bool is_read_turned = node.attributes.get_int("transB", 0) != 0;
    return is_read_turned ||
           !outermost_loop(graph_.value(node.inputs[1]).region, outside).is_none();
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
};

class MatrixTurner : public GraphCopier {
 public:
  MatrixTurner(const Graph& source, GraphBuilder& builder, const std::vector<Product>& products,
               std::set<NodeId> unread)
      : GraphCopier(source, builder), unread_(std::move(unread)) {
    for (const Product& product : products) {
      by_node_[product.node] = &product;
      if (!product.loop.is_none()) before_[product.loop].push_back(product.b);
    }
  }

 private:
  void exec(NodeId id) override {
    if (const auto found = by_node_.find(id); found != by_node_.end()) return emit(*found->second);
    if (!unread_.contains(id)) copy_exec(id);
  }

  void loop(NodeId id) override {
    if (const auto found = before_.find(id); found != before_.end()) {
      for (const ValueId b : found->second) turn(b);
    }
    copy_loop(id);
  }

  void turn(ValueId b) {
    if (turned_.contains(b)) return;
    turned_[b] = {builder_.op("Transpose", {value(b)}, {{"perm", std::vector<int64_t>{1, 0}}}),
                  depth_};
  }

  void emit(const Product& product) {
    const Node& node = source_.node(product.node);
    std::vector<Value> inputs = values(node.inputs);
    inputs[1] = product.loop.is_none() ? value(product.b) : turned_[product.b].matrix;
    Attributes attributes = node.attributes;
    if (attributes.has("transB")) attributes.set("transB", int64_t{0});
    copy_exec(product.node, inputs, node.device, std::move(attributes));
  }

  // What is turned over lives as long as its matrix and the region that it stands in.
  void defined(ValueId id, Value) override { turned_.erase(id); }
  void begin_region() override { ++depth_; }
  void end_region() override {
    --depth_;
    std::erase_if(turned_, [&](const auto& turned) { return turned.second.depth > depth_; });
  }

  struct Turned {
    Value matrix;
    int depth = 0;  // regions around it
  };

  const std::set<NodeId> unread_;
  std::map<NodeId, const Product*> by_node_;
  std::map<NodeId, std::vector<ValueId>> before_;  // by the loop
  std::map<ValueId, Turned> turned_;
  int depth_ = 0;
};

}  // namespace

Result<TurnedGraph> turn_before_loops(Graph graph, const OpTable& ops) {
  const ProductFinder finder(graph);
  const std::vector<Product> products = finder.find();
  if (products.empty()) return TurnedGraph{std::move(graph), 0};
  GraphBuilder builder(ops, graph.name());
  MatrixTurner(graph, builder, products, finder.find_unread(products)).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph turned, builder.finish());
  return TurnedGraph{std::move(turned), products.size()};
}

}  // namespace eddy
