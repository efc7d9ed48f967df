// Scores of domain ai.onnx.ml: transforms, and the class with the greatest score.
//
// Where the standard's text is silent, what its reference evaluator does: PROBIT is the inverse of
// the normal distribution by a closed formula, good to three digits; SOFTMAX_ZERO leaves scores of
// zero near zero; the label is that of the greatest score before the transform, of equal ones the
// first. Threads: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/tensor_view.h"
#include "ops/contract/kernel.h"
#include "ops/schema/ml/ml.h"

namespace eddy {

double logistic(double score);
double probit(double probability);
void transform_scores(PostTransform transform, std::span<double> scores);

// The first of the greatest; a NaN is never greater.
size_t greatest(std::span<const double> scores);

// A classifier's labels, copied.
struct LabelSet {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;

  static LabelSet of(const ClassLabels& labels);
  size_t count() const { return texts.empty() ? numbers.size() : texts.size(); }
  void write(const TensorView& y, int64_t row, size_t label) const;
};

// Rounds scores into row `row` of a tensor [rows, scores.size()].
void write_scores(const TensorView& z, int64_t row, std::span<const double> scores);

// Features of X, [rows, features] or [features] as one row.
struct RowsOf {
  explicit RowsOf(const TensorView& x)
      : rows(x.rank == 1 ? 1 : x.dims[0]), features(x.dims[x.rank - 1]) {}
  int64_t rows, features;
};
// Row `row` of X as numbers.
void load_row(const TensorView& x, int64_t row, std::span<double> values);

}  // namespace eddy
