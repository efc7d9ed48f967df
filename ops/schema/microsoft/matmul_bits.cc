// MatMulNBits: A[..., K] times a matrix of N columns whose weights have 2, 4 or 8 bits, in blocks
// along K that have a scale and a zero point each; g_idx names the block whose these are for each
// row. It has kernels.
#include <string>
#include <string_view>

#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

struct BitsSizes {
  int64_t k = 0, n = 0, bits = 0, block = 0;

  int64_t blocks() const { return (k + block - 1) / block; }
};

Status read_size(const InferContext& context, std::string_view name, int64_t& size) {
  size = context.attributes().get_int(name, 0);
  if (size >= 1 && size <= INT32_MAX) return Status::ok();
  return invalid_argument("attribute " + std::string(name) +
                          " of MatMulNBits must lie in 1 to 2147483647, not " +
                          std::to_string(size));
}

Status read_sizes(const InferContext& context, BitsSizes& sizes) {
  EDDY_RETURN_IF_ERROR(read_size(context, "K", sizes.k));
  EDDY_RETURN_IF_ERROR(read_size(context, "N", sizes.n));
  const Attributes& attributes = context.attributes();
  sizes.bits = attributes.get_int("bits", 4);
  if (sizes.bits != 2 && sizes.bits != 4 && sizes.bits != 8) {
    return unsupported("attribute bits of MatMulNBits must be 2, 4 or 8, not " +
                       std::to_string(sizes.bits));
  }
  sizes.block = attributes.get_int("block_size", 0);
  if (sizes.block < 16 || sizes.block > INT32_MAX || (sizes.block & (sizes.block - 1)) != 0) {
    return invalid_argument(
        "attribute block_size of MatMulNBits must be a power of 2 of 16 to 1073741824, not " +
        std::to_string(sizes.block));
  }
  const int64_t level = attributes.get_int("accuracy_level", 0);
  if (level < 0 || level > 4) {
    return invalid_argument("attribute accuracy_level of MatMulNBits must be 0 to 4, not " +
                            std::to_string(level));
  }
  if (attributes.get_int("weight_prepacked", 0) == 0) return Status::ok();
  return unsupported(
      "attribute weight_prepacked of MatMulNBits must be 0: export the weights as "
      "they are packed in files");
}

// Files have the blocks' values in one, two or three dimensions; what counts is how many there are.
Status expect_count(const InferContext& context, size_t i, std::string_view name, int64_t rows,
                    int64_t in_row) {
  if (!context.has_input(i)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
  if (!type->is_static()) return Status::ok();
  const Dims& dims = type->dims;
  const bool fits =
      dims.rank() >= 1 && dims.count() == rows * in_row && (dims.rank() == 1 || dims[0] == rows);
  if (fits) return Status::ok();
  return invalid_argument(std::string(name) + " of MatMulNBits must hold " +
                          std::to_string(in_row) + " for each of " + std::to_string(rows) +
                          " columns, not be of shape " + to_string(dims));
}

Status infer_matmul_bits(InferContext& context) {
  BitsSizes sizes;
  EDDY_RETURN_IF_ERROR(read_sizes(context, sizes));
  const ElementType element = context.input(0).tensor.element;
  for (const size_t i : {2, 5}) {
    if (!context.has_input(i) || context.input(i).tensor.element == element) continue;
    return invalid_argument(std::string(i == 2 ? "scales" : "bias") + " of MatMulNBits must be " +
                            std::string(element_type_name(element)) + " like A, not " +
                            std::string(element_type_name(context.input(i).tensor.element)));
  }
  const int64_t blocks = sizes.blocks();
  EDDY_RETURN_IF_ERROR(
      expect_count(context, 1, "B", sizes.n, blocks * (sizes.block * sizes.bits / 8)));
  EDDY_RETURN_IF_ERROR(expect_count(context, 2, "scales", sizes.n, blocks));
  if (context.has_input(3)) {
    const bool is_packed = context.input(3).tensor.element == ElementType::kUint8;
    EDDY_RETURN_IF_ERROR(expect_count(context, 3, "zero_points", sizes.n,
                                      is_packed ? (blocks * sizes.bits + 7) / 8 : blocks));
  }
  if (context.has_input(4)) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* groups, tensor_input(context, 4));
    const auto count = groups->is_static() ? groups->dims.count() : std::nullopt;
    // Some files have one for each weight of the last block, too.
    if (count && *count != sizes.k && *count != blocks * sizes.block) {
      return invalid_argument("g_idx of MatMulNBits must name a block for each of " +
                              std::to_string(sizes.k) + " rows, not be of shape " +
                              to_string(groups->dims));
    }
  }
  EDDY_RETURN_IF_ERROR(expect_count(context, 5, "bias", sizes.n, 1));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  if (!a->is_ranked) {
    context.set_output(0, TensorType(element));
    return Status::ok();
  }
  const int rank = a->dims.rank();
  if (rank == 0 || !merge_dim(a->dims[rank - 1], sizes.k)) {
    return invalid_argument("A of MatMulNBits must have " + std::to_string(sizes.k) +
                            " columns, as K says, not the shape " + to_string(a->dims));
  }
  Dims dims = a->dims;
  dims[rank - 1] = sizes.n;
  context.set_output(0, TensorType(element, dims));
  return Status::ok();
}

double matmul_bits_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const auto k = static_cast<double>(context.attributes().get_int("K", 1));
  return 2 * k * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

}  // namespace

Status add_microsoft_matmul_bits(OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  const TypeSet floats = {ElementType::kFloat, ElementType::kFloat16, ElementType::kBfloat16};
  const TypeSet bytes = {ElementType::kUint8};
  return add_schemas(
      table,
      {{.name = "MatMulNBits",
        .domain = kMicrosoft,
        .inputs = {in("A", floats), in("B", bytes), in("scales", floats),
                   in("zero_points", floats | bytes, optional),
                   in("g_idx", {ElementType::kInt32}, optional), in("bias", floats, optional)},
        .attributes = {attribute("K", kInt, true), attribute("N", kInt, true),
                       attribute("bits", kInt), attribute("block_size", kInt, true),
                       attribute("accuracy_level", kInt), attribute("weight_prepacked", kInt)},
        .infer = infer_matmul_bits,
        .flops = matmul_bits_flops,
        .batch = batch_rows}});
}

}  // namespace eddy
