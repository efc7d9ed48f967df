// Attention and RotaryEmbedding of floats. Attention runs over blocks of queries and, for each,
// over blocks of keys, whose scores alone are in memory: a block's sums are scaled anew where a
// later block has a greater score.
//
// Source: Milakov and Gimelshein, Online normalizer calculation for softmax (2018), section 3; Dao
// et al., FlashAttention (2022), algorithm 1.
#include <cmath>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/loops/loop_sets.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/products/attention.h"

namespace eddy {
namespace {

using cpu::Tiles;

constexpr int64_t kQueries = 64;  // of a block
constexpr int64_t kKeys = 128;

int64_t query_blocks(const AttentionCall& call) {
  return (call.q_length + kQueries - 1) / kQueries;
}

// One unit: a block of queries of a head.
class QueryBlock {
 public:
  QueryBlock(const AttentionCall& call, int64_t unit, float* scratch)
      : call_(call),
        scores_(scratch),
        sums_(scores_ + kQueries * kKeys),
        greatest_(sums_ + kQueries * call.v_head),
        totals_(greatest_ + kQueries) {
    const int64_t blocks = query_blocks(call);
    first_ = unit % blocks * kQueries;
    count_ = std::min(kQueries, call.q_length - first_);
    h_ = unit / blocks % call.q_heads;
    b_ = unit / blocks / call.q_heads;
    EDDY_DCHECK(b_ < call.batch && count_ > 0) << "unit " << unit << " of " << blocks;
  }

  static size_t scratch_bytes(const AttentionCall& call) {
    return static_cast<size_t>(kQueries * (kKeys + call.v_head + 2)) * sizeof(float);
  }

  void run() {
    std::fill_n(sums_, count_ * call_.v_head, 0.0f);
    std::fill_n(greatest_, count_, -HUGE_VALF);
    std::fill_n(totals_, count_, 0.0f);
    // With a causal mask the last query sees most; without one all see the same.
    const int64_t visible = call_.visible_keys(b_, first_ + count_ - 1);
    int64_t end;
    for (int64_t j = 0; j < visible; j = end) {
      end = std::min(j + kKeys, visible);
      if (j < call_.past) end = std::min(end, call_.past);  // a block lies in one tensor
      add_keys(j, end - j);
    }
    write();
  }

 private:
  const float* data(const TensorView& view, int64_t at) const { return view.as<float>() + at; }

  void add_keys(int64_t first_key, int64_t count) {
    const int64_t kv = call_.kv_head(h_);
    const bool is_past = first_key < call_.past;
    cpu::gemm({.m = count_,
               .n = count,
               .k = call_.head,
               .a = data(call_.args.inputs[0], call_.q.at(b_, h_, first_)),
               .a_row = call_.q.row_step,
               .b = data(call_.key_tensor(first_key), call_.key_at(b_, kv, first_key)),
               .b_row = is_past ? call_.past_k.row_step : call_.k.row_step,
               .transpose_b = true,
               .c = scores_,
               .c_row = kKeys});
    for (int64_t i = 0; i < count_; ++i) weigh(i, first_key, count);
    cpu::gemm({.m = count_,
               .n = call_.v_head,
               .k = count,
               .a = scores_,
               .a_row = kKeys,
               .b = data(call_.value_tensor(first_key), call_.value_at(b_, kv, first_key)),
               .b_row = is_past ? call_.past_v.row_step : call_.v.row_step,
               .c = sums_,
               .c_row = call_.v_head,
               .accumulate = true});
  }

