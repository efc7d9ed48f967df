// UpdateForm: how UpdateParameter of domain eddy changes one tensor, in one pass over memory.
//
//   inputs   rate, share (may be left out: 1), x, gradient, states     outputs  x', states'
//
//   with g = norm_coefficient x + gradient:
//   descent   x' = x - rate g
//   momentum  v' = alpha v + share g;  x' = x - rate v'
//   nesterov  v' = alpha v + share g;  x' = x - rate (g + alpha v')
//   adagrad   h' = h + g g;            x' = x - rate (g / (sqrt(h') + epsilon))
//   adam      v' = alpha v + (1 - alpha) g;  h' = beta h + (1 - beta) (g g)
//             x' = (1 - norm_coefficient_post) (x - rate (v' / (sqrt(h') + epsilon)))
//
// All tensors have x's type and shape, rate and share one element. Each operation is rounded to
// that type, as are the attributes and what is computed of them in double, so that kernels give the
// bits of the nodes that ops/gradient/update.cc writes. Made by the functions of
// ai.onnx.preview.training and by training steps; the attribute `rule` has the names above.
#pragma once

#include <cstdint>

namespace eddy {

enum class UpdateRule : uint8_t { kDescent, kMomentum, kNesterov, kAdagrad, kAdam };
inline constexpr int kNumUpdateRules = 5;

constexpr int num_states(UpdateRule rule) {
  return rule == UpdateRule::kDescent ? 0 : rule == UpdateRule::kAdam ? 2 : 1;
}

struct UpdateForm {
  UpdateRule rule = UpdateRule::kDescent;
  double norm = 0;  // norm_coefficient; 0: g is the gradient, whatever x is
  double alpha = 0, rest_of_alpha = 1;
  double beta = 0, rest_of_beta = 1;
  double epsilon = 0;
  double kept = 1;  // 1 - norm_coefficient_post
};

// Places of the inputs.
struct UpdateInputs {
  static constexpr int kRate = 0, kShare = 1, kX = 2, kGradient = 3, kStates = 4;
};

}  // namespace eddy
