// EmbedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization and
// SimplifiedLayerNormalization as functions: sums, then LayerNormalization or RMSNormalization over
// the last axis.
#include <string>
#include <string_view>

#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr float kEpsilon = 1e-12f;

float epsilon_of(const Expansion& e) { return e.attributes().get_float("epsilon", kEpsilon); }

// The skipped values may lack the batch, or have it once.
bool is_skip_of(const Dims& skip, const Dims& x) {
  const int lacks = x.rank() - skip.rank();
  bool fits = skip.rank() >= 2 && lacks >= 0;
  for (int i = 0; fits && i < skip.rank(); ++i) {
    const bool is_batch = x.rank() == 3 && i + lacks == 0;
    fits = (is_batch && skip[i] == 1) || merge_dim(skip[i], x[i + lacks]).has_value();
  }
  return fits;
}

Status infer_skip(InferContext& context, const char* op, bool has_beta) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* skip, tensor_input(context, 1));
  context.set_output(0, TensorType(x->element));
  context.set_output(1, TensorType(ElementType::kFloat));
  context.set_output(2, TensorType(ElementType::kFloat));
  context.set_output(3, TensorType(x->element));
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  if (rank != 2 && rank != 3) {
    return invalid_argument("input of " + std::string(op) + " must have 2 or 3 dimensions, not " +
                            to_string(x->dims));
  }
  if (skip->is_ranked && !is_skip_of(skip->dims, x->dims)) {
    return bad_shape(
        "skip", skip->dims,
        "must be " + to_string(x->dims) + ", or that without a batch or with one of 1");
  }
  const int64_t hidden = x->dims[rank - 1];
  EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "gamma", {{hidden, "columns"}}));
  if (has_beta) EDDY_RETURN_IF_ERROR(expect_shape(context, 3, "beta", {{hidden, "columns"}}));
  return expect_shape(context, has_beta ? 4 : 3, "bias", {{hidden, "columns"}});
}

Status infer_skip_layer(InferContext& context) {
  return infer_skip(context, "SkipLayerNormalization", true);
}
Status infer_skip_simplified(InferContext& context) {
  return infer_skip(context, "SkipSimplifiedLayerNormalization", false);
}

Status infer_simplified(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  context.set_output(1, TensorType(ElementType::kFloat));
  const int64_t stash = context.attributes().get_int("stash_type", 1);
  if (stash != 1) {
    return unsupported("stash_type must be 1 (float), not " + std::to_string(stash));
  }
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -1), rank));
  if (axis == rank - 1) return expect_shape(context, 1, "scale", {{x->dims[axis], "columns"}});
  return unsupported("axis of SimplifiedLayerNormalization must be the last, not " +
                     std::to_string(axis) + " of " + std::to_string(rank));
}

// In float, as its nodes are of the model's opset, which may not have RMSNormalization.
void expand_simplified(Expansion& e) {
  constexpr float kPlainEpsilon = 1e-5f;
  const Value x = e.cast(e.input(0), ElementType::kFloat);
  const Value square = e.op("ReduceMean", {e.op("Mul", {x, x}), e.int64s({-1})});
  const float epsilon = e.attributes().get_float("epsilon", kPlainEpsilon);
  const Value sum =
      e.op("Add", {square, e.number(ElementType::kFloat, static_cast<double>(epsilon))});
  const Value inverse = e.op("Reciprocal", {e.op("Sqrt", {sum})});
  const Value normal = e.cast(e.op("Mul", {x, inverse}), e.element(e.input(0)));
  e.set_output(0, e.op("Mul", {normal, e.input(1)}));
  e.set_output(1, inverse);
}

Value sum_with_skip(Expansion& e, size_t bias) {
  const Value sum = e.op("Add", {e.input(0), e.input(1)});
  return e.has_input(bias) ? e.op("Add", {sum, e.input(bias)}) : sum;
}

void expand_skip_layer(Expansion& e) {
  const Value sum = sum_with_skip(e, 4);
  const Value inputs[] = {sum, e.input(2), e.input(3)};
  const auto normal = e.ops("LayerNormalization", inputs, {{"epsilon", epsilon_of(e)}}, 3);
  for (size_t i = 0; i < 3; ++i) e.set_output(i, normal[i]);
  e.set_output(3, sum);
}

void expand_skip_simplified(Expansion& e) {
  const Value sum = sum_with_skip(e, 3);
  e.set_output(0, e.op("RMSNormalization", {sum, e.input(2)}, {{"epsilon", epsilon_of(e)}}));
  e.set_output(3, sum);
  if (!e.wants(1)) return;
  const Value wide = e.cast(sum, ElementType::kFloat), last = e.int64s({-1});
  e.set_output(1, e.op("ReduceMean", {wide, last}));
  if (!e.wants(2)) return;
  const Value square = e.op("ReduceMean", {e.op("Mul", {wide, wide}), last});
  const Value epsilon = e.number(ElementType::kFloat, static_cast<double>(epsilon_of(e)));
  e.set_output(2, e.op("Reciprocal", {e.op("Sqrt", {e.op("Add", {square, epsilon})})}));
}

