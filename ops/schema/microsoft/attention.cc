// Attention and QAttention (one product projects to queries, keys and values) and
// MultiHeadAttention (they are given) as functions of the standard Attention.
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/heads.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kMaskTypes = {ElementType::kInt32};
constexpr InputFlag kOptional = InputFlag::kOptional;
constexpr const char* kOwnCaches = "let past and present be tensors of their own";

// A mask of 1, 2 or 3 dimensions whose first fits the batch.
Status expect_mask(const InferContext& context, size_t i, std::string_view name, int64_t batch) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* mask, tensor_input(context, i));
  if (!mask->is_ranked) return Status::ok();
  const Dims& dims = mask->dims;
  if (dims.rank() < 1 || dims.rank() > 3) {
    return bad_shape(name, dims,
                     "must be [batch], [2 * batch], [batch, keys] or "
                     "[batch, queries, keys]");
  }
  const bool is_known = batch >= 0 && dims[0] >= 0;
  const bool fits = dims[0] == batch || (dims.rank() == 1 ? dims[0] == 2 * batch : dims[0] == 1);
  if (!is_known || fits) return Status::ok();
  return bad_shape(name, dims, "does not fit a batch of " + std::to_string(batch));
}

// [batch or 1, heads or 1, queries, keys].
Status expect_score_bias(const InferContext& context, size_t i, int64_t heads) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* bias, tensor_input(context, i));
  if (!bias->is_ranked) return Status::ok();
  const Dims& dims = bias->dims;
  if (dims.rank() == 4 && (dims[1] == 1 || merge_dim(dims[1], heads))) return Status::ok();
  return bad_shape("attention_bias", dims,
                   "must be [batch or 1, " + std::to_string(heads) + " or 1, queries, keys]");
}

// The sizes of queries, keys and values of a projection to `columns`.
Status check_projection(const InferContext& context, int64_t heads, int64_t columns) {
  const std::span<const int64_t> sizes = context.attributes().get_ints("qkv_hidden_sizes");
  const std::string of = std::to_string(heads) + " heads";
  if (sizes.empty()) {
    if (columns < 0 || columns % (3 * heads) == 0) return Status::ok();
    return invalid_argument(std::to_string(columns) +
                            " columns of weights do not fall into queries, keys and values of " +
                            of);
  }
  if (sizes.size() != 3 || sizes[0] != sizes[1]) {
    return invalid_argument("qkv_hidden_sizes must be three sizes, the first two equal");
  }
  int64_t rest = columns;
  for (const int64_t size : sizes) {
    if (size < 1 || size > INT32_MAX || size % heads != 0) {
      return invalid_argument("size " + std::to_string(size) +
                              " of qkv_hidden_sizes does not fall into " + of);
    }
    rest -= size;
  }
  if (columns < 0 || rest == 0) return Status::ok();
  return invalid_argument("qkv_hidden_sizes do not add up to the " + std::to_string(columns) +
                          " columns of weights");
}

struct ProjectionInputs {
  size_t mask, past;
};

// What Attention and QAttention have in common: inputs 0 to 2 are the input, weights and bias.
Status infer_projected(InferContext& context, const ProjectionInputs& at, ElementType element) {
  int64_t heads;
  EDDY_RETURN_IF_ERROR(read_head_count(context, "num_heads", heads));
  EDDY_RETURN_IF_ERROR(refuse_attribute(context, "do_rotary", 0, "use RotaryEmbedding nodes"));
  EDDY_RETURN_IF_ERROR(refuse_attribute(context, "past_present_share_buffer", 0, kOwnCaches));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* weights, tensor_input(context, 1));
  context.set_output(0, TensorType(element));
  context.set_output(1, TensorType(element));
  if (x->is_ranked && x->dims.rank() != 3) {
    return bad_shape("input", x->dims, "must be [batch, length, size]");
  }
  int64_t columns = kUnknownDim;
  if (weights->is_ranked) {
    const bool fits =
        weights->dims.rank() == 2 && (!x->is_ranked || merge_dim(weights->dims[0], x->dims[2]));
    if (!fits) {
      return bad_shape(
          "weights", weights->dims,
          x->is_ranked ? "does not fit input of shape " + to_string(x->dims) : "must be a matrix");
    }
    columns = weights->dims[1];
  }
  EDDY_RETURN_IF_ERROR(check_projection(context, heads, columns));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "bias", {{columns, "columns"}}));
  EDDY_RETURN_IF_ERROR(
      expect_mask(context, at.mask, "mask_index", x->is_ranked ? x->dims[0] : kUnknownDim));
  return expect_shape(context, at.past, "past", {2, "batch", heads, "length", "head size"});
}

