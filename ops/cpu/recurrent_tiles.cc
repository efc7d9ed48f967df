#include "ops/cpu/lstm_tiles.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/recurrent_run.h"

namespace eddy::cpu {
namespace {

// Multiplications of a step with R that are worth a meeting of threads, and of a tile.
constexpr int64_t kMinStepWork = int64_t{1} << 19;
constexpr int64_t kTileWork = int64_t{1} << 17;

int64_t step_work(const RecurrentShape& s) { return s.batch * 4 * s.hidden * s.hidden; }

int64_t panel_width() { return tile_kernels().panel_width(); }

}  // namespace

LstmTiles::LstmTiles(const KernelArgs& args, const RecurrentRules& rules,
                     const RecurrentShape& shape, const std::array<Weights, 2>& weights)
    : args_(args), rules_(rules), s_(shape), weights_(weights) {
  const int64_t panels = s_.hidden / panel_width();
  EDDY_CHECK(panels > 0) << "a hidden state of " << s_.hidden;
  const int64_t wanted = std::clamp<int64_t>(step_work(s_) / kTileWork, 1, panels);
  const int64_t panels_each = (panels + wanted - 1) / wanted;
  block_size_ = panels_each * panel_width();
  num_blocks_ = (panels + panels_each - 1) / panels_each;
  steps_ahead_ = std::min(RecurrentRun::block_steps(RecurrentKind::kLstm, s_.batch, s_.hidden),
                          std::max<int64_t>(s_.sequence, 1));
}

bool LstmTiles::suits(const KernelArgs& args, const RecurrentRules& rules,
                      const RecurrentShape& shape, const std::array<Weights, 2>& weights) {
  const bool is_plain = rules.kind == RecurrentKind::kLstm && !rules.has_clip &&
                        !rules.input_forget && !args.has_input(7) &&
                        shape.lengths_or_null == nullptr;
  if (!is_plain || shape.hidden % panel_width() != 0 || shape.hidden == 0) return false;
  if (shape.sequence < 2 || step_work(shape) < kMinStepWork) return false;
  for (int d = 0; d < rules.num_directions; ++d) {
    const auto& functions = rules.activations[static_cast<size_t>(d)];
    if (functions[0].kind != ActivationKind::kSigmoid ||
        functions[1].kind != ActivationKind::kTanh || functions[2].kind != ActivationKind::kTanh) {
      return false;
    }
    const Weights& one = weights[static_cast<size_t>(d)];
    if (one.w_or_null == nullptr || one.r_or_null == nullptr) return false;
  }
  return true;
}

int64_t LstmTiles::floats_of_direction() const {
  return width() + 3 * s_.batch * s_.hidden + steps_ahead_ * s_.batch * width();
}

size_t LstmTiles::shared_bytes() const {
  return static_cast<size_t>(rules_.num_directions * floats_of_direction()) * sizeof(float);
}

LstmTiles::Block LstmTiles::block_of(uint32_t tile) const {
  const int64_t at = tile % num_at_once(), direction = at / num_blocks_;
  const int64_t first = at % num_blocks_ * block_size_, state = s_.batch * s_.hidden;
  float* const bias = static_cast<float*>(args_.shared) + direction * floats_of_direction();
  float* const h = bias + width();
  return {direction,    first,          std::min(first + block_size_, s_.hidden),
          bias,         {h, h + state}, h + 2 * state,
          h + 3 * state};
}

void LstmTiles::run(uint32_t tile) const {
  EDDY_DCHECK(tile < count() && args_.shared != nullptr) << "tile " << tile << " of " << count();
  const Block block = block_of(tile);
  const int64_t phase = tile / num_at_once();
  if (phase == 0) return load(block);
  const int64_t at = phase - 1;
  if (at % steps_ahead_ == 0) project(block, at, std::min(steps_ahead_, s_.sequence - at));
  step(block, at);
}

void LstmTiles::load(const Block& block) const {
  const int64_t n = s_.hidden, size = block.end - block.first;
  const float* const bias =
      args_.has_input(3) ? args_.inputs[3].as<float>() + block.direction * 2 * width() : nullptr;
  for (int64_t gate = 0; gate < 4; ++gate) {
    for (int64_t j = gate * n + block.first; j < gate * n + block.end; ++j) {
      block.bias[j] = bias ? bias[j] + bias[width() + j] : 0.0f;
    }
  }
  for (const uint32_t input : {5u, 6u}) {
    float* const state = input == 5 ? block.h[0] : block.c;
    for (int64_t b = 0; b < s_.batch; ++b) {
      float* const to = state + b * n + block.first;
      if (!args_.has_input(input)) {
        std::fill_n(to, size, 0.0f);
        continue;
      }
      std::copy_n(args_.inputs[input].as<float>() + block.direction * s_.state_direction +
                      b * s_.state_batch + block.first,
                  size, to);
    }
  }
}

// The columns of the block's units in all four gates.
void LstmTiles::multiply(const PackedMatrix& matrix, PackedMatrix::Product product,
                         const Block& block) const {
  for (int64_t gate = 0; gate < 4; ++gate) {
    product.first_panel = (gate * s_.hidden + block.first) / panel_width();
    product.end_panel = (gate * s_.hidden + block.end) / panel_width();
    matrix.multiply(product);
  }
}

// gates = x * W + bias, for `count` steps.
void LstmTiles::project(const Block& block, int64_t first_step, int64_t count) const {
  const bool backwards = rules_.runs_backwards(static_cast<int>(block.direction));
  const int64_t t0 = backwards ? s_.sequence - first_step - count : first_step;
  const float* const x = args_.inputs[0].as<float>() + t0 * s_.x_step;
  const PackedMatrix& w = *weights_[static_cast<size_t>(block.direction)].w_or_null;
  PackedMatrix::Product product{.c_row = width(), .bias_or_null = block.bias};
  if (s_.batch == 1 || s_.x_step == s_.batch * s_.x_batch) {
    product.m = count * s_.batch;
    product.a = x;
    product.a_row = s_.batch == 1 ? s_.x_step : s_.x_batch;
    product.c = block.gates;
    return multiply(w, product, block);
  }
  product.m = count;
  product.a_row = s_.x_step;
  product.c_row = s_.batch * width();
  for (int64_t b = 0; b < s_.batch; ++b) {
    product.a = x + b * s_.x_batch;
    product.c = block.gates + b * width();
    multiply(w, product, block);
  }
}

void LstmTiles::step(const Block& block, int64_t step) const {
  const int64_t n = s_.hidden, first = step - step % steps_ahead_;
  const int64_t count = std::min(steps_ahead_, s_.sequence - first);
  const bool backwards = rules_.runs_backwards(static_cast<int>(block.direction));
  const int64_t row = backwards ? first + count - 1 - step : step - first;
  const int64_t t = backwards ? s_.sequence - 1 - step : step;
  float* const gates = block.gates + row * s_.batch * width();
  const float* const h = block.h[step % 2];
  float* const next = block.h[(step + 1) % 2];
  multiply(*weights_[static_cast<size_t>(block.direction)].r_or_null,
           {.m = s_.batch, .a = h, .a_row = n, .c = gates, .c_row = width(), .accumulate = true},
           block);
  float* const y = output_or_null<float>(args_, 0);
  for (int64_t b = 0; b < s_.batch; ++b) {
    float* const state = next + b * n + block.first;
    tile_kernels().lstm_cell({.count = block.end - block.first,
                              .gates = gates + b * width() + block.first,
                              .gate_step = n,
                              .cell = block.c + b * n + block.first,
                              .hidden = state});
    if (y == nullptr) continue;
    std::copy_n(
        state, block.end - block.first,
        y + block.direction * s_.y_direction + t * s_.y_step + b * s_.y_batch + block.first);
  }
  if (step + 1 == s_.sequence) save(block, next);
}

void LstmTiles::save(const Block& block, const float* h) const {
  for (const uint32_t output : {1u, 2u}) {
    float* const to = output_or_null<float>(args_, output);
    const float* const from = output == 1 ? h : block.c;
    for (int64_t b = 0; to != nullptr && b < s_.batch; ++b) {
      std::copy_n(from + b * s_.hidden + block.first, block.end - block.first,
                  to + block.direction * s_.state_direction + b * s_.state_batch + block.first);
    }
  }
}

}  // namespace eddy::cpu
