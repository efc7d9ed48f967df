// eddy.PackMatrix, eddy.PackedMatMul, eddy.SplitMatMul.
#include <climits>
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/products/packed_matrix.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// Elements of a matrix in panels of `width` columns, and of the vector behind them that tiles may
// read; < 0: not known.
Result<int64_t> packed_size(int64_t rows, int64_t columns, int64_t width) {
  if (width < 1) return invalid_argument("width must be positive, not " + std::to_string(width));
  if (rows < 0 || columns < 0) return kUnknownDim;
  const int64_t panels = columns / width + (columns % width != 0 ? 1 : 0);
  int64_t size = 0;
  if (__builtin_mul_overflow(panels, width, &size) || __builtin_mul_overflow(size, rows, &size) ||
      __builtin_add_overflow(size, kPackedSlack, &size)) {
    return invalid_argument("a packed matrix of " + std::to_string(rows) + " x " +
                            std::to_string(columns) + " is too large");
  }
  return size;
}

Status infer_pack_matrix(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 0));
  int64_t rows = kUnknownDim, columns = kUnknownDim;
  if (b->is_ranked) {
    if (b->dims.rank() != 2) return bad_shape("B", b->dims, "must be a matrix");
    const bool is_turned = context.attributes().get_int("turned", 0) != 0;
    rows = b->dims[is_turned ? 1 : 0];
    columns = b->dims[is_turned ? 0 : 1];
  }
  EDDY_ASSIGN_OR_RETURN(const int64_t size,
                        packed_size(rows, columns, context.attributes().get_int("width", 0)));
  context.set_output(0, TensorType(b->element, {size}));
  return Status::ok();
}

Status infer_packed_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  const int64_t columns = context.attributes().get_int("columns", -1);
  if (columns < 0) return invalid_argument("columns must be given, and not be negative");
  if (!a->is_ranked) return unsupported("A of PackedMatMul must have a known rank");
  const int rank = a->dims.rank();
  if (rank < 2) return bad_shape("A", a->dims, "must have at least two dimensions");
  const int64_t depth = a->dims[rank - 1];
  EDDY_ASSIGN_OR_RETURN(const int64_t size,
                        packed_size(depth, columns, context.attributes().get_int("width", 0)));
  if (b->is_ranked && b->dims.rank() != 1)
    return bad_shape("B", b->dims, "must be one vector, as PackMatrix makes it");
  if (b->is_ranked && size >= 0 && b->dims[0] >= 0 && b->dims[0] != size) {
    return bad_shape("B", b->dims,
                     "must have " + std::to_string(size) + " elements, as a matrix of " +
                         std::to_string(depth) + " x " + std::to_string(columns) + " has packed");
  }
  const TensorType* const row = context.has_input(2) ? &context.input(2).tensor : nullptr;
  if (row != nullptr && row->is_ranked) {
    const Dims& dims = row->dims;
    const bool is_row = dims.rank() == 1 || (dims.rank() == 2 && (dims[0] == 1 || dims[0] < 0));
    const bool fits = is_row && (dims[dims.rank() - 1] == columns || dims[dims.rank() - 1] < 0);
    if (!fits)
      return bad_shape(
          "row", dims,
          "must have one number for each of the " + std::to_string(columns) + " columns");
  }
  Dims y = a->dims;
  y[rank - 1] = columns;
  context.set_output(0, TensorType(a->element, y));
  return Status::ok();
}

Status infer_split_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  if (a->is_ranked && a->dims.rank() < 1)
    return bad_shape("A", a->dims, "must have at least one dimension");
  if (b->is_ranked && b->dims.rank() != 2)
    return bad_shape("B", b->dims, "must have two dimensions");
  const std::span<const int64_t> sizes = context.attributes().get_ints("split");
  if (sizes.size() != context.num_outputs()) {
    return invalid_argument("split has " + std::to_string(sizes.size()) + " entries for " +
                            std::to_string(context.num_outputs()) + " outputs");
  }
  Dims y = a->dims;
  int64_t columns = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || __builtin_add_overflow(columns, sizes[i], &columns)) {
      return invalid_argument("split has the size " + std::to_string(sizes[i]));
    }
    if (a->is_ranked) y[y.rank() - 1] = sizes[i];
    context.set_output(i, a->is_ranked ? TensorType(a->element, y) : TensorType(a->element));
  }
  const int64_t depth = a->is_ranked ? a->dims[a->dims.rank() - 1] : kUnknownDim;
  if (b->is_ranked) {
    if (b->dims[0] >= 0 && depth >= 0 && b->dims[0] != depth) {
      return bad_shape("B", b->dims,
                       "must have the " + std::to_string(depth) + " rows that A " + "has columns");
    }
    if (b->dims[1] >= 0 && b->dims[1] != columns) {
      return bad_shape("B", b->dims,
                       "must have the " + std::to_string(columns) +
                           " columns that the sizes of split add up to");
    }
  }
  const TensorType* const row = context.has_input(2) ? &context.input(2).tensor : nullptr;
  if (row != nullptr && row->is_ranked &&
      (row->dims.rank() != 1 || (row->dims[0] >= 0 && row->dims[0] != columns))) {
    return bad_shape(
        "row", row->dims,
        "must have one number for each of the " + std::to_string(columns) + " columns");
  }
  return Status::ok();
}

// Of all parts of the result.
double product_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& a = context.input(0).tensor.dims;
  const double depth = a.rank() > 0 ? static_cast<double>(a[a.rank() - 1]) : 1;
  double sums = 0;
  for (const ValueType& output : outputs) {
    sums += static_cast<double>(output.tensor.dims.count().value_or(0));
  }
  return 2.0 * depth * sums;
}

}  // namespace

Status add_packed_product_schemas(OpTable& table) {
  return add_schemas(table, {{.name = "PackMatrix",
                              .domain = "eddy",
                              .inputs = {in("B", kFloatTypes)},
                              .attributes = {attribute("width", AttributeKind::kInt),
                                             attribute("turned", AttributeKind::kInt)},
                              .infer = infer_pack_matrix},
                             {.name = "PackedMatMul",
                              .domain = "eddy",
                              .inputs = {in("A", kFloatTypes), in("B", kFloatTypes),
                                         in("row", kFloatTypes, InputFlag::kOptional)},
                              .attributes = {attribute("columns", AttributeKind::kInt),
                                             attribute("width", AttributeKind::kInt)},
                              .infer = infer_packed_matmul,
                              .flops = product_flops},
                             {.name = "SplitMatMul",
                              .domain = "eddy",
                              .inputs = {in("A", kFloatTypes), in("B", kFloatTypes),
                                         in("row", kFloatTypes, InputFlag::kOptional)},
                              .max_outputs = INT_MAX,
                              .attributes = {attribute("split", AttributeKind::kInts)},
                              .infer = infer_split_matmul,
                              .flops = product_flops}});
}

}  // namespace eddy
