#include "graph/compile/simplify.h"

#include <algorithm>
#include <map>
#include <optional>

#include "graph/base/check.h"
#include "graph/compile/constant_pool.h"
#include "graph/compile/copy_graph.h"
#include "graph/compile/equal_nodes.h"
#include "graph/compile/folded_results.h"
#include "graph/compile/liveness.h"
#include "graph/ir/checked_call.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

class Simplifier : public GraphCopier {
 public:
  Simplifier(const Graph& source, GraphBuilder& builder, const OpTable& ops,
             const SimplifyOptions& options)
      : GraphCopier(source, builder),
        ops_(ops),
        options_(options),
        is_live_(live_nodes(source)),
        is_read_(read_values(source)),
        fuses_(ops.find_or_null("eddy", "DequantizeMatMul", 1) != nullptr) {
    size_t constant_bytes = 0;
    for (uint32_t c = 0; c < source.num_constants(); ++c) {
      constant_bytes += source.constant(ConstantId(c)).view().size_bytes();
    }
    fold_bytes_left_ = options.max_folded_bytes_in_all + 2 * constant_bytes;
    fold_work_left_ = options.max_folded_work + kWorkPerByte * static_cast<double>(constant_bytes);
  }

  void run() {
    GraphCopier::run();
    folded_.give_to(builder_);
  }

 private:
  // Weights are dequantized, transposed and joined: a few passes over each.
  static constexpr double kWorkPerByte = 16;
  // The work of one evaluation at least: a kernel is bound, about a microsecond.
  static constexpr double kWorkPerNode = 256;

  // The value of the new graph that stands for `id`; constants are added when first used.
  Value value(ValueId id) override {
    if (id.is_none()) return {};
    const ValueInfo& info = source_.value(id);
    if (info.origin != ValueOrigin::kConstant) {
      if (const auto weights = weights_.find(id); weights != weights_.end()) {
        // Another node reads the floats; not remembered, as below.
        const Node& node = source_.node(weights->second);
        const std::vector<Value> inputs = values(node.inputs);
        if (!fold(node, inputs)) copy_exec(weights->second, inputs, node.device);
      }
      return GraphCopier::value(id);
    }
    // Not remembered: a constant added inside a loop's body goes when the body is rebuilt.
    TensorView view = source_.constant(info.constant).view();
    view.data = const_cast<void*>(pool_.find_or_add(view));
    return builder_.constant_in_blob(view, info.name);
  }

  ValueType attribute_type(const ValueType& type) override { return substitute(type); }

  ValueType input_type(const ValueInfo& info) override {
    const ValueType type = substitute(info.type);
    const auto given = std::find_if(options_.input_dims.begin(), options_.input_dims.end(),
                                    [&](const auto& pair) { return pair.first == info.name; });
    if (given == options_.input_dims.end()) return type;
    const ValueType fixed = TensorType(type.tensor.element, given->second);
    if (is_compatible(fixed, type)) return fixed;
    builder_.fail(invalid_argument("input '" + info.name + "' is " + text_of(type, info.type) +
                                   " and can't have the shape " + to_string(given->second)));
    return type;
  }

