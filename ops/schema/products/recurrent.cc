// LSTM, GRU, RNN.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/products/recurrent_rules.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// Sizes from the inputs, each from the first input that has it.
struct Sizes {
  int64_t sequence = kUnknownDim, batch = kUnknownDim, input = kUnknownDim, hidden = kUnknownDim;
};

// Checks one dimension against what is expected of it; learns the size where it is not known.
Status agree(std::string_view input, const Dims& dims, int axis, int64_t& expected) {
  const std::optional<int64_t> both = merge_dim(dims[axis], expected);
  if (both) {
    expected = *both;
    return Status::ok();
  }
  return invalid_argument(std::string(input) + " must have size " + std::to_string(expected) +
                          " on axis " + std::to_string(axis) + ", not " + to_string(dims));
}

// Fails unless an input that is there and ranked has `rank` dimensions; null where it has none.
Status read_dims(const InferContext& context, size_t input, std::string_view name, int rank,
                 const Dims*& dims) {
  dims = nullptr;
  if (!context.has_input(input)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
  if (!type->is_ranked) return Status::ok();
  if (type->dims.rank() != rank) {
    return invalid_argument(std::string(name) + " must have " + std::to_string(rank) +
                            " dimensions, not " + to_string(type->dims));
  }
  dims = &type->dims;
  return Status::ok();
}

// The gates' dimension of a weight must be `factor` times the hidden size.
Status agree_gates(std::string_view input, const Dims& dims, int64_t factor, int64_t& hidden) {
  if (dims[1] < 0) return Status::ok();
  if (dims[1] % factor != 0) {
    return invalid_argument(std::string(input) + " must have " + std::to_string(factor) +
                            " times the hidden size on axis 1, not " + to_string(dims));
  }
  const std::optional<int64_t> both = merge_dim(dims[1] / factor, hidden);
  if (both) {
    hidden = *both;
    return Status::ok();
  }
  return invalid_argument(std::string(input) + " must have " + std::to_string(factor) + " x " +
                          std::to_string(hidden) + " values on axis 1, not " + to_string(dims));
}

Status read_weights(const InferContext& context, const RecurrentRules& rules, Sizes& sizes) {
  int64_t directions = rules.num_directions;
  const int gates = num_gates(rules.kind);
  const Dims* dims;
  EDDY_RETURN_IF_ERROR(read_dims(context, 1, "W", 3, dims));
  if (dims) {
    EDDY_RETURN_IF_ERROR(agree("W", *dims, 0, directions));
    EDDY_RETURN_IF_ERROR(agree_gates("W", *dims, gates, sizes.hidden));
    EDDY_RETURN_IF_ERROR(agree("W", *dims, 2, sizes.input));
  }
  EDDY_RETURN_IF_ERROR(read_dims(context, 2, "R", 3, dims));
  if (dims) {
    EDDY_RETURN_IF_ERROR(agree("R", *dims, 0, directions));
    EDDY_RETURN_IF_ERROR(agree_gates("R", *dims, gates, sizes.hidden));
    EDDY_RETURN_IF_ERROR(agree("R", *dims, 2, sizes.hidden));
  }
  EDDY_RETURN_IF_ERROR(read_dims(context, 3, "B", 2, dims));
  if (dims) {
    EDDY_RETURN_IF_ERROR(agree("B", *dims, 0, directions));
    EDDY_RETURN_IF_ERROR(agree_gates("B", *dims, 2 * gates, sizes.hidden));
  }
  if (rules.kind != RecurrentKind::kLstm) return Status::ok();
  EDDY_RETURN_IF_ERROR(read_dims(context, 7, "P", 2, dims));
  if (!dims) return Status::ok();
  EDDY_RETURN_IF_ERROR(agree("P", *dims, 0, directions));
  return agree_gates("P", *dims, 3, sizes.hidden);
}

Status read_state(const InferContext& context, const RecurrentRules& rules, size_t input,
                  std::string_view name, Sizes& sizes) {
  int64_t directions = rules.num_directions;
  const Dims* dims;
  EDDY_RETURN_IF_ERROR(read_dims(context, input, name, 3, dims));
  if (!dims) return Status::ok();
  EDDY_RETURN_IF_ERROR(agree(name, *dims, rules.batch_first ? 1 : 0, directions));
  EDDY_RETURN_IF_ERROR(agree(name, *dims, rules.batch_first ? 0 : 1, sizes.batch));
  return agree(name, *dims, 2, sizes.hidden);
}

Status check_elements(const InferContext& context) {
  const ElementType expected = context.input(0).tensor.element;
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (i == 4 || !context.has_input(i)) continue;  // sequence_lens are integers
    const ElementType found = context.input(i).tensor.element;
    if (found != expected) {
      return invalid_argument("input " + std::to_string(i) + " must be " +
                              std::string(element_type_name(expected)) + " like X, not " +
                              std::string(element_type_name(found)));
    }
  }
  return Status::ok();
}

