// Sequences and optionals. Their adjoints are of their own kind (graph/differentiate/adjoint.h), so
// what is inserted forward is taken out on the way back, and the other way round, at the same
// place. An element of an adjoint may be a scalar zero: it is expanded when it is taken out.
//
// Cost: as forward, and one loop over the parts of SplitToSequence.
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"

namespace eddy {
namespace {

// An adjoint's element in the shape of input i, which its type then says, too.
Value in_shape_of_input(GradientContext& c, Value element, size_t i) {
  return reshape_to_input(c, c.op("Expand", {element, c.input_shape(i)}), i);
}

// `given` counted from the front: what is negative counts from the end of `count` elements.
Value from_front(GradientContext& c, Value given, Value count) {
  const Value place = c.cast(given, ElementType::kInt64);
  const Value is_back = c.op("Less", {place, c.number(ElementType::kInt64, 0)});
  return c.op("Where", {is_back, c.op("Add", {place, count}), place});
}

// Where Insert put its element, in the sequence that it made. Without a place: at the end.
Value place_of_inserted(GradientContext& c, Value made) {
  if (!c.has_input(2)) return c.number(ElementType::kInt64, -1);
  if (const auto known = known_ints(c, 2); known) {
    return c.number(ElementType::kInt64, static_cast<double>((*known)[0] - ((*known)[0] < 0)));
  }
  const Value count =
      c.op("Sub", {c.op("SequenceLength", {made}), c.number(ElementType::kInt64, 1)});
  return from_front(c, c.input(2), count);
}

// Inserts where the element at the place of input 1 was taken out of a sequence, which leaves
// `rest`.
Value put_back(GradientContext& c, Value rest, Value element) {
  const auto known = known_ints(c, 1);
  if (!c.has_input(1) || (known && (*known)[0] == -1)) {
    return c.op("SequenceInsert", {rest, element});
  }
  Value place;
  if (known) {
    const int64_t at = (*known)[0];
    place = c.number(ElementType::kInt64, static_cast<double>(at < 0 ? at + 1 : at));
  } else {
    const Value count =
        c.op("Add", {c.op("SequenceLength", {rest}), c.number(ElementType::kInt64, 1)});
    place = from_front(c, c.input(1), count);
  }
  return c.op("SequenceInsert", {rest, element, place});
}

void construct_gradient(GradientContext& c) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.wants(i)) continue;
    const Value place = c.number(ElementType::kInt64, static_cast<double>(i));
    const Value element = c.op("SequenceAt", {c.gradient(), place});
    c.set_gradient(i, in_shape_of_input(c, element, i));
  }
}

void insert_gradient(GradientContext& c) {
  const Value place = place_of_inserted(c, c.gradient());
  if (c.wants(1)) {
    const Value element = c.op("SequenceAt", {c.gradient(), place});
    c.set_gradient(1, in_shape_of_input(c, element, 1));
  }
  if (c.wants(0)) c.set_gradient(0, c.op("SequenceErase", {c.gradient(), place}));
}

void erase_gradient(GradientContext& c) {
  c.set_gradient(0, put_back(c, c.gradient(), c.number(0)));
}

// Added to the element of the sum so far, in its place.
void at_gradient(GradientContext& c) {
  const Value sum = c.take_sum(0);
  const Value place = c.input(1);
  const Value element = c.op("Add", {c.op("SequenceAt", {sum, place}), c.gradient()});
  c.set_gradient(0, put_back(c, c.op("SequenceErase", {sum, place}), element));
}