  // Row i of the scores becomes weights, relative to the greatest score so far. Keys that the query
  // may not see weigh nothing.
  void weigh(int64_t i, int64_t first_key, int64_t count) {
    const cpu::SoftmaxLoops& loops = cpu::loop_set().softmax;
    const auto fold = cpu::loop_set().reduce[static_cast<int>(cpu::ReduceOp::kMax)].fold;
    float* row = scores_ + i * kKeys;
    const int64_t seen =
        std::clamp<int64_t>(call_.visible_keys(b_, first_ + i) - first_key, 0, count);
    std::fill(row + seen, row + count, 0.0f);
    if (seen == 0) return;
    const float scale = static_cast<float>(call_.scale);
    const float cap = static_cast<float>(call_.state.softcap);
    loops.scale(row, row, seen, cap > 0 ? scale / cap : scale);
    if (cap > 0) {
      cpu::tile_kernels().tanh(row, seen);
      loops.scale(row, row, seen, cap);
    }
    if (call_.args.has_input(3)) add_mask(i, first_key, seen, row);
    const float before = greatest_[i], here = fold(row, seen);
    const float greatest = here > before || here != here ? here : before;
    const float shift = greatest == -HUGE_VALF ? 0 : greatest;  // then exp(-inf) is 0
    const float total = loops.exp_sum(row, row, seen, shift);
    const float factor = before == -HUGE_VALF ? 0 : std::exp(before - shift);
    totals_[i] = totals_[i] * factor + total;
    if (factor != 1) {
      float* sums = sums_ + i * call_.v_head;
      loops.scale(sums, sums, call_.v_head, factor);
    }
    greatest_[i] = greatest;
  }

  void add_mask(int64_t i, int64_t first_key, int64_t count, float* row) const {
    const TensorView& mask = call_.args.inputs[3];
    const int64_t step = call_.mask_steps[3];
    const int64_t at = call_.mask_at(b_, h_, first_ + i) + first_key * step;
    if (mask.element == ElementType::kBool) {
      const uint8_t* allowed = mask.as<uint8_t>() + at;
      for (int64_t j = 0; j < count; ++j) row[j] = allowed[j * step] ? row[j] : -HUGE_VALF;
    } else {
      const float* bias = mask.as<float>() + at;
      for (int64_t j = 0; j < count; ++j) row[j] += bias[j * step];
    }
  }

  void write() const {
    for (int64_t i = 0; i < count_; ++i) {
      float* y = call_.args.outputs[0].mutable_as<float>() + call_.y.at(b_, h_, first_ + i);
      const float factor = totals_[i] == 0 ? 0 : 1 / totals_[i];
      for (int64_t d = 0; d < call_.v_head; ++d) y[d] = sums_[i * call_.v_head + d] * factor;
    }
  }

