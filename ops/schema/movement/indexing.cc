#include <string>

#include "ops/schema/families.h"
#include "ops/schema/movement/indexing_batch.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

// The ranks of `data` and `indices` must agree (GatherElements, ScatterElements).
Status check_same_rank(const TensorType& data, const TensorType& indices, int64_t axis) {
  if (data.is_ranked) EDDY_RETURN_IF_ERROR(normalize_axis(axis, data.dims.rank()).take_status());
  if (!data.is_ranked || !indices.is_ranked || data.dims.rank() == indices.dims.rank()) {
    return Status::ok();
  }
  return invalid_argument("data and indices must have the same rank, not " + to_string(data.dims) +
                          " and " + to_string(indices.dims));
}

// Every dimension of indices but the axis must lie within that of data.
Status check_within(const Dims& data, const Dims& indices, int axis) {
  for (int d = 0; d < data.rank(); ++d) {
    if (d == axis || data[d] < 0 || indices[d] <= data[d]) continue;
    return invalid_argument("indices " + to_string(indices) + " exceed data " + to_string(data) +
                            " on axis " + text(d));
  }
  return Status::ok();
}

Status infer_gather_elements(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  const int64_t axis = context.attributes().get_int("axis", 0);
  EDDY_RETURN_IF_ERROR(check_same_rank(*data, *indices, axis));
  if (data->is_ranked && indices->is_ranked) {
    EDDY_ASSIGN_OR_RETURN(const int normal, normalize_axis(axis, data->dims.rank()));
    EDDY_RETURN_IF_ERROR(check_within(data->dims, indices->dims, normal));
  }
  TensorType type = *indices;
  type.element = data->element;
  context.set_output(0, type);
  return Status::ok();
}

// The length of one index tuple: known and between 1 and the rank that is left.
Status tuple_length(const Dims& data, const Dims& indices, int64_t batch, int64_t& length) {
  if (indices.rank() < 1) return invalid_argument("indices must have at least one dimension");
  length = indices[indices.rank() - 1];
  if (length < 0) return Status::ok();
  if (length < 1 || length > data.rank() - batch) {
    return invalid_argument("the index tuples of " + to_string(indices) + " have " + text(length) +
                            " entries, but data " + to_string(data) + " takes 1 to " +
                            text(data.rank() - batch));
  }
  return Status::ok();
}

Status check_batch(const Dims& data, const Dims& indices, int64_t batch) {
  if (batch < 0) {
    return invalid_argument("batch_dims must not be negative: " + text(batch));
  }
  if (batch >= data.rank() || batch >= indices.rank()) {
    return invalid_argument("batch_dims " + text(batch) + " must be less than the ranks of data " +
                            to_string(data) + " and indices " + to_string(indices));
  }
  for (int d = 0; d < batch; ++d) {
    if (!merge_dim(data[d], indices[d])) {
      return invalid_argument("data " + to_string(data) + " and indices " + to_string(indices) +
                              " differ in batch dimension " + text(d));
    }
  }
  return Status::ok();
}

Status infer_gather_nd(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  context.set_output(0, TensorType(data->element));
  if (!data->is_ranked || !indices->is_ranked) return Status::ok();
  const int64_t batch = context.attributes().get_int("batch_dims", 0);
  EDDY_RETURN_IF_ERROR(check_batch(data->dims, indices->dims, batch));
  int64_t length = kUnknownDim;
  EDDY_RETURN_IF_ERROR(tuple_length(data->dims, indices->dims, batch, length));
  if (length < 0) return Status::ok();
  Dims dims;
  for (int d = 0; d + 1 < indices->dims.rank(); ++d) dims.push_back(indices->dims[d]);
  for (int d = static_cast<int>(batch + length); d < data->dims.rank(); ++d) {
    EDDY_RETURN_IF_ERROR(push_dim(dims, data->dims[d]));
  }
  return set_checked_output(context, 0, data->element, dims);
}

