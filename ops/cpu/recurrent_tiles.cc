#include "ops/cpu/recurrent_tiles.h"

#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/recurrent_run.h"

namespace eddy::cpu {
namespace {

// Multiplications of a step with R that are worth a meeting of threads, and of a tile.
constexpr int64_t kMinStepWork = int64_t{1} << 19;
constexpr int64_t kTileWork = int64_t{1} << 17;
// Of R of one direction, for both to run at once: then they fit in the second-level caches of two
// processors, beside what else is there.
constexpr int64_t kMostWeightsAtOnce = int64_t{1} << 18;

int64_t step_work(const RecurrentRules& rules, const RecurrentShape& s) {
  return s.batch * num_gates(rules.kind) * s.hidden * s.hidden;
}

int64_t panel_width() { return tile_kernels().panel_width(); }

}  // namespace

RecurrentTiles::RecurrentTiles(const KernelArgs& args, const RecurrentRules& rules,
                               const RecurrentShape& shape, const std::array<Weights, 2>& weights)
    : args_(args), rules_(rules), s_(shape), weights_(weights) {
  const int64_t panels = s_.hidden / panel_width();
  EDDY_CHECK(panels > 0) << "a hidden state of " << s_.hidden;
  const int64_t wanted = std::clamp<int64_t>(step_work(rules, s_) / kTileWork, 1, panels);
  const int64_t panels_each = (panels + wanted - 1) / wanted;
  block_size_ = panels_each * panel_width();
  num_blocks_ = (panels + panels_each - 1) / panels_each;
  steps_ahead_ = std::min(RecurrentRun::block_steps(rules.kind, s_.batch, s_.hidden),
                          std::max<int64_t>(s_.sequence, 1));
  rounds_each_ = resets_before() ? 2 : 1;
  const bool fits = step_work(rules, s_) / s_.batch <= kMostWeightsAtOnce;
  directions_at_once_ = fits ? rules.num_directions : 1;
}

bool RecurrentTiles::suits(const KernelArgs& args, const RecurrentRules& rules,
                           const RecurrentShape& shape, const std::array<Weights, 2>& weights) {
  if (shape.lengths_or_null != nullptr || shape.sequence < 2) return false;
  if (shape.hidden % panel_width() != 0 || shape.hidden == 0) return false;
  if (step_work(rules, shape) < kMinStepWork) return false;
  const bool is_lstm = rules.kind == RecurrentKind::kLstm;
  for (int d = 0; d < rules.num_directions; ++d) {
    if (is_lstm && !has_plain_lstm_cell(rules, d, args.has_input(7))) return false;
    const Weights& one = weights[static_cast<size_t>(d)];
    if (one.w_or_null == nullptr || one.r_or_null == nullptr) return false;
    if (rules.kind == RecurrentKind::kGru && one.candidate_or_null == nullptr) return false;
  }
  return true;
}

int64_t RecurrentTiles::floats_of_direction() const {
  return width() + 3 * s_.batch * s_.hidden + steps_ahead_ * s_.batch * width();
}

size_t RecurrentTiles::shared_bytes() const {
  return static_cast<size_t>(rules_.num_directions * floats_of_direction()) * sizeof(float);
}

RecurrentTiles::Block RecurrentTiles::block_of(int64_t direction, int64_t place) const {
  const int64_t first = place * block_size_, state = s_.batch * s_.hidden;
  float* const bias = static_cast<float*>(args_.shared) + direction * floats_of_direction();
  float* const h = bias + width();
  return {direction,    first,          std::min(first + block_size_, s_.hidden),
          bias,         {h, h + state}, h + 2 * state,
          h + 3 * state};
}

void RecurrentTiles::run(uint32_t tile) const {
  EDDY_DCHECK(tile < count() && args_.shared != nullptr) << "tile " << tile << " of " << count();
  const int64_t stage = tile / num_at_once(), at = tile % num_at_once();
  const int64_t direction = stage / num_phases() * directions_at_once_ + at / num_blocks_;
  const Block block = block_of(direction, at % num_blocks_);
  const int64_t phase = stage % num_phases();
  if (phase == 0) return load(block);
  const int64_t next = (phase - 1) / rounds_each_;
  const bool is_second_round = (phase - 1) % rounds_each_ == 1;
  if (next % steps_ahead_ == 0 && !is_second_round) {
    project(block, next, std::min(steps_ahead_, s_.sequence - next));
  }
  step(block, next, is_second_round);
}

void RecurrentTiles::load(const Block& block) const {
  const int64_t n = s_.hidden;
  const float* const bias =
      args_.has_input(3) ? args_.inputs[3].as<float>() + block.direction * 2 * width() : nullptr;
  const int64_t added = has_candidate_bias(rules_) ? 2 * n : width();
  for (int64_t gate = 0; gate < num_gates(rules_.kind); ++gate) {
    for (int64_t j = gate * n + block.first; j < gate * n + block.end; ++j) {
      block.bias[j] = bias ? bias[j] + (j < added ? bias[width() + j] : 0.0f) : 0.0f;
    }
  }
  for (const uint32_t input : {5u, 6u}) {
    if (input == 6 && rules_.kind != RecurrentKind::kLstm) continue;
    float* const state = input == 5 ? block.h[0] : block.c;
    for (int64_t b = 0; b < s_.batch; ++b) {
      float* const to = state + b * n + block.first;
      if (!args_.has_input(input)) {
        std::fill_n(to, block.size(), 0.0f);
        continue;
      }
      std::copy_n(args_.inputs[input].as<float>() + block.direction * s_.state_direction +
                      b * s_.state_batch + block.first,
                  block.size(), to);
    }
  }
}

// The columns of the block's units in so many gates.
void RecurrentTiles::multiply(const PackedMatrix& matrix, PackedMatrix::Product product,
                              const Block& block, int64_t gates) const {
  for (int64_t i = 0; i < gates; ++i) {
    const int64_t gate = product.reading.goes_back ? gates - 1 - i : i;
    product.first_panel = (gate * s_.hidden + block.first) / panel_width();
    product.end_panel = (gate * s_.hidden + block.end) / panel_width();
    matrix.multiply(product);
  }
}

// gates = x * W + bias, for `count` steps.
void RecurrentTiles::project(const Block& block, int64_t first_step, int64_t count) const {
  const bool backwards = rules_.runs_backwards(static_cast<int>(block.direction));
  const int64_t t0 = backwards ? s_.sequence - first_step - count : first_step;
  const float* const x = args_.inputs[0].as<float>() + t0 * s_.x_step;
  const PackedMatrix& w = *weights_of(block).w_or_null;
  PackedMatrix::Product product{.c_row = width(), .bias_or_null = block.bias};
  if (s_.batch == 1 || s_.x_step == s_.batch * s_.x_batch) {
    product.m = count * s_.batch;
    product.a = x;
    product.a_row = s_.batch == 1 ? s_.x_step : s_.x_batch;
    product.c = block.gates;
    return multiply(w, product, block, num_gates(rules_.kind));
  }
  product.m = count;
  product.a_row = s_.x_step;
  product.c_row = s_.batch * width();
  for (int64_t b = 0; b < s_.batch; ++b) {
    product.a = x + b * s_.x_batch;
    product.c = block.gates + b * width();
    multiply(w, product, block, num_gates(rules_.kind));
  }
}

void RecurrentTiles::step(const Block& block, int64_t step, bool is_second_round) const {
  const int64_t first = step - step % steps_ahead_;
  const int64_t count = std::min(steps_ahead_, s_.sequence - first);
  const bool backwards = rules_.runs_backwards(static_cast<int>(block.direction));
  const int64_t row = backwards ? first + count - 1 - step : step - first;
  float* const gates = block.gates + row * s_.batch * width();
  const float* const h = block.h[step % 2];
  float* const next = block.h[(step + 1) % 2];
  // Two threads at least.
  const auto reading = reading_of(step, directions_at_once_ * width() * s_.hidden / 2);
  if (!is_second_round) {
    const int64_t num_in_r =
        rules_.kind == RecurrentKind::kGru ? 2 : int64_t{num_gates(rules_.kind)};
    multiply(*weights_of(block).r_or_null,
             {.m = s_.batch,
              .a = h,
              .a_row = s_.hidden,
              .c = gates,
              .c_row = width(),
              .accumulate = true,
              .reading = reading},
             block, num_in_r);
  }
  switch (rules_.kind) {
    case RecurrentKind::kLstm:
      lstm_cells(block, gates, next);
      break;
    case RecurrentKind::kRnn:
      rnn_cells(block, gates, next);
      break;
    case RecurrentKind::kGru:
      if (!is_second_round) gru_gates(block, gates, h);
      if (resets_before() && !is_second_round) return;
      gru_candidates(block, gates, h, next, reading);
      break;
  }
  store(block, backwards ? s_.sequence - 1 - step : step, next);
  if (step + 1 == s_.sequence) save(block, next);
}

void RecurrentTiles::activate(const Block& block, int function, float* values) const {
  clip_and_activate(rules_, static_cast<int>(block.direction), function, values, block.size());
}

void RecurrentTiles::lstm_cells(const Block& block, const float* gates, float* next) const {
  for (int64_t b = 0; b < s_.batch; ++b) {
    tile_kernels().lstm_cell({.count = block.size(),
                              .gates = gates + b * width() + block.first,
                              .gate_step = s_.hidden,
                              .cell = block.c + b * s_.hidden + block.first,
                              .hidden = next + b * s_.hidden + block.first});
  }
}

void RecurrentTiles::rnn_cells(const Block& block, float* gates, float* next) const {
  for (int64_t b = 0; b < s_.batch; ++b) {
    float* const row = gates + b * width() + block.first;
    activate(block, 0, row);
    std::copy_n(row, block.size(), next + b * s_.hidden + block.first);
  }
}

// Gates z and r; then what the candidate's product needs of the block.
void RecurrentTiles::gru_gates(const Block& block, float* gates, const float* h) const {
  const int64_t n = s_.hidden;
  for (int64_t b = 0; b < s_.batch; ++b) {
    float* const row = gates + b * width() + block.first;
    activate(block, 0, row);
    activate(block, 0, row + n);
    const float* const state = h + b * n + block.first;
    float* const reset = block.c + b * n + block.first;
    for (int64_t j = 0; resets_before() && j < block.size(); ++j) reset[j] = row[n + j] * state[j];
  }
}

// Gate h, then the next state.
void RecurrentTiles::gru_candidates(const Block& block, float* gates, const float* h, float* next,
                                    PackedMatrix::Reading reading) const {
  const int64_t n = s_.hidden;
  const PackedMatrix& r = *weights_of(block).candidate_or_null;
  PackedMatrix::Product product{.m = s_.batch, .a_row = n, .reading = reading};
  if (resets_before()) {
    product.a = block.c;
    product.c = gates + 2 * n;
    product.c_row = width();
    product.accumulate = true;
  } else {
    const float* const bias =
        args_.has_input(3) ? args_.inputs[3].as<float>() + block.direction * 2 * width() : nullptr;
    product.a = h;
    product.c = block.c;
    product.c_row = n;
    product.bias_or_null = bias == nullptr ? nullptr : bias + width() + 2 * n;
  }
  multiply(r, product, block, 1);
  for (int64_t b = 0; b < s_.batch; ++b) {
    float* const row = gates + b * width() + block.first;
    const int64_t at = b * n + block.first;
    if (!resets_before()) add_reset(row + n, block.c + at, row + 2 * n, block.size());
    activate(block, 1, row + 2 * n);
    gru_state(row, row + 2 * n, h + at, next + at, block.size());
  }
}

void RecurrentTiles::store(const Block& block, int64_t t, const float* next) const {
  float* const y = output_or_null<float>(args_, 0);
  for (int64_t b = 0; y != nullptr && b < s_.batch; ++b) {
    std::copy_n(
        next + b * s_.hidden + block.first, block.size(),
        y + block.direction * s_.y_direction + t * s_.y_step + b * s_.y_batch + block.first);
  }
}

void RecurrentTiles::save(const Block& block, const float* h) const {
  for (const uint32_t output : {1u, 2u}) {
    if (output == 2 && rules_.kind != RecurrentKind::kLstm) continue;
    float* const to = output_or_null<float>(args_, output);
    const float* const from = output == 1 ? h : block.c;
    for (int64_t b = 0; to != nullptr && b < s_.batch; ++b) {
      std::copy_n(from + b * s_.hidden + block.first, block.size(),
                  to + block.direction * s_.state_direction + b * s_.state_batch + block.first);
    }
  }
}

}  // namespace eddy::cpu
