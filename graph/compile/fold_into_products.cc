// long: each form of operand and epilogue, found and made.
#include "graph/compile/fold_into_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/base/check.h"
#include "graph/compile/only_readers.h"
#include "graph/compile/placed_copier.h"
#include "graph/compile/strided_place.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

using Order = std::vector<int64_t>;

// A Mul of a transposed operand by one number, which now comes before the product.
struct Scale {
  NodeId mul = {};
  ValueId turned = {}, number = {};
};

// A product and what becomes part of it; the new node stands where `last` stood.
struct Product {
  NodeId first, last;  // `first`: the MatMul or Conv
  const char* op;      // the new one
  ValueId a, b;
  ValueId bias = {};    // a constant of one entry for each column or filter
  ValueId addend = {};  // of the result's shape
  Order perm_a = {}, perm_b = {}, perm_y = {};
  Order place_a = {}, place_b = {};  // of PermutedMatMul
  Scale scale_a = {}, scale_b = {};
  double factor = 1;  // of the operands, together
  std::vector<NodeId> folded = {};
};

// Where an operand lies; in the orders of its axes or, where these do not say it, by strides.
struct Operand {
  ValueId root;
  Order perm = {}, place = {};
  Scale scale = {};
};

bool is_real(ElementType element) {
  return element == ElementType::kFloat || element == ElementType::kDouble ||
         element == ElementType::kFloat16 || element == ElementType::kBfloat16;
}

class ProductFinder {
 public:
  ProductFinder(const Graph& graph, const FoldIntoProductsOptions& options)
      : graph_(graph), options_(options), readers_(only_readers(graph)) {}

