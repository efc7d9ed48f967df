// GroupQueryAttention and RotaryEmbedding as functions.
//
// The new keys of sample b are written into its cache behind the `written` ones that it holds:
//
//   seqlens_k[b] + 1 = written[b] + queries       and 0 are written, where the queries are all
//   there present  = past, grown to total_sequence_length, with the new keys at [written, +
//   queries) query i sees keys [0, written + i], or the last local_window_size of these
#include <algorithm>
#include <cmath>
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

constexpr InputFlag kOptional = InputFlag::kOptional;

enum GroupQueryInput : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kScoreBias,
  kHeadSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
};

Status refuse_forms(const InferContext& context) {
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const std::string_view type = context.attributes().get_string(name, "NONE");
    if (type == "NONE" || type.empty()) continue;
    return unsupported("attribute " + std::string(name) + " must be NONE, not '" +
                       std::string(type) + "': export caches of floats");
  }
  EDDY_RETURN_IF_ERROR(refuse_input(context, kKeyScale, "k_scale", "export caches of floats"));
  EDDY_RETURN_IF_ERROR(refuse_input(context, kValueScale, "v_scale", "export caches of floats"));
  EDDY_RETURN_IF_ERROR(
      refuse_attribute(context, "sliding_window_cache", 0, "export caches that hold all keys"));
  EDDY_RETURN_IF_ERROR(refuse_attribute(context, "qk_output", 0, "the scores are not kept"));
  if (context.num_outputs() > 3) return unsupported("output 3 ('output_qk') is not supported");
  const int64_t window = context.attributes().get_int("local_window_size", -1);
  if (window != -1 && window < 1) {
    return invalid_argument("local_window_size must be -1 or at least 1, not " +
                            std::to_string(window));
  }
  const int64_t causal = context.attributes().get_int("causal", 1);
  if (causal == 1 || (causal == 0 && window == -1)) return Status::ok();
  return invalid_argument("causal must be 1, or 0 without local_window_size, not " +
                          std::to_string(causal));
}

// The query, with keys and values behind it where they are packed: `heads` in all.
Status check_packed(const InferContext& context, size_t i, std::string_view name, int64_t heads,
                    int64_t& size) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  if (!type->is_ranked) return Status::ok();
  const Dims& dims = type->dims;
  if (dims.rank() != 3) return bad_shape(name, dims, "must be [batch, length, size]");
  if (dims[2] < 0) return Status::ok();
  if (dims[2] % heads != 0) {
    return bad_shape(name, dims, "does not fall into " + std::to_string(heads) + " heads");
  }
  const auto both = merge_dim(size, dims[2] / heads);
  if (!both) {
    return bad_shape(
        name, dims,
        "has heads of " + std::to_string(dims[2] / heads) + ", not " + std::to_string(size));
  }
  size = *both;
  return Status::ok();
}

Status expect_pair(const InferContext& context, size_t first, const char* a, const char* b) {
  if (context.has_input(first) == context.has_input(first + 1)) return Status::ok();
  return invalid_argument(std::string(a) + " and " + b + " go together, but one is missing");
}

// The size of an axis where it is known.
int64_t size_or_unknown(const InferContext& context, size_t input, int axis) {
  if (!context.has_input(input)) return 0;
  const TensorType& type = context.input(input).tensor;
  return type.is_ranked && axis < type.dims.rank() ? type.dims[axis] : kUnknownDim;
}

// What the lengths say must fit the keys that there are, as far as both are known.
Status check_lengths(const InferContext& context) {
  const int64_t queries = size_or_unknown(context, kQuery, 1);
  const int64_t past = size_or_unknown(context, kPastKey, 2);
  const TensorView *given = context.value_or_null(kTotal),
                   *lengths = context.value_or_null(kLengths);
  if (queries < 0 || past < 0 || given == nullptr || given->count() != 1) return Status::ok();
  const int64_t total = given->as<int32_t>()[0];
  if (total < queries) {
    return invalid_argument("total_sequence_length is " + std::to_string(total) +
                            ", but there are " + std::to_string(queries) + " new keys");
  }
  const int64_t keys = context.has_input(kPastKey) ? std::max(total, past) : queries;
  const int64_t least = total == queries ? 0 : queries - 1;
  for (int64_t b = 0; lengths != nullptr && b < lengths->count(); ++b) {
    const int64_t last = lengths->as<int32_t>()[b];
    if (last >= least && last < keys) continue;
    return invalid_argument("seqlens_k[" + std::to_string(b) + "] is " + std::to_string(last) +
                            ", which is not between " + std::to_string(least) + " and " +
                            std::to_string(keys - 1) + ": the last of the sample's " +
                            std::to_string(keys) + " keys, " + std::to_string(queries) +
                            " of them new");
  }
  return Status::ok();
}