  // As to_string, but with the names that the source has for symbols.
  std::string text_of(const ValueType& type, const ValueType& source_type) const {
    if (!type.is_tensor() || !type.tensor.is_ranked) return to_string(type);
    std::string text(element_type_name(type.tensor.element));
    text += "[";
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      const int64_t dim = type.tensor.dims[axis];
      text += axis > 0 ? "," : "";
      text += dim >= 0             ? std::to_string(dim)
              : dim == kUnknownDim ? "?"
                                   : source_.symbol(source_type.tensor.dims[axis]);
    }
    return text + "]";
  }

  ValueType substitute(ValueType type) {
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      const int64_t dim = type.tensor.dims[axis];
      if (dim >= kUnknownDim) continue;
      const std::string& name = source_.symbol(dim);
      const auto known = std::find_if(options_.dims.begin(), options_.dims.end(),
                                      [&](const auto& pair) { return pair.first == name; });
      type.tensor.dims[axis] = known == options_.dims.end() ? builder_.symbol(name) : known->second;
    }
    return type;
  }

  std::vector<NodeId> order(RegionId region) override {
    std::vector<NodeId> nodes = GraphCopier::order(region);
    std::erase_if(nodes, [&](NodeId id) { return !is_live_[id.index()]; });
    return nodes;
  }

  bool may_go_on() override {
    if (!builder_.status().is_ok()) return false;
    if (!options_.check) return true;
    Status status = options_.check();
    if (status.is_ok()) return true;
    builder_.fail(std::move(status));
    return false;
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (options_.evaluate && fuses_ && (keep_bytes(id) || multiply_bytes(node))) return;
    const std::vector<Value> inputs = values(node.inputs);
    if (options_.evaluate && fold(node, inputs)) return;
    if (options_.evaluate && disappears(node, inputs)) return;
    if (options_.evaluate && repeats(node, inputs)) return;
    copy_exec(id, inputs, node.device);
    if (options_.evaluate) equals_.add(builder_, node, inputs, values(node.outputs));
  }

  void begin_region() override { equals_.open(); }
  void end_region() override { equals_.close(); }

  // An equal node is there: its results stand for this one's, too.
  bool repeats(const Node& node, std::span<const Value> inputs) {
    const std::vector<Value>* known = equals_.find_or_null(builder_, node, inputs);
    if (known == nullptr) return false;
    define_all(node.outputs, *known);
    return true;
  }

  // Large weights that a model keeps in bytes and dequantizes stay in bytes for now: as floats
  // they take four times the memory, and products can read them as they are.
  bool keep_bytes(NodeId id) {
    const Node& node = source_.node(id);
    if (!node.op->domain.empty() || node.op->name != "DequantizeLinear") return false;
    const std::vector<Value> inputs = values(node.inputs);
    EDDY_DCHECK(inputs.size() >= 2) << node.name << " has no scale";
    const Constant* bytes = builder_.constant_or_null(inputs[0]);
    const Constant* scale = builder_.constant_or_null(inputs[1]);
    const bool has_zero = inputs.size() > 2 && !inputs[2].is_none();
    const Constant* zero = has_zero ? builder_.constant_or_null(inputs[2]) : nullptr;
    if (bytes == nullptr || scale == nullptr || (has_zero && zero == nullptr)) return false;
    const bool is_byte =
        bytes->element == ElementType::kInt8 || bytes->element == ElementType::kUint8;
    const int64_t axis = node.attributes.get_int("axis", 1);
    const bool is_by_column = scale->dims.rank() == 1 && (axis == 1 || axis == -1);
    if (!is_byte || bytes->dims.rank() != 2 || scale->element != ElementType::kFloat ||
        node.attributes.get_int("block_size", 0) != 0 ||
        (scale->dims.count() != 1 && !is_by_column) ||
        (has_zero && zero->dims.count() != scale->dims.count()) ||
        source_.value(node.outputs[0]).type.tensor.element != ElementType::kFloat ||
        bytes->view().size_bytes() * sizeof(float) < FoldedResults::kMinBytes) {
      return false;
    }
    weights_[node.outputs[0]] = id;
    return true;
  }

  // MatMul by such weights.
  bool multiply_bytes(const Node& node) {
    if (!node.op->domain.empty() || node.op->name != "MatMul") return false;
    EDDY_DCHECK(node.inputs.size() == 2) << node.name << " multiplies two matrices";
    const auto weights = weights_.find(node.inputs[1]);
    if (weights == weights_.end() || weights_.contains(node.inputs[0])) return false;
    std::vector<Value> inputs = {value(node.inputs[0])};
    if (builder_.constant_or_null(inputs[0]) != nullptr) return false;
    for (ValueId id : source_.node(weights->second).inputs) inputs.push_back(value(id));
    define_all(node.outputs, builder_.ops("DequantizeMatMul", inputs, {},
                                          {.name = node.name,
                                           .domain = "eddy",
                                           .opset_version = 1,
                                           .device = node.device,
                                           .output_names = {source_.value(node.outputs[0]).name}}));
    return true;
  }

  // Dropout that drops nothing, and whose mask is not read; of one whose other inputs may break its
  // rule the run has to say so.
  bool is_idle_dropout(const Node& node, std::span<const Value> inputs) const {
    if (node.op->name != "Dropout" || !node.op->domain.empty()) return false;
    if (node.outputs.size() > 1 && is_read_[node.outputs[1].index()]) return false;
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (!inputs[i].is_none() && !builder_.type(inputs[i]).is_static_tensor()) return false;
    }
    if (node.op->since_version < 7) return node.attributes.get_int("is_test", 0) != 0;
    if (inputs.size() < 3 || inputs[2].is_none()) return true;
    const Constant* is_training = builder_.constant_or_null(inputs[2]);
    return is_training != nullptr && is_training->dims.count() == int64_t{1} &&
           *is_training->view().as<uint8_t>() == 0;
  }

  // Identity and friends: the output is the input.
  bool disappears(const Node& node, std::span<const Value> inputs) {
    if (inputs.empty() || inputs[0].is_none()) return false;
    if (is_idle_dropout(node, inputs)) {
      define(node.outputs[0], inputs[0]);
      return true;
    }
    if (node.outputs.size() != 1) return false;
    const ValueType& in = builder_.type(inputs[0]);
    const std::string& op = node.op->name;
    if (is_checked_call(node) && is_settled(node, inputs)) {
      define(node.outputs[0], inputs[0]);
      return true;
    }
    if (!node.op->domain.empty()) return false;
    bool same = op == "Identity";
    if (op == "Cast") {
      same = in.tensor.element == static_cast<ElementType>(node.attributes.get_int("to", 0));
    } else if (node.op->is_view && !same) {
      same = has_same_type(node, inputs);
    }
    if (same) define(node.outputs[0], inputs[0]);
    return same;
  }

  bool has_same_type(const Node& node, std::span<const Value> inputs) {
    const ValueType& in = builder_.type(inputs[0]);
    if (!in.is_tensor() || !in.tensor.is_static()) return false;
    for (size_t i = 1; i < inputs.size(); ++i) {  // axes that are not known may be wrong
      const bool is_known = inputs[i].is_none() || builder_.constant_or_null(inputs[i]) != nullptr;
      if (!is_known) return false;
    }
    std::vector<ValueType> outputs(1);
    return with_context(node, inputs, outputs, [&](InferContext& context) {
      return infer_types(*node.op, context).is_ok() && outputs[0] == in;
    });
  }

  bool is_settled(const Node& node, std::span<const Value> inputs) {
    std::vector<ValueType> outputs(1);
    return with_context(node, inputs, outputs, [&](const InferContext& context) {
      return is_settled_check(ops_, context);
    });
  }

  // What `use` makes of what is known of the node's inputs.
  template <typename Use>
  bool with_context(const Node& node, std::span<const Value> inputs, std::span<ValueType> outputs,
                    const Use& use) {
    std::vector<const ValueType*> types;
    std::vector<TensorView> views(inputs.size());
    std::vector<const TensorView*> known;
    for (size_t i = 0; i < inputs.size(); ++i) {
      types.push_back(inputs[i].is_none() ? nullptr : &builder_.type(inputs[i]));
      const Constant* constant = builder_.constant_or_null(inputs[i]);
      if (constant != nullptr) views[i] = constant->view();
      known.push_back(constant != nullptr ? &views[i] : nullptr);
    }
    InferContext context(node.attributes, types, known, outputs, node.opset_version);
    return use(context);
  }

  // Evaluates the node when all it reads is known. False: it stays.
  bool fold(const Node& node, std::span<const Value> inputs) {
    if (node.op->is_value_op || inputs.empty() || draws_random_numbers(node)) return false;
    if (has_effects(node)) return false;
    std::vector<TensorView> views(inputs.size());
    std::vector<Dims> dims(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_none()) continue;
      const bool is_shape_only = has_flag(node.op->input_flags(i), InputFlag::kShapeOnly);
      const ValueType& type = builder_.type(inputs[i]);
      if (const Constant* constant = builder_.constant_or_null(inputs[i])) {
        views[i] = constant->view();
      } else if (is_shape_only && type.is_static_tensor()) {
        dims[i] = type.tensor.dims;
        views[i] = {nullptr, dims[i].data(), dims[i].rank(), type.tensor.element};
      } else {
        return false;
      }
    }
    if (const auto* known = folded_.find_or_null(node, views)) {
      borrow_outputs(node, *known);
      return true;
    }
    if (!is_affordable(node, views)) return false;
    auto results = options_.evaluate(node, views);
    if (!results.is_ok()) return false;
    EDDY_CHECK(results->size() == node.outputs.size())
        << node.name << " was evaluated to " << results->size() << " results";
    size_t bytes = 0;
    for (const OwnedTensor& result : *results) bytes += result.view().size_bytes();
    if (bytes >= FoldedResults::kMinBytes) {
      borrow_outputs(node, folded_.add(node, views, std::move(*results)));
      return true;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      define(node.outputs[i],
             builder_.constant((*results)[i].view(), source_.value(node.outputs[i]).name));
    }
    return true;
  }

  void borrow_outputs(const Node& node, std::span<const OwnedTensor> results) {
    EDDY_CHECK(results.size() >= node.outputs.size()) << node.name << " has results to borrow";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      define(node.outputs[i],
             builder_.constant_in_blob(results[i].view(), source_.value(node.outputs[i]).name));
    }
  }

  // Whether there are bytes left to store its results and work left to make them; takes both off.
  bool is_affordable(const Node& node, std::span<const TensorView> inputs) {
    std::vector<ValueType> types;
    std::vector<const ValueType*> pointers;
    std::vector<const TensorView*> known;
    types.reserve(inputs.size());
    double moved = 0;  // elements stepped through
    for (const TensorView& view : inputs) {
      types.push_back(view.is_omitted() ? ValueType()
                                        : TensorType(view.element, Dims(view.shape())));
      pointers.push_back(view.is_omitted() ? nullptr : &types.back());
      known.push_back(view.is_omitted() || view.data == nullptr ? nullptr : &view);
      if (known.back() != nullptr) moved += num_steps(view.shape());
    }
    std::vector<ValueType> outputs(node.outputs.size());
    InferContext context(node.attributes, pointers, known, outputs, node.opset_version);
    if (!infer_types(*node.op, context).is_ok()) return false;  // building it reports why
    size_t bytes = 0;
    if (!add_up(outputs, bytes, moved)) return false;
    const double operations = node.op->flops == nullptr ? 0 : node.op->flops(context, outputs);
    const double work = kWorkPerNode + std::max(moved, operations);
    if (bytes > std::min(options_.max_folded_bytes, fold_bytes_left_)) return false;
    if (!(work <= fold_work_left_)) return false;
    fold_bytes_left_ -= bytes;
    fold_work_left_ -= work;
    return true;
  }

  // Bytes and steps of all types; false where they are not known or exceed what is countable.
  static bool add_up(std::span<const ValueType> types, size_t& bytes, double& steps) {
    for (const ValueType& type : types) {
      const auto count = type.tensor.dims.count();
      size_t each = 0;
      if (!type.tensor.is_static() || !count ||
          __builtin_mul_overflow(static_cast<size_t>(*count),
                                 element_size_bytes(type.tensor.element), &each) ||
          __builtin_add_overflow(bytes, each, &bytes)) {
        return false;
      }
      steps += num_steps(type.tensor.dims.span());
    }
    return true;
  }

  // Elements; of an empty tensor, how many there would be without its zeros: kernels may step
  // through the other dimensions.
  static double num_steps(std::span<const int64_t> dims) {
    double product = 1;
    for (const int64_t dim : dims) product *= static_cast<double>(std::max<int64_t>(dim, 1));
    return product;
  }

  void loop(NodeId id) override {
    copy_loop(id);
    if (!builder_.status().is_ok()) return;
    auto& types = carried_types_[id];
    types.clear();
    for (const ValueId carried : LoopView(source_, id).carried()) {
      types.push_back(builder_.type(value(carried)));
    }
  }
  // When a loop around this one is rebuilt, this one need not be once for each of its rounds.
  std::vector<std::optional<ValueType>> carried_types(NodeId id) override {
    return carried_types_[id];
  }

  void branch(NodeId id) override {
    const Node& node = source_.node(id);
    const Value selector = value(node.inputs[0]);
    if (options_.evaluate && take_known_branch(node, selector)) return;
    copy_branch(id, selector);
  }

  bool take_known_branch(const Node& node, Value selector) {
    const Constant* constant = builder_.constant_or_null(selector);
    if (constant == nullptr || constant->dims.count() != 1) return false;
    int64_t chosen = 0;
    switch (constant->element) {
      case ElementType::kBool:
        chosen = *constant->view().as<uint8_t>() != 0;
        break;
      case ElementType::kInt32:
        chosen = *constant->view().as<int32_t>();
        break;
      case ElementType::kInt64:
        chosen = *constant->view().as<int64_t>();
        break;
      default:
        return false;
    }
    if (chosen < 0 || chosen >= static_cast<int64_t>(node.regions.size())) {
      if (node.default_region < 0) return false;  // the run decides: pass through, or an error
      chosen = node.default_region;
    }
    EDDY_CHECK(chosen >= 0 && chosen < static_cast<int64_t>(node.regions.size()))
        << "branch " << chosen << " of " << node.name;
    const RegionId region = node.regions[static_cast<size_t>(chosen)];
    nodes(region);
    define_all(node.outputs, values(source_.region(region).results));
    return true;
  }

  const OpTable& ops_;
  const SimplifyOptions& options_;
  const std::vector<bool> is_live_, is_read_;
  const bool fuses_;
  std::map<ValueId, NodeId> weights_;  // of the source: what dequantizes them
  ConstantPool pool_;
  FoldedResults folded_;
  EqualNodes equals_;
  size_t fold_bytes_left_ = 0;
  double fold_work_left_ = 0;
  std::map<NodeId, std::vector<std::optional<ValueType>>> carried_types_;  // as settled last
};

}  // namespace