  const AttentionCall& call_;
  int64_t b_, h_, first_, count_;
  float* scores_;    // [kQueries][kKeys]
  float* sums_;      // [kQueries][v_head]
  float* greatest_;  // by query
  float* totals_;
};

// A row of keys or values of a head: those of the cache, then the new ones.
void append(const TensorView& from, const HeadRows& from_rows, int64_t b, int64_t h, int64_t count,
            int64_t size, float* to) {
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(to + j * size, from.as<float>() + from_rows.at(b, h, j),
                static_cast<size_t>(size) * sizeof(float));
  }
}

void write_presents(const AttentionCall& call, int64_t b, int64_t h) {
  const KernelArgs& args = call.args;
  for (uint32_t o : {1u, 2u}) {
    if (!has_output(args, o)) continue;
    const bool is_key = o == 1;
    const int64_t size = is_key ? call.head : call.v_head;
    float* to = args.outputs[o].mutable_as<float>() +
                (is_key ? call.present_k : call.present_v).at(b, h, 0);
    if (call.past > 0) {
      append(args.inputs[o + 3], is_key ? call.past_k : call.past_v, b, h, call.past, size, to);
    }
    append(args.inputs[o], is_key ? call.k : call.v, b, h, call.new_keys, size,
           to + call.past * size);
  }
}

// Units: blocks of queries, then each head's keys and values for the caches.
Tiles tiles_of_attention(const KernelArgs& args) {
  const AttentionCall call(args);
  const bool has_presents = has_output(args, 1) || has_output(args, 2);
  const int64_t queries = call.batch * call.q_heads * query_blocks(call);
  const int64_t presents = has_presents ? call.batch * call.kv_heads : 0;
  // A key and a value that are read for up to 16 queries cost about what reading them does.
  const int64_t passes = (std::min(kQueries, call.q_length) + 15) / 16;
  return Tiles::of(queries + presents, passes * call.keys() * (call.head + call.v_head));
}

bool run_attention(const KernelArgs& args, int64_t first, int64_t end) {
  const AttentionCall call(args);
  if (!call.check_lengths()) return false;
  const int64_t queries = call.batch * call.q_heads * query_blocks(call);
  auto* scratch = static_cast<float*>(args.scratch->reserve(QueryBlock::scratch_bytes(call)));
  if (scratch == nullptr) return args.fail(resource_exhausted("no memory for a block of scores"));
  for (int64_t unit = first; unit < end; ++unit) {
    if (unit < queries) {
      QueryBlock(call, unit, scratch).run();
    } else {
      const int64_t head = unit - queries;
      write_presents(call, head / call.kv_heads, head % call.kv_heads);
    }
  }
  return true;
}

bool has_element(const KernelInit& init, size_t i, ElementType element) {
  return i < init.inputs.size() && init.inputs[i].tensor.element == element;
}

Result<BoundKernel> bind_attention(const KernelInit& init) {
  for (size_t i = 0; i < init.inputs.size(); ++i) {
    const bool fits = has_element(init, i, ElementType::kFloat) ||
                      has_element(init, i, ElementType::kUndefined) || i == 6 ||
                      (i == 3 && has_element(init, i, ElementType::kBool));
    if (!fits) return cpu::no_fast_kernel(init);
  }
  if (init.outputs.size() > 3) return unsupported("the fast Attention keeps no scores");
  BoundKernel kernel;
  cpu::set_tiles<tiles_of_attention, run_attention>(kernel);
  kernel.state = AttentionState::of(init);
  return kernel;
}

Tiles tiles_of_places(const KernelArgs& args) {
  const RotaryCall call(args);
  return Tiles::of(call.batch * call.length, call.heads * call.head);
}

bool run_rotary_embedding(const KernelArgs& args, int64_t first, int64_t end) {
  const RotaryCall call(args);
  const bool is_interleaved = call.state.is_interleaved;
  for (int64_t place = first; place < end; ++place) {
    const int64_t b = place / call.length, row = place % call.length;
    int64_t angle;
    if (!call.find_angles(b, row, angle)) return false;
    const float* c = args.inputs[1].as<float>() + angle;
    const float* s = args.inputs[2].as<float>() + angle;
    const int64_t step = is_interleaved ? 2 : 1, apart = is_interleaved ? 1 : call.half;
    for (int64_t h = 0; h < call.heads; ++h) {
      const float* x = args.inputs[0].as<float>() + call.x.at(b, h, row);
      float* y = args.outputs[0].mutable_as<float>() + call.x.at(b, h, row);
      for (int64_t i = 0; i < call.half; ++i) {
        const float u = x[i * step], v = x[i * step + apart];
        y[i * step] = c[i] * u - s[i] * v;
        y[i * step + apart] = s[i] * u + c[i] * v;
      }
      for (int64_t i = 2 * call.half; i < call.head; ++i) y[i] = x[i];
    }
  }
  return true;
}

Result<BoundKernel> bind_rotary_embedding(const KernelInit& init) {
  if (!has_element(init, 0, ElementType::kFloat)) return cpu::no_fast_kernel(init);
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of_places, run_rotary_embedding>;
  if (cpu::fills_tiles(init.inputs[0])) {
    cpu::set_tiles<tiles_of_places, run_rotary_embedding>(kernel);
  }
  kernel.state = RotaryState::of(init);
  return kernel;
}

}  // namespace

void add_attention_cpu(KernelRegistry& registry) {
  registry.add({.op = "Attention",
                .since_version = 23,
                .bind = bind_attention,
                .provider = "tile",
                .has_tiles = true});
  registry.add({.op = "RotaryEmbedding",
                .since_version = 23,
                .bind = bind_rotary_embedding,
                .has_tiles = true});
}

}  // namespace eddy
