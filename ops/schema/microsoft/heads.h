// Parts that the attention functions of domain "com.microsoft" share: heads, masks and the standard
// Attention in the middle.
//
//   [batch, length, heads * size]  side by side, as projections make them
//   [batch, heads, length, size]   by head, as caches hold them
//
// Masks become what Attention adds to its scores: 0 where a key may be seen, the filter value,
// which is finite, where not; so a query without any key to see weighs all of them, as in ONNX
// Runtime.
//
// Internal to ops/schema. Errors: those of Expansion. Threads: the builder's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir/expansion.h"

namespace eddy {

class InferContext;

// [batch, length, heads * size] to [batch, heads, length, size], and back.
Value split_heads(Expansion& e, Value x, int64_t heads);
Value join_heads(Expansion& e, Value x);

// A mask of integers over keys as an addend of scores: [batch] holds where the keys of each sample
// end, [2 * batch] where they begin, too; [batch, keys] and [batch, queries, keys] hold 1 where a
// key may be seen. `batch` and `keys` are their numbers, int64[1].
Value mask_addend(Expansion& e, Value mask, Value batch, Value keys, ElementType element);

struct HeadAttention {
  Value q, k, v;      // all by head, or all side by side
  Value addend = {};  // to scores
  Value past_k = {}, past_v = {};
  int64_t heads = 0;
  bool is_side_by_side = true;
  bool is_causal = false;
};
// Attention's outputs (result, present keys, present values, scores), the result side by side.
std::vector<Value> attend(Expansion& e, const HeadAttention& attention, int num_outputs);

// `attribute` is a number of heads, at least 1.
Status read_head_count(const InferContext& context, std::string_view attribute, int64_t& heads);
// Refuses attribute or input of a form that is not built.
Status refuse_attribute(const InferContext& context, std::string_view name, int64_t allowed,
                        std::string_view why);
Status refuse_input(const InferContext& context, size_t i, std::string_view name,
                    std::string_view why);

}  // namespace eddy
