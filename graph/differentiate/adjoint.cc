#include "graph/differentiate/adjoint.h"

#include <array>

namespace eddy {

bool has_adjoint(const ValueType& type) {
  if (type.num_wrappers == 2) return type.is_optional() && type.unwrapped().is_sequence();
  return type.num_wrappers < 2;
}

ValueType adjoint_type(const ValueType& type) {
  if (type.is_tensor()) return type;
  const TensorType any(type.tensor.element);
  const bool is_sequence = type.is_sequence() || type.unwrapped().is_sequence();
  return is_sequence ? ValueType::sequence_of(any) : ValueType(any);
}

Value shape_of(GraphBuilder& builder, Value value, OpOptions options) {
  if (builder.status().is_ok() && !builder.type(value).is_sequence()) {
    return builder.op("Shape", {value}, {}, std::move(options));
  }
  const Value length = builder.op("SequenceLength", {value}, {}, options);
  return builder.op("Reshape", {length, builder.int64s({1})}, {}, std::move(options));
}

Value make_zeros(GraphBuilder& builder, ElementType element, Value shape, OpOptions options) {
  const std::array<uint64_t, 2> nothing{};  // of the widest type
  const int64_t one = 1;
  const Constant zero =
      builder.make_constant({const_cast<uint64_t*>(nothing.data()), &one, 1, element});
  return builder.op("ConstantOfShape", {shape}, {{"value", zero}}, std::move(options));
}

Value zero_adjoint(GraphBuilder& builder, const ValueType& type, Value shape, OpOptions options) {
  const ElementType element = type.tensor.element;
  if (type.is_tensor()) return make_zeros(builder, element, shape, std::move(options));
  if (type.is_sequence()) {
    const Value zeros = make_zeros(builder, element, shape, options);
    return builder.op("SplitToSequence", {zeros}, {{"keepdims", int64_t{0}}}, std::move(options));
  }
  if (type.unwrapped().is_tensor()) {
    return make_zeros(builder, element, builder.int64s({}), std::move(options));
  }
  builder.fail(unsupported(
      "the gradient through an optional sequence to which nothing comes back, in a loop or branch, "
      "is not known; use a sequence that may be empty"));
  return {};
}

Value for_each_element(GraphBuilder& builder, Value sequence, Value start, std::string name,
                       const MakeElement& make) {
  if (!builder.status().is_ok()) return {};
  WhileOptions options;
  options.name = std::move(name);
  options.initial = {start};
  options.trip_limit = builder.op("SequenceLength", {sequence});
  options.carried_types = {adjoint_type(builder.type(start))};
  options.rebuild_on_widening = true;
  const std::vector<Value> made = builder.while_loop(
      options,
      [&](Value, ValueSpan carried) {
        return WhileTest{builder.scalar(true), {carried[0]}};
      },
      [&](Value place, ValueSpan forwarded) {
        return std::vector<Value>{builder.op("SequenceInsert", {forwarded[0], make(place)})};
      });
  return made.empty() ? Value{} : made[0];
}

Value add_adjoints(GraphBuilder& builder, Value a, Value b, OpOptions options) {
  if (!builder.status().is_ok()) return {};
  if (!builder.type(a).is_sequence()) return builder.op("Add", {a, b}, {}, std::move(options));
  const Value empty = builder.op("SequenceEmpty", {},
                                 {{"dtype", static_cast<int64_t>(builder.type(a).tensor.element)}});
  return for_each_element(builder, a, empty, options.name, [&](Value place) {
    const Value first = builder.op("SequenceAt", {a, place});
    return builder.op("Add", {first, builder.op("SequenceAt", {b, place})}, {}, options);
  });
}

}  // namespace eddy