  std::vector<Product> find() {
    std::vector<Product> found;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      Product product{.first = NodeId(n),
                      .last = NodeId(n),
                      .op = "PermutedMatMul",
                      .a = ValueId(),
                      .b = ValueId()};
      bool is_placed = false;
      if (is_here(node, "MatMul") && is_plain(node)) {
        const Operand a = take_operand(product, node.inputs[0]);
        const Operand b = take_operand(product, node.inputs[1]);
        product.a = a.root, product.perm_a = a.perm, product.place_a = a.place;
        product.b = b.root, product.perm_b = b.perm, product.place_b = b.place;
        product.scale_a = a.scale, product.scale_b = b.scale;
        is_placed = a.root != node.inputs[0] || b.root != node.inputs[1];
        if (!take_result(product) && !is_cpu()) take_addends(product);
      } else if (is_here(node, "MatMul") && is_by_constant(node)) {
        take_split(product);
      } else if (is_here(node, "Conv") && is_cpu() && is_swapped(product)) {
        take_swaps(product);
      } else if (is_here(node, "Conv") && (!is_cpu() || is_product_of_groups(node))) {
        take_relu(product);
      }
      if (product.folded.empty() && !is_placed) continue;
      taken_.insert(product.folded.begin(), product.folded.end());
      taken_.insert(product.last);
      found.push_back(std::move(product));
    }
    find_unread(found);
    return found;
  }
  // What nobody reads any more, now that products read where it lay.
  const std::set<NodeId>& unread() const { return unread_; }

 private:
  void find_unread(const std::vector<Product>& products) {
    std::vector<uint32_t> uses = count_uses(graph_);
    for (const Product& product : products) {
      const Node& first = graph_.node(product.first);
      for (const auto& [operand, root] :
           {std::pair{first.inputs[0], product.a}, {first.inputs[1], product.b}}) {
        if (operand == root || passed_.empty()) continue;
        --uses[operand.index()];
        ++uses[root.index()];
      }
    }
    for (auto at = passed_.rbegin(); at != passed_.rend(); ++at) {  // readers first
      const Node& node = graph_.node(*at);
      const auto is_read = [&](ValueId output) {
        return !output.is_none() && uses[output.index()] != 0;
      };
      if (std::ranges::any_of(node.outputs, is_read)) continue;
      unread_.insert(*at);
      for (const ValueId input : node.inputs) {
        if (!input.is_none()) --uses[input.index()];
      }
    }
  }

  const Dims& dims(ValueId value) const { return graph_.value(value).type.tensor.dims; }

  bool is_here(const Node& node, std::string_view op) const {
    return node.kind == NodeKind::kExec && node.device == options_.device &&
           node.op->domain.empty() && node.op->name == op;
  }
  bool is_cpu() const { return options_.device.empty(); }
  // A and B are matrices of what the device folds.
  bool is_plain(const Node& node) const {
    const auto is_known = [&](ValueId value) {
      const ValueInfo& info = graph_.value(value);
      return info.type.is_tensor() && info.type.tensor.is_ranked && dims(value).rank() >= 2 &&
             (is_cpu() ? info.origin != ValueOrigin::kConstant : info.type.tensor.is_static());
    };
    const ElementType element = graph_.value(node.outputs[0]).type.tensor.element;
    if (!is_known(node.inputs[0]) || !is_known(node.inputs[1]) || !is_known(node.outputs[0]) ||
        !(is_cpu() ? element == ElementType::kFloat : is_real(element))) {
      return false;
    }
    // The CPU takes all matrices of A as one by a single B.
    return !is_cpu() || dims(node.inputs[1]).rank() > 2 || dims(node.inputs[0]).rank() == 2;
  }

  // A convolution of groups by constant windows of one element: a product for each.
  bool is_product_of_groups(const Node& conv) const {
    const ValueInfo &w = graph_.value(conv.inputs[1]), &x = graph_.value(conv.inputs[0]);
    const ValueInfo& y = graph_.value(conv.outputs[0]);
    if (w.origin != ValueOrigin::kConstant || !x.type.is_static_tensor() ||
        !y.type.is_static_tensor() || y.type.tensor.element != ElementType::kFloat ||
        conv.attributes.get_int("group", 1) == 1 || dims(conv.inputs[1])[1] == 1) {
      return false;
    }
    for (int axis = 2; axis < dims(conv.inputs[1]).rank(); ++axis) {
      const bool keeps_size = dims(conv.inputs[0])[axis] == dims(conv.outputs[0])[axis];
      if (dims(conv.inputs[1])[axis] != 1 || !keeps_size) return false;
    }
    return true;
  }

  // Where a library wants them at one distance, at most one axis of matrices.
  bool has_few_batch_axes(const Dims& product) const {
    int count = 0;
    for (int i = 0; i + 2 < product.rank(); ++i) count += product[i] != 1 ? 1 : 0;
    return count <= 1 || is_cpu();
  }

  Order order_of(const Node& transpose) const {
    const std::span<const int64_t> perm = transpose.attributes.get_ints("perm");
    Order order(perm.begin(), perm.end());
    const int rank = dims(transpose.outputs[0]).rank();
    for (int i = rank - 1; i >= 0 && perm.empty(); --i) order.push_back(i);
    return order;
  }

  // Rows or columns lie next to each other, by their order alone.
  static bool is_near(const Dims& dims, const Order& order) {
    return order.back() + 1 == dims.rank() || order[order.size() - 2] + 1 == dims.rank();
  }
  static bool is_near(const StridedPlace& place) {
    const size_t rank = place.dims.size();
    return place.strides[rank - 1] == 1 || place.strides[rank - 2] == 1;
  }

  // What the product reads instead of the operand.
  Operand take_operand(Product& product, ValueId operand) {
    if (is_cpu()) return take_transposed(product, operand);
    if (!has_few_batch_axes(dims(graph_.node(product.first).outputs[0]))) return {operand};
    const NodeId matmul = product.first;
    const StridedPlace place =
        find_place(graph_, operand, [&](NodeId id) { return may_pass(id, matmul); });
    if (place.root == operand || !is_near(place) || !spares_launch(place, operand, matmul)) {
      return {operand};
    }
    product.factor *= place.factor;
    passed_.insert(place.passed.begin(), place.passed.end());
    const Node& last = graph_.node(place.passed.front());
    if (place.passed.size() == 1 && last.op->name == "Transpose") {
      return {.root = place.root, .perm = order_of(last)};
    }
    Operand placed{.root = place.root, .place = {place.first}};
    for (size_t i = 0; i < place.dims.size(); ++i) {
      placed.place.insert(placed.place.end(), {place.dims[i], place.strides[i]});
    }
    return placed;
  }

  // What a factor scales, others may not read, for they would still need it.
  bool may_pass(NodeId id, NodeId matmul) const {
    const Node& node = graph_.node(id);
    const bool scales = node.op->name == "Mul" || node.op->name == "Div";
    return node.device == options_.device && node.region == graph_.node(matmul).region &&
           !taken_.contains(id) && !(scales && readers_[node.outputs[0].index()].is_none());
  }

  // Whether what moved or scaled the operand last, views aside, does so for the product alone.
  bool spares_launch(const StridedPlace& place, ValueId operand, NodeId matmul) const {
    NodeId reader = matmul;
    for (const NodeId id : place.passed) {
      if (readers_[operand.index()] != reader) return false;
      const Node& node = graph_.node(id);
      if (!node.op->is_view) return true;
      operand = node.inputs[0];
      reader = id;
    }
    return false;
  }

  // The CPU's. What scales the operand by one number comes before its Transpose then.
  Operand take_transposed(Product& product, ValueId operand) const {
    const NodeId mul = producer_or_none(operand);
    const std::optional<Scale> scale = scale_or_none(mul);
    if (!scale) return transpose_read_by(product.first, operand, product);
    if (readers_[operand.index()] != product.first || taken_.contains(mul)) return {operand};
    Operand taken = transpose_read_by(mul, scale->turned, product);
    if (taken.root == scale->turned) return {operand};
    product.folded.push_back(mul);
    taken.scale = *scale;
    return taken;
  }

  NodeId producer_or_none(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    return info.origin == ValueOrigin::kNodeOutput ? info.producer : NodeId();
  }

  std::optional<Scale> scale_or_none(NodeId mul) const {
    if (mul.is_none() || !is_here(graph_.node(mul), "Mul")) return std::nullopt;
    const Node& node = graph_.node(mul);
    for (size_t side = 0; side < 2; ++side) {
      const ValueId turned = node.inputs[side], number = node.inputs[1 - side];
      const NodeId transpose = producer_or_none(turned);
      const ValueType& type = graph_.value(number).type;
      if (transpose.is_none() || !is_here(graph_.node(transpose), "Transpose") ||
          !type.is_static_tensor() || type.tensor.dims.count() != int64_t{1} ||
          type.tensor.dims.rank() > dims(turned).rank()) {
        continue;
      }
      return Scale{mul, turned, number};
    }
    return std::nullopt;
  }

  // What the Transpose reads that makes the value for this reader alone; the value itself where
  // none does or it does not suit.
  Operand transpose_read_by(NodeId reader, ValueId value, Product& product) const {
    const NodeId transpose = producer_or_none(value);
    if (transpose.is_none() || taken_.contains(transpose) || readers_[value.index()] != reader) {
      return {value};
    }
    const Node& node = graph_.node(transpose);
    if (!is_here(node, "Transpose")) return {value};
    const ValueType& given = graph_.value(node.inputs[0]).type;
    if (!given.is_tensor() || !given.tensor.is_ranked) return {value};
    const Order order = order_of(node);
    if (!is_near(given.tensor.dims, order)) return {value};
    product.folded.push_back(transpose);
    return {.root = node.inputs[0], .perm = order};
  }

  bool take_result(Product& product) const {
    const ValueId made = graph_.node(product.first).outputs[0];
    const NodeId reader = readers_[made.index()];
    if (reader.is_none() || !is_here(graph_.node(reader), "Transpose")) return false;
    if (taken_.contains(reader)) return false;
    const Order order = order_of(graph_.node(reader));
    if (order.back() + 1 != dims(made).rank() || !has_few_batch_axes(dims(made))) return false;
    product.perm_y = order;
    take(product, reader);
    return true;
  }

  // The Transpose of an image's first two axes that makes the value; null: something else does.
  const Node* swap_or_null(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kNodeOutput) return nullptr;
    const Node& node = graph_.node(info.producer);
    const bool is_swap = is_here(node, "Transpose") && info.type.tensor.is_ranked &&
                         order_of(node) == Order{1, 0, 2, 3};
    return is_swap ? &node : nullptr;
  }

  // Whether all that the convolution of floats reads and what it makes is swapped.
  bool is_swapped(const Product& product) const {
    const Node& conv = graph_.node(product.first);
    const ValueInfo& made = graph_.value(conv.outputs[0]);
    const NodeId reader = readers_[conv.outputs[0].index()];
    return made.type.tensor.element == ElementType::kFloat && !reader.is_none() &&
           !taken_.contains(reader) && std::ranges::count_if(conv.inputs, is_given) == 2 &&
           conv.attributes.get_int("group", 1) == 1 && swap_or_null(conv.inputs[0]) != nullptr &&
           swap_or_null(conv.inputs[1]) != nullptr &&
           swap_or_null(graph_.node(reader).outputs[0]) != nullptr;
  }
  static bool is_given(ValueId input) { return !input.is_none(); }

  void take_swaps(Product& product) {
    const Node& conv = graph_.node(product.first);
    product.op = "SwappedConv";
    product.a = swap_or_null(conv.inputs[0])->inputs[0];
    product.b = swap_or_null(conv.inputs[1])->inputs[0];
    for (size_t i = 0; i < 2; ++i) passed_.insert(graph_.value(conv.inputs[i]).producer);
    take(product, readers_[conv.outputs[0].index()]);
  }

  // The CPU's product of floats by one constant matrix, whose columns it packs.
  bool is_by_constant(const Node& node) const {
    const ValueInfo &a = graph_.value(node.inputs[0]), &b = graph_.value(node.inputs[1]);
    return is_cpu() && options_.panel_columns > 0 && b.origin == ValueOrigin::kConstant &&
           b.type.tensor.element == ElementType::kFloat && dims(node.inputs[1]).rank() == 2 &&
           a.type.is_tensor() && a.type.tensor.is_ranked;
  }

  // A Split along the columns into parts of whole panels, and a constant row before it.
  void take_split(Product& product) const {
    const Node& matmul = graph_.node(product.first);
    const ValueId made = matmul.outputs[0];
    Product with = product;
    with.op = "SplitMatMul";
    with.a = matmul.inputs[0], with.b = matmul.inputs[1];
    ValueId sum = made;
    if (const NodeId add = add_behind(sum); !add.is_none() && is_bias(other_side(add, sum), made)) {
      with.bias = other_side(add, sum);
      take(with, add);
      sum = graph_.node(add).outputs[0];
    }
    const NodeId split = readers_[sum.index()];
    if (split.is_none() || taken_.contains(split) || !is_by_panels(graph_.node(split), sum)) return;
    take(with, split);
    product = std::move(with);
  }
  bool is_by_panels(const Node& split, ValueId value) const {
    if (!is_here(split, "Split")) return false;
    const int64_t axis = split.attributes.get_int("axis", 0);
    const int rank = dims(value).rank();
    if (axis != -1 && axis + 1 != rank) return false;
    int64_t column = 0;
    for (const ValueId part : split.outputs) {
      if (part.is_none() || column % options_.panel_columns != 0) return false;
      const int64_t columns = dims(part)[rank - 1];
      if (columns <= 0) return false;
      column += columns;
    }
    return true;
  }

  void take_addends(Product& product) const {
    const ValueId made = graph_.node(product.first).outputs[0];
    Product with = product;
    ValueId sum = made;
    if (const NodeId add = add_behind(sum); !add.is_none() && is_bias(other_side(add, sum), made)) {
      with.bias = other_side(add, sum);
      take(with, add);
      sum = graph_.node(add).outputs[0];
    }
    if (const NodeId add = add_behind(sum); !add.is_none()) {
      const ValueId other = other_side(add, sum);
      if (graph_.value(other).type == graph_.value(made).type) {
        with.addend = other;
        take(with, add);
        sum = graph_.node(add).outputs[0];
      }
    }
    const NodeId reader = readers_[sum.index()];
    const bool is_for_fuse = !reader.is_none() && graph_.node(reader).device == options_.device &&
                             options_.is_elementwise(graph_, reader);
    if (!is_for_fuse) product = std::move(with);
  }

  // A Relu behind a convolution with a constant bias, and a residual's Add between the two.
  void take_relu(Product& product) const {
    const Node& conv = graph_.node(product.first);
    if (conv.inputs.size() < 3 || conv.inputs[2].is_none() ||
        graph_.value(conv.inputs[2]).origin != ValueOrigin::kConstant ||
        !graph_.value(conv.outputs[0]).type.is_static_tensor()) {
      return;
    }
    Product with = product;
    with.op = "ConvRelu";
    with.a = conv.inputs[0], with.b = conv.inputs[1], with.bias = conv.inputs[2];
    ValueId sum = conv.outputs[0];
    if (const NodeId add = add_behind(sum); !add.is_none()) {
      const ValueId other = other_side(add, sum);
      if (graph_.value(other).type != graph_.value(sum).type) return;
      with.addend = other;
      take(with, add);
      sum = graph_.node(add).outputs[0];
    }
    const NodeId relu = readers_[sum.index()];
    if (relu.is_none() || !is_here(graph_.node(relu), "Relu")) return;
    take(with, relu);
    product = std::move(with);
  }

  static void take(Product& product, NodeId next) {
    product.folded.push_back(product.last);
    product.last = next;
  }

  // The Add that alone reads the value, makes its shape, and is in no other product.
  NodeId add_behind(ValueId value) const {
    const NodeId reader = readers_[value.index()];
    if (reader.is_none() || taken_.contains(reader)) return NodeId();
    const Node& node = graph_.node(reader);
    const bool is_sum = (is_here(node, "Add") && node.opset_version >= 7) ||
                        (is_here(node, "Sum") && node.inputs.size() == 2);
    const bool is_same = is_sum && graph_.value(node.outputs[0]).type == graph_.value(value).type;
    return is_same ? reader : NodeId();
  }
  ValueId other_side(NodeId add, ValueId value) const {
    const Node& node = graph_.node(add);
    return node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
  }
  // A constant [n], for a product of one matrix B.
  bool is_bias(ValueId value, ValueId product) const {
    const ValueInfo& info = graph_.value(value);
    return info.origin == ValueOrigin::kConstant && dims(value).rank() == 1 &&
           dims(value)[0] == dims(product)[dims(product).rank() - 1];
  }

  const Graph& graph_;
  const FoldIntoProductsOptions& options_;
  const std::vector<NodeId> readers_;
  std::set<NodeId> taken_;   // by the products found so far
  std::set<NodeId> passed_;  // between operands and where these lie
  std::set<NodeId> unread_;
};

