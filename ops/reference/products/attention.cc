// Attention and RotaryEmbedding, one score and one pair at a time, in double.
#include "ops/reference/products/attention.h"

#include <cmath>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/outputs.h"

namespace eddy {

std::unique_ptr<AttentionState> AttentionState::of(const KernelInit& init) {
  auto state = std::make_unique<AttentionState>();
  const Attributes& attributes = init.attributes;
  if (attributes.has("scale")) state->scale = attributes.get_float("scale", 0);
  state->softcap = attributes.get_float("softcap", 0);
  state->is_causal = attributes.get_int("is_causal", 0) != 0;
  state->pads_mask = init.opset_version >= 24;
  state->q_heads = attributes.get_int("q_num_heads", 0);
  state->kv_heads = attributes.get_int("kv_num_heads", 0);
  state->scores_mode = attributes.get_int("qk_matmul_output_mode", 0);
  return state;
}

AttentionCall::AttentionCall(const KernelArgs& call)
    : args(call), state(static_cast<const AttentionState&>(*call.state)) {
  const TensorView &query = args.inputs[0], &key = args.inputs[1], &value = args.inputs[2];
  const bool has_heads = query.rank == 4;
  batch = query.dims[0];
  q_heads = has_heads ? query.dims[1] : state.q_heads;
  kv_heads = key.rank == 4 ? key.dims[1] : state.kv_heads;
  q_length = query.dims[query.rank - 2];
  new_keys = key.dims[key.rank - 2];
  head = has_heads ? query.dims[3] : query.dims[2] / q_heads;
  v_head = value.rank == 4 ? value.dims[3] : value.dims[2] / kv_heads;
  past = args.has_input(4) ? args.inputs[4].dims[2] : 0;
  q = HeadRows::of(query, q_heads);
  k = HeadRows::of(key, kv_heads);
  v = HeadRows::of(value, kv_heads);
  y = HeadRows::of(args.outputs[0], q_heads);
  if (args.has_input(4)) {
    past_k = HeadRows::of(args.inputs[4], kv_heads);
    past_v = HeadRows::of(args.inputs[5], kv_heads);
  }
  if (has_output(args, 1)) present_k = HeadRows::of(args.outputs[1], kv_heads);
  if (has_output(args, 2)) present_v = HeadRows::of(args.outputs[2], kv_heads);
  scale = state.scale.value_or(1 / std::sqrt(static_cast<double>(head)));
  mask_keys = keys();
  if (!args.has_input(3)) return;
  const TensorView& mask = args.inputs[3];
  int64_t step = 1;
  for (int axis = mask.rank - 1; axis >= 0; --axis) {
    const int own = axis + 4 - mask.rank;
    const bool is_short = own == 3 && state.pads_mask && mask.dims[axis] < keys();
    if (is_short) mask_keys = mask.dims[axis];
    mask_steps[own] = mask.dims[axis] == 1 && !is_short ? 0 : step;
    step *= mask.dims[axis];
  }
}

bool AttentionCall::check_lengths() const {
  for (int64_t b = 0; args.has_input(6) && b < batch; ++b) {
    const int64_t valid = args.inputs[6].as<int64_t>()[b];
    if (valid >= 0 && valid <= keys()) continue;
    return args.fail(run_failed("nonpad_kv_seqlen[" + std::to_string(b) + "] is " +
                                std::to_string(valid) + ", but must be 0 to " +
                                std::to_string(keys()) + ", the length of K"));
  }
  return true;
}

int64_t AttentionCall::visible_keys(int64_t b, int64_t row) const {
  int64_t visible = mask_keys;
  int64_t offset = past;
  if (args.has_input(6)) {
    const int64_t valid = args.inputs[6].as<int64_t>()[b];
    EDDY_DCHECK(valid >= 0 && valid <= keys()) << "no call of check_lengths";
    visible = std::min(visible, valid);
    offset = valid - q_length;
  }
  if (state.is_causal) visible = std::min(visible, row + offset + 1);
  return std::max<int64_t>(visible, 0);
}

std::unique_ptr<RotaryState> RotaryState::of(const KernelInit& init) {
  auto state = std::make_unique<RotaryState>();
  state->is_interleaved = init.attributes.get_int("interleaved", 0) != 0;
  state->heads = init.attributes.get_int("num_heads", 0);
  state->turned = init.attributes.get_int("rotary_embedding_dim", 0);
  return state;
}

RotaryCall::RotaryCall(const KernelArgs& call)
    : args(call), state(static_cast<const RotaryState&>(*call.state)) {
  const TensorView& input = args.inputs[0];
  batch = input.dims[0];
  heads = input.rank == 4 ? input.dims[1] : state.heads;
  length = input.dims[input.rank - 2];
  head = input.rank == 4 ? input.dims[3] : input.dims[2] / heads;
  half = (state.turned == 0 ? head : state.turned) / 2;
  x = HeadRows::of(input, heads);
}

bool RotaryCall::find_angles(int64_t b, int64_t row, int64_t& at) const {
  const int64_t place = b * length + row;
  at = place * half;
  if (!args.has_input(3)) return true;
  const int64_t position = args.inputs[3].as<int64_t>()[place];
  const int64_t rows = args.inputs[1].dims[0];
  if (position < 0 || position >= rows || position >= args.inputs[2].dims[0]) {
    return args.fail(run_failed("position " + std::to_string(position) + " of place " +
                                std::to_string(place) + " has no row in caches of " +
                                std::to_string(rows)));
  }
  at = position * half;
  return true;
}

namespace {

double number_at(const TensorView& view, int64_t i) { return load_number(view, i).to_double(); }
void set_number(const TensorView& view, int64_t i, double value) {
  store_number(view, i, Number::of_double(value));
}

// The scores of one query and what is shown of them.
class Scores {
 public:
  Scores(const AttentionCall& call, int64_t b, int64_t h, int64_t row)
      : call_(call), b_(b), h_(h), row_(row), scores_(static_cast<size_t>(call.keys())) {}

