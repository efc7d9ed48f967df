// BlackmanWindow, HammingWindow and HannWindow as functions: sums of cosines, in double.
#include <cmath>
#include <numbers>
#include <string>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

Status infer_window(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 0, "size"));
  const int64_t type = context.attributes().get_int("output_datatype", 1);
  if (type <= 0 || type >= kNumElementTypes ||
      !kNumericTypes.contains(static_cast<ElementType>(type))) {
    return invalid_argument("attribute 'output_datatype' is " + std::to_string(type) +
                            ", which is no type of numbers");
  }
  EDDY_ASSIGN_OR_RETURN(const auto given, host_ints(context, 0, "size"));
  const bool is_known = given && given->size() == 1;
  if (is_known && (*given)[0] < 0) {
    return invalid_argument("the size of a window can't be negative, but is " +
                            std::to_string((*given)[0]));
  }
  const Dims dims = {is_known ? (*given)[0] : kUnknownDim};
  context.set_output(0, TensorType(static_cast<ElementType>(type), dims));
  return Status::ok();
}

// constant + first * cos(t) + second * cos(2 t), with t from 0 to a full turn: to the last sample,
// or where the window is periodic to the one after it.
struct Cosines {
  double constant, first, second;
};

void expand_window(Expansion& e, const Cosines& window) {
  const auto number = [&](double value) { return e.number(ElementType::kDouble, value); };
  const Value no_axes = e.int64s(std::span<const int64_t>());
  const Value size = e.op("Reshape", {e.cast(e.input(0), ElementType::kInt64), no_axes});
  const bool is_periodic = e.attributes().get_int("periodic", 1) != 0;
  const Value steps = is_periodic ? size : e.op("Sub", {size, e.integer(1)});
  const Value turn = e.op("Max", {steps, e.integer(1)});
  const Value index = e.op("Range", {e.integer(0), size, e.integer(1)});
  const Value part =
      e.op("Div", {e.cast(index, ElementType::kDouble), e.cast(turn, ElementType::kDouble)});
  const auto cosine = [&](double turns, double factor) {
    const Value angle = e.op("Mul", {part, number(2 * std::numbers::pi * turns)});
    return e.op("Mul", {e.op("Cos", {angle}), number(factor)});
  };
  Value sum = cosine(1, window.first);
  if (window.second != 0) sum = e.op("Add", {sum, cosine(2, window.second)});
  sum = e.op("Add", {sum, number(window.constant)});  // last: so the middle is 1, not a bit less
  const int64_t type = e.attributes().get_int("output_datatype", 1);
  e.set_output(0, e.cast(sum, static_cast<ElementType>(type)));
}

OpDef window(const char* name, ExpandFunction expand) {
  return {.name = name,
          .since_version = 17,
          .inputs = {in("size", {ElementType::kInt32, ElementType::kInt64}, InputFlag::kHostValue)},
          .attributes = {attribute("output_datatype", kInt), flag("periodic")},
          .infer = infer_window,
          .expand = expand};
}

}  // namespace

Status add_signal_functions(OpTable& table) {
  return add_schemas(table, {window("BlackmanWindow",
                                    [](Expansion& e) {
                                      expand_window(e, {0.42, -0.5, 0.08});
                                    }),
                             window("HammingWindow",
                                    [](Expansion& e) {
                                      expand_window(e, {25.0 / 46, -21.0 / 46, 0});
                                    }),
                             window("HannWindow", [](Expansion& e) {
                               expand_window(e, {0.5, -0.5, 0});
                             })});
}

}  // namespace eddy
