// Attention, RotaryEmbedding and TensorScatter: Q, K and V are [batch, heads, length, head size],
// or with heads side by side [batch, length, heads * head size].
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kMaskTypes = kNumericTypes | kBoolType;

// One of Q, K, V and the caches as [batch, heads, length, size]; what is not known stays unknown.
struct Operand {
  bool is_ranked = false;
  int64_t batch = kUnknownDim, heads = kUnknownDim, length = kUnknownDim, size = kUnknownDim;
};

// `heads` counts those that lie side by side in three dimensions; 0: not given.
Status read_operand(const InferContext& context, size_t input, std::string_view name, int64_t heads,
                    std::string_view attribute, Operand& operand) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
  operand.is_ranked = type->is_ranked;
  if (!type->is_ranked) return Status::ok();
  const Dims& dims = type->dims;
  if (dims.rank() == 4) {
    operand = {true, dims[0], dims[1], dims[2], dims[3]};
    if (heads == 0 || merge_dim(dims[1], heads)) return Status::ok();
    return bad_shape(name, dims,
                     "does not have " + std::to_string(heads) + " heads, as " +
                         std::string(attribute) + " says");
  }
  if (dims.rank() != 3) return bad_shape(name, dims, "must have 3 or 4 dimensions");
  if (heads == 0) {
    return bad_shape(name, dims, "has 3 dimensions and needs attribute " + std::string(attribute));
  }
  operand = {true, dims[0], heads, dims[1], kUnknownDim};
  if (dims[2] < 0) return Status::ok();
  if (dims[2] % heads != 0) {
    return bad_shape(name, dims, "does not fall into " + std::to_string(heads) + " heads");
  }
  operand.size = dims[2] / heads;
  return Status::ok();
}

Status merge_into(int64_t& a, int64_t b, std::string_view what) {
  const std::optional<int64_t> both = merge_dim(a, b);
  if (!both) {
    return invalid_argument(std::string(what) + " differ: " + std::to_string(a) + " and " +
                            std::to_string(b));
  }
  a = *both;
  return Status::ok();
}

Status read_heads(const InferContext& context, std::string_view name, int64_t& heads) {
  heads = context.attributes().get_int(name, 0);
  if (heads >= 0 && heads <= INT32_MAX) return Status::ok();
  return invalid_argument("attribute " + std::string(name) + " must be positive, not " +
                          std::to_string(heads));
}

struct AttentionSizes {
  Operand q, k, v;
  int64_t past = 0;  // keys of the cache
  int64_t total() const { return k.length < 0 || past < 0 ? kUnknownDim : k.length + past; }
};

Status read_sizes(const InferContext& context, AttentionSizes& sizes) {
  int64_t q_heads, kv_heads;
  EDDY_RETURN_IF_ERROR(read_heads(context, "q_num_heads", q_heads));
  EDDY_RETURN_IF_ERROR(read_heads(context, "kv_num_heads", kv_heads));
  auto& [q, k, v, past] = sizes;
  EDDY_RETURN_IF_ERROR(read_operand(context, 0, "Q", q_heads, "q_num_heads", q));
  EDDY_RETURN_IF_ERROR(read_operand(context, 1, "K", kv_heads, "kv_num_heads", k));
  EDDY_RETURN_IF_ERROR(read_operand(context, 2, "V", kv_heads, "kv_num_heads", v));
  EDDY_RETURN_IF_ERROR(merge_into(q.batch, k.batch, "the batches of Q and K"));
  EDDY_RETURN_IF_ERROR(merge_into(q.batch, v.batch, "the batches of Q and V"));
  EDDY_RETURN_IF_ERROR(merge_into(q.size, k.size, "the head sizes of Q and K"));
  EDDY_RETURN_IF_ERROR(merge_into(k.heads, v.heads, "the heads of K and V"));
  EDDY_RETURN_IF_ERROR(merge_into(k.length, v.length, "the lengths of K and V"));
  if (q.heads >= 0 && k.heads >= 0 && (k.heads == 0 || q.heads % k.heads != 0)) {
    return invalid_argument(std::to_string(q.heads) + " heads of Q do not share " +
                            std::to_string(k.heads) + " heads of K evenly");
  }
  return Status::ok();
}

