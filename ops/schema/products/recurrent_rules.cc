#include "ops/schema/products/recurrent_rules.h"

#include <cmath>
#include <string>
#include <string_view>

namespace eddy {
namespace {

struct ActivationName {
  std::string_view name;  // lower case
  ActivationKind kind;
  bool has_alpha, has_beta;
  float alpha, beta;
};

constexpr ActivationName kNames[] = {
    {"sigmoid", ActivationKind::kSigmoid, false, false, 0, 0},
    {"tanh", ActivationKind::kTanh, false, false, 0, 0},
    {"relu", ActivationKind::kRelu, false, false, 0, 0},
    {"affine", ActivationKind::kAffine, true, true, 1, 0},
    {"leakyrelu", ActivationKind::kLeakyRelu, true, false, 0.01f, 0},
    {"thresholdedrelu", ActivationKind::kThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", ActivationKind::kScaledTanh, true, true, 1, 1},
    {"hardsigmoid", ActivationKind::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"elu", ActivationKind::kElu, true, false, 1, 0},
    {"softsign", ActivationKind::kSoftsign, false, false, 0, 0},
    {"softplus", ActivationKind::kSoftplus, false, false, 0, 0},
};

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// Takes the next value of a list where the function has that parameter.
float take(bool has, float fallback, std::span<const float> values, size_t& next) {
  return has && next < values.size() ? values[next++] : fallback;
}

Status check_taken(std::string_view attribute, size_t given, size_t taken) {
  if (given == taken) return Status::ok();
  return invalid_argument(std::string(attribute) + " has " + std::to_string(given) +
                          " values, but the activations take " + std::to_string(taken));
}

Status parse_activations(const Attributes& attributes, RecurrentRules& rules) {
  const auto names = attributes.get_strings("activations");
  const auto alphas = attributes.get_floats("activation_alpha");
  const auto betas = attributes.get_floats("activation_beta");
  const int each = num_activations(rules.kind);
  const size_t count = static_cast<size_t>(each * rules.num_directions);
  if (!names.empty() && names.size() != count) {
    return invalid_argument("activations must name " + std::to_string(count) + " functions, not " +
                            std::to_string(names.size()));
  }
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < count; ++i) {
    const int place = static_cast<int>(i) % each;
    const bool is_gate = place == 0 && rules.kind != RecurrentKind::kRnn;
    const std::string_view name =
        names.empty() ? (is_gate ? "sigmoid" : "tanh") : std::string_view(names[i]);
    const ActivationName* found = nullptr;
    for (const ActivationName& known : kNames) {
      if (equals_ignoring_case(name, known.name)) found = &known;
    }
    if (!found) return invalid_argument("activations: unknown function " + std::string(name));
    rules.activations[i / static_cast<size_t>(each)][static_cast<size_t>(place)] = {
        found->kind, take(found->has_alpha, found->alpha, alphas, alpha),
        take(found->has_beta, found->beta, betas, beta)};
  }
  EDDY_RETURN_IF_ERROR(check_taken("activation_alpha", alphas.size(), alpha));
  return check_taken("activation_beta", betas.size(), beta);
}

Status parse_direction(const Attributes& attributes, RecurrentRules& rules) {
  const std::string_view direction = attributes.get_string("direction", "forward");
  if (direction == "bidirectional")
    rules.num_directions = 2;
  else if (direction == "reverse")
    rules.is_reverse = true;
  else if (direction != "forward") {
    return invalid_argument("direction must be forward, reverse or bidirectional, not " +
                            std::string(direction));
  }
  return Status::ok();
}

}  // namespace

Status parse_recurrent(RecurrentKind kind, const Attributes& attributes, RecurrentRules& rules) {
  rules.kind = kind;
  EDDY_RETURN_IF_ERROR(parse_direction(attributes, rules));
  EDDY_RETURN_IF_ERROR(parse_activations(attributes, rules));
  rules.batch_first = attributes.get_int("layout", 0) != 0;
  rules.has_clip = attributes.has("clip");
  rules.clip = attributes.get_float("clip", 0);
  if (rules.has_clip && !(rules.clip >= 0)) {
    return invalid_argument("clip must not be negative: " + std::to_string(rules.clip));
  }
  rules.input_forget = attributes.get_int("input_forget", 0) != 0;
  rules.linear_before_reset = attributes.get_int("linear_before_reset", 0) != 0;
  rules.hidden_size = attributes.get_int("hidden_size", 0);
  if (attributes.has("hidden_size") && rules.hidden_size < 1) {
    return invalid_argument("hidden_size must be at least 1, not " +
                            std::to_string(rules.hidden_size));
  }
  return Status::ok();
}

Status check_lengths(std::span<const int32_t> lengths, int64_t sequence) {
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] >= 0 && (sequence < 0 || lengths[b] <= sequence)) continue;
    return invalid_argument("sequence_lens[" + std::to_string(b) + "] is " +
                            std::to_string(lengths[b]) + ", out of range 0.." +
                            (sequence < 0 ? "the sequence's length" : std::to_string(sequence)));
  }
  return Status::ok();
}

}  // namespace eddy