// none in every opset that has it, add and mul from 16, max and min from 18; only numbers combine.
Status check_reduction(const InferContext& context, ElementType element) {
  const std::string_view name = context.attributes().get_string("reduction", "none");
  const int opset = context.opset_version();
  if (name == "none") return Status::ok();
  const bool is_known =
      name == "add" || name == "mul" || ((name == "max" || name == "min") && opset >= 18);
  if (is_known && (kNumericTypes.contains(element) || element == ElementType::kUndefined)) {
    return Status::ok();
  }
  if (is_known) {
    return unsupported("reduction '" + std::string(name) + "' combines numbers, not " +
                       std::string(element_type_name(element)));
  }
  return invalid_argument("reduction '" + std::string(name) +
                          "' is none of none, add, mul and (from opset 18) max, min");
}

Status infer_scatter_elements(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  EDDY_ASSIGN_OR_RETURN(const TensorType* updates, tensor_input(context, 2));
  EDDY_RETURN_IF_ERROR(check_reduction(context, data->element));
  const int64_t axis = context.attributes().get_int("axis", 0);
  EDDY_RETURN_IF_ERROR(check_same_rank(*data, *indices, axis));
  if (data->element != updates->element) {
    return invalid_argument("data and updates must have the same element type");
  }
  TensorType expected = *indices;
  expected.element = updates->element;
  if (!is_compatible(*updates, expected)) {
    return invalid_argument("indices and updates must have the same shape, not " +
                            to_string(indices->dims) + " and " + to_string(updates->dims));
  }
  if (data->is_ranked && indices->is_ranked) {
    EDDY_ASSIGN_OR_RETURN(const int normal, normalize_axis(axis, data->dims.rank()));
    EDDY_RETURN_IF_ERROR(check_within(data->dims, indices->dims, normal));
  }
  context.set_output(0, *data);
  return Status::ok();
}

// updates must be indices' batch, then data's dimensions behind the tuple.
Status check_updates(const Dims& data, const Dims& indices, int64_t length, const Dims& updates) {
  Dims expected;
  for (int d = 0; d + 1 < indices.rank(); ++d) expected.push_back(indices[d]);
  for (int d = static_cast<int>(length); d < data.rank(); ++d) {
    EDDY_RETURN_IF_ERROR(push_dim(expected, data[d]));
  }
  const ElementType any = ElementType::kFloat;
  if (is_compatible(TensorType(any, updates), TensorType(any, expected))) return Status::ok();
  return invalid_argument("updates must be " + to_string(expected) + ", not " + to_string(updates));
}

Status infer_scatter_nd(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  EDDY_ASSIGN_OR_RETURN(const TensorType* updates, tensor_input(context, 2));
  EDDY_RETURN_IF_ERROR(check_reduction(context, data->element));
  if (data->element != updates->element) {
    return invalid_argument("data and updates must have the same element type");
  }
  if (data->is_ranked && indices->is_ranked) {
    int64_t length = kUnknownDim;
    EDDY_RETURN_IF_ERROR(tuple_length(data->dims, indices->dims, 0, length));
    if (length >= 0 && updates->is_ranked) {
      EDDY_RETURN_IF_ERROR(check_updates(data->dims, indices->dims, length, updates->dims));
    }
  }
  context.set_output(0, *data);
  return Status::ok();
}

Status infer_non_zero(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  const int64_t rank = data->is_ranked ? data->dims.rank() : kUnknownDim;
  context.set_output(0, TensorType(ElementType::kInt64, {rank, kUnknownDim}));
  return Status::ok();
}

Status top_k_count(const InferContext& context, int64_t& k) {
  if (context.attributes().has("k")) {
    k = context.attributes().get_int("k", 0);
  } else if (const TensorView* view = context.value_or_null(1)) {
    EDDY_RETURN_IF_ERROR(read_int(*view, "K", k));
  } else {
    return Status::ok();
  }
  return k < 0 ? invalid_argument("K is negative: " + text(k)) : Status::ok();
}

