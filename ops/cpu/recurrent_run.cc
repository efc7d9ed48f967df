#include "ops/cpu/recurrent_run.h"

#include <algorithm>
#include <cmath>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

// Values of gates computed ahead: a block stays in the second-level cache.
constexpr int64_t kBlockFloats = int64_t{1} << 16;
// Weights that a second-level cache mostly holds from one step to the next.
constexpr int64_t kCachedFloats = int64_t{1} << 19;

void activate_others(const Activation& f, float* x, int64_t n) {
  const float alpha = f.alpha, beta = f.beta;
  const auto map = [&](auto function) {
    for (int64_t i = 0; i < n; ++i) x[i] = function(x[i]);
  };
  switch (f.kind) {
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
      return;
    case ActivationKind::kRelu:
      return map([](float v) { return v > 0 ? v : 0.0f; });
    case ActivationKind::kAffine:
      return map([&](float v) { return alpha * v + beta; });
    case ActivationKind::kLeakyRelu:
      return map([&](float v) { return v >= 0 ? v : alpha * v; });
    case ActivationKind::kThresholdedRelu:
      return map([&](float v) { return v > alpha ? v : 0.0f; });
    case ActivationKind::kScaledTanh:
      return map([&](float v) { return alpha * std::tanh(beta * v); });
    case ActivationKind::kHardSigmoid:
      return map([&](float v) { return std::min(std::max(alpha * v + beta, 0.0f), 1.0f); });
    case ActivationKind::kElu:
      return map([&](float v) { return v >= 0 ? v : alpha * std::expm1(v); });
    case ActivationKind::kSoftsign:
      return map([](float v) { return v / (1 + std::abs(v)); });
    case ActivationKind::kSoftplus:
      return map([](float v) { return std::max(v, 0.0f) + std::log1p(std::exp(-std::abs(v))); });
  }
}

const Activation& activation(const RecurrentRules& rules, int direction, int function) {
  return rules.activations[static_cast<size_t>(direction)][static_cast<size_t>(function)];
}

void activate(const Activation& f, float* values, int64_t count) {
  if (f.kind == ActivationKind::kSigmoid) return tile_kernels().sigmoid(values, count);
  if (f.kind == ActivationKind::kTanh) return tile_kernels().tanh(values, count);
  activate_others(f, values, count);
}

}  // namespace

void clip_and_activate(const RecurrentRules& rules, int direction, int function, float* values,
                       int64_t count) {
  if (rules.has_clip) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = std::min(std::max(values[i], -rules.clip), rules.clip);
    }
  }
  activate(activation(rules, direction, function), values, count);
}

bool has_plain_lstm_cell(const RecurrentRules& rules, int direction, bool has_peephole) {
  const auto is = [&](int function, ActivationKind kind) {
    return activation(rules, direction, function).kind == kind;
  };
  return !rules.has_clip && !rules.input_forget && !has_peephole &&
         is(0, ActivationKind::kSigmoid) && is(1, ActivationKind::kTanh) &&
         is(2, ActivationKind::kTanh);
}

bool has_candidate_bias(const RecurrentRules& rules) {
  return rules.kind == RecurrentKind::kGru && rules.linear_before_reset;
}

PackedMatrix::Reading reading_of(int64_t step, int64_t num_floats) {
  return {.goes_back = step % 2 == 1, .is_cached = step > 0 && num_floats <= kCachedFloats};
}

void add_reset(const float* reset, const float* states_part, float* gate, int64_t count) {
  for (int64_t j = 0; j < count; ++j) gate[j] += reset[j] * states_part[j];
}

void gru_state(const float* z, const float* candidate, const float* before, float* after,
               int64_t count) {
  for (int64_t j = 0; j < count; ++j) after[j] = (1 - z[j]) * candidate[j] + z[j] * before[j];
}

void RecurrentWeights::multiply(int64_t m, const float* a, int64_t a_row, float* c, int64_t c_row,
                                const float* bias_or_null, bool accumulate,
                                PackedMatrix::Reading reading) const {
  if (packed_or_null) {
    EDDY_DCHECK(packed_or_null->depth() == depth && packed_or_null->columns() == count)
        << "weights were packed for " << packed_or_null->columns() << " rows";
    packed_or_null->multiply({.m = m,
                              .a = a,
                              .a_row = a_row,
                              .c = c,
                              .c_row = c_row,
                              .bias_or_null = bias_or_null,
                              .accumulate = accumulate,
                              .reading = reading});
    return;
  }
  gemm({.m = m,
        .n = count,
        .k = depth,
        .a = a,
        .a_row = a_row,
        .b = rows,
        .b_row = depth,
        .transpose_b = true,
        .c = c,
        .c_row = c_row,
        .bias_or_null = bias_or_null,
        .accumulate = accumulate});
}

int64_t RecurrentRun::block_steps(RecurrentKind kind, int64_t batch, int64_t hidden) {
  const int64_t step = std::max<int64_t>(batch * num_gates(kind) * hidden, 1);
  return std::max<int64_t>(kBlockFloats / step, 1);
}

void RecurrentRun::clip_and_activate(int function, float* values, int64_t count) const {
  cpu::clip_and_activate(rules, direction, function, values, count);
}

