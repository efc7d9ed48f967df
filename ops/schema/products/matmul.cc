// MatMul, Gemm, MatMulInteger, eddy.PermutedMatMul.
#include <algorithm>
#include <optional>
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr TypeSet kProductTypes = kFloatTypes | TypeSet{ElementType::kInt32, ElementType::kInt64,
                                                        ElementType::kUint32, ElementType::kUint64};
constexpr TypeSet kByteTypes = {ElementType::kInt8, ElementType::kUint8};

// The leading dimensions of A and B broadcast; a one-dimensional A is a row, a one-dimensional
// B a column, and their dimension is then dropped from the result.
Status matmul_dims(const Dims& a, const Dims& b, Dims& result) {
  if (a.rank() == 0 || b.rank() == 0) {
    return invalid_argument("A and B of a matrix product must have at least one dimension, not " +
                            to_string(a) + " and " + to_string(b));
  }
  const int64_t a_depth = a[a.rank() - 1];
  const int64_t b_depth = b.rank() == 1 ? b[0] : b[b.rank() - 2];
  if (!merge_dim(a_depth, b_depth)) {
    return invalid_argument("A has " + std::to_string(a_depth) + " columns but B has " +
                            std::to_string(b_depth) + " rows: " + to_string(a) + " times " +
                            to_string(b));
  }
  Dims a_batch, b_batch;
  for (int i = 0; i + 2 < a.rank(); ++i) a_batch.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); ++i) b_batch.push_back(b[i]);
  const std::optional<Dims> batch = broadcast_dims(a_batch, b_batch);
  if (!batch) {
    return invalid_argument("leading dimensions of A and B do not broadcast: " + to_string(a) +
                            " and " + to_string(b));
  }
  result = *batch;
  if (a.rank() > 1) result.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) result.push_back(b[b.rank() - 1]);
  return Status::ok();
}

Status set_product(InferContext& context, ElementType element) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  if (!a->is_ranked || !b->is_ranked) {
    context.set_output(0, TensorType(element));
    return Status::ok();
  }
  Dims dims;
  EDDY_RETURN_IF_ERROR(matmul_dims(a->dims, b->dims, dims));
  context.set_output(0, TensorType(element, dims));
  return Status::ok();
}

Status infer_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  return set_product(context, context.input(0).tensor.element);
}

// The dimensions in the order that the attribute gives; without it as they are.
Status permute(const InferContext& context, const char* name, const Dims& dims, Dims& permuted) {
  const std::span<const int64_t> perm = context.attributes().get_ints(name);
  permuted = dims;
  if (perm.empty()) return Status::ok();
  IntList order;
  if (Status status = resolve_permutation(perm, dims.rank(), order); !status.is_ok()) {
    return invalid_argument(std::string(name) + ": " + status.message());
  }
  for (int i = 0; i < dims.rank(); ++i) permuted[i] = dims[static_cast<int>(order[i])];
  return Status::ok();
}

// The sizes of an operand that lies in a larger tensor: {first, size, stride, size, stride, …}.
Status place(const char* name, std::span<const int64_t> at, const Dims& dims, Dims& placed) {
  const auto refuse = [&](const char* why) {
    return invalid_argument(std::string(name) + " " + why + " of " + to_string(dims));
  };
  if (at.size() % 2 == 0 || at.size() / 2 > static_cast<size_t>(kMaxRank)) {
    return refuse("must be a first element, then size and stride of each axis,");
  }
  const std::optional<int64_t> count = dims.count();
  if (!count) return refuse("needs the sizes");
  int64_t last = at[0];
  bool is_fine = last >= 0;
  placed = Dims();
  for (size_t i = 1; i < at.size() && is_fine; i += 2) {
    int64_t length = 0;
    is_fine = at[i] > 0 && at[i + 1] >= 0 &&
              !__builtin_mul_overflow(at[i] - 1, at[i + 1], &length) &&
              !__builtin_add_overflow(last, length, &last);
    placed.push_back(at[i]);
  }
  return is_fine && last < *count ? Status::ok() : refuse("names elements outside");
}

// The sizes of an operand as the product reads it.
Status read_operand(const InferContext& context, const char* perm, const char* at, const Dims& dims,
                    Dims& read) {
  const std::span<const int64_t> ints = context.attributes().get_ints(at);
  if (ints.empty()) return permute(context, perm, dims, read);
  if (!context.attributes().get_ints(perm).empty()) {
    return invalid_argument(std::string(at) + " and " + perm + " exclude each other");
  }
  return place(at, ints, dims, read);
}