Status read_cache(const InferContext& context, AttentionSizes& sizes) {
  if (context.has_input(4) != context.has_input(5)) {
    return invalid_argument("past_key and past_value go together, but one is missing");
  }
  if (!context.has_input(4)) return Status::ok();
  sizes.past = kUnknownDim;
  for (size_t i : {4, 5}) {
    Operand past;
    const std::string name = i == 4 ? "past_key" : "past_value";
    EDDY_RETURN_IF_ERROR(read_operand(context, i, name, 0, "", past));
    Operand& now = i == 4 ? sizes.k : sizes.v;
    EDDY_RETURN_IF_ERROR(merge_into(sizes.q.batch, past.batch, "the batches of Q and " + name));
    EDDY_RETURN_IF_ERROR(merge_into(sizes.k.heads, past.heads, "the heads of K and " + name));
    EDDY_RETURN_IF_ERROR(merge_into(now.size, past.size, "the head sizes of K or V and " + name));
    EDDY_RETURN_IF_ERROR(merge_into(sizes.past, past.length, "the lengths of the caches"));
  }
  return Status::ok();
}

// The mask stretches over [batch, heads, queries, keys]; from opset 24 on it may have fewer keys.
Status check_mask(const InferContext& context, const AttentionSizes& sizes) {
  if (!context.has_input(3)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* mask, tensor_input(context, 3));
  if (!mask->is_ranked) return Status::ok();
  const Dims full{sizes.q.batch, sizes.q.heads, sizes.q.length, sizes.total()};
  const Dims& dims = mask->dims;
  bool fits = dims.rank() <= 4;
  for (int i = 0; fits && i < dims.rank(); ++i) {
    const int64_t wanted = full[4 - dims.rank() + i];
    const bool may_be_short = i == dims.rank() - 1 && context.opset_version() >= 24;
    fits = dims[i] == 1 || merge_dim(dims[i], wanted) || (may_be_short && dims[i] <= wanted);
  }
  if (fits) return Status::ok();
  return invalid_argument("attn_mask of shape " + to_string(dims) + " does not stretch over " +
                          to_string(full));
}

Status check_lengths(const InferContext& context, const AttentionSizes& sizes) {
  if (!context.has_input(6)) return Status::ok();
  if (context.has_input(4)) {
    return invalid_argument("nonpad_kv_seqlen is for caches outside: leave past_key out");
  }
  return expect_shape(context, 6, "nonpad_kv_seqlen", {{sizes.q.batch, "batch"}});
}

Status check_choices(const InferContext& context) {
  const int64_t mode = context.attributes().get_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    return invalid_argument("qk_matmul_output_mode must be 0 to 3, not " + std::to_string(mode));
  }
  const int64_t precision = context.attributes().get_int("softmax_precision", 1);
  if (precision == 1 || precision == 10 || precision == 11 || precision == 16) return Status::ok();
  return invalid_argument("softmax_precision must be a type of floats, not " +
                          std::to_string(precision));
}

Status check_elements(const InferContext& context) {
  const auto element = [&](size_t i) { return context.input(i).tensor.element; };
  const bool fits = element(1) == element(0) &&
                    (!context.has_input(4) || element(4) == element(0)) &&
                    (!context.has_input(5) || element(5) == element(2));
  if (fits) return Status::ok();
  return invalid_argument("Q, K and past_key must have one element type, V and past_value, too");
}

Status infer_attention(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_choices(context));
  EDDY_RETURN_IF_ERROR(check_elements(context));
  AttentionSizes sizes;
  EDDY_RETURN_IF_ERROR(read_sizes(context, sizes));
  EDDY_RETURN_IF_ERROR(read_cache(context, sizes));
  EDDY_RETURN_IF_ERROR(check_mask(context, sizes));
  EDDY_RETURN_IF_ERROR(check_lengths(context, sizes));
  const auto& [q, k, v, past] = sizes;
  const ElementType element = context.input(0).tensor.element;
  const ElementType v_element = context.input(2).tensor.element;
  TensorType y(element);
  if (q.is_ranked && context.input(0).tensor.dims.rank() == 4) {
    y = TensorType(element, Dims{q.batch, q.heads, q.length, v.size});
  } else if (q.is_ranked) {
    const int64_t width = v.size < 0 ? kUnknownDim : q.heads * v.size;
    y = TensorType(element, Dims{q.batch, q.length, width});
  }
  context.set_output(0, y);
  context.set_output(1, TensorType(element, Dims{q.batch, k.heads, sizes.total(), q.size}));
  context.set_output(2, TensorType(v_element, Dims{q.batch, k.heads, sizes.total(), v.size}));
  context.set_output(3, TensorType(element, Dims{q.batch, q.heads, q.length, sizes.total()}));
  return Status::ok();
}

double attention_flops(const InferContext& context, std::span<const ValueType>) {
  AttentionSizes sizes;
  if (!read_sizes(context, sizes).is_ok() || !read_cache(context, sizes).is_ok()) return 0;
  const double scores = static_cast<double>(sizes.q.batch) * static_cast<double>(sizes.q.heads) *
                        static_cast<double>(sizes.q.length) * static_cast<double>(sizes.total());
  return 2 * scores * static_cast<double>(sizes.q.size + sizes.v.size);
}