class ProductFolder : public PlacedCopier {
 public:
  ProductFolder(const Graph& source, GraphBuilder& builder, const std::vector<Product>& products,
                const std::set<NodeId>& unread, const std::vector<uint32_t>& value_devices)
      : PlacedCopier(source, builder, value_devices), folded_(unread) {
    for (const Product& product : products) {
      by_last_[product.last] = &product;
      for (const NodeId folded : product.folded) folded_.insert(folded);
    }
  }

 private:
  void exec(NodeId id) override {
    if (const auto found = by_last_.find(id); found != by_last_.end()) return emit(*found->second);
    if (!folded_.contains(id)) copy_exec(id);
  }

  void emit(const Product& product) {
    const Node& first = source_.node(product.first);
    const ValueId made = source_.node(product.last).outputs[0];
    if (product.op == std::string_view("SplitMatMul")) return emit_split(product);
    const bool is_conv = first.op->name == "Conv";
    Attributes attributes = is_conv ? first.attributes : Attributes();
    const auto set = [&](const char* name, const Order& order) {
      if (!order.empty()) attributes.set(name, order);
    };
    set("perm_a", product.perm_a);
    set("perm_b", product.perm_b);
    set("perm_y", product.perm_y);
    set("place_a", product.place_a);
    set("place_b", product.place_b);
    if (product.factor != 1) attributes.set("alpha", static_cast<float>(product.factor));
    std::vector<Value> inputs = {scaled(product.a, product.scale_a, first.inputs[0]),
                                 scaled(product.b, product.scale_b, first.inputs[1])};
    const bool has_addend = !product.addend.is_none();
    if (has_addend || !product.bias.is_none()) {
      inputs.push_back(product.bias.is_none() ? Value() : value(product.bias));
    }
    if (has_addend) inputs.push_back(value(product.addend));
    define(made, builder_.op(product.op, inputs, std::move(attributes),
                             {.name = first.name,
                              .domain = "eddy",
                              .device = first.device,
                              .output_names = {source_.value(made).name}}));
  }