Status infer_recurrent(RecurrentKind kind, InferContext& context) {
  RecurrentRules rules;
  EDDY_RETURN_IF_ERROR(parse_recurrent(kind, context.attributes(), rules));
  EDDY_RETURN_IF_ERROR(check_elements(context));
  Sizes sizes;
  if (rules.hidden_size > 0) sizes.hidden = rules.hidden_size;
  const Dims* dims;
  EDDY_RETURN_IF_ERROR(read_dims(context, 0, "X", 3, dims));
  if (dims) {
    sizes.sequence = (*dims)[rules.batch_first ? 1 : 0];
    sizes.batch = (*dims)[rules.batch_first ? 0 : 1];
    sizes.input = (*dims)[2];
  }
  EDDY_RETURN_IF_ERROR(read_weights(context, rules, sizes));
  EDDY_RETURN_IF_ERROR(read_dims(context, 4, "sequence_lens", 1, dims));
  if (dims) EDDY_RETURN_IF_ERROR(agree("sequence_lens", *dims, 0, sizes.batch));
  if (const TensorView* lengths = context.value_or_null(4)) {
    const std::span<const int32_t> values(lengths->as<int32_t>(),
                                          static_cast<size_t>(lengths->count()));
    EDDY_RETURN_IF_ERROR(check_lengths(values, sizes.sequence));
  }
  EDDY_RETURN_IF_ERROR(read_state(context, rules, 5, "initial_h", sizes));
  if (kind == RecurrentKind::kLstm) {
    EDDY_RETURN_IF_ERROR(read_state(context, rules, 6, "initial_c", sizes));
  }
  const ElementType element = context.input(0).tensor.element;
  const int64_t d = rules.num_directions;
  const bool batch_first = rules.batch_first;
  const Dims state =
      batch_first ? Dims{sizes.batch, d, sizes.hidden} : Dims{d, sizes.batch, sizes.hidden};
  context.set_output(
      0, TensorType(element, batch_first ? Dims{sizes.batch, sizes.sequence, d, sizes.hidden}
                                         : Dims{sizes.sequence, d, sizes.batch, sizes.hidden}));
  context.set_output(1, TensorType(element, state));
  if (kind == RecurrentKind::kLstm) context.set_output(2, TensorType(element, state));
  return Status::ok();
}

// An input that has the batch along `axis`, where it is given.
Status expect_batch(const BatchContext& context, size_t i, int axis) {
  if (!context.has_input(i) || (context.is_along(i) && context.axis(i) == axis)) {
    return Status::ok();
  }
  return unsupported("takes axis " + std::to_string(axis) + " of input " + std::to_string(i) +
                     " for samples, which don't lie there");
}

Status batch_recurrent(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  for (const size_t weights : {1, 2, 3, 7}) {
    if (context.is_along(weights)) return unsupported("takes weights that differ among samples");
  }
  const bool is_first = context.attributes().get_int("layout", 0) != 0;
  EDDY_RETURN_IF_ERROR(expect_batch(context, 0, is_first ? 0 : 1));
  EDDY_RETURN_IF_ERROR(expect_batch(context, 4, 0));
  for (const size_t state : {5, 6}) {
    EDDY_RETURN_IF_ERROR(expect_batch(context, state, is_first ? 0 : 1));
  }
  const Extent& each = context.input(0).each;
  context.set_outputs(Batched::along(is_first ? 0 : 1, each));
  context.set_output(0, Batched::along(is_first ? 0 : 2, each));
  return Status::ok();
}

double recurrent_flops(const InferContext& context, std::span<const ValueType>) {
  const Dims& x = context.input(0).tensor.dims;
  const double steps = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  const auto size = [&](size_t input) {
    return static_cast<double>(context.input(input).tensor.dims.count().value_or(0));
  };
  return 2.0 * steps * (size(1) + size(2));
}

OpDef recurrent(RecurrentKind kind, std::string name) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = 1;
  const InputFlag optional = InputFlag::kOptional;
  def.inputs = {in("X", kFloatTypes),
                in("W", kFloatTypes),
                in("R", kFloatTypes),
                in("B", kFloatTypes, optional),
                in("sequence_lens", {ElementType::kInt32}, optional),
                in("initial_h", kFloatTypes, optional)};
  def.attributes = {attribute("activation_alpha", kFloats),
                    attribute("activation_beta", kFloats),
                    attribute("activations", kStrings),
                    attribute("clip", kFloat),
                    attribute("direction", kString),
                    attribute("hidden_size", kInt),
                    since(14, flag("layout")),
                    until(6, flag("output_sequence"))};
  if (kind == RecurrentKind::kLstm) {
    def.inputs.push_back(in("initial_c", kFloatTypes, optional));
    def.inputs.push_back(in("P", kFloatTypes, optional));
    def.attributes.push_back(flag("input_forget"));
  }
  if (kind == RecurrentKind::kGru) {
    def.attributes.push_back(since(3, flag("linear_before_reset")));
  }
  def.min_outputs = 0;
  def.max_outputs = kind == RecurrentKind::kLstm ? 3 : 2;
  def.infer = [kind](InferContext& context) { return infer_recurrent(kind, context); };
  def.flops = recurrent_flops;
  def.batch = batch_recurrent;
  return def;
}

}  // namespace

Status add_recurrent_schemas(OpTable& table) {
  return add_schemas(
      table, {recurrent(RecurrentKind::kLstm, "LSTM"), recurrent(RecurrentKind::kGru, "GRU"),
              recurrent(RecurrentKind::kRnn, "RNN")});
}

}  // namespace eddy