  // softmax of the scores; all 0 where no key is allowed.
  const std::vector<double>& compute() {
    for (int64_t j = 0; j < call_.keys(); ++j) scores_[static_cast<size_t>(j)] = product(j);
    show(0);
    if (call_.state.softcap > 0) {
      for (double& score : scores_) {
        score = call_.state.softcap * std::tanh(score / call_.state.softcap);
      }
    }
    show(1);
    mask();
    show(2);
    double greatest = -HUGE_VAL, total = 0;
    for (const double score : scores_) greatest = score > greatest ? score : greatest;
    for (double& score : scores_) {
      score = greatest == -HUGE_VAL && !(score != score) ? 0 : std::exp(score - greatest);
      total += score;
    }
    for (double& score : scores_) score = total == 0 ? 0 : score / total;
    show(3);
    return scores_;
  }

 private:
  double product(int64_t j) const {
    const int64_t q = call_.q.at(b_, h_, row_), k = call_.key_at(b_, call_.kv_head(h_), j);
    double sum = 0;
    for (int64_t d = 0; d < call_.head; ++d) {
      sum += number_at(call_.args.inputs[0], q + d) * number_at(call_.key_tensor(j), k + d);
    }
    return sum * call_.scale;
  }
  void mask() {
    const int64_t visible = call_.visible_keys(b_, row_);
    for (int64_t j = 0; j < call_.keys(); ++j) {
      double& score = scores_[static_cast<size_t>(j)];
      if (j >= visible) {
        score = -HUGE_VAL;
      } else if (call_.args.has_input(3)) {
        const TensorView& mask = call_.args.inputs[3];
        const int64_t at = call_.mask_at(b_, h_, row_) + j * call_.mask_steps[3];
        const double value = number_at(mask, at);
        score = mask.element != ElementType::kBool ? score + value : value != 0 ? score : -HUGE_VAL;
      }
    }
  }
  void show(int64_t mode) const {
    if (!has_output(call_.args, 3) || call_.state.scores_mode != mode) return;
    const int64_t first = ((b_ * call_.q_heads + h_) * call_.q_length + row_) * call_.keys();
    for (int64_t j = 0; j < call_.keys(); ++j) {
      set_number(call_.args.outputs[3], first + j, scores_[static_cast<size_t>(j)]);
    }
  }