namespace {

Status check_names(const Graph& graph, const SimplifyOptions& options) {
  for (const auto& given : options.input_dims) {
    const auto is_named = [&](ValueId id) { return graph.value(id).name == given.first; };
    if (std::none_of(graph.inputs().begin(), graph.inputs().end(), is_named)) {
      return invalid_argument("there is no input '" + given.first + "' to give the shape " +
                              to_string(given.second));
    }
  }
  return Status::ok();
}

// The symbols that a whole shape fixes, and with them the other values that they size. Sizes that
// were given by name stay.
void fix_symbols(const Graph& graph, SimplifyOptions& options) {
  for (const auto& [name, shape] : options.input_dims) {
    for (const ValueId id : graph.inputs()) {
      const TensorType& type = graph.value(id).type.tensor;
      if (graph.value(id).name != name || type.dims.rank() != shape.rank()) continue;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (type.dims[axis] >= kUnknownDim) continue;
        const std::string& symbol = graph.symbol(type.dims[axis]);
        const auto is_given = [&](const auto& pair) { return pair.first == symbol; };
        if (std::any_of(options.dims.begin(), options.dims.end(), is_given)) continue;
        options.dims.emplace_back(symbol, shape[axis]);
      }
    }
  }
}

}  // namespace

Result<Graph> simplify(Graph graph, const OpTable& ops, SimplifyOptions options) {
  EDDY_RETURN_IF_ERROR(check_names(graph, options));
  fix_symbols(graph, options);
  GraphBuilder builder(ops, graph.name());
  Simplifier(graph, builder, ops, options).run();
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