Status infer_permuted_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  if (!a->is_ranked || !b->is_ranked) {
    return unsupported("A and B of PermutedMatMul must have known ranks");
  }
  Dims rows, columns, product, y;
  EDDY_RETURN_IF_ERROR(read_operand(context, "perm_a", "place_a", a->dims, rows));
  EDDY_RETURN_IF_ERROR(read_operand(context, "perm_b", "place_b", b->dims, columns));
  if (rows.rank() < 2 || columns.rank() < 2) {
    return invalid_argument("A and B of PermutedMatMul must have at least two dimensions, not " +
                            to_string(rows) + " and " + to_string(columns));
  }
  EDDY_RETURN_IF_ERROR(matmul_dims(rows, columns, product));
  EDDY_RETURN_IF_ERROR(permute(context, "perm_y", product, y));
  EDDY_RETURN_IF_ERROR(
      expect_shape(context, 2, "bias", {{product[product.rank() - 1], "columns"}}));
  EDDY_RETURN_IF_ERROR(expect_addend(context, 3, y));
  context.set_output(0, TensorType(a->element, y));
  return Status::ok();
}

double permuted_matmul_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& a = context.input(0).tensor.dims;
  const std::span<const int64_t> perm = context.attributes().get_ints("perm_a");
  const std::span<const int64_t> place = context.attributes().get_ints("place_a");
  const auto last = perm.empty() ? a.rank() - 1 : static_cast<int>(perm.back());
  const int64_t depth = place.empty() ? a[last] : place[place.size() - 2];
  return 2.0 * static_cast<double>(depth) *
         static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

double matmul_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& a = context.input(0).tensor.dims;
  const double depth = a.rank() > 0 ? static_cast<double>(a[a.rank() - 1]) : 1;
  return 2.0 * depth * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

// Of a product of `rank` leading dimensions, rows and columns: where an operand's axis is there.
// Refused where the product sums over it.
Status product_place(const BatchContext& context, size_t input, int rank, int& place) {
  const int operand_rank = context.rank(input), axis = context.axis(input);
  const bool is_summed = operand_rank == 1 || axis == operand_rank - (input == 0 ? 1 : 2);
  if (is_summed) return crosses_samples("sums over", axis);
  place = rank + 2 - operand_rank + axis;
  return Status::ok();
}

// A shared operand has surely one entry where the other has samples among the leading dimensions.
Status expect_alone(const BatchContext& context, size_t input, int rank, int place) {
  const int axis = place - (rank + 2 - context.rank(input));
  if (place >= rank || context.rank(input) < 3 || axis < 0) return Status::ok();
  if (context.dims(input)[axis] == 1) return Status::ok();
  return unsupported("aligns axis " + std::to_string(axis) + " of input " + std::to_string(input) +
                     ", " + to_string(context.dims(input)) +
                     " and the same for all samples, with the samples");
}

Status batch_product(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_shared(context, 2));
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  const bool has_a = context.is_along(0), has_b = context.is_along(1);
  if (!has_a && !has_b) return Status::ok();
  const int rank = std::max({context.rank(0) - 2, context.rank(1) - 2, 0});
  int place = 0;
  if (has_b) EDDY_RETURN_IF_ERROR(product_place(context, 1, rank, place));
  if (has_a && !has_b) {
    EDDY_RETURN_IF_ERROR(product_place(context, 0, rank, place));
  } else if (has_a) {
    int other = 0;
    EDDY_RETURN_IF_ERROR(product_place(context, 0, rank, other));
    if (other != place || context.input(0).each.differs(context.input(1).each)) {
      return unsupported("multiplies entries of one sample with those of others");
    }
  }
  if (!has_a) EDDY_RETURN_IF_ERROR(expect_alone(context, 0, rank, place));
  if (!has_b) EDDY_RETURN_IF_ERROR(expect_alone(context, 1, rank, place));
  const bool loses_row = context.rank(0) == 1 && place > rank;
  const Extent& each = context.input(has_a ? 0 : 1).each;
  context.set_output(0, Batched::along(place - (loses_row ? 1 : 0), each));
  return Status::ok();
}

