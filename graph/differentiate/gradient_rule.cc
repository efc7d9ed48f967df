#include "graph/differentiate/gradient_rule.h"

#include <algorithm>
#include <tuple>

#include "graph/base/check.h"

namespace eddy {
namespace {

auto key_of(const GradientRule& rule) {
  return std::tuple(std::string_view(rule.domain), std::string_view(rule.op), rule.since_version);
}

bool has_bit(uint64_t bits, size_t i) { return (bits >> std::min<size_t>(i, 63)) & 1; }

const TensorType kUnknownType;

}  // namespace

const std::optional<GradientReads>& GradientRule::reads_of(size_t input) const {
  static const std::optional<GradientReads> kNone;
  return reads.empty() ? kNone : reads[std::min(input, reads.size() - 1)];
}

bool GradientRule::lacks_output(const Node& node) const {
  uint64_t named = 0;
  for (const std::optional<GradientReads>& each : reads) named |= each ? each->outputs : 0;
  for (size_t k = 0; k < 63 && named >> k != 0; ++k) {
    const bool has_output = k < node.outputs.size() && !node.outputs[k].is_none();
    if (has_bit(named, k) && !has_output) return true;
  }
  return false;
}

Status GradientTable::add(GradientRule rule) {
  const auto at = std::ranges::lower_bound(rules_, key_of(rule), {}, key_of);
  if (at != rules_.end() && key_of(*at) == key_of(rule)) {
    return invalid_argument("operator '" + rule.op + "' has two gradient rules since opset " +
                            std::to_string(rule.since_version) + "; add one");
  }
  rules_.insert(at, std::move(rule));
  return Status::ok();
}

const GradientRule* GradientTable::find_or_null(std::string_view domain, std::string_view op,
                                                int opset_version) const {
  auto at = std::ranges::upper_bound(rules_, std::tuple(domain, op, opset_version), {}, key_of);
  if (at == rules_.begin()) return nullptr;
  --at;
  return at->domain == domain && at->op == op ? &*at : nullptr;
}

void GradientTable::add_cheap(std::string_view domain,
                              std::initializer_list<std::string_view> ops) {
  for (const std::string_view op : ops) cheap_.emplace(domain, op);
}

bool GradientTable::is_cheap(const OpDef& op) const {
  return op.is_view || cheap_.contains({op.domain, op.name});
}

GradientContext::GradientContext(const Graph& source, GraphBuilder& builder, ForwardValues& forward,
                                 Call call)
    : source_(source),
      node_(source.node(call.node)),
      builder_(builder),
      forward_(forward),
      call_(std::move(call)) {
  EDDY_CHECK(call_.rule != nullptr) << node_.name << " has no rule";
  EDDY_DCHECK(call_.wants.size() == node_.inputs.size() &&
              call_.gradients.size() == node_.outputs.size())
      << node_.name << " is called with " << call_.gradients.size() << " adjoints";
  for (size_t i = 0; i < call_.wants.size(); ++i) {
    if (!call_.wants[i]) continue;
    const auto& reads = call_.rule->reads_of(i);
    EDDY_CHECK(reads.has_value()) << node_.name << " hands nothing back to input " << i;
    declared_.inputs |= reads->inputs;
    declared_.outputs |= reads->outputs;
    declared_.input_shapes |= reads->input_shapes;
    declared_.output_shapes |= reads->output_shapes;
  }
}

const TensorType& GradientContext::input_type(size_t i) const {
  return has_input(i) ? source_.value(node_.inputs[i]).type.tensor : kUnknownType;
}

const TensorType& GradientContext::output_type(size_t i) const {
  return i < num_outputs() ? source_.value(node_.outputs[i]).type.tensor : kUnknownType;
}

int GradientContext::rank_or_fail(const TensorType& type, std::string_view what) {
  if (!builder_.status().is_ok()) return -1;
  if (type.is_ranked) return type.dims.rank();
  fail(unsupported("the rank of " + std::string(what) + " must be known for the gradient of " +
                   op_name() + ": declare its shape"));
  return -1;
}

const Constant* GradientContext::input_constant_or_null(size_t i) const {
  if (!has_input(i)) return nullptr;
  const ValueInfo& info = source_.value(node_.inputs[i]);
  return info.origin == ValueOrigin::kConstant ? &source_.constant(info.constant) : nullptr;
}

Value GradientContext::input(size_t i) {
  if (!has_input(i)) return {};
  EDDY_CHECK(has_bit(declared().inputs, i) || input_constant_or_null(i) != nullptr)
      << "the gradient of " << op_name() << " reads input " << i << ", which its rule leaves out";
  if (!is_tensor(i) && source_.value(node_.inputs[i]).region != Graph::kRoot) {
    fail(unsupported("the gradient of " + op_name() +
                     " in a loop or branch needs the sizes of its elements: declare them, or use "
                     "the sequence outside"));
    return {};
  }
  return forward_.value(node_.inputs[i]);
}

Value GradientContext::output(size_t i) {
  EDDY_CHECK(i < num_outputs() && has_bit(declared().outputs, i))
      << "the gradient of " << op_name() << " reads output " << i << ", which its rule leaves out";
  return forward_.value(node_.outputs[i]);
}

Value GradientContext::input_shape(size_t i) {
  EDDY_CHECK(has_input(i) && has_bit(declared().input_shapes, i))
      << "the gradient of " << op_name() << " reads the shape of input " << i
      << ", which its rule leaves out";
  return forward_.shape(node_.inputs[i]);
}

Value GradientContext::output_shape(size_t i) {
  EDDY_CHECK(i < num_outputs() && has_bit(declared().output_shapes, i))
      << "the gradient of " << op_name() << " reads the shape of output " << i
      << ", which its rule leaves out";
  return forward_.shape(node_.outputs[i]);
}

Value GradientContext::gradient(size_t output) const {
  return output < call_.gradients.size() ? call_.gradients[output] : Value{};
}

Value GradientContext::gradient_or_zeros(size_t output) {
  const Value given = gradient(output);
  if (!given.is_none()) return given;
  return make_zeros(builder_, output_type(output).element, output_shape(output),
                    {.name = node_.name + "/grad/zeros", .opset_version = call_.opset});
}

void GradientContext::set_row_product(size_t i, Value left, Value right) {
  EDDY_CHECK(wants(i) && has_bit(call_.rule->row_products, i))
      << "input " << i << " of " << op_name() << " is no product of rows";
  if (!builder_.status().is_ok() || forward_.add_later(node_.inputs[i], left, right)) return;
  set_gradient(i, op("Gemm", {left, right}, {{"transA", int64_t{1}}}));
}

void GradientContext::set_gradient(size_t i, Value value) {
  EDDY_CHECK(wants(i)) << "nobody asked for the gradient of input " << i << " of " << op_name();
  if (!builder_.status().is_ok()) return;
  const ElementType made = builder_.type(value).tensor.element;
  if (made != input_type(i).element) {
    fail(internal_error("the gradient of input " + std::to_string(i) + " of " + op_name() + " is " +
                        std::string(element_type_name(made)) + ", the input is " +
                        std::string(element_type_name(input_type(i).element))));
    return;
  }
  forward_.add(node_.inputs[i], value);
}

Value GradientContext::take_sum(size_t i) {
  EDDY_CHECK(wants(i) && has_bit(declared().input_shapes, i))
      << "the sum of input " << i << " of " << op_name() << " needs its shape";
  return forward_.take_sum(node_.inputs[i]);
}

Value GradientContext::op(std::string_view name, std::span<const Value> inputs,
                          Attributes attributes) {
  return ops(name, inputs, std::move(attributes), 1)[0];
}

std::vector<Value> GradientContext::ops(std::string_view name, std::span<const Value> inputs,
                                        Attributes attributes, int num_outputs) {
  OpOptions options;
  options.name = node_.name + "/grad/" + std::string(name);
  options.opset_version = call_.opset;
  options.num_outputs = num_outputs;
  options.device = node_.device;
  return builder_.ops(name, inputs, std::move(attributes), std::move(options));
}

Value GradientContext::cast(Value value, ElementType element) {
  if (builder_.type(value).tensor.element == element) return value;
  return op("Cast", {value}, {{"to", static_cast<int64_t>(element)}});
}

Value GradientContext::number(ElementType element, double value) {
  switch (element) {
    case ElementType::kFloat:
      return builder_.scalar(static_cast<float>(value));
    case ElementType::kDouble:
      return builder_.scalar(value);
    case ElementType::kInt64:
      return builder_.scalar(static_cast<int64_t>(value));
    default:
      return cast(builder_.scalar(value), element);
  }
}

Value GradientContext::sum_to(Value value, const TensorType& from, size_t i) {
  const TensorType& to = input_type(i);
  if (!from.is_ranked || !to.is_ranked) return sum_by_shapes(value, i);
  const int added = from.dims.rank() - to.dims.rank();
  if (added < 0) return sum_by_shapes(value, i);
  std::vector<int64_t> axes, dropped;
  for (int axis = 0; axis < from.dims.rank(); ++axis) {
    if (axis < added) {
      axes.push_back(axis);
      dropped.push_back(axis);
      continue;
    }
    const int64_t wide = from.dims[axis], narrow = to.dims[axis - added];
    if (narrow == 1 && wide != 1) {
      axes.push_back(axis);
    } else if (narrow < 0 && (narrow == kUnknownDim || narrow != wide)) {
      return sum_by_shapes(value, i);  // 1 or the whole: known when it runs
    }
  }
  if (!axes.empty()) {
    value = op("ReduceSum", {value, int64s(axes)}, {{"keepdims", int64_t{1}}});
  }
  return dropped.empty() ? value : op("Squeeze", {value, int64s(dropped)});
}

// The axes are found while it runs: where the input's shape, ones put before it, is another.
Value GradientContext::sum_by_shapes(Value value, size_t i) {
  const Value to = input_shape(i);
  const Value from = op("Shape", {value});
  const Value one = int64s({1});
  const Value added = op("Sub", {op("Shape", {from}), op("Shape", {to})});
  const Value padded = op("Concat", {op("Expand", {one, added}), to}, {{"axis", int64_t{0}}});
  const Value differs = op("Not", {op("Equal", {padded, from})});
  const Value axes = op("Reshape", {op("NonZero", {differs}), int64s({-1})});
  const Value sum = op("ReduceSum", {value, axes},
                       {{"keepdims", int64_t{1}}, {"noop_with_empty_axes", int64_t{1}}});
  return op("Reshape", {sum, to});
}

void GradientContext::fail(Status status) {
  builder_.fail(std::move(status.prepend_path(node_.name)));
}

}  // namespace eddy