Status infer_group_query(InferContext& context) {
  int64_t heads, kv_heads;
  EDDY_RETURN_IF_ERROR(read_head_count(context, "num_heads", heads));
  EDDY_RETURN_IF_ERROR(read_head_count(context, "kv_num_heads", kv_heads));
  if (heads % kv_heads != 0) {
    return invalid_argument("num_heads must be a multiple of kv_num_heads, not " +
                            std::to_string(heads) + " of " + std::to_string(kv_heads));
  }
  EDDY_RETURN_IF_ERROR(refuse_forms(context));
  for (const size_t i : {kKey, kValue, kPastKey, kPastValue, kCos, kSin, kScoreBias, kHeadSink}) {
    if (!context.has_input(i)) continue;
    if (context.input(i).tensor.element == context.input(kQuery).tensor.element) continue;
    return invalid_argument("input " + std::to_string(i) +
                            " of GroupQueryAttention must have the element type of query");
  }
  EDDY_RETURN_IF_ERROR(expect_pair(context, kKey, "key", "value"));
  EDDY_RETURN_IF_ERROR(expect_pair(context, kPastKey, "past_key", "past_value"));
  EDDY_RETURN_IF_ERROR(expect_pair(context, kCos, "cos_cache", "sin_cache"));
  EDDY_RETURN_IF_ERROR(expect_pair(context, kQueryNorm, "q_norm_weight", "k_norm_weight"));
  if (context.attributes().get_int("do_rotary", 0) != 0 && !context.has_input(kCos)) {
    return invalid_argument("do_rotary needs cos_cache and sin_cache");
  }
  int64_t size = kUnknownDim;
  const bool is_packed = !context.has_input(kKey);
  EDDY_RETURN_IF_ERROR(
      check_packed(context, kQuery, "query", is_packed ? heads + 2 * kv_heads : heads, size));
  if (!is_packed) {
    EDDY_RETURN_IF_ERROR(check_packed(context, kKey, "key", kv_heads, size));
    EDDY_RETURN_IF_ERROR(check_packed(context, kValue, "value", kv_heads, size));
  }
  const ExpectedAxis head = {size, "head size"};
  const ExpectedShape cache = {"batch", kv_heads, "length", head};
  EDDY_RETURN_IF_ERROR(expect_shape(context, kPastKey, "past_key", cache));
  EDDY_RETURN_IF_ERROR(expect_shape(context, kPastValue, "past_value", cache));
  EDDY_RETURN_IF_ERROR(expect_one_element(context, kTotal, "total_sequence_length"));
  EDDY_RETURN_IF_ERROR(check_lengths(context));
  EDDY_RETURN_IF_ERROR(expect_shape(context, kHeadSink, "head_sink", {heads}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, kQueryNorm, "q_norm_weight", {head}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, kKeyNorm, "k_norm_weight", {head}));
  const ElementType element = context.input(kQuery).tensor.element;
  for (size_t i = 0; i < 3; ++i) context.set_output(i, TensorType(element));
  return Status::ok();
}

// One call while it is built: tensors by head, sizes as int64[1].
class GroupQuery {
 public:
  explicit GroupQuery(Expansion& e)
      : e_(e),
        heads_(e.attributes().get_int("num_heads", 1)),
        kv_heads_(e.attributes().get_int("kv_num_heads", 1)),
        element_(e.element(e.input(kQuery))) {}

  void build() {
    read_operands();
    read_lengths();
    if (e_.has_input(kQueryNorm)) {
      q_ = normalized(q_, kQueryNorm);
      k_ = normalized(k_, kKeyNorm);
    }
    if (e_.attributes().get_int("do_rotary", 0) != 0) {
      q_ = turned(q_);
      k_ = turned(k_);
    }
    if (e_.has_input(kPastKey)) {
      k_ = written_into(e_.input(kPastKey), k_);
      v_ = written_into(e_.input(kPastValue), v_);
    }
    e_.set_output(1, k_);
    e_.set_output(2, v_);
    keys_ = e_.sizes(k_, 2, 3);
    e_.set_output(0, result());
  }

