// LSTM, GRU, RNN: one batch item, one step, one gate at a time, state held in double.
#include <algorithm>
#include <cmath>

#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/products/recurrent_shape.h"

namespace eddy {
namespace {

double activate(const Activation& f, double x) {
  const double alpha = f.alpha, beta = f.beta;
  switch (f.kind) {
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
    case ActivationKind::kAffine:
      return alpha * x + beta;
    case ActivationKind::kLeakyRelu:
      return x >= 0 ? x : alpha * x;
    case ActivationKind::kThresholdedRelu:
      return x > alpha ? x : 0;
    case ActivationKind::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case ActivationKind::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case ActivationKind::kElu:
      return x >= 0 ? x : alpha * std::expm1(x);
    case ActivationKind::kSoftsign:
      return x / (1 + std::abs(x));
    case ActivationKind::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

struct RecurrentState : KernelState {
  RecurrentRules rules;
};

// One direction of one batch item. `h` and `c` hold the state, `next` the gates being computed.
template <typename T>
struct Cell {
  const RecurrentRules& rules;
  const RecurrentShape& shape;
  int direction;
  const T *w, *r, *bias_or_null, *peephole_or_null;
  double *h, *c, *next;

  Cell(const RecurrentRules& rules_in, const RecurrentShape& shape_in, const KernelArgs& args,
       int d, double* memory)
      : rules(rules_in), shape(shape_in), direction(d) {
    const int64_t rows = num_gates(rules.kind) * shape.hidden;
    const bool is_lstm = rules.kind == RecurrentKind::kLstm;
    w = args.inputs[1].as<T>() + d * rows * shape.input;
    r = args.inputs[2].as<T>() + d * rows * shape.hidden;
    bias_or_null = args.has_input(3) ? args.inputs[3].as<T>() + d * 2 * rows : nullptr;
    peephole_or_null =
        is_lstm && args.has_input(7) ? args.inputs[7].as<T>() + d * 3 * shape.hidden : nullptr;
    h = memory;
    c = memory + shape.hidden;
    next = memory + 2 * shape.hidden;
  }

  double apply(int function, double x) const {
    if (rules.has_clip)
      x = std::min(std::max(x, -static_cast<double>(rules.clip)), double(rules.clip));
    return activate(
        rules.activations[static_cast<size_t>(direction)][static_cast<size_t>(function)], x);
  }
  double from_input(int64_t row, const T* x) const {
    double sum = bias_or_null ? static_cast<double>(bias_or_null[row]) : 0;
    for (int64_t k = 0; k < shape.input; ++k) {
      sum += static_cast<double>(w[row * shape.input + k]) * static_cast<double>(x[k]);
    }
    return sum;
  }
  // R times the state, each element of it scaled where `scale` is given, plus R's bias.
  double from_state(int64_t row, const double* scale_or_null) const {
    const int64_t rows = num_gates(rules.kind) * shape.hidden;
    double sum = bias_or_null ? static_cast<double>(bias_or_null[rows + row]) : 0;
    for (int64_t k = 0; k < shape.hidden; ++k) {
      const double state = scale_or_null ? scale_or_null[k] * h[k] : h[k];
      sum += static_cast<double>(r[row * shape.hidden + k]) * state;
    }
    return sum;
  }
  double peephole(int gate, int64_t j, double cell) const {
    if (!peephole_or_null) return 0;
    return static_cast<double>(peephole_or_null[gate * shape.hidden + j]) * cell;
  }

  void step(const T* x) {
    if (rules.kind == RecurrentKind::kLstm)
      step_lstm(x);
    else if (rules.kind == RecurrentKind::kGru)
      step_gru(x);
    else
      step_rnn(x);
  }

  // Gates i, o, f, c; the peepholes of i and f look at the old cell, that of o at the new one.
  void step_lstm(const T* x) {
    const int64_t n = shape.hidden;
    for (int64_t row = 0; row < 4 * n; ++row) {
      next[row] = from_input(row, x) + from_state(row, nullptr);
    }
    for (int64_t j = 0; j < n; ++j) {
      const double i = apply(0, next[j] + peephole(0, j, c[j]));
      const double f =
          rules.input_forget ? 1 - i : apply(0, next[2 * n + j] + peephole(2, j, c[j]));
      c[j] = f * c[j] + i * apply(1, next[3 * n + j]);
      const double o = apply(0, next[n + j] + peephole(1, j, c[j]));
      const auto& output = rules.activations[static_cast<size_t>(direction)][2];
      h[j] = o * activate(output, c[j]);
    }
  }

  // Gates z, r, h.
  void step_gru(const T* x) {
    const int64_t n = shape.hidden;
    double *z = next, *reset = next + n, *candidate = next + 2 * n;
    for (int64_t j = 0; j < n; ++j) {
      z[j] = apply(0, from_input(j, x) + from_state(j, nullptr));
      reset[j] = apply(0, from_input(n + j, x) + from_state(n + j, nullptr));
    }
    for (int64_t j = 0; j < n; ++j) {
      const double state = rules.linear_before_reset ? reset[j] * from_state(2 * n + j, nullptr)
                                                     : from_state(2 * n + j, reset);
      candidate[j] = apply(1, from_input(2 * n + j, x) + state);
    }
    for (int64_t j = 0; j < n; ++j) h[j] = (1 - z[j]) * candidate[j] + z[j] * h[j];
  }

  void step_rnn(const T* x) {
    for (int64_t j = 0; j < shape.hidden; ++j) {
      next[j] = apply(0, from_input(j, x) + from_state(j, nullptr));
    }
    std::copy(next, next + shape.hidden, h);
  }
};

template <typename T>
struct Recurrent {
  static bool run(const KernelArgs& args) {
    const RecurrentRules& rules = static_cast<const RecurrentState&>(*args.state).rules;
    RecurrentShape shape;
    Status status = make_recurrent_shape(rules, args, shape);
    if (!status.is_ok()) return args.fail(std::move(status));
    auto* memory = static_cast<double*>(
        args.scratch->reserve(static_cast<size_t>(6 * shape.hidden + 1) * sizeof(double)));
    if (memory == nullptr) return args.fail(resource_exhausted("no memory for the gates"));
    for (int d = 0; d < rules.num_directions; ++d) {
      Cell<T> cell(rules, shape, args, d, memory);
      for (int64_t b = 0; b < shape.batch; ++b) run_item(args, rules, shape, cell, b);
    }
    return true;
  }

  static void run_item(const KernelArgs& args, const RecurrentRules& rules, const RecurrentShape& s,
                       Cell<T>& cell, int64_t b) {
    const int d = cell.direction;
    const int64_t at = d * s.state_direction + b * s.state_batch;
    const bool is_lstm = rules.kind == RecurrentKind::kLstm;
    for (int64_t j = 0; j < s.hidden; ++j) {
      cell.h[j] = args.has_input(5) ? static_cast<double>(args.inputs[5].as<T>()[at + j]) : 0;
      cell.c[j] =
          is_lstm && args.has_input(6) ? static_cast<double>(args.inputs[6].as<T>()[at + j]) : 0;
    }
    T* y = output_or_null<T>(args, 0);
    for (int64_t i = 0; i < s.sequence; ++i) {
      const bool is_inside = i < s.length(b);
      const int64_t t = is_inside && rules.runs_backwards(d) ? s.length(b) - 1 - i : i;
      if (is_inside) cell.step(args.inputs[0].as<T>() + t * s.x_step + b * s.x_batch);
      if (y == nullptr) continue;
      T* row = y + t * s.y_step + b * s.y_batch + d * s.y_direction;
      for (int64_t j = 0; j < s.hidden; ++j) row[j] = is_inside ? round_from<T>(cell.h[j]) : T(0);
    }
    if (T* last = output_or_null<T>(args, 1)) {
      for (int64_t j = 0; j < s.hidden; ++j) last[at + j] = round_from<T>(cell.h[j]);
    }
    T* last_cell = is_lstm ? output_or_null<T>(args, 2) : nullptr;
    for (int64_t j = 0; last_cell && j < s.hidden; ++j) {
      last_cell[at + j] = round_from<T>(cell.c[j]);
    }
  }
};

template <RecurrentKind kKind>
Result<BoundKernel> bind_recurrent(const KernelInit& init) {
  auto state = std::make_unique<RecurrentState>();
  EDDY_RETURN_IF_ERROR(parse_recurrent(kKind, init.attributes, state->rules));
  return bind_typed<Recurrent, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

}  // namespace

void add_recurrent_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "LSTM", .bind = bind_recurrent<RecurrentKind::kLstm>, .provider = "reference"});
  registry.add({.op = "GRU", .bind = bind_recurrent<RecurrentKind::kGru>, .provider = "reference"});
  registry.add({.op = "RNN", .bind = bind_recurrent<RecurrentKind::kRnn>, .provider = "reference"});
}

}  // namespace eddy
