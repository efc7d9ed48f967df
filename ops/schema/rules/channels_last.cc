#include "ops/schema/rules/channels_last.h"

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

Status infer_turned_over(InferContext& context, Status (*plain)(InferContext&)) {
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
      return invalid_argument("input " + std::to_string(i) +
                              " must have 4 dimensions, the last the channels', not " +
                              to_string(dims));
    }
    dims = channels_first_dims(dims);
  }
  ValueType output;
  InferContext turned(context.attributes(), std::span(inputs).first(context.num_inputs()), {},
                      {&output, 1}, context.opset_version());
  EDDY_RETURN_IF_ERROR(plain(turned));
  if (is_image(output)) output.tensor.dims = channels_last_dims(output.tensor.dims);
  context.set_output(0, output);
  return Status::ok();
}

}  // namespace

Dims channels_first_dims(const Dims& last) {
  EDDY_CHECK(last.rank() == 4) << "an image of rank " << last.rank();
  return {last[0], last[3], last[1], last[2]};
}

Dims channels_last_dims(const Dims& first) {
  EDDY_CHECK(first.rank() == 4) << "an image of rank " << first.rank();
  return {first[0], first[2], first[3], first[1]};
}

InferFunction channels_last(Status (*plain)(InferContext&)) {
  return [plain](InferContext& context) { return infer_turned_over(context, plain); };
}

}  // namespace eddy
