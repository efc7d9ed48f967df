#include "ops/schema/ml/ml.h"

#include "graph/base/check.h"
#include "graph/ir/half.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

}  // namespace

Status read_feature_rows(const InferContext& context, FeatureRows& x) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, 0));
  if (!type->is_ranked) return Status::ok();
  const Dims& dims = type->dims;
  if (dims.rank() != 1 && dims.rank() != 2) {
    return invalid_argument("X must be [features] or [rows, features], not " + to_string(dims));
  }
  x.rows = dims.rank() == 2 ? dims[0] : 1;
  x.features = dims[dims.rank() - 1];
  return Status::ok();
}

Status check_one_or_each(std::string_view name, size_t size, const TensorType& x) {
  if (size == 1 || !x.is_ranked) return Status::ok();
  const int64_t features = x.dims.rank() == 0 ? 1 : x.dims[x.dims.rank() - 1];
  if (features < 0 || static_cast<int64_t>(size) == features) return Status::ok();
  return invalid_argument(std::string(name) + " holds " + std::to_string(size) +
                          " values, but X has " + text(features) +
                          " features: give one value, or one for each");
}

Status batch_feature_rows(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  const int axis = context.axis(0);
  if (axis == context.rank(0) - 1) return crosses_samples("takes as features", axis);
  context.set_outputs(context.input(0));
  return Status::ok();
}

Status read_class_labels(const Attributes& attributes, const char* numbers, ClassLabels& labels) {
  labels.texts = attributes.get_strings("classlabels_strings");
  labels.numbers = attributes.get_ints(numbers);
  if (labels.texts.empty() != labels.numbers.empty()) return Status::ok();
  return invalid_argument(std::string("exactly one of classlabels_strings and ") + numbers +
                          " must name the classes");
}

Status read_post_transform(const Attributes& attributes, PostTransform& transform) {
  const std::string_view name = attributes.get_string("post_transform", "NONE");
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    transform = static_cast<PostTransform>(i);
    return Status::ok();
  }
  return invalid_argument(
      "post_transform must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, not '" +
      std::string(name) + "'");
}

Status NumberList::read(const Attributes& attributes, const char* name, const char* tensor_name,
                        NumberList& list) {
  const std::span<const float> floats = attributes.get_floats(name);
  list.data_ = floats.data();
  list.size_ = static_cast<int64_t>(floats.size());
  list.element_ = ElementType::kFloat;
  const Constant* tensor =
      tensor_name == nullptr ? nullptr : attributes.get_tensor_or_null(tensor_name);
  if (tensor == nullptr) return Status::ok();
  if (!floats.empty()) {
    return invalid_argument(std::string(name) + " and " + tensor_name + " are both given");
  }
  constexpr TypeSet kTypes = {ElementType::kFloat16, ElementType::kFloat, ElementType::kDouble};
  if (!kTypes.contains(tensor->element) || tensor->dims.rank() != 1) {
    return invalid_argument(
        std::string(tensor_name) + " must be one list of float16, float or double, not " +
        std::string(element_type_name(tensor->element)) + to_string(tensor->dims));
  }
  list.data_ = tensor->data;
  list.size_ = tensor->dims[0];
  list.element_ = tensor->element;
  return Status::ok();
}

double NumberList::operator[](int64_t i) const {
  EDDY_DCHECK(i >= 0 && i < size_) << "entry " << i << " of " << size_;
  if (element_ == ElementType::kDouble) return static_cast<const double*>(data_)[i];
  if (element_ == ElementType::kFloat) return static_cast<const float*>(data_)[i];
  return float16_to_float(static_cast<const uint16_t*>(data_)[i]);
}

Status check_equal_sizes(std::string_view a, int64_t size_a, std::string_view b, int64_t size_b) {
  if (size_a == size_b) return Status::ok();
  return invalid_argument(std::string(a) + " holds " + text(size_a) + " values, but " +
                          std::string(b) + " " + text(size_b));
}

}  // namespace eddy