Status infer_top_k(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  int64_t k = kUnknownDim;
  EDDY_RETURN_IF_ERROR(top_k_count(context, k));
  TensorType values = *data;
  if (data->is_ranked) {
    EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(context.attributes().get_int("axis", -1),
                                                         data->dims.rank()));
    if (data->dims[axis] >= 0 && k > data->dims[axis]) {
      return invalid_argument("K is " + text(k) + ", but axis " + text(axis) + " of " +
                              to_string(data->dims) + " has only " + text(data->dims[axis]));
    }
    values.dims[axis] = k;
  }
  TensorType indices = values;
  indices.element = ElementType::kInt64;
  context.set_output(0, values);
  context.set_output(1, indices);
  return Status::ok();
}

Status infer_cum_sum(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  if (const TensorView* view = context.value_or_null(1)) {
    int64_t axis = 0;
    EDDY_RETURN_IF_ERROR(read_int(*view, "axis", axis));
    if (data->is_ranked) {
      EDDY_RETURN_IF_ERROR(normalize_axis(axis, data->dims.rank()).take_status());
    }
  }
  context.set_output(0, *data);
  return Status::ok();
}

Status infer_reverse_sequence(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  const int64_t batch = context.attributes().get_int("batch_axis", 1);
  const int64_t time = context.attributes().get_int("time_axis", 0);
  if (!(batch == 0 && time == 1) && !(batch == 1 && time == 0)) {
    return invalid_argument("batch_axis and time_axis must be 0 and 1 or 1 and 0, not " +
                            text(batch) + " and " + text(time));
  }
  if (data->is_ranked && data->dims.rank() < 2) {
    return invalid_argument("the input must have at least two dimensions, not " +
                            to_string(data->dims));
  }
  const int64_t samples = data->is_ranked ? data->dims[static_cast<int>(batch)] : kUnknownDim;
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "sequence_lens", {{samples, "batch"}}));
  context.set_output(0, *data);
  return Status::ok();
}

Status infer_compress(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "condition", {"entries"}));
  TensorType type = *data;
  if (!context.attributes().has("axis")) {
    type = TensorType(data->element, {kUnknownDim});
  } else if (type.is_ranked) {
    EDDY_ASSIGN_OR_RETURN(
        const int axis, normalize_axis(context.attributes().get_int("axis", 0), type.dims.rank()));
    type.dims[axis] = kUnknownDim;
  }
  context.set_output(0, type);
  return Status::ok();
}

Status infer_unique(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* data, tensor_input(context, 0));
  TensorType type = *data;
  if (!context.attributes().has("axis")) {
    type = TensorType(data->element, {kUnknownDim});
  } else if (type.is_ranked) {
    EDDY_ASSIGN_OR_RETURN(
        const int axis, normalize_axis(context.attributes().get_int("axis", 0), type.dims.rank()));
    type.dims[axis] = kUnknownDim;
  }
  context.set_output(0, type);
  for (size_t i = 1; i < 4; ++i) {
    context.set_output(i, TensorType(ElementType::kInt64, {kUnknownDim}));
  }
  return Status::ok();
}

constexpr TypeSet kInt64Only = {ElementType::kInt64};
constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};
constexpr InputFlag kHost = InputFlag::kHostValue;

FormalAttribute an_int(const char* name, bool is_required = false) {
  return attribute(name, AttributeKind::kInt, is_required);
}
FormalAttribute a_string(const char* name) { return attribute(name, AttributeKind::kString); }

