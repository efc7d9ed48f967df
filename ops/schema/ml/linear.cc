// LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor of domain ai.onnx.ml.
#include "ops/schema/ml/linear.h"

#include "ops/schema/families.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

std::string text(int64_t value) { return std::to_string(value); }

int64_t floats_in(const Attributes& attributes, std::string_view name) {
  return static_cast<int64_t>(attributes.get_floats(name).size());
}

// Fails unless a list of `size` values is `rows` rows of the features that X has (-1: not known).
Status check_matrix(std::string_view name, int64_t size, int64_t rows, int64_t features) {
  const bool fits = features < 0 ? size % rows == 0 : size % rows == 0 && size / rows == features;
  if (fits && size > 0) return Status::ok();
  return invalid_argument(std::string(name) + " holds " + text(size) + " values, which are not " +
                          text(rows) + " rows of " +
                          (features < 0 ? "features" : text(features) + " features"));
}

Status check_features(const FeatureRows& x, int64_t features) {
  if (x.features < 0 || x.features == features) return Status::ok();
  return invalid_argument("X has " + text(x.features) + " features, but the model " +
                          text(features));
}

// A class for each row, and its scores.
Status set_classes(InferContext& context, const FeatureRows& x, const ClassLabels& labels,
                   int64_t scores) {
  context.set_output(0, TensorType(labels.element(), {x.rows}));
  return set_checked_output(context, 1, ElementType::kFloat, {x.rows, scores});
}

Status infer_linear_classifier(InferContext& context) {
  const Attributes& attributes = context.attributes();
  FeatureRows x;
  ClassLabels labels;
  PostTransform transform;
  int64_t scores = 0;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(read_class_labels(attributes, "classlabels_ints", labels));
  EDDY_RETURN_IF_ERROR(read_post_transform(attributes, transform));
  EDDY_RETURN_IF_ERROR(read_linear_scores(attributes, labels.count(), x.features, scores));
  return set_classes(context, x, labels, labels.count());
}

Status infer_linear_regressor(InferContext& context) {
  const Attributes& attributes = context.attributes();
  FeatureRows x;
  PostTransform transform;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(read_post_transform(attributes, transform));
  const int64_t targets = attributes.get_int("targets", 1);
  if (targets < 1) return invalid_argument("targets must be at least 1, not " + text(targets));
  EDDY_RETURN_IF_ERROR(
      check_matrix("coefficients", floats_in(attributes, "coefficients"), targets, x.features));
  const int64_t intercepts = floats_in(attributes, "intercepts");
  if (intercepts > 0) {
    EDDY_RETURN_IF_ERROR(check_equal_sizes("intercepts", intercepts, "targets", targets));
  }
  return set_checked_output(context, 0, ElementType::kFloat, {x.rows, targets});
}

Status infer_svm_classifier(InferContext& context) {
  FeatureRows x;
  ClassLabels labels;
  PostTransform transform;
  SvmFunction function;
  SvmSizes sizes;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(read_class_labels(context.attributes(), "classlabels_ints", labels));
  EDDY_RETURN_IF_ERROR(read_post_transform(context.attributes(), transform));
  EDDY_RETURN_IF_ERROR(read_svm_function(context.attributes(), function));
  EDDY_RETURN_IF_ERROR(read_svm_sizes(context.attributes(), sizes));
  EDDY_RETURN_IF_ERROR(check_features(x, sizes.features));
  return set_classes(context, x, labels, sizes.scores());
}

Status infer_svm_regressor(InferContext& context) {
  const Attributes& attributes = context.attributes();
  FeatureRows x;
  PostTransform transform;
  SvmFunction function;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(read_post_transform(attributes, transform));
  EDDY_RETURN_IF_ERROR(read_svm_function(attributes, function));
  const int64_t vectors = attributes.get_int("n_supports", 0);
  const int64_t coefficients = floats_in(attributes, "coefficients");
  if (vectors < 0) return invalid_argument("n_supports must not be negative: " + text(vectors));
  if (floats_in(attributes, "rho") != 1) {
    return invalid_argument("rho must hold one value, not " + text(floats_in(attributes, "rho")));
  }
  if (vectors > 0) {
    EDDY_RETURN_IF_ERROR(check_equal_sizes("coefficients", coefficients, "n_supports", vectors));
    EDDY_RETURN_IF_ERROR(check_matrix("support_vectors", floats_in(attributes, "support_vectors"),
                                      vectors, x.features));
  } else {
    EDDY_RETURN_IF_ERROR(check_matrix("coefficients", coefficients, 1, x.features));
  }
  return set_checked_output(context, 0, ElementType::kFloat, {x.rows, 1});
}

// Every row meets all coefficients and all vectors.
double linear_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& y = outputs[0].tensor.dims;
  const double rows = y.rank() > 0 && y[0] > 0 ? static_cast<double>(y[0]) : 0;
  const Attributes& attributes = context.attributes();
  return 2 * rows *
         static_cast<double>(floats_in(attributes, "coefficients") +
                             floats_in(attributes, "support_vectors"));
}

std::vector<FormalAttribute> classifier_attributes(std::vector<FormalAttribute> more) {
  more.push_back(attribute("classlabels_ints", kInts));
  more.push_back(attribute("classlabels_strings", kStrings));
  more.push_back(attribute("post_transform", kString));
  return more;
}

}  // namespace

