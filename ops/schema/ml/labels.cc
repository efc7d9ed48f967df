// LabelEncoder, CategoryMapper and OneHotEncoder of domain ai.onnx.ml.
#include "ops/schema/ml/labels.h"

#include "ops/schema/families.h"
#include "ops/schema/ml/ml.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {

namespace {

using enum AttributeKind;

constexpr TypeSet kTextOrInt = {ElementType::kString, ElementType::kInt64};
constexpr TypeSet kLabelTypes2 = kTextOrInt | TypeSet{ElementType::kFloat};
constexpr TypeSet kLabelTypes4 =
    kLabelTypes2 | TypeSet{ElementType::kInt32, ElementType::kInt16, ElementType::kDouble};

// Takes a list of an attribute unless there is one already; then says so.
template <typename T>
Status take(std::span<const T> values, ElementType element, const std::string& prefix,
            LabelList& list) {
  if (values.empty()) return Status::ok();
  if (list.size > 0)
    return invalid_argument("only one of the attributes " + prefix + "_* can be set");
  list = {element, static_cast<int64_t>(values.size()), values.data()};
  return Status::ok();
}

// Output 0 has the shape of input 0 and elements of another type.
Status set_labels(InferContext& context, const TensorType& x, ElementType element) {
  TensorType y = x;
  y.element = element;
  context.set_output(0, y);
  return Status::ok();
}

ElementType other_label_type(ElementType element) {
  if (element == ElementType::kString) return ElementType::kInt64;
  return element == ElementType::kInt64 ? ElementType::kString : ElementType::kUndefined;
}

Status infer_label_encoder_1(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  return set_labels(context, *x, other_label_type(x->element));
}

Status infer_label_encoder(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  LabelList keys, values;
  EDDY_RETURN_IF_ERROR(read_label_list(context.attributes(), "keys", keys));
  EDDY_RETURN_IF_ERROR(read_label_list(context.attributes(), "values", values));
  EDDY_RETURN_IF_ERROR(check_equal_sizes("keys_*", keys.size, "values_*", values.size));
  if (x->element != ElementType::kUndefined && x->element != keys.element) {
    return invalid_argument("X is " + std::string(element_type_name(x->element)) +
                            ", but the keys are " + std::string(element_type_name(keys.element)));
  }
  const Constant* unknown = nullptr;
  EDDY_RETURN_IF_ERROR(read_default_tensor(context.attributes(), values, unknown));
  return set_labels(context, *x, values.element);
}

Status infer_category_mapper(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const Attributes& attributes = context.attributes();
  EDDY_RETURN_IF_ERROR(check_equal_sizes(
      "cats_strings", static_cast<int64_t>(attributes.get_strings("cats_strings").size()),
      "cats_int64s", static_cast<int64_t>(attributes.get_ints("cats_int64s").size())));
  return set_labels(context, *x, other_label_type(x->element));
}

Status infer_one_hot_encoder(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const size_t texts = context.attributes().get_strings("cats_strings").size();
  const size_t numbers = context.attributes().get_ints("cats_int64s").size();
  if ((texts == 0) == (numbers == 0)) {
    return invalid_argument("exactly one of cats_strings and cats_int64s must hold categories");
  }
  if (x->element != ElementType::kUndefined &&
      (x->element == ElementType::kString) != (texts > 0)) {
    return invalid_argument("X of " + std::string(element_type_name(x->element)) +
                            " needs the attribute " + (texts > 0 ? "cats_int64s" : "cats_strings"));
  }
  if (!x->is_ranked) {
    context.set_output(0, TensorType(ElementType::kFloat));
    return Status::ok();
  }
  Dims dims = x->dims;
  EDDY_RETURN_IF_ERROR(push_dim(dims, static_cast<int64_t>(texts + numbers)));
  return set_checked_output(context, 0, ElementType::kFloat, dims);
}

std::vector<FormalAttribute> encoder_attributes(bool has_tensors) {
  std::vector<FormalAttribute> all = {
      attribute("keys_strings", kStrings),  attribute("keys_int64s", kInts),
      attribute("keys_floats", kFloats),    attribute("values_strings", kStrings),
      attribute("values_int64s", kInts),    attribute("values_floats", kFloats),
      attribute("default_string", kString), attribute("default_int64", kInt),
      attribute("default_float", kFloat)};
  if (!has_tensors) return all;
  for (const char* name : {"keys_tensor", "values_tensor", "default_tensor"}) {
    all.push_back(attribute(name, kTensor));
  }
  return all;
}

OpDef label_encoder(int since_version, TypeSet types, std::vector<FormalAttribute> attributes,
                    InferFunction infer) {
  return {.name = "LabelEncoder",
          .domain = kMlDomain,
          .since_version = since_version,
          .inputs = {in("X", types)},
          .attributes = std::move(attributes),
          .infer = std::move(infer),
          .batch = batch_entries};
}

}  // namespace

