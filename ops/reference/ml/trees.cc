// TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of domain ai.onnx.ml.
#include "ops/reference/ml/trees.h"

#include <algorithm>
#include <cmath>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/outputs.h"

namespace eddy {
namespace {

bool is_member(const Forest& forest, const Forest::Node& node, double value) {
  for (int32_t i = node.first_member; i < node.end_member; ++i) {
    if (forest.members[static_cast<size_t>(i)] == value) return true;
  }
  return false;
}

bool goes_true(const Forest& forest, const Forest::Node& node, double value) {
  if (std::isnan(value)) return node.is_nan_true;
  switch (node.branch) {
    case Branch::kLessEqual:
      return value <= node.split;
    case Branch::kLess:
      return value < node.split;
    case Branch::kGreaterEqual:
      return value >= node.split;
    case Branch::kGreater:
      return value > node.split;
    case Branch::kEqual:
      return value == node.split;
    case Branch::kNotEqual:
      return value != node.split;
    case Branch::kMember:
      return is_member(forest, node, value);
  }
  return false;
}

// From a root to the leaf of a row.
size_t leaf_of(const Forest& forest, int32_t at, const TensorView& x, int64_t first) {
  while (at >= 0) {
    const Forest::Node& node = forest.nodes[static_cast<size_t>(at)];
    const double value = load_number(x, first + node.feature).to_double();
    at = goes_true(forest, node, value) ? node.if_true : node.if_false;
  }
  return static_cast<size_t>(~at);
}

// The votes of all trees; a target without votes stays 0.
void count_votes(const Forest& forest, const TensorView& x, int64_t first, std::span<double> scores,
                 std::span<uint8_t> has_vote) {
  std::fill(scores.begin(), scores.end(), 0);
  std::fill(has_vote.begin(), has_vote.end(), 0);
  for (const int32_t root : forest.roots) {
    const size_t leaf = leaf_of(forest, root, x, first);
    for (int32_t i = forest.first_votes[leaf]; i < forest.first_votes[leaf + 1]; ++i) {
      const Forest::Vote& vote = forest.votes[static_cast<size_t>(i)];
      const auto target = static_cast<size_t>(vote.target);
      double& score = scores[target];
      if (forest.aggregate == Aggregate::kMin && has_vote[target]) {
        score = std::min(score, vote.weight);
      } else if (forest.aggregate == Aggregate::kMax && has_vote[target]) {
        score = std::max(score, vote.weight);
      } else {
        score += vote.weight;
      }
      has_vote[target] = 1;
    }
  }
}

bool run(const KernelArgs& args) {
  const auto& state = static_cast<const ForestState&>(*args.state);
  const TensorView& x = args.inputs[0];
  if (Status status = state.check_features(x); !status.is_ok()) return args.fail(std::move(status));
  const RowsOf rows(x);
  if (rows.rows == 0) return true;
  const auto targets = static_cast<size_t>(state.forest.num_targets);
  auto* const memory = static_cast<double*>(args.scratch->reserve(targets * (sizeof(double) + 1)));
  if (memory == nullptr) {
    return args.fail(resource_exhausted("no memory for " + std::to_string(targets) + " targets"));
  }
  const std::span<double> scores(memory, targets);
  const std::span<uint8_t> has_vote(reinterpret_cast<uint8_t*>(memory + targets), targets);
  for (int64_t row = 0; row < rows.rows; ++row) {
    count_votes(state.forest, x, row * rows.features, scores, has_vote);
    state.finish_row(args, row, scores);
  }
  return true;
}

Result<BoundKernel> bind(const KernelInit& init) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_forest_state(init));
  return BoundKernel{.run = run, .state = std::move(state)};
}

// Turns the one score of two classes into both.
void split_score(const ForestState& state, std::span<double> scores) {
  const double score = scores[state.binary_score];
  scores[0] = state.is_probability ? 1 - score : -score;
  scores[1] = score;
}

}  // namespace

Status ForestState::check_features(const TensorView& x) const {
  const int64_t features = x.dims[x.rank - 1];
  if (features >= forest.num_features) return Status::ok();
  return invalid_argument("nodes_featureids holds " + std::to_string(forest.num_features - 1) +
                          ", but X has only " + std::to_string(features) + " features");
}

void ForestState::finish_row(const KernelArgs& args, int64_t row, std::span<double> scores) const {
  if (forest.aggregate == Aggregate::kAverage) {
    for (double& score : scores) score /= static_cast<double>(forest.roots.size());
  }
  const std::vector<double>& base = forest.base_values;
  for (size_t i = 0; i < scores.size() && !base.empty(); ++i) {
    scores[i] += base[base.size() == 1 ? 0 : i];
  }
  if (is_binary) split_score(*this, scores);
  if (is_classifier()) {
    const size_t best = is_binary ? (scores[1] > least_of_second ? 1 : 0) : greatest(scores);
    labels.write(args.outputs[0], row, best);
  }
  const uint32_t output = is_classifier() ? 1 : 0;
  if (!has_output(args, output)) return;
  transform_scores(forest.transform, scores);
  write_scores(args.outputs[output], row, scores);
}

ForestKind forest_kind(const OpDef& op) {
  if (op.name == "TreeEnsembleClassifier") return ForestKind::kClassifier;
  return op.name == "TreeEnsemble" ? ForestKind::kTreeEnsemble : ForestKind::kRegressor;
}

Result<std::unique_ptr<ForestState>> make_forest_state(const KernelInit& init) {
  auto state = std::make_unique<ForestState>();
  const ForestKind kind = forest_kind(init.op);
  EDDY_RETURN_IF_ERROR(read_forest(init.attributes, kind, state->forest));
  if (kind != ForestKind::kClassifier) return state;
  ClassLabels labels;
  EDDY_RETURN_IF_ERROR(read_class_labels(init.attributes, "classlabels_int64s", labels));
  state->labels = LabelSet::of(labels);
  const auto ids = init.attributes.get_ints("class_ids");
  const bool is_one =
      !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids[0]; });
  state->is_binary = labels.count() == 2 && is_one;
  if (state->is_binary) state->binary_score = static_cast<size_t>(ids[0]);
  const Forest& forest = state->forest;
  const bool takes_reals =
      forest.transform != PostTransform::kNone && forest.transform != PostTransform::kProbit;
  const bool are_positive = std::all_of(forest.votes.begin(), forest.votes.end(),
                                        [](const Forest::Vote& vote) { return vote.weight >= 0; });
  state->is_probability = !takes_reals && are_positive;
  state->least_of_second = are_positive ? 0.5 : 0;
  return state;
}

void add_ml_tree_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, int since_version) {
    registry.add({.op = op,
                  .since_version = since_version,
                  .bind = bind,
                  .provider = "reference",
                  .domain = kMlDomain});
  };
  add("TreeEnsembleRegressor", 1);
  add("TreeEnsembleClassifier", 1);
  add("TreeEnsemble", 5);
}

}  // namespace eddy