Status infer_attention(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  EDDY_RETURN_IF_ERROR(refuse_input(context, 6, "past_sequence_length", kOwnCaches));
  EDDY_RETURN_IF_ERROR(expect_score_bias(context, 5, context.attributes().get_int("num_heads", 1)));
  return infer_projected(context, {.mask = 3, .past = 4}, context.input(0).tensor.element);
}

Status infer_qattention(InferContext& context) {
  for (const size_t zero : {6, 7}) {
    if (!context.has_input(zero)) continue;
    if (context.input(zero).tensor.element == context.input(zero - 6).tensor.element) continue;
    return invalid_argument("input " + std::to_string(zero) +
                            ", a zero point, must have the type of input " +
                            std::to_string(zero - 6));
  }
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 3, "input_scale"));
  if (context.has_input(6)) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, 6, "input_zero_point"));
  }
  return infer_projected(context, {.mask = 5, .past = 8}, ElementType::kFloat);
}

// Addends of the scores, where there are any.
Value add_or_first(Expansion& e, Value a, Value b) {
  if (a.is_none()) return b;
  return b.is_none() ? a : e.op("Add", {a, b});
}

// Queries, keys and values stand side by side in `all`, [batch, length, sizes].
void expand_projected(Expansion& e, Value all, const ProjectionInputs& at, Value score_bias) {
  const std::span<const int64_t> sizes = e.attributes().get_ints("qkv_hidden_sizes");
  const Value list[] = {all, sizes.empty() ? Value{} : e.int64s(sizes)};
  Attributes split = {{"axis", int64_t{2}}};
  if (sizes.empty()) split.set("num_outputs", int64_t{3});
  const std::vector<Value> parts =
      e.ops("Split", std::span(list, sizes.empty() ? 1 : 2), std::move(split), 3);
  HeadAttention attention = {.q = parts[0],
                             .k = parts[1],
                             .v = parts[2],
                             .heads = e.attributes().get_int("num_heads", 1),
                             .is_causal = e.attributes().get_int("unidirectional", 0) != 0};
  Value keys = e.sizes(all, 1, 2);
  if (e.has_input(at.past)) {
    const Value past = e.input(at.past);
    const auto half = [&](int64_t i) {
      return e.op("Gather", {past, e.integer(static_cast<int64_t>(i))});
    };
    attention.past_k = half(0);
    attention.past_v = half(1);
    keys = e.op("Add", {keys, e.sizes(past, 3, 4)});
  }
  if (e.has_input(at.mask)) {
    attention.addend = mask_addend(e, e.input(at.mask), e.sizes(all, 0, 1), keys, e.element(all));
  }
  attention.addend = add_or_first(e, attention.addend, score_bias);
  const std::vector<Value> outputs = attend(e, attention, e.wants(1) ? 3 : 1);
  e.set_output(0, outputs[0]);
  if (!e.wants(1)) return;
  const Value first = e.int64s({0});
  const Value halves[] = {e.op("Unsqueeze", {outputs[1], first}),
                          e.op("Unsqueeze", {outputs[2], first})};
  e.set_output(1, e.op("Concat", halves, {{"axis", int64_t{0}}}));
}

void expand_attention(Expansion& e) {
  Value all = e.op("MatMul", {e.input(0), e.input(1)});
  if (e.has_input(2)) all = e.op("Add", {all, e.input(2)});
  expand_projected(e, all, {.mask = 3, .past = 4}, e.input(5));
}

void expand_qattention(Expansion& e) {
  const Value scalar = e.int64s(std::span<const int64_t>());
  const Value zero = e.has_input(6) ? e.op("Reshape", {e.input(6), scalar}) : Value{};
  const Value sums = e.op("MatMulInteger", {e.input(0), e.input(1), zero, e.input(7)});
  const Value scale = e.op("Mul", {e.op("Reshape", {e.input(3), scalar}), e.input(4)});
  const Value all = e.op("Mul", {e.cast(sums, ElementType::kFloat), scale});
  expand_projected(e, e.op("Add", {all, e.input(2)}), {.mask = 5, .past = 8}, {});
}

// MultiHeadAttention. Queries, keys and values come in one of these forms:
//   query, key, value   side by side; key and value by head where they are a cache
//   query, key          key [batch, length, heads, 2, size] holds the values, too
//   query               [batch, length, heads, 3, size] holds all
struct OperandRule {
  int64_t heads, batch;

