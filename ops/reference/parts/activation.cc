#include "ops/reference/parts/activation.h"

#include <string>

#include "ops/schema/unary_operators.h"

namespace eddy {

ActivationParameters activation_parameters(std::string_view op, const Attributes& attributes) {
  ActivationParameters parameters;
  for (const UnaryOperator& row : kUnaryOperators) {
    if (row.name != op) continue;
    const auto& [a, b] = row.attributes;
    if (!a.name.empty()) parameters.a = attributes.get_float(a.name, a.fallback);
    if (!b.name.empty()) parameters.b = attributes.get_float(b.name, b.fallback);
  }
  parameters.detects_positive = attributes.get_int("detect_positive", 1) != 0;
  parameters.detects_negative = attributes.get_int("detect_negative", 1) != 0;
  return parameters;
}

Result<bool> is_gelu_by_tanh(const Attributes& attributes) {
  const std::string_view way = attributes.get_string("approximate", "none");
  if (way == "none") return false;
  if (way == "tanh") return true;
  return invalid_argument("attribute 'approximate' must be none or tanh, not '" + std::string(way) +
                          "'");
}

}  // namespace eddy