// What the caches of cosines and sines must be: a row of half the turned part for each position,
// or for each place of the input.
Status check_angles(const InferContext& context, size_t input, int64_t half, const Operand& x) {
  const char* const name = input == 1 ? "cos_cache" : "sin_cache";
  const ExpectedAxis turned = {half, "half of what is turned"};
  if (context.has_input(3)) return expect_shape(context, input, name, {"positions", turned});
  return expect_shape(context, input, name, {{x.batch, "batch"}, {x.length, "length"}, turned});
}

Status infer_rotary_embedding(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 3));
  int64_t heads;
  EDDY_RETURN_IF_ERROR(read_heads(context, "num_heads", heads));
  Operand x;
  EDDY_RETURN_IF_ERROR(read_operand(context, 0, "X", heads, "num_heads", x));
  const int64_t given = context.attributes().get_int("rotary_embedding_dim", 0);
  const int64_t turned = given == 0 ? x.size : given;
  if (given < 0 || (x.size >= 0 && turned > x.size) || (turned >= 0 && turned % 2 != 0)) {
    return invalid_argument("rotary_embedding_dim must be even and at most the head size " +
                            std::to_string(x.size) + ", not " + std::to_string(turned));
  }
  const int64_t half = turned < 0 ? kUnknownDim : turned / 2;
  EDDY_RETURN_IF_ERROR(check_angles(context, 1, half, x));
  EDDY_RETURN_IF_ERROR(check_angles(context, 2, half, x));
  EDDY_RETURN_IF_ERROR(
      expect_shape(context, 3, "position_ids", {{x.batch, "batch"}, {x.length, "length"}}));
  context.set_output(0, context.input(0));
  return Status::ok();
}

// The cache is the result's size; the update has fewer or as many along the axis.
Status infer_tensor_scatter(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* cache, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* update, tensor_input(context, 1));
  const std::string_view mode = context.attributes().get_string("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return invalid_argument("mode must be linear or circular, not '" + std::string(mode) + "'");
  }
  context.set_output(0, *cache);
  if (!cache->is_ranked) return Status::ok();
  const int rank = cache->dims.rank();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -2), rank));
  if (axis == 0) return invalid_argument("axis 0 of past_cache is the batch's");
  if (update->is_ranked) {
    bool fits = update->dims.rank() == rank;
    for (int i = 0; fits && i < rank; ++i) {
      const int64_t size = cache->dims[i], given = update->dims[i];
      fits = i == axis ? size < 0 || given <= size : merge_dim(size, given).has_value();
    }
    if (!fits) {
      return bad_shape("update", update->dims,
                       "does not fit past_cache of shape " + to_string(cache->dims) + " on axis " +
                           std::to_string(axis));
    }
  }
  return expect_shape(context, 2, "write_indices", {{cache->dims[0], "batch"}});
}

OpDef attention(int since_version) {
  const InputFlag optional = InputFlag::kOptional;
  OpDef def = {
      .name = "Attention",
      .since_version = since_version,
      .inputs = {in("Q", kFloatTypes), in("K", kFloatTypes), in("V", kFloatTypes),
                 in("attn_mask", kMaskTypes, optional), in("past_key", kFloatTypes, optional),
                 in("past_value", kFloatTypes, optional)},
      .max_outputs = 4,
      .attributes = {flag("is_causal"), attribute("kv_num_heads", kInt),
                     attribute("q_num_heads", kInt), attribute("qk_matmul_output_mode", kInt),
                     attribute("scale", kFloat), attribute("softcap", kFloat),
                     attribute("softmax_precision", kInt)},
      .infer = infer_attention,
      .flops = attention_flops};
  if (since_version >= 24) {
    def.inputs.push_back(in("nonpad_kv_seqlen", {ElementType::kInt64}, optional));
  }
  return def;
}

}  // namespace

Status add_attention_schemas(OpTable& table) {
  return add_schemas(
      table,
      {attention(23),
       attention(24),
       {.name = "RotaryEmbedding",
        .since_version = 23,
        .inputs = {in("X", kFloatTypes), in("cos_cache", kFloatTypes), in("sin_cache", kFloatTypes),
                   in("position_ids", {ElementType::kInt64}, InputFlag::kOptional)},
        .attributes = {flag("interleaved"), attribute("num_heads", kInt),
                       attribute("rotary_embedding_dim", kInt)},
        .infer = infer_rotary_embedding,
        .in_place_inputs = 1},
       {.name = "TensorScatter",
        .since_version = 24,
        .inputs = {in("past_cache"), in("update"),
                   in("write_indices", {ElementType::kInt64}, InputFlag::kOptional)},
        .attributes = {attribute("axis", kInt), attribute("mode", kString)},
        .infer = infer_tensor_scatter,
        .in_place_inputs = 1}});
}

}  // namespace eddy