std::vector<OpDef> gathering() {
  return {
      {.name = "GatherElements",
       .since_version = 11,
       .inputs = {in("data"), in("indices", kIndexTypes)},
       .attributes = {an_int("axis")},
       .infer = infer_gather_elements,
       .batch = batch_gather_elements},
      {.name = "GatherND",
       .since_version = 11,
       .inputs = {in("data"), in("indices", kInt64Only)},
       .attributes = {since(12, an_int("batch_dims"))},
       .infer = infer_gather_nd,
       .batch = batch_gather_nd},
      {.name = "ReverseSequence",
       .since_version = 10,
       .inputs = {in("input"), in("sequence_lens", kInt64Only)},
       .attributes = {an_int("batch_axis"), an_int("time_axis")},
       .infer = infer_reverse_sequence,
       .batch = batch_reverse_sequence},
  };
}

std::vector<OpDef> scattering() {
  const std::vector<FormalInput> elements = {in("data"), in("indices", kIndexTypes), in("updates")};
  const std::vector<FormalInput> tuples = {in("data"), in("indices", kInt64Only), in("updates")};
  return {
      {.name = "Scatter",
       .since_version = 9,
       .inputs = elements,
       .attributes = {an_int("axis")},
       .infer = infer_scatter_elements,
       .in_place_inputs = 1,
       .batch = batch_scatter_elements},
      {.name = "ScatterElements",
       .since_version = 11,
       .inputs = elements,
       .attributes = {an_int("axis"), since(16, a_string("reduction"))},
       .infer = infer_scatter_elements,
       .in_place_inputs = 1,
       .batch = batch_scatter_elements},
      {.name = "ScatterND",
       .since_version = 11,
       .inputs = tuples,
       .attributes = {since(16, a_string("reduction"))},
       .infer = infer_scatter_nd,
       .in_place_inputs = 1,
       .batch = batch_scatter_nd},
  };
}

std::vector<OpDef> ordering() {
  return {
      {.name = "TopK",
       .since_version = 1,
       .inputs = {in("X", kFloatTypes)},
       .min_outputs = 1,
       .max_outputs = 2,
       .attributes = {an_int("axis"), an_int("k", true)},
       .infer = infer_top_k,
       .batch = batch_top_k},
      {.name = "TopK",
       .since_version = 10,
       .inputs = {in("X", kNumericTypes), in("K", kInt64Only, kHost)},
       .max_outputs = 2,
       .attributes = {an_int("axis"), since(11, flag("largest")), since(11, flag("sorted"))},
       .infer = infer_top_k,
       .batch = batch_top_k},
      // The axis moves no shape, but the kernel needs it where it is launched.
      {.name = "CumSum",
       .since_version = 11,
       .inputs = {in("x", kNumericTypes), in("axis", kIndexTypes, kHost)},
       .attributes = {flag("exclusive"), flag("reverse")},
       .infer = infer_cum_sum,
       .batch = batch_cum_sum},
      {.name = "CumProd",
       .since_version = 26,
       .inputs = {in("x", kNumericTypes), in("axis", kIndexTypes, kHost)},
       .attributes = {flag("exclusive"), flag("reverse")},
       .infer = infer_cum_sum,
       .batch = batch_cum_sum},
  };
}

std::vector<OpDef> selecting() {
  return {
      {.name = "NonZero",
       .since_version = 9,
       .inputs = {in("X")},
       .infer = infer_non_zero,
       .is_value_op = true,
       .batch = batch_never},
      {.name = "Compress",
       .since_version = 9,
       .inputs = {in("input"), in("condition", kBoolType)},
       .attributes = {an_int("axis")},
       .infer = infer_compress,
       .is_value_op = true,
       .batch = batch_compress},
      {.name = "Unique",
       .since_version = 11,
       .inputs = {in("X")},
       .max_outputs = 4,
       .attributes = {an_int("axis"), flag("sorted")},
       .infer = infer_unique,
       .is_value_op = true,
       .batch = batch_never},
  };
}

}  // namespace

Status add_indexing_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_schemas(table, gathering()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, scattering()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, ordering()));
  return add_schemas(table, selecting());
}

}  // namespace eddy
