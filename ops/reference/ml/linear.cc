// LinearClassifier and LinearRegressor of domain ai.onnx.ml.
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/ml/scores.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/ml/linear.h"

namespace eddy {
namespace {

struct LinearState : KernelState {
  std::vector<float> coefficients;  // [scores, features]
  std::vector<float> intercepts;    // none, or one for each score
  PostTransform transform = PostTransform::kNone;
  LabelSet labels;  // LinearClassifier
};

double score_of(const LinearState& state, std::span<const double> x, size_t score) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += x[i] * double{state.coefficients[score * x.size() + i]};
  }
  return state.intercepts.empty() ? sum : sum + double{state.intercepts[score]};
}

bool run_regressor(const KernelArgs& args) {
  const auto& state = static_cast<const LinearState&>(*args.state);
  const RowsOf rows(args.inputs[0]);
  std::vector<double> x(static_cast<size_t>(rows.features));
  std::vector<double> scores(static_cast<size_t>(args.outputs[0].dims[1]));
  for (int64_t row = 0; row < rows.rows; ++row) {
    load_row(args.inputs[0], row, x);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = score_of(state, x, i);
    transform_scores(state.transform, scores);
    write_scores(args.outputs[0], row, scores);
  }
  return true;
}

// One score of one class: is it that class, or none (0, or no text)?
void write_only_class(const LinearState& state, const TensorView& y, int64_t row, double score) {
  if (score >= (state.transform == PostTransform::kNone ? 0 : 0.5)) {
    state.labels.write(y, row, 0);
  } else if (state.labels.texts.empty()) {
    y.mutable_as<int64_t>()[row] = 0;
  } else {
    y.mutable_as<std::string>()[row].clear();
  }
}

bool run_classifier(const KernelArgs& args) {
  const auto& state = static_cast<const LinearState&>(*args.state);
  const RowsOf rows(args.inputs[0]);
  const size_t classes = state.labels.count();
  std::vector<double> x(static_cast<size_t>(rows.features));
  std::vector<double> scores(classes);
  const bool is_shared = classes == 2 && state.coefficients.size() == x.size();
  for (int64_t row = 0; row < rows.rows; ++row) {
    load_row(args.inputs[0], row, x);
    for (size_t i = 0; i < (is_shared ? 1 : classes); ++i) scores[i] = score_of(state, x, i);
    // One score speaks for the second of two classes and against the first.
    if (is_shared) scores = {-scores[0], scores[0]};
    const size_t best = greatest(scores);
    transform_scores(state.transform, scores);
    // As it stands it is a probability, as in ONNX Runtime: the text is silent.
    if (is_shared && state.transform == PostTransform::kNone) scores[0] = 1 - scores[1];
    if (classes == 1) {
      write_only_class(state, args.outputs[0], row, scores[0]);
    } else {
      state.labels.write(args.outputs[0], row, best);
    }
    if (has_output(args, 1)) write_scores(args.outputs[1], row, scores);
  }
  return true;
}

Result<BoundKernel> bind_linear(const KernelInit& init, bool is_classifier) {
  auto state = std::make_unique<LinearState>();
  const auto coefficients = init.attributes.get_floats("coefficients");
  const auto intercepts = init.attributes.get_floats("intercepts");
  state->coefficients.assign(coefficients.begin(), coefficients.end());
  state->intercepts.assign(intercepts.begin(), intercepts.end());
  EDDY_RETURN_IF_ERROR(read_post_transform(init.attributes, state->transform));
  if (is_classifier) {
    ClassLabels labels;
    EDDY_RETURN_IF_ERROR(read_class_labels(init.attributes, "classlabels_ints", labels));
    state->labels = LabelSet::of(labels);
  }
  return BoundKernel{.run = is_classifier ? run_classifier : run_regressor,
                     .state = std::move(state)};
}

}  // namespace

void add_ml_linear_reference(KernelRegistry& registry) {
  registry.add({.op = "LinearClassifier",
                .bind = [](const KernelInit& init) { return bind_linear(init, true); },
                .provider = "reference",
                .domain = kMlDomain});
  registry.add({.op = "LinearRegressor",
                .bind = [](const KernelInit& init) { return bind_linear(init, false); },
                .provider = "reference",
                .domain = kMlDomain});
}

}  // namespace eddy
