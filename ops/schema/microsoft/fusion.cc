// FusedConv, FusedMatMul and NhwcMaxPool as functions: a standard operator with what stands around
// it.
#include <cmath>
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;
using Ints = std::vector<int64_t>;

// The operators that a convolution's result may go through, and what each takes of
// activation_params, in their order.
struct Activation {
  const char* name;
  std::vector<const char*> parameters;
};
const Activation* find_activation_or_null(std::string_view name) {
  static const std::vector<Activation> kActivations = {{"Relu", {}},
                                                       {"Tanh", {}},
                                                       {"Sigmoid", {}},
                                                       {"LeakyRelu", {"alpha"}},
                                                       {"Clip", {"min", "max"}},
                                                       {"HardSigmoid", {"alpha", "beta"}}};
  for (const Activation& activation : kActivations) {
    if (activation.name == name) return &activation;
  }
  return nullptr;
}

Status infer_fused_conv(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  context.set_output(0, TensorType(context.input(0).tensor.element));
  const std::string_view name = context.attributes().get_string("activation", "");
  if (name.empty()) return Status::ok();
  const Activation* activation = find_activation_or_null(name);
  if (activation == nullptr) {
    return unsupported(
        "activation of FusedConv must be Relu, Tanh, Sigmoid, LeakyRelu, Clip or HardSigmoid, not "
        "'" +
        std::string(name) + "'");
  }
  const size_t given = context.attributes().get_floats("activation_params").size();
  if (given == activation->parameters.size()) return Status::ok();
  return invalid_argument("activation " + std::string(name) + " takes " +
                          std::to_string(activation->parameters.size()) +
                          " activation_params, not " + std::to_string(given));
}

Value activated(Expansion& e, Value x) {
  const Activation* activation =
      find_activation_or_null(e.attributes().get_string("activation", ""));
  if (activation == nullptr) return x;
  const std::span<const float> given = e.attributes().get_floats("activation_params");
  if (std::string_view(activation->name) == "Clip") {
    const ElementType element = e.element(x);
    const auto bound = [&](size_t i) { return e.number(element, static_cast<double>(given[i])); };
    return e.op("Clip", {x, bound(0), bound(1)});
  }
  Attributes parameters;
  for (size_t i = 0; i < given.size(); ++i) parameters.set(activation->parameters[i], given[i]);
  return e.op(activation->name, {x}, std::move(parameters));
}

void expand_fused_conv(Expansion& e) {
  Attributes window;
  for (const auto& [name, value] : e.attributes().entries()) {
    if (!name.starts_with("activation")) window.set(name, value);
  }
  Value y = e.op("Conv", {e.input(0), e.input(1), e.input(2)}, std::move(window));
  if (e.has_input(3)) y = e.op("Add", {y, e.input(3)});
  e.set_output(0, activated(e, y));
}

Status infer_fused_matmul(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  for (const size_t i : {0, 1}) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    const std::string name = i == 0 ? "A" : "B";
    const bool swaps_batch = context.attributes().get_int("transBatch" + name, 0) != 0;
    if (!swaps_batch || !type->is_ranked || type->dims.rank() >= 3) continue;
    return invalid_argument("transBatch" + name + " wants at least 3 dimensions of " + name +
                            ", not " + to_string(type->dims));
  }
  context.set_output(0, TensorType(context.input(0).tensor.element));
  return Status::ok();
}

// Input i with its matrices in the last two axes. The first axis is that of rows (of columns, where
// the matrices are transposed) if the batch is swapped. A vector stays what it is.
Value matrices(Expansion& e, size_t i) {
  const std::string name = i == 0 ? "A" : "B";
  const bool swaps = e.attributes().get_int("trans" + name, 0) != 0;
  const bool swaps_batch = e.attributes().get_int("transBatch" + name, 0) != 0;
  if (!swaps && !swaps_batch) return e.input(i);
  const int rank = e.rank_or_fail(e.input(i), name);
  if (rank < 2) return e.input(i);
  Ints perm;
  for (int axis = 0; axis < rank; ++axis) perm.push_back(axis);
  if (swaps_batch) {
    perm.erase(perm.begin());
    perm.insert(perm.end() - 1, 0);
  }
  if (swaps) std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return e.op("Transpose", {e.input(i)}, {{"perm", perm}});
}

void expand_fused_matmul(Expansion& e) {
  const float alpha = e.attributes().get_float("alpha", 1);
  Value y = e.op("MatMul", {matrices(e, 0), matrices(e, 1)});
  if (alpha != 1) y = e.op("Mul", {y, e.number(e.element(y), static_cast<double>(alpha))});
  e.set_output(0, y);
}

Status infer_nhwc_pool(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  const auto kernel = static_cast<int>(context.attributes().get_ints("kernel_shape").size());
  if (!x->is_ranked || x->dims.rank() == kernel + 2) return Status::ok();
  return invalid_argument(
      "x must have the axes of kernel_shape between those of the batch and of "
      "the channels, not " +
      to_string(x->dims));
}

void expand_nhwc_pool(Expansion& e) {
  const int rank = e.rank_or_fail(e.input(0), "x");
  if (rank < 0) return;
  Ints to_channels_first = {0, rank - 1}, to_channels_last = {0};
  for (int axis = 1; axis < rank - 1; ++axis) to_channels_first.push_back(axis);
  for (int axis = 2; axis < rank; ++axis) to_channels_last.push_back(axis);
  to_channels_last.push_back(1);
  const Value x = e.op("Transpose", {e.input(0)}, {{"perm", to_channels_first}});
  const Value y = e.op("MaxPool", {x}, e.attributes());
  e.set_output(0, e.op("Transpose", {y}, {{"perm", to_channels_last}}));
}

std::vector<FormalAttribute> window_attributes() {
  return {attribute("auto_pad", kString),   attribute("dilations", kInts),
          attribute("group", kInt),         attribute("kernel_shape", kInts),
          attribute("pads", kInts),         attribute("strides", kInts),
          attribute("activation", kString), attribute("activation_params", kFloats)};
}

}  // namespace

Status add_microsoft_fusions(OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  return add_schemas(
      table, {{.name = "FusedConv",
               .domain = kMicrosoft,
               .inputs = {in("X", kFloatTypes), in("W", kFloatTypes),
                          in("B", kFloatTypes, optional), in("Z", kFloatTypes, optional)},
               .attributes = window_attributes(),
               .infer = infer_fused_conv,
               .expand = expand_fused_conv},
              {.name = "FusedMatMul",
               .domain = kMicrosoft,
               .inputs = {in("A", kFloatTypes), in("B", kFloatTypes)},
               .attributes = {attribute("alpha", kFloat), flag("transA"), flag("transB"),
                              flag("transBatchA"), flag("transBatchB")},
               .infer = infer_fused_matmul,
               .expand = expand_fused_matmul},
              {.name = "NhwcMaxPool",
               .domain = kMicrosoft,
               .inputs = {in("x", {ElementType::kInt8, ElementType::kUint8})},
               .attributes = {attribute("auto_pad", kString), flag("ceil_mode"),
                              attribute("dilations", kInts), attribute("kernel_shape", kInts, true),
                              attribute("pads", kInts), attribute("strides", kInts)},
               .infer = infer_nhwc_pool,
               .expand = expand_nhwc_pool}});
}

}  // namespace eddy
