#include "ops/reference/ml/scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/base/check.h"
#include "graph/ir/half.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

// Winitzki's formula.
double inverse_erf(double x) {
  constexpr double kA = 0.147;
  const double rest = (1 - x) * (1 + x);
  if (rest == 0) return 0;
  const double half_log = 0.5 * std::log(rest);
  const double b = 2 / (std::numbers::pi * kA) + half_log;
  const double root = std::sqrt(std::sqrt(b * b - 2 * half_log / kA) - b);
  return x < 0 ? -root : root;
}

void softmax(std::span<double> scores, bool keeps_zeros) {
  constexpr double kZero = 1e-7;
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    const bool is_zero = keeps_zeros && std::abs(score) <= kZero;
    score = is_zero ? score * std::exp(-most) : std::exp(score - most);
    sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0.5 : score / sum;
}

}  // namespace

double logistic(double score) {
  const double small = std::exp(-std::abs(score));
  return (score < 0 ? small : 1) / (1 + small);
}

double probit(double probability) { return std::numbers::sqrt2 * inverse_erf(2 * probability - 1); }

void transform_scores(PostTransform transform, std::span<double> scores) {
  EDDY_CHECK(!scores.empty()) << "a row has no scores";
  switch (transform) {
    case PostTransform::kNone:
      return;
    case PostTransform::kSoftmax:
      return softmax(scores, false);
    case PostTransform::kSoftmaxZero:
      return softmax(scores, true);
    case PostTransform::kLogistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::kProbit:
      for (double& score : scores) score = probit(score);
      return;
  }
}

size_t greatest(std::span<const double> scores) {
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

LabelSet LabelSet::of(const ClassLabels& labels) {
  return {{labels.texts.begin(), labels.texts.end()},
          {labels.numbers.begin(), labels.numbers.end()}};
}

void LabelSet::write(const TensorView& y, int64_t row, size_t label) const {
  EDDY_DCHECK(label < count()) << "class " << label << " of " << count();
  if (texts.empty()) {
    y.mutable_as<int64_t>()[row] = numbers[label];
  } else {
    y.mutable_as<std::string>()[row] = texts[label];
  }
}

void write_scores(const TensorView& z, int64_t row, std::span<const double> scores) {
  const int64_t first = row * static_cast<int64_t>(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    store_number(z, first + static_cast<int64_t>(i), Number::of_double(scores[i]));
  }
}

void load_row(const TensorView& x, int64_t row, std::span<double> values) {
  const int64_t first = row * static_cast<int64_t>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = load_number(x, first + static_cast<int64_t>(i)).to_double();
  }
}

}  // namespace eddy