void RecurrentRun::run() {
  const int64_t block = block_steps(rules.kind, batch, hidden());
  for (int64_t first = 0; first < steps; first += block) {
    const int64_t count = std::min(block, steps - first);
    const bool backwards = rules.runs_backwards(direction);
    const int64_t t0 = backwards ? steps - first - count : first;
    project(t0, count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = backwards ? count - 1 - i : i;
      step(gates + at * batch * width(), reading_of(first + i, width() * hidden()));
      if (y_or_null) store(t0 + at);
    }
  }
}

// gates = x * W + bias, for the steps from t0 on.
void RecurrentRun::project(int64_t t0, int64_t count) const {
  const float* from = x + t0 * shape.x_step;
  const int64_t row = width();
  if (batch == 1 || shape.x_step == batch * shape.x_batch) {
    const int64_t a_row = batch == 1 ? shape.x_step : shape.x_batch;
    w.multiply(count * batch, from, a_row, gates, row, bias, false);
    return;
  }
  for (int64_t b = 0; b < batch; ++b) {
    w.multiply(count, from + b * shape.x_batch, shape.x_step, gates + b * row, batch * row, bias,
               false);
  }
}

void RecurrentRun::step(float* gate, PackedMatrix::Reading reading) const {
  if (rules.kind == RecurrentKind::kLstm)
    step_lstm(gate, reading);
  else if (rules.kind == RecurrentKind::kGru)
    step_gru(gate, reading);
  else
    step_rnn(gate, reading);
}

void RecurrentRun::step_lstm(float* gate, PackedMatrix::Reading reading) const {
  const int64_t n = hidden();
  r.multiply(batch, h, n, gate, width(), nullptr, true, reading);
  const bool is_plain = has_plain_lstm_cell(rules, direction, peephole_or_null != nullptr);
  for (int64_t b = 0; b < batch; ++b) {
    float* row = gate + b * width();
    if (is_plain) {
      tiles.lstm_cell(
          {.count = n, .gates = row, .gate_step = n, .cell = c + b * n, .hidden = h + b * n});
    } else {
      lstm_cell(row, c + b * n, h + b * n);
    }
  }
}

void RecurrentRun::add_peephole(int gate, const float* cell, float* values) const {
  if (!peephole_or_null) return;
  const float* p = peephole_or_null + gate * hidden();
  for (int64_t j = 0; j < hidden(); ++j) values[j] += p[j] * cell[j];
}

// Gates i, o, f, c with peepholes, clipping, coupled gates and any functions. The value clipped
// is the input of a gate, not the cell, as in ONNX Runtime.
void RecurrentRun::lstm_cell(float* row, float* cell, float* state) const {
  const int64_t n = hidden();
  float *i = row, *o = row + n, *f = row + 2 * n, *g = row + 3 * n;
  add_peephole(0, cell, i);
  add_peephole(2, cell, f);
  clip_and_activate(0, i, n);
  if (rules.input_forget) {
    for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
  } else {
    clip_and_activate(0, f, n);
  }
  clip_and_activate(1, g, n);
  for (int64_t j = 0; j < n; ++j) cell[j] = f[j] * cell[j] + i[j] * g[j];
  add_peephole(1, cell, o);
  clip_and_activate(0, o, n);
  std::copy(cell, cell + n, g);
  activate(activation(rules, direction, 2), g, n);
  for (int64_t j = 0; j < n; ++j) state[j] = o[j] * g[j];
}

// Adds the state's part to gate h: with the reset before the product, or after it.
void RecurrentRun::add_candidate(float* gate, PackedMatrix::Reading reading) const {
  const int64_t n = hidden();
  if (rules.linear_before_reset) {
    r_candidate.multiply(batch, h, n, other, n, candidate_bias_or_null, false, reading);
    for (int64_t b = 0; b < batch; ++b) {
      float* row = gate + b * width();
      add_reset(row + n, other + b * n, row + 2 * n, n);
    }
    return;
  }
  for (int64_t b = 0; b < batch; ++b) {
    const float* reset = gate + b * width() + n;
    for (int64_t j = 0; j < n; ++j) other[b * n + j] = reset[j] * h[b * n + j];
  }
  r_candidate.multiply(batch, other, n, gate + 2 * n, width(), nullptr, true, reading);
}

// Gates z, r, h.
void RecurrentRun::step_gru(float* gate, PackedMatrix::Reading reading) const {
  const int64_t n = hidden();
  r.multiply(batch, h, n, gate, width(), nullptr, true, reading);
  for (int64_t b = 0; b < batch; ++b) clip_and_activate(0, gate + b * width(), 2 * n);
  add_candidate(gate, reading);
  for (int64_t b = 0; b < batch; ++b) {
    float* row = gate + b * width();
    clip_and_activate(1, row + 2 * n, n);
    float* state = h + b * n;
    gru_state(row, row + 2 * n, state, state, n);
  }
}

void RecurrentRun::step_rnn(float* gate, PackedMatrix::Reading reading) const {
  const int64_t n = hidden();
  r.multiply(batch, h, n, gate, n, nullptr, true, reading);
  clip_and_activate(0, gate, batch * n);
  std::copy(gate, gate + batch * n, h);
}

void RecurrentRun::store(int64_t t) const {
  for (int64_t b = 0; b < batch; ++b) {
    std::copy(h + b * hidden(), h + (b + 1) * hidden(),
              y_or_null + t * shape.y_step + b * shape.y_batch);
  }
}

}  // namespace eddy::cpu
