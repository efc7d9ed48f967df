// AttentionCall and RotaryCall: one call of Attention or RotaryEmbedding, read from its tensors:
// sizes, and where rows lie. Shared by the plain and the fast kernels.
//
// Queries, keys and values are rows of `head` or `v_head` elements. Their tensors are
// [batch, heads, length, size] or, side by side, [batch, length, heads * size]. The keys are those
// of the cache, then the new ones.
//
//   score(query, key) = scale * (q . k), through softcap, + mask; -inf where the key is not allowed
//   y = sum over keys of softmax(score) * value; 0 where no key is allowed
//
// Source: ONNX operators Attention and RotaryEmbedding, opsets 23 and 24, with the corrections
// of 1.23 (keys are aligned to the last query; rows without a key are 0). Errors: those of
// check_lengths and find_angles; the schema's rules have checked the shapes. Threads: pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "ops/contract/kernel.h"

namespace eddy {

struct AttentionState : KernelState {
  std::optional<double> scale;  // by default 1 / sqrt(head)
  double softcap = 0;
  bool is_causal = false;
  bool pads_mask = false;  // opset 24: keys beyond the mask are not allowed
  int64_t q_heads = 0, kv_heads = 0;
  int64_t scores_mode = 0;

  static std::unique_ptr<AttentionState> of(const KernelInit& init);
};

// The place of row `index` of a head, in elements.
struct HeadRows {
  int64_t batch_step = 0, head_step = 0, row_step = 0;

  static HeadRows of(const TensorView& view, int64_t heads) {
    if (view.rank == 4) {
      const int64_t head = view.dims[2] * view.dims[3];
      return {view.dims[1] * head, head, view.dims[3]};
    }
    return {view.dims[1] * view.dims[2], view.dims[2] / std::max<int64_t>(heads, 1), view.dims[2]};
  }
  int64_t at(int64_t batch, int64_t head, int64_t row) const {
    return batch * batch_step + head * head_step + row * row_step;
  }
};

struct AttentionCall {
  const KernelArgs& args;
  const AttentionState& state;
  int64_t batch, q_heads, kv_heads, q_length, new_keys, past, head, v_head;
  HeadRows q, k, v, y, past_k, past_v, present_k, present_v;
  double scale;
  // Of the mask, by batch, head, query and key; keys from mask_keys on are not allowed.
  int64_t mask_steps[4] = {};
  int64_t mask_keys = 0;

  explicit AttentionCall(const KernelArgs& args);

  int64_t keys() const { return past + new_keys; }
  int64_t kv_head(int64_t q_head) const { return q_head / (q_heads / kv_heads); }
  // Whether every nonpad_kv_seqlen counts keys that there are; false after args.fail(). What
  // follows asks for it.
  bool check_lengths() const;
  // The keys that query `row` may see are among the first so many, whatever the mask says.
  int64_t visible_keys(int64_t b, int64_t row) const;
  int64_t mask_at(int64_t b, int64_t h, int64_t row) const {
    return b * mask_steps[0] + h * mask_steps[1] + row * mask_steps[2];
  }
  // The key's or value's row, in the cache or among the new ones.
  const TensorView& key_tensor(int64_t j) const { return args.inputs[j < past ? 4 : 1]; }
  const TensorView& value_tensor(int64_t j) const { return args.inputs[j < past ? 5 : 2]; }
  int64_t key_at(int64_t b, int64_t h, int64_t j) const {
    return j < past ? past_k.at(b, h, j) : k.at(b, h, j - past);
  }
  int64_t value_at(int64_t b, int64_t h, int64_t j) const {
    return j < past ? past_v.at(b, h, j) : v.at(b, h, j - past);
  }
};

struct RotaryState : KernelState {
  bool is_interleaved = false;
  int64_t heads = 0, turned = 0;  // turned: 0 is the whole head

  static std::unique_ptr<RotaryState> of(const KernelInit& init);
};

struct RotaryCall {
  const KernelArgs& args;
  const RotaryState& state;
  int64_t batch, heads, length, head, half;
  HeadRows x;

  explicit RotaryCall(const KernelArgs& args);
  // The first angle of a place; false after args.fail() where its position is in no row.
  bool find_angles(int64_t b, int64_t row, int64_t& at) const;
};

}  // namespace eddy
