#include "ops/schema/microsoft/heads.h"

#include <string>

#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

const std::vector<int64_t> kSwapHeads = {0, 2, 1, 3};

// Of each sample: keys [start, end), bool [batch, keys]. The list may lack the starts, which then
// are the zeros behind it.
Value seen_by_bounds(Expansion& e, Value bounds, Value batch, Value keys) {
  const Value none = e.int64s(std::span<const int64_t>());
  const Value integer_zero = e.number(ElementType::kInt64, 0);
  const Value zeros = e.op("Expand", {integer_zero, batch});
  const Value both[] = {e.cast(bounds, ElementType::kInt64), zeros};
  const Value list = e.op("Concat", both, {{"axis", int64_t{0}}});
  const Value last = e.int64s({1});
  const auto part = [&](Value from, Value to) {
    return e.op("Unsqueeze", {e.op("Slice", {list, from, to}), last});
  };
  const Value ends = part(e.int64s({0}), batch);
  const Value starts = part(batch, e.op("Add", {batch, batch}));
  const Value count = e.op("Reshape", {keys, none});
  const Value place = e.op("Range", {integer_zero, count, e.number(ElementType::kInt64, 1)});
  return e.op("And", {e.op("Less", {place, ends}), e.op("GreaterOrEqual", {place, starts})});
}

}  // namespace

Value split_heads(Expansion& e, Value x, int64_t heads) {
  const Value apart = e.op("Reshape", {x, e.int64s({0, 0, heads, -1})});
  return e.op("Transpose", {apart}, {{"perm", kSwapHeads}});
}

Value join_heads(Expansion& e, Value x) {
  const Value together = e.op("Transpose", {x}, {{"perm", kSwapHeads}});
  return e.op("Reshape", {together, e.int64s({0, 0, -1})});
}

Value mask_addend(Expansion& e, Value mask, Value batch, Value keys, ElementType element) {
  const int rank = e.rank_or_fail(mask, "the mask");
  if (rank < 0) return {};
  constexpr float kFilter = -10000;
  const float filter = e.attributes().get_float("mask_filter_value", kFilter);
  const Value seen = rank == 1 ? seen_by_bounds(e, mask, batch, keys)
                               : e.op("Greater", {mask, e.number(ElementType::kInt32, 0)});
  const Value addend =
      e.op("Where", {seen, e.number(element, 0), e.number(element, static_cast<double>(filter))});
  return e.op("Unsqueeze", {addend, rank == 3 ? e.int64s({1}) : e.int64s({1, 2})});
}

std::vector<Value> attend(Expansion& e, const HeadAttention& attention, int num_outputs) {
  Attributes attributes;
  if (attention.is_side_by_side) {
    attributes.set("q_num_heads", attention.heads);
    attributes.set("kv_num_heads", attention.heads);
  }
  if (attention.is_causal) attributes.set("is_causal", int64_t{1});
  const float scale = e.attributes().get_float("scale", 0);  // 0 means the default, too
  if (scale != 0) attributes.set("scale", scale);
  constexpr int64_t kScoresWithAddend = 2;
  if (num_outputs > 3) attributes.set("qk_matmul_output_mode", kScoresWithAddend);
  const Value inputs[] = {attention.q,      attention.k,      attention.v,
                          attention.addend, attention.past_k, attention.past_v};
  std::vector<Value> outputs = e.ops("Attention", inputs, std::move(attributes), num_outputs);
  if (!attention.is_side_by_side) outputs[0] = join_heads(e, outputs[0]);
  return outputs;
}

Status read_head_count(const InferContext& context, std::string_view attribute, int64_t& heads) {
  heads = context.attributes().get_int(attribute, 0);
  if (heads >= 1 && heads <= INT32_MAX) return Status::ok();
  return invalid_argument("attribute " + std::string(attribute) + " must be at least 1, not " +
                          std::to_string(heads));
}

Status refuse_attribute(const InferContext& context, std::string_view name, int64_t allowed,
                        std::string_view why) {
  const int64_t value = context.attributes().get_int(name, allowed);
  if (value == allowed) return Status::ok();
  return unsupported("attribute " + std::string(name) + " must be " + std::to_string(allowed) +
                     ", not " + std::to_string(value) + ": " + std::string(why));
}

Status refuse_input(const InferContext& context, size_t i, std::string_view name,
                    std::string_view why) {
  if (!context.has_input(i)) return Status::ok();
  return unsupported("input " + std::to_string(i) + " ('" + std::string(name) +
                     "') is not supported: " + std::string(why));
}

}  // namespace eddy