  // Side by side, or packed `parts` times: returns the size of all heads.
  Status read(const InferContext& context, size_t i, std::string_view name, int64_t parts,
              int64_t& size) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    size = kUnknownDim;
    if (!type->is_ranked) return Status::ok();
    const Dims& dims = type->dims;
    if (dims.rank() > 0) {
      const auto both = merge_dim(batch, dims[0]);
      if (!both) return bad_shape(name, dims, "has another batch than query");
      batch = *both;
    }
    if (dims.rank() == 3 && parts == 1) {
      size = dims[2];
      if (size < 0 || size % heads == 0) return Status::ok();
      return bad_shape(name, dims, "does not fall into " + std::to_string(heads) + " heads");
    }
    if (dims.rank() == 4 && i > 0 && parts == 1 && merge_dim(dims[1], heads)) return Status::ok();
    if (dims.rank() == 5 && parts > 1 && merge_dim(dims[2], heads) && merge_dim(dims[3], parts)) {
      return Status::ok();
    }
    const std::string packed =
        "[batch, length, " + std::to_string(heads) + ", " + std::to_string(parts) + ", head size]";
    return bad_shape(name, dims, "must be " + (parts > 1 ? packed : "[batch, length, size]"));
  }
};

Status check_caches(const InferContext& context, int64_t heads) {
  if (context.has_input(6) != context.has_input(7)) {
    return invalid_argument("past_key and past_value go together, but one is missing");
  }
  const ExpectedShape shape = {"batch", heads, "length", "head size"};
  EDDY_RETURN_IF_ERROR(expect_shape(context, 6, "past_key", shape));
  return expect_shape(context, 7, "past_value", shape);
}

Status check_projection_bias(const InferContext& context, int64_t size) {
  if (!context.has_input(3)) return Status::ok();
  if (!context.has_input(2)) {
    return unsupported("bias goes with query, key and value by themselves, not with packed ones");
  }
  return expect_shape(context, 3, "bias", {{size, "values of query, key and value"}});
}

Status infer_multi_head(InferContext& context) {
  OperandRule rule = {.heads = 1, .batch = kUnknownDim};
  EDDY_RETURN_IF_ERROR(read_head_count(context, "num_heads", rule.heads));
  EDDY_RETURN_IF_ERROR(refuse_input(context, 8, "past_sequence_length", kOwnCaches));
  EDDY_RETURN_IF_ERROR(refuse_input(context, 9, "cache_indirection", kOwnCaches));
  const bool has_key = context.has_input(1), has_value = context.has_input(2);
  if (has_value && !has_key) return invalid_argument("value is given without key");
  int64_t q = kUnknownDim, k = kUnknownDim, v = kUnknownDim;
  EDDY_RETURN_IF_ERROR(rule.read(context, 0, "query", has_key ? 1 : 3, q));
  if (has_key) EDDY_RETURN_IF_ERROR(rule.read(context, 1, "key", has_value ? 1 : 2, k));
  if (has_value) EDDY_RETURN_IF_ERROR(rule.read(context, 2, "value", 1, v));
  if (!merge_dim(q, k)) {
    return invalid_argument("query and key must have one size, not " + std::to_string(q) + " and " +
                            std::to_string(k));
  }
  EDDY_RETURN_IF_ERROR(check_projection_bias(context, q < 0 || v < 0 ? kUnknownDim : 2 * q + v));
  EDDY_RETURN_IF_ERROR(expect_mask(context, 4, "key_padding_mask", rule.batch));
  EDDY_RETURN_IF_ERROR(expect_score_bias(context, 5, rule.heads));
  EDDY_RETURN_IF_ERROR(check_caches(context, rule.heads));
  const ElementType element = context.input(0).tensor.element;
  for (size_t i = 0; i < 4; ++i) context.set_output(i, TensorType(element));
  return Status::ok();
}

