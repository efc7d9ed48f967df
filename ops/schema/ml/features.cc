// Features of domain ai.onnx.ml: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer,
// Normalizer and Scaler.
#include "ops/schema/families.h"
#include "ops/schema/ml/ml.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// Output 0 has the shape of input 0 and floats.
Status set_floats(InferContext& context, const TensorType& x) {
  TensorType y = x;
  y.element = ElementType::kFloat;
  context.set_output(0, y);
  return Status::ok();
}

// The number of elements of a shape: a size, a symbol beside ones, or unknown.
int64_t count_dim(const TensorType& type) {
  if (!type.is_ranked) return kUnknownDim;
  int64_t product = 1;
  for (const int64_t dim : type.dims) {
    if (product == 1) {
      product = dim;
    } else if (dim != 1) {
      if (product < 0 || dim < 0) return kUnknownDim;
      if (__builtin_mul_overflow(product, dim, &product)) return kUnknownDim;
    }
  }
  return product;
}

Status infer_extractor(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* indices, tensor_input(context, 1));
  if (!x->is_ranked) {
    context.set_output(0, TensorType(x->element));
    return Status::ok();
  }
  const int rank = x->dims.rank();
  if (rank == 0)
    return invalid_argument("X must have an axis to pick from, not " + to_string(x->dims));
  Dims dims = rank == 1 ? Dims{1, 1} : x->dims;
  dims[dims.rank() - 1] = count_dim(*indices);
  return set_checked_output(context, 0, x->element, dims);
}

// The result of one dimension is a row of its own.
Status batch_extractor(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (context.rank(0) < 2) return unsupported("makes one row of all features");
  return batch_feature_rows(context);
}

// [rows, features], or [features] as one row: how many `columns` it adds, and the rows.
Status add_columns(const InferContext& context, size_t i, int64_t wanted, int64_t& rows,
                   int64_t& columns) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, i));
  int64_t features = wanted;
  if (x->is_ranked) {
    const int rank = x->dims.rank();
    if (rank != 1 && rank != 2) {
      return invalid_argument("input " + std::to_string(i) +
                              " must be [features] or [rows, features], not " + to_string(x->dims));
    }
    const std::optional<int64_t> merged = merge_dim(rows, rank == 2 ? x->dims[0] : 1);
    if (!merged) {
      return invalid_argument("input " + std::to_string(i) + " has " +
                              std::to_string(rank == 2 ? x->dims[0] : 1) +
                              " rows, but others have " + std::to_string(rows));
    }
    rows = *merged;
    const std::optional<int64_t> size = merge_dim(x->dims[rank - 1], wanted);
    if (!size) {
      return invalid_argument("input " + std::to_string(i) + " has " +
                              std::to_string(x->dims[rank - 1]) +
                              " features, but inputdimensions says " + std::to_string(wanted));
    }
    features = *size;
  }
  if (features < 0 || columns < 0) {
    columns = kUnknownDim;
  } else if (__builtin_add_overflow(columns, features, &columns)) {
    return invalid_argument("inputdimensions adds up to more than 2^63");
  }
  return Status::ok();
}

Status infer_vectorizer(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  const std::span<const int64_t> sizes = context.attributes().get_ints("inputdimensions");
  if (!sizes.empty()) {
    EDDY_RETURN_IF_ERROR(check_equal_sizes("inputdimensions", static_cast<int64_t>(sizes.size()),
                                           "X", static_cast<int64_t>(context.num_inputs())));
  }
  int64_t rows = kUnknownDim, columns = 0;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const int64_t wanted = sizes.empty() ? kUnknownDim : sizes[i];
    if (!sizes.empty() && wanted < 0) {
      return invalid_argument("inputdimensions holds " + std::to_string(wanted));
    }
    EDDY_RETURN_IF_ERROR(add_columns(context, i, wanted, rows, columns));
  }
  return set_checked_output(context, 0, ElementType::kFloat, {rows, columns});
}

