// TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of domain ai.onnx.ml. The first
// two are deprecated since version 5, and mean in it what they did before.
#include "ops/schema/families.h"
#include "ops/schema/ml/forest.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kSplitTypes = {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16};

Status infer_regressor(InferContext& context) {
  FeatureRows x;
  int64_t num_targets = 0;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(check_forest(context.attributes(), ForestKind::kRegressor,
                                    ElementType::kUndefined, num_targets));
  return set_checked_output(context, 0, ElementType::kFloat, {x.rows, num_targets});
}

Status infer_classifier(InferContext& context) {
  FeatureRows x;
  ClassLabels labels;
  int64_t num_classes = 0;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(check_forest(context.attributes(), ForestKind::kClassifier,
                                    ElementType::kUndefined, num_classes));
  EDDY_RETURN_IF_ERROR(read_class_labels(context.attributes(), "classlabels_int64s", labels));
  context.set_output(0, TensorType(labels.element(), {x.rows}));
  return set_checked_output(context, 1, ElementType::kFloat, {x.rows, num_classes});
}

Status infer_tree_ensemble(InferContext& context) {
  FeatureRows x;
  int64_t num_targets = 0;
  const ElementType element = context.input(0).tensor.element;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, x));
  EDDY_RETURN_IF_ERROR(
      check_forest(context.attributes(), ForestKind::kTreeEnsemble, element, num_targets));
  return set_checked_output(context, 0, element, {x.rows, num_targets});
}

// A row takes some ten operations at each node of its walks: about a sixteenth of all nodes, where
// trees have a hundred or so.
double tree_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& y = outputs[0].tensor.dims;
  const double rows = y.rank() > 0 && y[0] > 0 ? static_cast<double>(y[0]) : 0;
  return rows * 10 / 16 *
         static_cast<double>(context.attributes().get_ints("nodes_featureids").size());
}

// Of versions 1 and 3; `prefix` names the votes' attributes.
std::vector<FormalAttribute> tree_attributes(const std::string& prefix,
                                             std::vector<FormalAttribute> more) {
  for (const char* name :
       {"nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
        "nodes_falsenodeids", "nodes_missing_value_tracks_true"}) {
    more.push_back(attribute(name, kInts));
  }
  for (const char* name : {"_treeids", "_nodeids", "_ids"}) {
    more.push_back(attribute(prefix + name, kInts));
  }
  for (const std::string& name : {std::string("nodes_values"), std::string("nodes_hitrates"),
                                  std::string("base_values"), prefix + "_weights"}) {
    more.push_back(attribute(name, kFloats));
    more.push_back(since(3, attribute(name + "_as_tensor", kTensor)));
  }
  more.push_back(attribute("nodes_modes", kStrings));
  more.push_back(attribute("post_transform", kString));
  return more;
}

}  // namespace

Status add_ml_tree_schemas(OpTable& table) {
  return add_schemas(
      table,
      {{.name = "TreeEnsembleRegressor",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .attributes = tree_attributes("target", {attribute("n_targets", kInt, true),
                                                 attribute("aggregate_function", kString)}),
        .infer = infer_regressor,
        .flops = tree_flops,
        .batch = batch_feature_rows},
       {.name = "TreeEnsembleClassifier",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes)},
        .max_outputs = 2,
        .attributes = tree_attributes("class", {attribute("classlabels_int64s", kInts),
                                                attribute("classlabels_strings", kStrings)}),
        .infer = infer_classifier,
        .flops = tree_flops,
        .batch = batch_feature_rows},
       {.name = "TreeEnsemble",
        .domain = kMlDomain,
        .since_version = 5,
        .inputs = {in("X", kSplitTypes)},
        .attributes =
            {attribute("aggregate_function", kInt), attribute("leaf_targetids", kInts, true),
             attribute("leaf_weights", kTensor, true), attribute("membership_values", kTensor),
             attribute("n_targets", kInt, true), attribute("nodes_falseleafs", kInts, true),
             attribute("nodes_falsenodeids", kInts, true),
             attribute("nodes_featureids", kInts, true), attribute("nodes_hitrates", kTensor),
             attribute("nodes_missing_value_tracks_true", kInts),
             attribute("nodes_modes", kTensor, true), attribute("nodes_splits", kTensor, true),
             attribute("nodes_trueleafs", kInts, true), attribute("nodes_truenodeids", kInts, true),
             attribute("post_transform", kInt), attribute("tree_roots", kInts, true)},
        .infer = infer_tree_ensemble,
        .flops = tree_flops,
        .batch = batch_feature_rows}});
}

}  // namespace eddy
