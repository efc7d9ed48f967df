// What plain and fast kernels of tree ensembles share: what becomes of the votes of a row.
//
//   sums of votes -> average -> base values -> two classes from one -> transform -> outputs
//
// Threads: const functions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/contract/kernel.h"
#include "ops/reference/ml/scores.h"
#include "ops/schema/ml/forest.h"

namespace eddy {

struct ForestState : KernelState {
  Forest forest;
  LabelSet labels;  // of a classifier
  // A classifier of two classes all of whose votes are for one: that score speaks for the second
  // class. It is a probability, what is left of 1 being the first's, unless votes are negative or a
  // transform takes all reals: then the first has its negative.
  bool is_binary = false;
  bool is_probability = false;
  double least_of_second = 0;  // of two classes, the second where its score is greater
  size_t binary_score = 0;

  bool is_classifier() const { return labels.count() > 0; }
  // Fails where X has too few features.
  Status check_features(const TensorView& x) const;
  // Writes row `row`; `scores` are what the trees' votes add up to (or the least or greatest), one
  // for each target, and are changed.
  void finish_row(const KernelArgs& args, int64_t row, std::span<double> scores) const;
};

// The kind of a TreeEnsemble*'s node by its operator.
ForestKind forest_kind(const OpDef& op);
Result<std::unique_ptr<ForestState>> make_forest_state(const KernelInit& init);

}  // namespace eddy