Status infer_imputer(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const size_t floats = context.attributes().get_floats("imputed_value_floats").size();
  const size_t ints = context.attributes().get_ints("imputed_value_int64s").size();
  const bool takes_ints = kIntTypes.contains(x->element);
  const char* name = takes_ints ? "imputed_value_int64s" : "imputed_value_floats";
  if (x->element == ElementType::kUndefined) return infer_same_as_input(context);
  if ((takes_ints ? ints : floats) == 0 || (takes_ints ? floats : ints) > 0) {
    return invalid_argument("X of " + std::string(element_type_name(x->element)) +
                            " needs the attribute " + name + ", and it alone");
  }
  EDDY_RETURN_IF_ERROR(check_one_or_each(name, takes_ints ? ints : floats, *x));
  return infer_same_as_input(context);
}

Status infer_normalizer(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const std::string_view norm = context.attributes().get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") {
    return invalid_argument("norm must be MAX, L1 or L2, not '" + std::string(norm) + "'");
  }
  FeatureRows rows;
  EDDY_RETURN_IF_ERROR(read_feature_rows(context, rows));
  return set_floats(context, *x);
}

Status infer_scaler(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const size_t offsets = context.attributes().get_floats("offset").size();
  const size_t scales = context.attributes().get_floats("scale").size();
  if (offsets > 0 && scales > 0) {
    EDDY_RETURN_IF_ERROR(check_equal_sizes("offset", static_cast<int64_t>(offsets), "scale",
                                           static_cast<int64_t>(scales)));
  }
  if (offsets > 0) EDDY_RETURN_IF_ERROR(check_one_or_each("offset", offsets, *x));
  if (scales > 0) EDDY_RETURN_IF_ERROR(check_one_or_each("scale", scales, *x));
  return set_floats(context, *x);
}

// Rows of several inputs stand beside each other.
Status batch_vectorizer(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  Extent each;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.is_along(i) || context.axis(i) != 0 || context.rank(i) != 2) {
      return unsupported("puts rows beside rows that are no samples");
    }
    if (i > 0 && each.differs(context.input(i).each)) {
      return unsupported("puts rows beside others of another number for each sample");
    }
    if (!each.is_known()) each = context.input(i).each;
  }
  context.set_output(0, Batched::along(0, each));
  return Status::ok();
}

}  // namespace

Status add_ml_feature_schemas(OpTable& table) {
  return add_schemas(table,
                     {{.name = "ArrayFeatureExtractor",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes | TypeSet{ElementType::kString}),
                                  in("Y", {ElementType::kInt64})},
                       .infer = infer_extractor,
                       .batch = batch_extractor},
                      {.name = "Binarizer",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes)},
                       .attributes = {attribute("threshold", kFloat)},
                       .infer = infer_same_as_input,
                       .in_place_inputs = 1,
                       .batch = batch_entries},
                      {.name = "FeatureVectorizer",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes, InputFlag::kVariadic)},
                       .attributes = {attribute("inputdimensions", kInts)},
                       .infer = infer_vectorizer,
                       .batch = batch_vectorizer},
                      {.name = "Imputer",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes)},
                       .attributes = {attribute("imputed_value_floats", kFloats),
                                      attribute("imputed_value_int64s", kInts),
                                      attribute("replaced_value_float", kFloat),
                                      attribute("replaced_value_int64", kInt)},
                       .infer = infer_imputer,
                       .in_place_inputs = 1,
                       .batch = batch_feature_rows},
                      {.name = "Normalizer",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes)},
                       .attributes = {attribute("norm", kString)},
                       .infer = infer_normalizer,
                       .batch = batch_feature_rows},
                      {.name = "Scaler",
                       .domain = kMlDomain,
                       .inputs = {in("X", kFeatureTypes)},
                       .attributes = {attribute("offset", kFloats), attribute("scale", kFloats)},
                       .infer = infer_scaler,
                       .batch = batch_feature_rows}});
}

}  // namespace eddy
