// The bodies of the steps of LSTM, GRU and RNN, for the device and for tests on the host.
//
// The inputs times their weights are one product for all steps (product_inl.h); what is left of a
// step is one launch (two for a GRU that resets before its linear part): the state times its
// weights, biases, gates and the new state. A block takes eight hidden units of one batch item and
// direction; 32 lanes share each unit's sums, which are added in the order of the lanes.
//
// The state is held in the type that sums have, h twice: a step reads one half and writes the
// other. A sequence that has ended keeps its state, and its outputs are zeros.
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/movement/movement_inl.h"
#include "ops/cuda/products/product_inl.h"

namespace eddy::cuda {

template <typename S>
EDDY_HD S activate(const ActivationParams& f, S x) {
  const S alpha = f.alpha, beta = f.beta, zero = 0, one = 1;
  switch (f.kind) {
    case 0:  // Sigmoid
      return one / (one + std::exp(-x));
    case 1:
      return std::tanh(x);
    case 2:  // Relu
      return x > zero ? x : zero;
    case 3:  // Affine
      return alpha * x + beta;
    case 4:  // LeakyRelu
      return x >= zero ? x : alpha * x;
    case 5:  // ThresholdedRelu
      return x > alpha ? x : zero;
    case 6:  // ScaledTanh
      return alpha * std::tanh(beta * x);
    case 7: {  // HardSigmoid
      const S y = alpha * x + beta;
      return y < zero ? zero : y > one ? one : y;
    }
    case 8:  // Elu
      return x >= zero ? x : alpha * std::expm1(x);
    case 9:  // Softsign
      return x / (one + std::fabs(x));
    default:  // Softplus
      return (x > zero ? x : zero) + std::log1p(std::exp(-std::fabs(x)));
  }
}

// One batch item of one direction at one step.
template <typename T>
struct RecurrentCell {
  using S = product_t<T>;
  const RecurrentParams& p;
  int64_t d, b, num_gates;
  int64_t length, t;  // t: the step of the sequence
  bool is_inside;