Status read_linear_scores(const Attributes& attributes, int64_t classes, int64_t features,
                          int64_t& scores) {
  const int64_t coefficients = floats_in(attributes, "coefficients");
  const int64_t intercepts = floats_in(attributes, "intercepts");
  scores = -1;
  if (intercepts > 0) {
    scores = intercepts;
  } else if (features > 0) {
    scores = coefficients / features;
  } else if (features < 0 && coefficients > 0) {
    return Status::ok();
  }
  if (scores != classes && (scores != 1 || classes > 2)) {
    return invalid_argument(std::string(intercepts > 0 ? "intercepts" : "coefficients") + " make " +
                            text(scores) + " scores for " + text(classes) +
                            " classes; each class needs one, or two classes share one");
  }
  return check_matrix("coefficients", coefficients, scores, features);
}

Status read_svm_function(const Attributes& attributes, SvmFunction& function) {
  const std::string_view name = attributes.get_string("kernel_type", "LINEAR");
  constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  size_t found = 0;
  while (found < std::size(kNames) && kNames[found] != name) ++found;
  if (found == std::size(kNames)) {
    return invalid_argument("kernel_type must be LINEAR, POLY, RBF or SIGMOID, not '" +
                            std::string(name) + "'");
  }
  function.kernel = static_cast<SvmKernel>(found);
  const std::span<const float> params = attributes.get_floats("kernel_params");
  if (params.empty()) return Status::ok();
  if (params.size() != 3) {
    return invalid_argument("kernel_params must hold gamma, coef0 and degree, not " +
                            std::to_string(params.size()) + " values");
  }
  function.gamma = params[0];
  function.coef0 = params[1];
  function.degree = params[2];
  return Status::ok();
}

Status read_svm_sizes(const Attributes& attributes, SvmSizes& sizes) {
  ClassLabels labels;
  EDDY_RETURN_IF_ERROR(read_class_labels(attributes, "classlabels_ints", labels));
  sizes.classes = labels.count();
  const std::span<const int64_t> counts = attributes.get_ints("vectors_per_class");
  const int64_t values = floats_in(attributes, "support_vectors");
  const int64_t coefficients = floats_in(attributes, "coefficients");
  sizes.vectors = 0;
  for (const int64_t count : counts) {
    if (count < 0 || count > values - sizes.vectors) {
      return invalid_argument("vectors_per_class holds " + text(count) +
                              ", but support_vectors only " + text(values) + " values");
    }
    sizes.vectors += count;
  }
  if (sizes.vectors == 0) {
    EDDY_RETURN_IF_ERROR(check_matrix("coefficients", coefficients, sizes.classes, -1));
    sizes.features = coefficients / sizes.classes;
    if (floats_in(attributes, "rho") > 0) return Status::ok();
    return invalid_argument("rho must hold a value");
  }
  if (sizes.classes < 2) return invalid_argument("support vectors need two classes or more");
  EDDY_RETURN_IF_ERROR(check_equal_sizes("vectors_per_class", static_cast<int64_t>(counts.size()),
                                         "the class labels", sizes.classes));
  EDDY_RETURN_IF_ERROR(check_matrix("support_vectors", values, sizes.vectors, -1));
  sizes.features = values / sizes.vectors;
  EDDY_RETURN_IF_ERROR(
      check_matrix("coefficients", coefficients, sizes.classes - 1, sizes.vectors));
  EDDY_RETURN_IF_ERROR(check_equal_sizes("rho", floats_in(attributes, "rho"),
                                         "the pairs of classes", sizes.pairs()));
  const int64_t probabilities = floats_in(attributes, "prob_a");
  EDDY_RETURN_IF_ERROR(
      check_equal_sizes("prob_a", probabilities, "prob_b", floats_in(attributes, "prob_b")));
  sizes.has_probabilities = probabilities > 0;
  if (!sizes.has_probabilities) return Status::ok();
  return check_equal_sizes("prob_a", probabilities, "the pairs of classes", sizes.pairs());
}

Status add_ml_linear_schemas(OpTable& table) {
  return add_schemas(
      table,
      {{.name = "LinearClassifier",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .max_outputs = 2,
        .attributes = classifier_attributes({attribute("coefficients", kFloats, true),
                                             attribute("intercepts", kFloats),
                                             attribute("multi_class", kInt)}),
        .infer = infer_linear_classifier,
        .flops = linear_flops,
        .batch = batch_feature_rows},
       {.name = "LinearRegressor",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .attributes = {attribute("coefficients", kFloats), attribute("intercepts", kFloats),
                       attribute("post_transform", kString), attribute("targets", kInt)},
        .infer = infer_linear_regressor,
        .flops = linear_flops,
        .batch = batch_feature_rows},
       {.name = "SVMClassifier",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .max_outputs = 2,
        .attributes = classifier_attributes(
            {attribute("coefficients", kFloats), attribute("kernel_params", kFloats),
             attribute("kernel_type", kString), attribute("prob_a", kFloats),
             attribute("prob_b", kFloats), attribute("rho", kFloats),
             attribute("support_vectors", kFloats), attribute("vectors_per_class", kInts)}),
        .infer = infer_svm_classifier,
        .flops = linear_flops,
        .batch = batch_feature_rows},
       {.name = "SVMRegressor",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .attributes = {attribute("coefficients", kFloats), attribute("kernel_params", kFloats),
                       attribute("kernel_type", kString), attribute("n_supports", kInt),
                       flag("one_class"), attribute("post_transform", kString),
                       attribute("rho", kFloats), attribute("support_vectors", kFloats)},
        .infer = infer_svm_regressor,
        .flops = linear_flops,
        .batch = batch_feature_rows}});
}

}  // namespace eddy