// Rows of A, or columns of B, have zero points of their own.
Status batch_matmul_integer(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(batch_product(context));
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!context.is_along(i) || !context.has_input(i + 2)) continue;
    const Dims& zero = context.dims(i + 2);
    if (zero.rank() == 0 || zero.count() == int64_t{1}) continue;
    if (context.axis(i) == context.rank(i) - (i == 0 ? 2 : 1)) {
      return crosses_samples("has zero points along", context.axis(i));
    }
  }
  return Status::ok();
}

Status batch_gemm(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  std::optional<int> place;
  Extent each;
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!context.is_along(i)) continue;
    const bool is_turned = context.attributes().get_int(i == 0 ? "transA" : "transB", 0) != 0;
    const int axis = is_turned ? 1 - context.axis(i) : context.axis(i);
    if (axis != static_cast<int>(i)) return crosses_samples("sums over", context.axis(i));
    if (place) return unsupported("multiplies entries of one sample with those of others");
    place = axis;
    each = context.input(i).each;
  }
  if (!place) return expect_shared(context, 2);
  if (context.has_input(2)) {
    const int axis = *place - (2 - context.rank(2));
    const bool fits = context.is_along(2)
                          ? context.axis(2) == axis && !each.differs(context.input(2).each)
                          : axis < 0 || context.dims(2)[axis] == 1;
    if (!fits) return unsupported("adds C to the samples along another axis or by other sizes");
  }
  context.set_output(0, Batched::along(*place, each));
  return Status::ok();
}

// A zero point is one value, or one for each row of A (column of B).
Status check_zero_point(const InferContext& context, size_t input, std::string_view name,
                        std::string_view what, int64_t extent) {
  if (!context.has_input(input)) return Status::ok();
  const ElementType element = context.input(input - 2).tensor.element;
  const TensorType& type = context.input(input).tensor;
  if (type.element != element) {
    return invalid_argument(std::string(name) + " must be " +
                            std::string(element_type_name(element)) + " like its matrix, not " +
                            std::string(element_type_name(type.element)));
  }
  if (!type.is_ranked || type.dims.rank() == 0) return Status::ok();
  if (type.dims.rank() == 1 && (type.dims[0] == 1 || merge_dim(type.dims[0], extent))) {
    return Status::ok();
  }
  return invalid_argument(std::string(name) + " must be a scalar or hold one value for each " +
                          std::string(what) + ", not " + to_string(type.dims));
}

Status infer_matmul_integer(InferContext& context) {
  EDDY_RETURN_IF_ERROR(set_product(context, ElementType::kInt32));
  const TensorType& a = context.input(0).tensor;
  const TensorType& b = context.input(1).tensor;
  const int64_t rows = !a.is_ranked        ? kUnknownDim
                       : a.dims.rank() > 1 ? a.dims[a.dims.rank() - 2]
                                           : 1;
  const int64_t columns = !b.is_ranked        ? kUnknownDim
                          : b.dims.rank() > 1 ? b.dims[b.dims.rank() - 1]
                                              : 1;
  EDDY_RETURN_IF_ERROR(check_zero_point(context, 2, "a_zero_point", "row of A", rows));
  return check_zero_point(context, 3, "b_zero_point", "column of B", columns);
}

// Rows and columns of a Gemm operand after transposition; unknown where it is unranked.
Status gemm_operand(const InferContext& context, size_t input, bool transposed, int64_t& rows,
                    int64_t& columns) {
  rows = columns = kUnknownDim;
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
  if (!type->is_ranked) return Status::ok();
  EDDY_RETURN_IF_ERROR(expect_shape(context, input, input == 0 ? "A" : "B", {"rows", "columns"}));
  rows = type->dims[transposed ? 1 : 0];
  columns = type->dims[transposed ? 0 : 1];
  return Status::ok();
}

// C must broadcast to the result without widening it, before opset 7 only where `broadcast` allows
// so.
Status check_gemm_addend(const InferContext& context, const Dims& result) {
  if (!context.has_input(2)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* c, tensor_input(context, 2));
  if (!c->is_ranked) return Status::ok();
  const bool fits = may_stretch(c->dims, result);
  if (fits && context.opset_version() < 7 && context.attributes().get_int("broadcast", 0) == 0) {
    if (may_equal(c->dims, result)) return Status::ok();
    return invalid_argument("C of Gemm must have the result's shape " + to_string(result) +
                            " before opset 7, not " + to_string(c->dims) +
                            ", unless the attribute broadcast is 1");
  }
  if (fits) return Status::ok();
  return invalid_argument("C of Gemm does not broadcast to the result: " + to_string(c->dims) +
                          " to " + to_string(result));
}