Status expect_ids(const InferContext& context, size_t i, std::string_view name, const Dims& ids) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  if (!type->is_ranked) return Status::ok();
  const bool fits = type->dims.rank() == 2 &&
                    (type->dims[0] == 1 || merge_dim(type->dims[0], ids[0])) &&
                    merge_dim(type->dims[1], ids[1]);
  if (fits) return Status::ok();
  return invalid_argument(std::string(name) + " of shape " + to_string(type->dims) +
                          " do not fit input_ids of shape " + to_string(ids));
}

Status infer_embed(InferContext& context) {
  if (context.has_input(1) != context.has_input(4)) {
    return invalid_argument("segment_ids and segment_embedding go together, but one is missing");
  }
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 2, 7));
  int64_t hidden = kUnknownDim;
  for (const size_t i : {2, 3, 4}) {
    if (!context.has_input(i)) continue;
    EDDY_ASSIGN_OR_RETURN(const TensorType* table, tensor_input(context, i));
    if (!table->is_ranked) continue;
    const auto both =
        table->dims.rank() == 2 ? merge_dim(hidden, table->dims[1]) : std::optional<int64_t>();
    if (!both) {
      return invalid_argument("the embeddings must be matrices of equally many columns, not " +
                              to_string(table->dims));
    }
    hidden = *both;
  }
  EDDY_RETURN_IF_ERROR(expect_shape(context, 5, "gamma", {{hidden, "columns"}}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 6, "beta", {{hidden, "columns"}}));
  const ElementType element = context.input(2).tensor.element;
  context.set_output(0, TensorType(element));
  context.set_output(1, TensorType(ElementType::kInt32));
  context.set_output(2, TensorType(element));
  EDDY_ASSIGN_OR_RETURN(const TensorType* ids, tensor_input(context, 0));
  if (!ids->is_ranked) return Status::ok();
  if (ids->dims.rank() != 2) {
    return invalid_argument("input_ids must be [batch, length], not " + to_string(ids->dims));
  }
  EDDY_RETURN_IF_ERROR(expect_ids(context, 1, "segment_ids", ids->dims));
  EDDY_RETURN_IF_ERROR(expect_ids(context, 7, "the entries of mask", ids->dims));
  return expect_ids(context, 8, "position_ids", ids->dims);
}

// Rows of the position embedding: those asked for, or the first ones.
Value positions_of(Expansion& e) {
  if (e.has_input(8)) return e.op("Gather", {e.input(3), e.input(8)});
  return e.op("Slice", {e.input(3), e.int64s({0}), e.sizes(e.input(0), 1, 2), e.int64s({0})});
}

void expand_embed(Expansion& e) {
  Value sum = e.op("Add", {e.op("Gather", {e.input(2), e.input(0)}), positions_of(e)});
  if (e.has_input(4)) sum = e.op("Add", {sum, e.op("Gather", {e.input(4), e.input(1)})});
  e.set_output(
      0, e.op("LayerNormalization", {sum, e.input(5), e.input(6)}, {{"epsilon", epsilon_of(e)}}));
  e.set_output(2, sum);
  if (!e.wants(1)) return;
  // How many ones the mask has in each row; 0 without a mask.
  const Value one = e.number(ElementType::kInt32, 1);
  const Value count =
      e.has_input(7)
          ? e.op("ReduceSum",
                 {e.cast(e.op("Equal", {e.input(7), one}), ElementType::kInt32), e.int64s({1})},
                 {{"keepdims", int64_t{0}}})
          : e.op("Expand", {e.number(ElementType::kInt32, 0), e.sizes(e.input(0), 0, 1)});
  e.set_output(1, count);
}

}  // namespace

Status add_microsoft_normalizations(OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  const TypeSet ids = {ElementType::kInt32};
  const auto floats = [](const char* name) { return in(name, kFloatTypes); };
  const auto maybe = [&](const char* name) { return in(name, kFloatTypes, optional); };
  return add_schemas(
      table,
      {{.name = "EmbedLayerNormalization",
        .domain = kMicrosoft,
        .inputs = {in("input_ids", ids), in("segment_ids", ids, optional), floats("word_embedding"),
                   floats("position_embedding"), maybe("segment_embedding"), floats("gamma"),
                   floats("beta"), in("mask", ids, optional), in("position_ids", ids, optional)},
        .max_outputs = 3,
        .attributes = {attribute("epsilon", kFloat), attribute("mask_index_type", kInt)},
        .infer = infer_embed,
        .expand = expand_embed},
       {.name = "SkipLayerNormalization",
        .domain = kMicrosoft,
        .inputs = {floats("input"), floats("skip"), floats("gamma"), maybe("beta"), maybe("bias")},
        .max_outputs = 4,
        .attributes = {attribute("epsilon", kFloat)},
        .infer = infer_skip_layer,
        .expand = expand_skip_layer},
       {.name = "SkipSimplifiedLayerNormalization",
        .domain = kMicrosoft,
        .inputs = {floats("input"), floats("skip"), floats("gamma"), maybe("bias")},
        .max_outputs = 4,
        .attributes = {attribute("epsilon", kFloat)},
        .infer = infer_skip_simplified,
        .expand = expand_skip_simplified},
       // Files have it in ONNX's own domain, to which it does not belong.
       {.name = "SimplifiedLayerNormalization",
        .inputs = {floats("X"), floats("scale")},
        .max_outputs = 2,
        .attributes = {attribute("axis", kInt), attribute("epsilon", kFloat),
                       attribute("stash_type", kInt)},
        .infer = infer_simplified,
        .expand = expand_simplified}});
}

}  // namespace eddy