 private:
  Value add(Value a, Value b) { return e_.op("Add", {a, b}); }
  Value sub(Value a, Value b) { return e_.op("Sub", {a, b}); }
  Value integer(int64_t value) { return e_.int64s({value}); }
  Value unsqueeze(Value x, std::initializer_list<int64_t> axes) {
    return e_.op("Unsqueeze", {x, e_.int64s(axes)});
  }
  // 0 .. count - 1.
  Value range(Value count) {
    const Value scalar = e_.op("Reshape", {count, e_.int64s(std::span<const int64_t>())});
    return e_.op("Range",
                 {e_.number(ElementType::kInt64, 0), scalar, e_.number(ElementType::kInt64, 1)});
  }

  void read_operands() {
    const Value query = e_.input(kQuery);
    batch_ = e_.sizes(query, 0, 1);
    queries_ = e_.sizes(query, 1, 2);
    if (e_.has_input(kKey)) {
      q_ = split_heads(e_, query, heads_);
      k_ = split_heads(e_, e_.input(kKey), kv_heads_);
      v_ = split_heads(e_, e_.input(kValue), kv_heads_);
      return;
    }
    const Value all = split_heads(e_, query, heads_ + 2 * kv_heads_);
    const Value list[] = {all, e_.int64s({heads_, kv_heads_, kv_heads_})};
    const std::vector<Value> parts = e_.ops("Split", list, {{"axis", int64_t{1}}}, 3);
    q_ = parts[0], k_ = parts[1], v_ = parts[2];
  }

  void read_lengths() {
    const Value list = integer(-1);
    lengths_ =
        add(e_.op("Reshape", {e_.cast(e_.input(kLengths), ElementType::kInt64), list}), integer(1));
    total_ = e_.op("Reshape", {e_.cast(e_.input(kTotal), ElementType::kInt64), integer(1)});
    const Value is_first = e_.op("Equal", {queries_, total_});
    written_ = e_.op("Where", {is_first, integer(0), sub(lengths_, queries_)});
  }

  Value normalized(Value x, GroupQueryInput weight) {
    constexpr float kEpsilon = 1e-6f;
    return e_.op("RMSNormalization", {x, e_.input(weight)},
                 {{"epsilon", e_.attributes().get_float("qk_norm_epsilon", kEpsilon)}});
  }

  Value turned(Value x) {
    if (positions_.is_none()) {
      positions_ = e_.has_input(kPositions) ? e_.input(kPositions)
                                            : add(unsqueeze(written_, {1}), range(queries_));
    }
    Attributes attributes = {{"interleaved", e_.attributes().get_int("rotary_interleaved", 0)}};
    // Tables narrower than half a head turn its beginning only.
    const Constant* table = e_.constant_or_null(e_.input(kCos));
    if (table != nullptr && table->dims.rank() == 2) {
      attributes.set("rotary_embedding_dim", 2 * table->dims[1]);
    }
    return e_.op("RotaryEmbedding", {x, e_.input(kCos), e_.input(kSin), positions_}, attributes);
  }

  // The cache with room for all keys, and the new ones behind those that it holds.
  Value written_into(Value past, Value fresh) {
    const Value length = e_.sizes(past, 2, 3);
    const Value room = sub(e_.op("Max", {total_, length}), length);
    const Value sizes[] = {batch_, integer(kv_heads_), room, e_.sizes(past, 3, 4)};
    const Value shape = e_.op("Concat", sizes, {{"axis", int64_t{0}}});
    const Value grown[] = {past, e_.op("Expand", {e_.number(element_, 0), shape})};
    const Value cache = e_.op("Concat", grown, {{"axis", int64_t{2}}});
    return e_.op("TensorScatter", {cache, fresh, written_});
  }

  // Which keys each query sees, bool [batch, 1, queries or 1, keys].
  Value seen() {
    const Value key = range(keys_);
    if (e_.attributes().get_int("causal", 1) == 0) {
      return e_.op("Less", {key, unsqueeze(lengths_, {1, 2, 3})});
    }
    const Value query = add(unsqueeze(written_, {1, 2, 3}), unsqueeze(range(queries_), {1}));
    const Value is_past = e_.op("LessOrEqual", {key, query});
    const int64_t window = e_.attributes().get_int("local_window_size", -1);
    if (window < 1) return is_past;
    return e_.op("And", {is_past, e_.op("Greater", {key, sub(query, integer(window))})});
  }

  // The bias over total_sequence_length keys, over as many as the cache has.
  Value score_bias() {
    const Value pads[] = {e_.int64s({0, 0, 0, 0, 0, 0, 0}), sub(keys_, total_)};
    return e_.op("Pad", {e_.input(kScoreBias), e_.op("Concat", pads, {{"axis", int64_t{0}}})});
  }

