// LinearAttention: a state for each head that every token changes and is then asked by.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

struct TokenSizes {
  int64_t batch = kUnknownDim, length = kUnknownDim;
};

// An input [batch, length, width]; learns its width, and merges the others.
Status read_tokens(const InferContext& context, size_t input, const char* name, TokenSizes& sizes,
                   int64_t& width) {
  width = kUnknownDim;
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
  if (!type->is_ranked) return Status::ok();
  const Dims& dims = type->dims;
  const std::optional<int64_t> batch =
      dims.rank() == 3 ? merge_dim(sizes.batch, dims[0]) : std::nullopt;
  const std::optional<int64_t> length =
      dims.rank() == 3 ? merge_dim(sizes.length, dims[1]) : std::nullopt;
  if (!batch || !length) {
    return bad_shape(name, dims, "must be [batch, length, width] as the other inputs");
  }
  sizes = {*batch, *length};
  width = dims[2];
  return Status::ok();
}

// The size of each head, where `width` is known.
Status split_heads(const char* name, int64_t width, int64_t heads, int64_t& each) {
  if (width >= 0 && width % heads != 0) {
    return invalid_argument(std::string(name) + " of width " + std::to_string(width) +
                            " does not fall into " + std::to_string(heads) + " heads");
  }
  each = width < 0 ? kUnknownDim : width / heads;
  return Status::ok();
}

Status read_rule(const InferContext& context, bool& decays, bool& corrects) {
  const std::string_view rule = context.attributes().get_string("update_rule", "gated_delta");
  decays = rule == "gated" || rule == "gated_delta";
  corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear") {
    return invalid_argument("update_rule must be linear, gated, delta or gated_delta, not '" +
                            std::string(rule) + "'");
  }
  if (decays && !context.has_input(4)) {
    return invalid_argument("update_rule " + std::string(rule) + " needs the input decay");
  }
  if (corrects && !context.has_input(5)) {
    return invalid_argument("update_rule " + std::string(rule) + " needs the input beta");
  }
  return Status::ok();
}

Status infer_linear_attention(InferContext& context) {
  bool decays, corrects;
  EDDY_RETURN_IF_ERROR(read_rule(context, decays, corrects));
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  const int64_t q_heads = context.attributes().get_int("q_num_heads", 0);
  const int64_t kv_heads = context.attributes().get_int("kv_num_heads", 0);
  if (kv_heads < 1 || q_heads < 1 || q_heads > INT32_MAX || q_heads % kv_heads != 0) {
    return invalid_argument("q_num_heads must be a multiple of kv_num_heads, not " +
                            std::to_string(q_heads) + " of " + std::to_string(kv_heads));
  }
  TokenSizes sizes;
  int64_t q_width, k_width, v_width, q_size, k_size, v_size;
  EDDY_RETURN_IF_ERROR(read_tokens(context, 0, "query", sizes, q_width));
  EDDY_RETURN_IF_ERROR(read_tokens(context, 1, "key", sizes, k_width));
  EDDY_RETURN_IF_ERROR(read_tokens(context, 2, "value", sizes, v_width));
  EDDY_RETURN_IF_ERROR(split_heads("query", q_width, q_heads, q_size));
  EDDY_RETURN_IF_ERROR(split_heads("key", k_width, kv_heads, k_size));
  EDDY_RETURN_IF_ERROR(split_heads("value", v_width, kv_heads, v_size));
  const std::optional<int64_t> size = merge_dim(q_size, k_size);
  if (!size) {
    return invalid_argument("the head sizes of query and key differ: " + std::to_string(q_size) +
                            " and " + std::to_string(k_size));
  }
  for (size_t i : {4, 5}) {
    int64_t width = kUnknownDim;
    if (!context.has_input(i)) continue;
    EDDY_RETURN_IF_ERROR(read_tokens(context, i, i == 4 ? "decay" : "beta", sizes, width));
    const int64_t other = i == 4 ? k_width : 1;
    if (!merge_dim(width, kv_heads) && !merge_dim(width, other)) {
      return invalid_argument(std::string(i == 4 ? "decay" : "beta") + " must have a width of " +
                              std::to_string(kv_heads) + " or " + std::to_string(other) + ", not " +
                              std::to_string(width));
    }
  }
  Dims state{sizes.batch, kv_heads, *size, v_size};
  ElementType state_element = context.input(0).tensor.element;
  if (context.has_input(3)) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* past, tensor_input(context, 3));
    state_element = past->element;
    if (past->is_ranked && !may_equal(past->dims, state)) {
      return bad_shape("past_state", past->dims, "must be " + to_string(state));
    }
  }
  const int64_t y_width = v_size < 0 ? kUnknownDim : q_heads * v_size;
  context.set_output(
      0, TensorType(context.input(0).tensor.element, Dims{sizes.batch, sizes.length, y_width}));
  context.set_output(1, TensorType(state_element, state));
  return Status::ok();
}

}  // namespace

Status add_linear_attention_schemas(OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  return add_schemas(
      table, {{.name = "LinearAttention",
               .since_version = 27,
               .inputs = {in("query", kFloatTypes), in("key", kFloatTypes),
                          in("value", kFloatTypes), in("past_state", kFloatTypes, optional),
                          in("decay", kFloatTypes, optional), in("beta", kFloatTypes, optional)},
               .max_outputs = 2,
               .attributes = {attribute("chunk_size", kInt), attribute("kv_num_heads", kInt, true),
                              attribute("q_num_heads", kInt, true), attribute("scale", kFloat),
                              attribute("update_rule", kString)},
               .infer = infer_linear_attention}});
}

}  // namespace eddy