  const AttentionCall& call_;
  const int64_t b_, h_, row_;
  std::vector<double> scores_;
};

void write_presents(const AttentionCall& call) {
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t h = 0; h < call.kv_heads; ++h) {
      for (int64_t j = 0; j < call.keys(); ++j) {
        for (int64_t d = 0; has_output(call.args, 1) && d < call.head; ++d) {
          store_number(call.args.outputs[1], call.present_k.at(b, h, j) + d,
                       load_number(call.key_tensor(j), call.key_at(b, h, j) + d));
        }
        for (int64_t d = 0; has_output(call.args, 2) && d < call.v_head; ++d) {
          store_number(call.args.outputs[2], call.present_v.at(b, h, j) + d,
                       load_number(call.value_tensor(j), call.value_at(b, h, j) + d));
        }
      }
    }
  }
}

bool run_attention(const KernelArgs& args) {
  const AttentionCall call(args);
  if (!call.check_lengths()) return false;
  write_presents(call);
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t h = 0; h < call.q_heads; ++h) {
      for (int64_t row = 0; row < call.q_length; ++row) {
        Scores scores(call, b, h, row);
        const std::vector<double>& weights = scores.compute();
        for (int64_t d = 0; d < call.v_head; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < call.keys(); ++j) {
            const double weight = weights[static_cast<size_t>(j)];
            if (weight == 0) continue;  // what is not allowed may hold anything
            sum +=
                weight * number_at(call.value_tensor(j), call.value_at(b, call.kv_head(h), j) + d);
          }
          set_number(args.outputs[0], call.y.at(b, h, row) + d, sum);
        }
      }
    }
  }
  return true;
}

bool run_rotary_embedding(const KernelArgs& args) {
  const RotaryCall call(args);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t row = 0; row < call.length; ++row) {
      int64_t angle;
      if (!call.find_angles(b, row, angle)) return false;
      for (int64_t h = 0; h < call.heads; ++h) {
        const int64_t first = call.x.at(b, h, row);
        for (int64_t i = 0; i < call.half; ++i) {
          const int64_t left = first + (call.state.is_interleaved ? 2 * i : i);
          const int64_t right = left + (call.state.is_interleaved ? 1 : call.half);
          const double c = number_at(args.inputs[1], angle + i);
          const double s = number_at(args.inputs[2], angle + i);
          const double u = number_at(x, left), v = number_at(x, right);
          set_number(y, left, c * u - s * v);
          set_number(y, right, s * u + c * v);
        }
        for (int64_t i = 2 * call.half; i < call.head; ++i) {
          set_number(y, first + i, number_at(x, first + i));
        }
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_attention(const KernelInit& init) {
  BoundKernel kernel;
  kernel.run = run_attention;
  kernel.state = AttentionState::of(init);
  return kernel;
}

Result<BoundKernel> bind_rotary_embedding(const KernelInit& init) {
  BoundKernel kernel;
  kernel.run = run_rotary_embedding;
  kernel.state = RotaryState::of(init);
  return kernel;
}

}  // namespace

void add_attention_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "Attention", .since_version = 23, .bind = bind_attention, .provider = "reference"});
  registry.add({.op = "RotaryEmbedding",
                .since_version = 23,
                .bind = bind_rotary_embedding,
                .provider = "reference"});
}

}  // namespace eddy