  Value result() {
    Value mask = seen();
    Value visible = lengths_;
    const Value hidden = e_.number(element_, -HUGE_VAL);
    if (e_.has_input(kScoreBias)) mask = e_.op("Where", {mask, score_bias(), hidden});
    Value k = k_, v = v_;
    if (has_sink()) {
      if (!e_.has_input(kScoreBias)) {
        mask = e_.op("Where", {mask, e_.number(element_, 0), hidden});
      }
      mask = with_sink(mask);
      k = behind_zero(k);
      v = behind_zero(v);
      visible = add(visible, integer(1));
    }
    Attributes attributes;
    const float scale = e_.attributes().get_float("scale", 0);  // 0 means the default, too
    const float softcap = e_.attributes().get_float("softcap", 0);
    if (scale != 0) attributes.set("scale", scale);
    if (softcap != 0) attributes.set("softcap", softcap);
    const Value inputs[] = {q_, k, v, mask, {}, {}, visible};
    return join_heads(e_, e_.op("Attention", inputs, std::move(attributes)));
  }

  // A sink is a key before all others whose score is given and whose value is 0.
  bool has_sink() const {
    return e_.has_input(kHeadSink) || e_.attributes().get_int("smooth_softmax", 0) == 1;
  }
  Value with_sink(Value mask) {
    const Value sink = e_.has_input(kHeadSink)
                           ? e_.op("Reshape", {e_.input(kHeadSink), e_.int64s({1, -1, 1, 1})})
                           : e_.op("Reshape", {e_.number(element_, 0), e_.int64s({1, 1, 1, 1})});
    const Value rows[] = {batch_, integer(heads_), queries_, integer(1)};
    const Value row_shape = e_.op("Concat", rows, {{"axis", int64_t{0}}});
    const Value sizes[] = {batch_, integer(heads_), queries_, keys_};
    const Value shape = e_.op("Concat", sizes, {{"axis", int64_t{0}}});
    const Value both[] = {e_.op("Expand", {sink, row_shape}), e_.op("Expand", {mask, shape})};
    return e_.op("Concat", both, {{"axis", int64_t{3}}});
  }
  Value behind_zero(Value x) { return e_.op("Pad", {x, e_.int64s({0, 0, 1, 0, 0, 0, 0, 0})}); }

  Expansion& e_;
  const int64_t heads_, kv_heads_;
  const ElementType element_;
  Value q_, k_, v_;
  Value batch_, queries_, keys_, total_;
  Value lengths_, written_;  // int64 [batch]: keys of each sample, and those before the new ones
  Value positions_;
};

void expand_group_query(Expansion& e) { GroupQuery(e).build(); }

