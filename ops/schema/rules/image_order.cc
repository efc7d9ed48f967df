#include "ops/schema/rules/image_order.h"

#include <array>
#include <span>
#include <string>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr size_t kMostInputs = 4;

// Biases have one axis.
bool is_image(const ValueType& type) {
  return type.is_tensor() && type.tensor.is_ranked && type.tensor.dims.rank() != 1;
}

Status infer_turned_over(InferContext& context, ImageOrder order, Status (*plain)(InferContext&)) {
  std::array<ValueType, kMostInputs> types;
  std::array<const ValueType*, kMostInputs> inputs{};
  EDDY_CHECK(context.num_inputs() <= kMostInputs) << context.num_inputs() << " inputs";
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    types[i] = context.input(i);
    inputs[i] = &types[i];
    if (!is_image(types[i])) continue;
    Dims& dims = types[i].tensor.dims;
    if (dims.rank() != 4) {
      return invalid_argument(
          "input " + std::to_string(i) + " must have 4 dimensions" +
          (order == ImageOrder::kChannelsLast ? ", the last the channels'" : "") + ", not " +
          to_string(dims));
    }
    dims = plain_dims(dims, order);
  }
  ValueType output;
  InferContext turned(context.attributes(), std::span(inputs).first(context.num_inputs()), {},
                      {&output, 1}, context.opset_version());
  EDDY_RETURN_IF_ERROR(plain(turned));
  if (is_image(output)) output.tensor.dims = ordered_dims(output.tensor.dims, order);
  context.set_output(0, output);
  return Status::ok();
}

}  // namespace

Dims plain_dims(const Dims& ordered, ImageOrder order) {
  EDDY_CHECK(ordered.rank() == 4) << "an image of rank " << ordered.rank();
  if (order == ImageOrder::kSwapped) return {ordered[1], ordered[0], ordered[2], ordered[3]};
  return {ordered[0], ordered[3], ordered[1], ordered[2]};
}

Dims ordered_dims(const Dims& plain, ImageOrder order) {
  EDDY_CHECK(plain.rank() == 4) << "an image of rank " << plain.rank();
  if (order == ImageOrder::kSwapped) return {plain[1], plain[0], plain[2], plain[3]};
  return {plain[0], plain[2], plain[3], plain[1]};
}

InferFunction in_order(ImageOrder order, Status (*plain)(InferContext&)) {
  return [order, plain](InferContext& context) { return infer_turned_over(context, order, plain); };
}

}  // namespace eddy