// Parts of zeros have the shapes; an empty part before them stands for an axis of no element.
void split_gradient(GradientContext& c) {
  const int64_t axis = c.attributes().get_int("axis", 0);
  const bool keeps_axis = c.has_input(1) || c.attributes().get_int("keepdims", 1) != 0;
  const Value g = c.gradient();
  const Value zeros = zeros_of(c, c.input_shape(0));
  const Value parts = c.op("SplitToSequence", {zeros, c.input(1)}, {{"axis", axis}});
  const Value nothing = c.op("Slice", {zeros, c.int64s({0}), c.int64s({0}), c.int64s({axis})});
  const Value start = c.op("SequenceConstruct", {nothing});
  const Value made = c.for_each_element(parts, start, [&](Value place) {
    const Value part = c.op("SequenceAt", {parts, place});
    Value element = c.op("SequenceAt", {g, place});
    if (!keeps_axis) {
      const Value flat = c.op("Shape", {c.op("Squeeze", {part, c.int64s({axis})})});
      element = c.op("Unsqueeze", {c.op("Expand", {element, flat}), c.int64s({axis})});
    }
    return c.op("Add", {part, element});
  });
  c.set_gradient(0, reshape_to_input(c, c.op("ConcatFromSequence", {made}, {{"axis", axis}}), 0));
}

// Sizes of the elements along the axis, as int64[n].
Value sizes_along(GradientContext& c, Value sequence, int64_t axis) {
  const Value none = c.op("SequenceEmpty", {}, {{"dtype", int64_t{7}}});  // of int64
  const Value sizes = c.for_each_element(sequence, none, [&](Value place) {
    return c.op("Gather",
                {c.op("Shape", {c.op("SequenceAt", {sequence, place})}), c.int64s({axis})});
  });
  return c.op("ConcatFromSequence", {sizes}, {{"axis", int64_t{0}}});
}

void concat_gradient(GradientContext& c) {
  const int64_t axis = c.attributes().get_int("axis", 0);
  const Value g = c.gradient();
  if (c.attributes().get_int("new_axis", 0) != 0) {
    c.set_gradient(0, c.op("SplitToSequence", {g}, {{"axis", axis}, {"keepdims", int64_t{0}}}));
    return;
  }
  const TensorType& element = c.input_type(0);
  const int64_t size = element.is_ranked
                           ? element.dims[static_cast<int>(place_of(axis, element.dims.rank()))]
                           : kUnknownDim;
  const Value split = size > 0 ? c.number(ElementType::kInt64, static_cast<double>(size))
                               : sizes_along(c, c.input(0), axis);
  c.set_gradient(0, c.op("SplitToSequence", {g, split}, {{"axis", axis}}));
}

void optional_gradient(GradientContext& c) {
  const Value g = c.gradient();
  const bool is_tensor = c.is_tensor(0);
  c.set_gradient(0, is_tensor ? in_shape_of_input(c, g, 0) : g);
}

void get_element_gradient(GradientContext& c) { c.set_gradient(0, c.gradient()); }

}  // namespace

Status add_sequence_gradients(GradientTable& table) {
  const GradientReads shape0{.input_shapes = 1};
  return add_rules(
      table,
      {{.op = "SequenceConstruct",
        .reads = {GradientReads{.input_shapes = kAllValues}},
        .build = construct_gradient},
       {.op = "SequenceInsert",
        .reads = {GradientReads{.inputs = 4}, GradientReads{.inputs = 4, .input_shapes = 2},
                  kNothingBack},
        .build = insert_gradient},
       {.op = "SequenceErase",
        .reads = {GradientReads{.inputs = 2}, kNothingBack},
        .build = erase_gradient},
       {.op = "SequenceAt",
        .reads = {GradientReads{.inputs = 2, .input_shapes = 1}, kNothingBack},
        .build = at_gradient},
       {.op = "SplitToSequence",
        .reads = {GradientReads{.inputs = 2, .input_shapes = 1}, kNothingBack},
        .build = split_gradient},
       {.op = "ConcatFromSequence",
        .reads = {GradientReads{.inputs = 1}},
        .build = concat_gradient},
       {.op = "Optional", .reads = {shape0}, .build = optional_gradient},
       {.op = "OptionalGetElement", .reads = {GradientReads{}}, .build = get_element_gradient}});
}

}  // namespace eddy