  EDDY_HD RecurrentCell(const RecurrentParams& params, int64_t direction, int64_t item, int gates)
      : p(params), d(direction), b(item), num_gates(gates) {
    length = p.sequence;
    if (p.lengths != nullptr) {
      length = p.lengths[b];
      if (length < 0 || length > p.sequence) {
        report_fault(p.fault, DeviceFault::kLength, 0, length, p.sequence);
        length = 0;
      }
    }
    is_inside = p.step < length;
    const bool is_backwards = d == 1 || p.first_direction_is_backwards != 0;
    t = is_inside && is_backwards ? length - 1 - p.step : p.step;
  }
  EDDY_HD int64_t place(int64_t j) const { return (d * p.batch + b) * p.hidden + j; }
  EDDY_HD int64_t outer_place(int64_t j) const {
    return d * p.state_direction + b * p.state_batch + j;
  }
  EDDY_HD int64_t half() const { return p.directions * p.batch * p.hidden; }
  EDDY_HD S h(int64_t j) const {
    if (p.step == 0) return initial(p.initial_h, j);
    return static_cast<const S*>(p.h)[(p.step % 2) * half() + place(j)];
  }
  EDDY_HD S c(int64_t j) const {
    if (p.c == nullptr) return 0;
    return p.step == 0 ? initial(p.initial_c, j) : static_cast<const S*>(p.c)[place(j)];
  }
  EDDY_HD S initial(const void* state, int64_t j) const {
    return state == nullptr ? S(0)
                            : static_cast<S>(load(static_cast<const T*>(state)[outer_place(j)]));
  }
  // The inputs' part of a gate with its bias.
  EDDY_HD S from_input(int gate, int64_t j) const {
    if (!is_inside) return 0;  // of no steps there is no row
    const int64_t row = d * p.x_rows + t * p.x_step + b * p.x_batch;
    const S sum = static_cast<const S*>(p.before)[(row * num_gates + gate) * p.hidden + j];
    return sum + bias(0, gate, j);
  }
  EDDY_HD S bias(int which, int gate, int64_t j) const {
    if (p.bias == nullptr) return 0;
    return static_cast<S>(
        load(static_cast<const T*>(p.bias)[((d * 2 + which) * num_gates + gate) * p.hidden + j]));
  }
  EDDY_HD const T* recurrence(int gate, int64_t j) const {
    return static_cast<const T*>(p.recurrence) + ((d * num_gates + gate) * p.hidden + j) * p.hidden;
  }
  EDDY_HD S peephole(int gate, int64_t j, S cell) const {
    if (p.peephole == nullptr) return 0;
    return static_cast<S>(load(static_cast<const T*>(p.peephole)[(d * 3 + gate) * p.hidden + j])) *
           cell;
  }
  EDDY_HD S apply(int function, S x) const {
    const S clip = p.clip;
    if (p.has_clip != 0) x = x < -clip ? -clip : x > clip ? clip : x;
    return activate<S>(p.activations[d][function], x);
  }
  // The state after the step, of a sequence that goes on or has ended.
  EDDY_HD void finish(int64_t j, S next_h, S next_c) const {
    if (!is_inside) {
      next_h = h(j);
      next_c = c(j);
    }
    static_cast<S*>(p.h)[((p.step + 1) % 2) * half() + place(j)] = next_h;
    if (p.c != nullptr) static_cast<S*>(p.c)[place(j)] = next_c;
    if (p.y != nullptr) {
      const int64_t at = t * p.y_step + b * p.y_batch + d * p.y_direction + j;
      static_cast<T*>(p.y)[at] = round_state(is_inside ? next_h : S(0));
    }
    if (p.is_last == 0) return;
    if (p.y_h != nullptr) static_cast<T*>(p.y_h)[outer_place(j)] = round_state(next_h);
    if (p.y_c != nullptr) static_cast<T*>(p.y_c)[outer_place(j)] = round_state(next_c);
  }
  EDDY_HD static T round_state(S value) { return store<T>(static_cast<computed_t<T>>(value)); }
};

// What a step does with its sums; sums[g] is the state times gate (first_gate + g).
template <typename T>
struct LstmStep {
  static constexpr int kGates = 4, kFirst = 0, kSums = 4;
  using S = product_t<T>;
  EDDY_HD static S state(const RecurrentCell<T>& cell, int64_t j) { return cell.h(j); }
  // Gates i, o, f, c; the peepholes of i and f look at the old cell, that of o at the new one.
  EDDY_HD static void finish(const RecurrentCell<T>& cell, int64_t j, const S (&sums)[kSums]) {
    S x[kSums];
    for (int g = 0; g < kSums; ++g) x[g] = cell.from_input(g, j) + sums[g] + cell.bias(1, g, j);
    const S old = cell.c(j);
    const S i = cell.apply(0, x[0] + cell.peephole(0, j, old));
    const S f = cell.p.input_forget != 0 ? 1 - i : cell.apply(0, x[2] + cell.peephole(2, j, old));
    const S c = f * old + i * cell.apply(1, x[3]);
    const S o = cell.apply(0, x[1] + cell.peephole(1, j, c));
    cell.finish(j, o * activate<S>(cell.p.activations[cell.d][2], c), c);
  }
};

template <typename T>
struct RnnStep {
  static constexpr int kGates = 1, kFirst = 0, kSums = 1;
  using S = product_t<T>;
  EDDY_HD static S state(const RecurrentCell<T>& cell, int64_t j) { return cell.h(j); }
  EDDY_HD static void finish(const RecurrentCell<T>& cell, int64_t j, const S (&sums)[kSums]) {
    cell.finish(j, cell.apply(0, cell.from_input(0, j) + sums[0] + cell.bias(1, 0, j)), 0);
  }
};

// Gates z, r, h, with the linear part before the reset.
template <typename T>
struct GruStep {
  static constexpr int kGates = 3, kFirst = 0, kSums = 3;
  using S = product_t<T>;
  EDDY_HD static S state(const RecurrentCell<T>& cell, int64_t j) { return cell.h(j); }
  EDDY_HD static void finish(const RecurrentCell<T>& cell, int64_t j, const S (&sums)[kSums]) {
    const S z = cell.apply(0, cell.from_input(0, j) + sums[0] + cell.bias(1, 0, j));
    const S r = cell.apply(0, cell.from_input(1, j) + sums[1] + cell.bias(1, 1, j));
    const S n = cell.apply(1, cell.from_input(2, j) + r * (sums[2] + cell.bias(1, 2, j)));
    cell.finish(j, (1 - z) * n + z * cell.h(j), 0);
  }
};

// A GRU that resets first, in two launches: z and r * h …
template <typename T>
struct GruGates {
  static constexpr int kGates = 3, kFirst = 0, kSums = 2;
  using S = product_t<T>;
  EDDY_HD static S state(const RecurrentCell<T>& cell, int64_t j) { return cell.h(j); }
  EDDY_HD static void finish(const RecurrentCell<T>& cell, int64_t j, const S (&sums)[kSums]) {
    if (!cell.is_inside) return;
    const S r = cell.apply(0, cell.from_input(1, j) + sums[1] + cell.bias(1, 1, j));
    static_cast<S*>(cell.p.update)[cell.place(j)] =
        cell.apply(0, cell.from_input(0, j) + sums[0] + cell.bias(1, 0, j));
    static_cast<S*>(cell.p.reset_h)[cell.place(j)] = r * cell.h(j);
  }
};

// … then the candidate.
template <typename T>
struct GruCandidate {
  static constexpr int kGates = 3, kFirst = 2, kSums = 1;
  using S = product_t<T>;
  EDDY_HD static S state(const RecurrentCell<T>& cell, int64_t j) {
    return cell.is_inside ? static_cast<const S*>(cell.p.reset_h)[cell.place(j)] : S(0);
  }
  EDDY_HD static void finish(const RecurrentCell<T>& cell, int64_t j, const S (&sums)[kSums]) {
    if (!cell.is_inside) return cell.finish(j, 0, 0);
    const S z = static_cast<const S*>(cell.p.update)[cell.place(j)];
    const S n = cell.apply(1, cell.from_input(2, j) + sums[0] + cell.bias(1, 2, j));
    cell.finish(j, (1 - z) * n + z * cell.h(j), 0);
  }
};

template <template <typename> class Step, typename T>
struct BlockRecurrent {
  using Params = RecurrentParams;
  using S = product_t<T>;
  static constexpr int kLanes = 32;
  static constexpr int kUnits = kThreads / kLanes;
  static constexpr int kSums = Step<T>::kSums;
  struct Shared {
    S sums[kSums][kUnits][kLanes];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const auto groups = static_cast<uint64_t>((p.hidden + kUnits - 1) / kUnits);
    const uint64_t num_items = static_cast<uint64_t>(p.directions * p.batch) * groups;
    for (uint64_t item = block.index; item < num_items; item += block.count) {
      const auto cell_index = static_cast<int64_t>(item / groups);
      const RecurrentCell<T> cell(p, cell_index / p.batch, cell_index % p.batch, Step<T>::kGates);
      const int64_t first = static_cast<int64_t>(item % groups) * kUnits;
      block.each([&](int thread) { add_lane(cell, shared, thread, first); });
      block.each([&](int thread) {
        const int64_t j = first + thread;
        if (thread >= kUnits || j >= p.hidden) return;
        S sums[kSums] = {};
        for (int g = 0; g < kSums; ++g) {
          for (int lane = 0; lane < kLanes; ++lane) sums[g] += shared.sums[g][thread][lane];
        }
        Step<T>::finish(cell, j, sums);
      });
    }
  }

  EDDY_HD static void add_lane(const RecurrentCell<T>& cell, Shared& shared, int thread,
                               int64_t first) {
    const int unit = thread / kLanes, lane = thread % kLanes;
    const int64_t hidden = cell.p.hidden, j = first + unit;
    S sums[kSums] = {};
    for (int64_t k = lane; j < hidden && cell.is_inside && k < hidden; k += kLanes) {
      const S state = Step<T>::state(cell, k);
      for (int g = 0; g < kSums; ++g) {
        sums[g] += static_cast<S>(load(cell.recurrence(Step<T>::kFirst + g, j)[k])) * state;
      }
    }
    for (int g = 0; g < kSums; ++g) shared.sums[g][unit][lane] = sums[g];
  }
};

}  // namespace eddy::cuda
