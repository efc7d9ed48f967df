// RecurrentRules: the attributes of LSTM, GRU and RNN, read once for the shape rule and the
// kernels.
//
// activation_alpha and activation_beta are consumed in the order of the activations, one value for
// each function that has such a parameter; others keep ONNX's defaults.
//
// Source: ONNX operators RNN, GRU, LSTM, opset 7 to 22.
// Errors: kInvalidArgument naming the attribute.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"

namespace eddy {

enum class RecurrentKind : uint8_t { kRnn, kGru, kLstm };

// Gates, and activations of one direction: 1, 3, 4 and 1, 2, 3.
constexpr int num_gates(RecurrentKind kind) {
  return kind == RecurrentKind::kRnn ? 1 : kind == RecurrentKind::kGru ? 3 : 4;
}
constexpr int num_activations(RecurrentKind kind) {
  return kind == RecurrentKind::kRnn ? 1 : kind == RecurrentKind::kGru ? 2 : 3;
}

enum class ActivationKind : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

struct Activation {
  ActivationKind kind = ActivationKind::kTanh;
  float alpha = 0, beta = 0;
};

inline constexpr int kMaxActivations = 3;

struct RecurrentRules {
  RecurrentKind kind = RecurrentKind::kRnn;
  int num_directions = 1;
  bool is_reverse = false;   // the only direction is the reverse one
  bool batch_first = false;  // layout 1
  bool has_clip = false;
  float clip = 0;
  bool input_forget = false;         // LSTM: the forget gate is 1 minus the input gate
  bool linear_before_reset = false;  // GRU
  int64_t hidden_size = 0;           // 0: not given
  std::array<std::array<Activation, kMaxActivations>, 2> activations{};  // of each direction

  // Whether direction d runs from the end to the beginning.
  bool runs_backwards(int d) const { return is_reverse || d == 1; }
};

Status parse_recurrent(RecurrentKind kind, const Attributes& attributes, RecurrentRules& rules);

// Fails on the first length that is not in 0..sequence (which may be unknown).
Status check_lengths(std::span<const int32_t> lengths, int64_t sequence);

}  // namespace eddy