Status infer_rotary(InferContext& context) {
  EDDY_RETURN_IF_ERROR(
      refuse_attribute(context, "is_packed_batching", 0, "give the samples of a batch one length"));
  if (context.attributes().get_float("scale", 1) != 1) {
    return unsupported("attribute scale must be 1: multiply by it in a node of its own");
  }
  const int64_t heads = context.attributes().get_int("num_heads", 0);
  const int64_t turned = context.attributes().get_int("rotary_embedding_dim", 0);
  if (heads < 0 || heads > INT32_MAX) {
    return invalid_argument("attribute num_heads must not be negative, not " +
                            std::to_string(heads));
  }
  if (turned < 0 || turned % 2 != 0 || turned > INT32_MAX) {
    return invalid_argument("rotary_embedding_dim must be even, not " + std::to_string(turned));
  }
  if (turned > 0 && heads == 0) {
    return invalid_argument("rotary_embedding_dim needs attribute num_heads");
  }
  for (const size_t i : {2, 3}) {
    if (context.input(i).tensor.element == context.input(0).tensor.element) continue;
    return invalid_argument("cos_cache and sin_cache must have the element type of input");
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  if (x->is_ranked && x->dims.rank() != 3 && x->dims.rank() != 4) {
    return bad_shape("input", x->dims,
                     "must be [batch, length, size] or [batch, heads, length, head size]");
  }
  if (x->is_ranked && x->dims.rank() == 3 && heads > 0 && x->dims[2] >= 0 &&
      x->dims[2] % heads != 0) {
    return bad_shape("input", x->dims, "does not fall into " + std::to_string(heads) + " heads");
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* ids, tensor_input(context, 1));
  if (!ids->is_ranked || ids->dims.rank() == 1 || ids->dims.rank() == 2) return Status::ok();
  return bad_shape("position_ids", ids->dims, "must be [1] or [batch, length]");
}

// One position is that of every sample's first place.
Value rotary_positions(Expansion& e, Value x, int rank) {
  const int ids_rank = e.rank_or_fail(e.input(1), "position_ids");
  if (ids_rank != 1) return e.input(1);
  const Value length = e.sizes(x, rank - 2, rank - 1);
  const Value scalar = e.op("Reshape", {length, e.int64s(std::span<const int64_t>())});
  const Value steps =
      e.op("Range", {e.number(ElementType::kInt64, 0), scalar, e.number(ElementType::kInt64, 1)});
  const Value sizes[] = {e.sizes(x, 0, 1), length};
  return e.op("Expand",
              {e.op("Add", {steps, e.input(1)}), e.op("Concat", sizes, {{"axis", int64_t{0}}})});
}

void expand_rotary(Expansion& e) {
  const Value x = e.input(0);
  const int rank = e.rank_or_fail(x, "input");
  if (rank < 0) return;
  const int64_t heads = e.attributes().get_int("num_heads", 0);
  Attributes attributes = {{"interleaved", e.attributes().get_int("interleaved", 0)}};
  const int64_t turned = e.attributes().get_int("rotary_embedding_dim", 0);
  if (turned > 0) attributes.set("rotary_embedding_dim", turned);
  const Value ids = rotary_positions(e, x, rank);
  if (rank == 4 || heads > 0) {
    if (rank == 3) attributes.set("num_heads", heads);
    return e.set_output(0, e.op("RotaryEmbedding", {x, e.input(2), e.input(3), ids}, attributes));
  }
  // The tables say how large a head is.
  const Value half = e.sizes(e.input(2), 1, 2);
  const Value sizes[] = {e.int64s({0, 0, -1}), e.op("Add", {half, half})};
  const Value shape = e.op("Concat", sizes, {{"axis", int64_t{0}}});
  const Attributes swap = {{"perm", std::vector<int64_t>{0, 2, 1, 3}}};
  const Value by_head = e.op("Transpose", {e.op("Reshape", {x, shape})}, swap);
  const Value y =
      e.op("RotaryEmbedding", {by_head, e.input(2), e.input(3), ids}, std::move(attributes));
  e.set_output(0, e.op("Reshape", {e.op("Transpose", {y}, swap), e.shape(x)}));
}

OpDef group_query() {
  const TypeSet ints = {ElementType::kInt32}, longs = {ElementType::kInt64};
  const auto maybe = [](const char* name) { return in(name, kFloatTypes, kOptional); };
  const auto length = [&](const char* name) { return in(name, ints, InputFlag::kHostValue); };
  return {
      .name = "GroupQueryAttention",
      .domain = kMicrosoft,
      .inputs = {in("query", kFloatTypes), maybe("key"), maybe("value"), maybe("past_key"),
                 maybe("past_value"), length("seqlens_k"), length("total_sequence_length"),
                 maybe("cos_cache"), maybe("sin_cache"), in("position_ids", longs, kOptional),
                 maybe("attention_bias"), maybe("head_sink"), maybe("k_scale"), maybe("v_scale"),
                 maybe("q_norm_weight"), maybe("k_norm_weight")},
      .max_outputs = 4,
      .attributes = {attribute("num_heads", kInt, true), attribute("kv_num_heads", kInt, true),
                     flag("causal"), flag("do_rotary"), flag("rotary_interleaved"),
                     attribute("scale", kFloat), attribute("softcap", kFloat),
                     attribute("local_window_size", kInt), attribute("smooth_softmax", kInt),
                     attribute("qk_output", kInt), attribute("qk_norm_epsilon", kFloat),
                     attribute("sliding_window_cache", kInt), attribute("kv_cache_bit_width", kInt),
                     attribute("k_quant_type", kString), attribute("v_quant_type", kString)},
      .infer = infer_group_query,
      .expand = expand_group_query};
}

}  // namespace

Status add_microsoft_group_query(OpTable& table) {
  return add_schemas(
      table, {group_query(),
              {.name = "RotaryEmbedding",
               .domain = kMicrosoft,
               .inputs = {in("input", kFloatTypes), in("position_ids", {ElementType::kInt64}),
                          in("cos_cache", kFloatTypes), in("sin_cache", kFloatTypes)},
               .attributes = {flag("interleaved"), attribute("num_heads", kInt),
                              attribute("rotary_embedding_dim", kInt), attribute("scale", kFloat),
                              flag("is_packed_batching")},
               .infer = infer_rotary,
               .expand = expand_rotary}});
}

}  // namespace eddy
