#include "ops/reference/activation.h"

#include <string>

namespace eddy {
namespace {

struct Row {
  std::string_view op;
  std::string_view first;
  float first_default;
  std::string_view second;
  float second_default;
};
constexpr Row kRows[] = {
    {"Elu", "alpha", 1.0f, {}, 0},
    {"Celu", "alpha", 1.0f, {}, 0},
    {"LeakyRelu", "alpha", 0.01f, {}, 0},
    {"ThresholdedRelu", "alpha", 1.0f, {}, 0},
    {"HardSigmoid", "alpha", 0.2f, "beta", 0.5f},
    {"Selu", "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f},
    {"Shrink", "bias", 0.0f, "lambd", 0.5f},
};

}  // namespace

ActivationParameters activation_parameters(std::string_view op, const Attributes& attributes) {
  ActivationParameters parameters;
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    parameters.a = attributes.get_float(row.first, row.first_default);
    if (!row.second.empty()) parameters.b = attributes.get_float(row.second, row.second_default);
  }
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