// Part i of a packed tensor, by head.
std::vector<Value> unpacked(Expansion& e, Value packed, int parts) {
  const Value list[] = {packed};
  std::vector<Value> values =
      e.ops("Split", list, {{"axis", int64_t{3}}, {"num_outputs", int64_t{parts}}}, parts);
  for (Value& value : values) {
    const Value one = e.op("Squeeze", {value, e.int64s({3})});
    value = e.op("Transpose", {one}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }
  return values;
}

// Adds the bias of the projections; keys and values by head have theirs already.
void add_projection_bias(Expansion& e, HeadAttention& attention, bool is_cache) {
  if (!e.has_input(3)) return;
  Value first = e.int64s({0});
  const auto add = [&](Value& x) {
    const Value last = e.op("Add", {first, e.sizes(x, 2, 3)});
    x = e.op("Add", {x, e.op("Slice", {e.input(3), first, last})});
    first = last;
  };
  add(attention.q);
  if (is_cache) return;
  add(attention.k);
  add(attention.v);
}

void expand_multi_head(Expansion& e) {
  HeadAttention attention = {.q = e.input(0),
                             .k = e.input(1),
                             .v = e.input(2),
                             .past_k = e.input(6),
                             .past_v = e.input(7),
                             .heads = e.attributes().get_int("num_heads", 1),
                             .is_causal = e.attributes().get_int("unidirectional", 0) != 0};
  const Value batch = e.sizes(e.input(0), 0, 1);
  if (!e.has_input(1)) {
    const std::vector<Value> parts = unpacked(e, e.input(0), 3);
    attention.q = parts[0], attention.k = parts[1], attention.v = parts[2];
    attention.is_side_by_side = false;
  } else if (!e.has_input(2)) {
    const std::vector<Value> parts = unpacked(e, e.input(1), 2);
    attention.k = parts[0], attention.v = parts[1];
    attention.q = split_heads(e, attention.q, attention.heads);
    attention.is_side_by_side = false;
  } else {
    const int key_rank = e.rank_or_fail(e.input(1), "key");
    const int value_rank = e.rank_or_fail(e.input(2), "value");
    if (key_rank != value_rank) {
      return e.fail(invalid_argument("key and value must have equally many dimensions, not " +
                                     std::to_string(key_rank) + " and " +
                                     std::to_string(value_rank)));
    }
    const bool is_cache = key_rank == 4;
    add_projection_bias(e, attention, is_cache);
    if (is_cache) attention.q = split_heads(e, attention.q, attention.heads);
    attention.is_side_by_side = !is_cache;
  }
  Value keys =
      e.sizes(attention.k, attention.is_side_by_side ? 1 : 2, attention.is_side_by_side ? 2 : 3);
  if (e.has_input(6)) keys = e.op("Add", {keys, e.sizes(e.input(6), 2, 3)});
  if (e.has_input(4)) {
    attention.addend = mask_addend(e, e.input(4), batch, keys, e.element(e.input(0)));
  }
  attention.addend = add_or_first(e, attention.addend, e.input(5));
  const int num_outputs = e.wants(3) ? 4 : e.wants(2) ? 3 : e.wants(1) ? 2 : 1;
  const std::vector<Value> outputs = attend(e, attention, num_outputs);
  for (size_t i = 0; i < outputs.size(); ++i) e.set_output(i, outputs[i]);
}

std::vector<FormalAttribute> attention_attributes() {
  return {attribute("num_heads", kInt, true), flag("unidirectional"),
          attribute("mask_filter_value", kFloat), attribute("scale", kFloat)};
}

}  // namespace

Status add_microsoft_attention(OpTable& table) {
  const TypeSet bytes = {ElementType::kInt8, ElementType::kUint8}, float32 = {ElementType::kFloat};
  const auto floats = [](const char* name) { return in(name, kFloatTypes); };
  const auto maybe = [](const char* name) { return in(name, kFloatTypes, kOptional); };
  const auto mask = [](const char* name) { return in(name, kMaskTypes, kOptional); };
  std::vector<FormalAttribute> projected = attention_attributes();
  projected.push_back(flag("do_rotary"));
  projected.push_back(flag("past_present_share_buffer"));
  std::vector<FormalAttribute> sized = projected;
  sized.push_back(attribute("qkv_hidden_sizes", kInts));
  sized.push_back(attribute("rotary_embedding_dim", kInt));
  return add_schemas(
      table,
      {{.name = "Attention",
        .domain = kMicrosoft,
        .inputs = {floats("input"), floats("weights"), maybe("bias"), mask("mask_index"),
                   maybe("past"), maybe("attention_bias"), mask("past_sequence_length")},
        .max_outputs = 2,
        .attributes = std::move(sized),
        .infer = infer_attention,
        .expand = expand_attention},
       {.name = "QAttention",
        .domain = kMicrosoft,
        .inputs = {in("input", bytes), in("weight", bytes), in("bias", float32),
                   in("input_scale", float32), in("weight_scale", float32), mask("mask_index"),
                   in("input_zero_point", bytes, kOptional),
                   in("weight_zero_point", bytes, kOptional), in("past", float32, kOptional)},
        .max_outputs = 2,
        .attributes = std::move(projected),
        .infer = infer_qattention,
        .expand = expand_qattention},
       {.name = "MultiHeadAttention",
        .domain = kMicrosoft,
        .inputs = {floats("query"), maybe("key"), maybe("value"), maybe("bias"),
                   mask("key_padding_mask"), maybe("attention_bias"), maybe("past_key"),
                   maybe("past_value"), mask("past_sequence_length"), mask("cache_indirection")},
        .max_outputs = 4,
        .attributes = attention_attributes(),
        .infer = infer_multi_head,
        .expand = expand_multi_head}});
}

}  // namespace eddy
