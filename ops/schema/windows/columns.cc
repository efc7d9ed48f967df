#include "ops/schema/windows/columns.h"

#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;  // of any size or product of sizes

// Entry i of an attribute that holds `count` values where it is given.
Status read_entry(const Attributes& attributes, std::string_view name, int count, int i,
                  int64_t least, int64_t& value) {
  const std::span<const int64_t> given = attributes.get_ints(name);
  if (given.empty()) return Status::ok();
  if (given.size() != static_cast<size_t>(count)) {
    return invalid_argument("attribute '" + std::string(name) + "' must hold " +
                            std::to_string(count) + " values, not " + std::to_string(given.size()));
  }
  value = given[static_cast<size_t>(i)];
  if (value >= least && value < kMost) return Status::ok();
  return invalid_argument("attribute '" + std::string(name) + "' holds " + std::to_string(value));
}

Status multiply(int64_t& product, int64_t factor, std::string_view what) {
  if (!__builtin_mul_overflow(product, factor, &product) && product < kMost) return Status::ok();
  return resource_exhausted(std::string(what) + " are too many");
}

Status resolve_axis(const Attributes& attributes, int i, Columns& c) {
  const auto at = static_cast<size_t>(i);
  WindowAxis& axis = c.axes[at];
  EDDY_RETURN_IF_ERROR(read_entry(attributes, "strides", c.rank, i, 1, axis.stride));
  EDDY_RETURN_IF_ERROR(read_entry(attributes, "dilations", c.rank, i, 1, axis.dilation));
  EDDY_RETURN_IF_ERROR(read_entry(attributes, "pads", 2 * c.rank, i, 0, axis.pad_begin));
  EDDY_RETURN_IF_ERROR(read_entry(attributes, "pads", 2 * c.rank, c.rank + i, 0, axis.pad_end));
  const bool fits = c.image[at] >= 0 && c.image[at] < kMost && axis.kernel >= 1 &&
                    axis.kernel < kMost && axis.dilation < kMost / axis.kernel;
  const int64_t room =
      fits ? c.image[at] + axis.pad_begin + axis.pad_end - axis.extent() : int64_t{-1};
  if (room < 0) {
    return invalid_argument("a block of " + std::to_string(axis.kernel) +
                            " does not fit an image of " + std::to_string(c.image[at]) +
                            " on spatial axis " + std::to_string(i));
  }
  c.windows[at] = room / axis.stride + 1;
  EDDY_RETURN_IF_ERROR(multiply(c.block_size, axis.kernel, "the elements of a block"));
  EDDY_RETURN_IF_ERROR(multiply(c.num_windows, c.windows[at], "the windows"));
  return multiply(c.image_size, c.image[at], "the elements of the image");
}

Status infer_col2im(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  if (!x->is_ranked) return Status::ok();
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "input", {"N", "C * block", "windows"}));
  const TensorView *image_view = context.value_or_null(1), *block_view = context.value_or_null(2);
  if (image_view == nullptr || block_view == nullptr) return Status::ok();
  IntList image, block;
  EDDY_RETURN_IF_ERROR(read_ints(*image_view, "image_shape", image));
  EDDY_RETURN_IF_ERROR(read_ints(*block_view, "block_shape", block));
  Columns columns;
  EDDY_RETURN_IF_ERROR(resolve_columns(context.attributes(), image, block, x->dims, columns));
  const int64_t channels = x->dims[1] < 0 ? kUnknownDim : x->dims[1] / columns.block_size;
  Dims dims{x->dims[0], channels};
  for (int i = 0; i < columns.rank; ++i) dims.push_back(columns.image[static_cast<size_t>(i)]);
  return set_checked_output(context, 0, x->element, dims);
}

}  // namespace

Status resolve_columns(const Attributes& attributes, const IntList& image, const IntList& block,
                       const Dims& columns, Columns& result) {
  if (image.size() != block.size() || image.is_empty() || image.size() > kMaxSpatialRank) {
    return invalid_argument("image_shape and block_shape must hold 1 to " +
                            std::to_string(kMaxSpatialRank) + " sizes each, not " +
                            std::to_string(image.size()) + " and " + std::to_string(block.size()));
  }
  result.rank = image.size();
  for (int i = 0; i < result.rank; ++i) {
    result.image[static_cast<size_t>(i)] = image[i];
    result.axes[static_cast<size_t>(i)].kernel = block[i];
    EDDY_RETURN_IF_ERROR(resolve_axis(attributes, i, result));
  }
  const bool fits = (columns[1] < 0 || columns[1] % result.block_size == 0) &&
                    (columns[2] < 0 || columns[2] == result.num_windows);
  if (fits) return Status::ok();
  return invalid_argument("columns of shape " + to_string(columns) + " are not a multiple of " +
                          std::to_string(result.block_size) + " elements of " +
                          std::to_string(result.num_windows) + " windows");
}

Status add_columns_schemas(OpTable& table) {
  const TypeSet sizes = {ElementType::kInt64};
  return add_schemas(table, {{.name = "Col2Im",
                              .since_version = 18,
                              .inputs = {in("input", kNumericTypes),
                                         in("image_shape", sizes, InputFlag::kHostValue),
                                         in("block_shape", sizes, InputFlag::kHostValue)},
                              .attributes = {attribute("dilations", AttributeKind::kInts),
                                             attribute("pads", AttributeKind::kInts),
                                             attribute("strides", AttributeKind::kInts)},
                              .infer = infer_col2im}});
}

}  // namespace eddy
