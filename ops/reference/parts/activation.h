// Attributes of activation operators and their defaults, for every kernel that computes one.
#pragma once

#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"

namespace eddy {

// The operator's float attributes in the order of its documentation (ops/schema/unary_list.h);
// zeros for operators without any.
struct ActivationParameters {
  float a = 0;
  float b = 0;
  bool detects_positive = true;  // of IsInf
  bool detects_negative = true;
};
ActivationParameters activation_parameters(std::string_view op, const Attributes& attributes);

// What the operator makes of a float, computed in double; null: it is no operator of one float.
using ActivationFunction = double (*)(double x, const ActivationParameters& parameters);
ActivationFunction activation_or_null(std::string_view op);

// Gelu's attribute `approximate`: none or tanh.
Result<bool> is_gelu_by_tanh(const Attributes& attributes);

}  // namespace eddy