Status infer_gemm(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  int64_t rows, a_depth, b_depth, columns;
  const Attributes& attributes = context.attributes();
  EDDY_RETURN_IF_ERROR(
      gemm_operand(context, 0, attributes.get_int("transA", 0) != 0, rows, a_depth));
  EDDY_RETURN_IF_ERROR(
      gemm_operand(context, 1, attributes.get_int("transB", 0) != 0, b_depth, columns));
  if (!merge_dim(a_depth, b_depth)) {
    return invalid_argument("A of Gemm has " + std::to_string(a_depth) + " columns but B has " +
                            std::to_string(b_depth) + " rows (after transposition)");
  }
  const Dims result{rows, columns};
  EDDY_RETURN_IF_ERROR(check_gemm_addend(context, result));
  context.set_output(0, TensorType(context.input(0).tensor.element, result));
  return Status::ok();
}

double gemm_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& a = context.input(0).tensor.dims;
  if (a.rank() != 2) return 0;
  const double depth = static_cast<double>(a[context.attributes().get_int("transA", 0) ? 0 : 1]);
  return 2.0 * depth * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

// The determinants of square matrices [..., n, n].
Status infer_det(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  if (!x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  if (rank < 2 || !merge_dim(x->dims[rank - 2], x->dims[rank - 1])) {
    return invalid_argument("X of Det must be square matrices [..., n, n], not " +
                            to_string(x->dims));
  }
  Dims dims;
  for (int i = 0; i < rank - 2; ++i) dims.push_back(x->dims[i]);
  context.set_output(0, TensorType(x->element, dims));
  return Status::ok();
}

OpDef gemm(int since_version, InputFlag addend) {
  return {
      .name = "Gemm",
      .since_version = since_version,
      .inputs = {in("A", kProductTypes), in("B", kProductTypes), in("C", kProductTypes, addend)},
      .attributes = {attribute("alpha", AttributeKind::kFloat),
                     attribute("beta", AttributeKind::kFloat), flag("transA"), flag("transB"),
                     until(6, flag("broadcast"))},
      .infer = infer_gemm,
      .flops = gemm_flops,
      .batch = batch_gemm};
}

}  // namespace

Status add_matmul_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_packed_product_schemas(table));
  return add_schemas(
      table,
      {{.name = "MatMul",
        .since_version = 1,
        .inputs = {in("A", kProductTypes), in("B", kProductTypes)},
        .infer = infer_matmul,
        .flops = matmul_flops,
        .batch = batch_product},
       gemm(1, InputFlag::kNone),
       gemm(11, InputFlag::kOptional),
       {.name = "MatMulInteger",
        .since_version = 10,
        .inputs = {in("A", kByteTypes), in("B", kByteTypes),
                   in("a_zero_point", kByteTypes, InputFlag::kOptional),
                   in("b_zero_point", kByteTypes, InputFlag::kOptional)},
        .infer = infer_matmul_integer,
        .flops = matmul_flops,
        .batch = batch_matmul_integer},
       {.name = "PermutedMatMul",
        .domain = "eddy",
        .inputs = {in("A", kFloatTypes), in("B", kFloatTypes),
                   in("bias", kFloatTypes, InputFlag::kOptional),
                   in("addend", kFloatTypes, InputFlag::kOptional)},
        .attributes =
            {attribute("perm_a", AttributeKind::kInts), attribute("perm_b", AttributeKind::kInts),
             attribute("perm_y", AttributeKind::kInts), attribute("place_a", AttributeKind::kInts),
             attribute("place_b", AttributeKind::kInts), attribute("alpha", AttributeKind::kFloat)},
        .infer = infer_permuted_matmul,
        .in_place_inputs = uint64_t{1} << 3,
        .flops = permuted_matmul_flops},
       {.name = "Det", .since_version = 11, .inputs = {in("X", kFloatTypes)}, .infer = infer_det}});
}

}  // namespace eddy
