// LinearAttention, token by token, in double. With q, k and v of a token and a state S of
// [head size, value size]:
//
//   S = exp(decay) S             where the rule is gated
//   S = S + k (v - S' k)' beta   where it is a delta; else S + k v'
//   y = scale S' q               for each of the query heads that share the state
//
// Source: ONNX operator LinearAttention, opset 27.
#include <cmath>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/outputs.h"

namespace eddy {
namespace {

struct LinearState : KernelState {
  bool decays = true, corrects = true;
  int64_t q_heads = 1, kv_heads = 1;
  double scale = 0;  // 0: 1 / sqrt(head size)
};

double number_at(const TensorView& view, int64_t i) { return load_number(view, i).to_double(); }
void set_number(const TensorView& view, int64_t i, double value) {
  store_number(view, i, Number::of_double(value));
}

// The state of one head of one of the batch.
class Head {
 public:
  Head(const KernelArgs& args, int64_t b, int64_t h)
      : args_(args),
        config_(static_cast<const LinearState&>(*args.state)),
        b_(b),
        h_(h),
        length_(args.inputs[0].dims[1]),
        size_(args.inputs[1].dims[2] / config_.kv_heads),
        v_size_(args.inputs[2].dims[2] / config_.kv_heads),
        scale_(config_.scale != 0 ? config_.scale : 1 / std::sqrt(static_cast<double>(size_))),
        state_(static_cast<size_t>(size_ * v_size_)) {
    if (!args.has_input(3)) return;
    for (size_t i = 0; i < state_.size(); ++i)
      state_[i] = number_at(args.inputs[3], first() + to_int(i));
  }

  void run() {
    for (int64_t t = 0; t < length_; ++t) {
      if (config_.decays) decay(t);
      add(t);
      answer(t);
    }
    if (!has_output(args_, 1)) return;
    for (size_t i = 0; i < state_.size(); ++i) {
      set_number(args_.outputs[1], first() + to_int(i), state_[i]);
    }
  }

 private:
  static int64_t to_int(size_t i) { return static_cast<int64_t>(i); }
  int64_t first() const { return (b_ * config_.kv_heads + h_) * size_ * v_size_; }
  // Element `i` of this head's part of a token.
  double token(size_t input, int64_t t, int64_t heads, int64_t h, int64_t i) const {
    const TensorView& view = args_.inputs[input];
    const int64_t width = view.dims[2];
    return number_at(view, (b_ * length_ + t) * width + h * (width / heads) + i);
  }
  double& at(int64_t d, int64_t v) { return state_[static_cast<size_t>(d * v_size_ + v)]; }

  void decay(int64_t t) {
    const bool is_by_element = args_.inputs[4].dims[2] == args_.inputs[1].dims[2];
    for (int64_t d = 0; d < size_; ++d) {
      const double factor = std::exp(token(4, t, config_.kv_heads, h_, is_by_element ? d : 0));
      for (int64_t v = 0; v < v_size_; ++v) at(d, v) *= factor;
    }
  }

  void add(int64_t t) {
    const auto key = [&](int64_t d) { return token(1, t, config_.kv_heads, h_, d); };
    double beta = 1;
    if (config_.corrects) {
      const bool is_shared = args_.inputs[5].dims[2] == 1;
      beta = is_shared ? token(5, t, 1, 0, 0) : token(5, t, config_.kv_heads, h_, 0);
    }
    for (int64_t v = 0; v < v_size_; ++v) {
      double value = token(2, t, config_.kv_heads, h_, v);
      for (int64_t d = 0; config_.corrects && d < size_; ++d) value -= at(d, v) * key(d);
      for (int64_t d = 0; d < size_; ++d) at(d, v) += beta * key(d) * value;
    }
  }

  void answer(int64_t t) {
    const int64_t shared = config_.q_heads / config_.kv_heads;
    for (int64_t q = h_ * shared; q < (h_ + 1) * shared; ++q) {
      for (int64_t v = 0; v < v_size_; ++v) {
        double sum = 0;
        for (int64_t d = 0; d < size_; ++d) sum += token(0, t, config_.q_heads, q, d) * at(d, v);
        const int64_t row = (b_ * length_ + t) * config_.q_heads + q;
        set_number(args_.outputs[0], row * v_size_ + v, scale_ * sum);
      }
    }
  }

  const KernelArgs& args_;
  const LinearState& config_;
  const int64_t b_, h_, length_, size_, v_size_;
  const double scale_;
  std::vector<double> state_;  // [size][v_size]
};

bool run_linear_attention(const KernelArgs& args) {
  const auto& config = static_cast<const LinearState&>(*args.state);
  for (int64_t b = 0; b < args.inputs[0].dims[0]; ++b) {
    for (int64_t h = 0; h < config.kv_heads; ++h) Head(args, b, h).run();
  }
  return true;
}

Result<BoundKernel> bind_linear_attention(const KernelInit& init) {
  auto state = std::make_unique<LinearState>();
  const std::string_view rule = init.attributes.get_string("update_rule", "gated_delta");
  state->decays = rule == "gated" || rule == "gated_delta";
  state->corrects = rule == "delta" || rule == "gated_delta";
  state->q_heads = init.attributes.get_int("q_num_heads", 1);
  state->kv_heads = init.attributes.get_int("kv_num_heads", 1);
  state->scale = init.attributes.get_float("scale", 0);
  return BoundKernel{.run = run_linear_attention, .state = std::move(state)};
}

}  // namespace

void add_linear_attention_reference(KernelRegistry& registry) {
  registry.add({.op = "LinearAttention",
                .since_version = 27,
                .bind = bind_linear_attention,
                .provider = "reference"});
}

}  // namespace eddy