Status read_label_list(const Attributes& attributes, const std::string& prefix, LabelList& list) {
  list = {};
  EDDY_RETURN_IF_ERROR(
      take(attributes.get_strings(prefix + "_strings"), ElementType::kString, prefix, list));
  EDDY_RETURN_IF_ERROR(
      take(attributes.get_ints(prefix + "_int64s"), ElementType::kInt64, prefix, list));
  EDDY_RETURN_IF_ERROR(
      take(attributes.get_floats(prefix + "_floats"), ElementType::kFloat, prefix, list));
  if (const Constant* tensor = attributes.get_tensor_or_null(prefix + "_tensor")) {
    if (list.size > 0) {
      return invalid_argument("only one of the attributes " + prefix + "_* can be set");
    }
    if (tensor->dims.rank() != 1 || !kLabelTypes4.contains(tensor->element)) {
      return invalid_argument(prefix + "_tensor must be a list of string, int64, int32, int16, " +
                              "float or double, not " +
                              std::string(element_type_name(tensor->element)) +
                              to_string(tensor->dims));
    }
    list = {tensor->element, tensor->dims[0], tensor->data};
  }
  if (list.size > 0) return Status::ok();
  return invalid_argument("one of the attributes " + prefix + "_* must be set");
}

Status read_default_tensor(const Attributes& attributes, const LabelList& values,
                           const Constant*& tensor) {
  tensor = attributes.get_tensor_or_null("default_tensor");
  if (tensor == nullptr) return Status::ok();
  if (tensor->element == values.element && tensor->dims.count() == 1) return Status::ok();
  return invalid_argument(
      "default_tensor must be one " + std::string(element_type_name(values.element)) +
      ", as the values are, not " + std::string(element_type_name(tensor->element)) +
      to_string(tensor->dims));
}

Status add_ml_label_schemas(OpTable& table) {
  return add_schemas(
      table,
      {label_encoder(1, kTextOrInt,
                     {attribute("classes_strings", kStrings, true),
                      attribute("default_int64", kInt), attribute("default_string", kString)},
                     infer_label_encoder_1),
       label_encoder(2, kLabelTypes2, encoder_attributes(false), infer_label_encoder),
       label_encoder(4, kLabelTypes4, encoder_attributes(true), infer_label_encoder),
       {.name = "CategoryMapper",
        .domain = kMlDomain,
        .inputs = {in("X", kTextOrInt)},
        .attributes = {attribute("cats_int64s", kInts), attribute("cats_strings", kStrings),
                       attribute("default_int64", kInt), attribute("default_string", kString)},
        .infer = infer_category_mapper,
        .batch = batch_entries},
       {.name = "OneHotEncoder",
        .domain = kMlDomain,
        .inputs = {in("X", kFeatureTypes | TypeSet{ElementType::kString})},
        .attributes = {attribute("cats_int64s", kInts), attribute("cats_strings", kStrings),
                       flag("zeros")},
        .infer = infer_one_hot_encoder,
        .batch = batch_entries}});
}

}  // namespace eddy