  void emit_split(const Product& product) {
    const Node& first = source_.node(product.first);
    const std::span<const ValueId> parts = source_.node(product.last).outputs;
    Attributes attributes;
    OpOptions options = {.name = first.name, .domain = "eddy", .device = first.device};
    Order sizes;
    for (const ValueId part : parts) {
      const Dims& dims = source_.value(part).type.tensor.dims;
      sizes.push_back(dims[dims.rank() - 1]);
      options.output_names.push_back(source_.value(part).name);
    }
    options.num_outputs = static_cast<int>(parts.size());
    attributes.set("split", sizes);
    std::vector<Value> inputs = {value(product.a), value(product.b)};
    if (!product.bias.is_none()) inputs.push_back(value(product.bias));
    const std::vector<Value> made =
        builder_.ops(product.op, inputs, std::move(attributes), std::move(options));
    for (size_t i = 0; i < parts.size(); ++i) define(parts[i], made[i]);
  }

  // The root times the number by which the operand, its transposition, was scaled.
  Value scaled(ValueId root, const Scale& scale, ValueId operand) {
    if (scale.mul.is_none()) return value(root);
    const Node& node = source_.node(scale.mul);
    const Value made = builder_.op("Mul", {value(root), value(scale.number)}, {},
                                   {.name = node.name, .device = node.device});
    set_as(operand, made);
    return made;
  }

  std::map<NodeId, const Product*> by_last_;
  std::set<NodeId> folded_;
};

}  // namespace

Result<FoldedProducts> fold_into_products(Graph graph, const OpTable& ops,
                                          std::vector<uint32_t> value_devices,
                                          const FoldIntoProductsOptions& options) {
  ProductFinder finder(graph, options);
  const std::vector<Product> products = finder.find();
  if (products.empty()) return FoldedProducts{std::move(graph), std::move(value_devices), 0};
  size_t num_folded = finder.unread().size();
  for (const Product& product : products) num_folded += product.folded.size();
  GraphBuilder builder(ops, graph.name());
  ProductFolder folder(graph, builder, products, finder.unread(), value_devices);
  EDDY_ASSIGN_OR_RETURN(PlacedCopy made, folder.finish(std::move(graph)));
  return FoldedProducts{std::move(made.graph), std::move(made.value_devices), num_folded};
}

}  // namespace eddy
