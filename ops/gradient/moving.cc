// Operators that move elements: the adjoint moves back.
//
// Views stay views. What has an inverse among the operators uses it; for the others (steps in
// Slice, Tile, reflecting Pad ...) the operator is applied to the elements' places and the adjoint
// is added there (parts.h).
#include <algorithm>

#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

void view_gradient(GradientContext& c) { c.set_gradient(0, reshape_to_input(c, c.gradient(), 0)); }

void transpose_gradient(GradientContext& c) {
  const auto perm = c.attributes().get_ints("perm");
  if (perm.empty()) return c.set_gradient(0, c.op("Transpose", {c.gradient()}));
  std::vector<int64_t> inverse(perm.size());
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    inverse[static_cast<size_t>(place_of(perm[axis], static_cast<int>(perm.size())))] =
        static_cast<int64_t>(axis);
  }
  c.set_gradient(0, c.op("Transpose", {c.gradient()}, {{"perm", inverse}}));
}

void expand_gradient(GradientContext& c) { c.set_gradient(0, c.sum_to(c.gradient(), 0)); }

// The sizes of all inputs along an axis.
Value sizes_along(GradientContext& c, int64_t axis) {
  std::vector<int64_t> known;
  std::vector<Value> parts;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    const TensorType& type = c.input_type(i);
    if (type.is_ranked) {
      known.push_back(type.dims[static_cast<int>(place_of(axis, type.dims.rank()))]);
    }
    parts.push_back(c.op("Gather", {c.input_shape(i), c.int64s({axis})}));
  }
  const bool all_known = known.size() == c.num_inputs() &&
                         std::ranges::all_of(known, [](int64_t d) { return d >= 0; });
  return all_known ? c.int64s(known) : c.op("Concat", parts, {{"axis", int64_t{0}}});
}

void concat_gradient(GradientContext& c) {
  const int64_t axis = c.attributes().get_int("axis", 1);
  const std::vector<Value> parts = c.ops("Split", std::vector{c.gradient(), sizes_along(c, axis)},
                                         {{"axis", axis}}, static_cast<int>(c.num_inputs()));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (c.wants(i)) c.set_gradient(i, parts[i]);
  }
}

void split_gradient(GradientContext& c) {
  std::vector<Value> parts;
  for (size_t o = 0; o < c.num_outputs(); ++o) parts.push_back(c.gradient_or_zeros(o));
  const int64_t axis = c.attributes().get_int("axis", 0);
  c.set_gradient(0, c.op("Concat", parts, {{"axis", axis}}));
}

// Zeros before and behind each axis, where all that decides them is known; empty: it is not.
std::vector<int64_t> slice_pads(const Dims& dims, const std::vector<int64_t>& starts,
                                const std::vector<int64_t>& ends,
                                const std::vector<int64_t>& axes) {
  EDDY_DCHECK(starts.size() == axes.size() && ends.size() == axes.size())
      << starts.size() << " starts and " << ends.size() << " ends for " << axes.size() << " axes";
  const size_t rank = static_cast<size_t>(dims.rank());
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = static_cast<size_t>(place_of(axes[k], dims.rank()));
    EDDY_DCHECK(axis < rank) << "axis " << axes[k] << " of " << rank;
    const int64_t size = dims[static_cast<int>(axis)];
    if (size < 0) return {};
    const auto clamped = [size](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    pads[axis] = clamped(starts[k]);
    pads[rank + axis] = size - std::max(clamped(ends[k]), pads[axis]);
  }
  return pads;
}

void slice_gradient(GradientContext& c) {
  std::optional<std::vector<int64_t>> starts, ends, axes, steps;
  if (c.opset_version() < 10) {
    const auto list = [&](const char* name) {
      const auto given = c.attributes().get_ints(name);
      return std::vector<int64_t>(given.begin(), given.end());
    };
    starts = list("starts"), ends = list("ends"), axes = list("axes");
    if (axes->empty()) axes = axes_between(0, static_cast<int64_t>(starts->size()));
    steps = std::vector<int64_t>(starts->size(), 1);
  } else {
    starts = known_ints(c, 1), ends = known_ints(c, 2), axes = known_ints(c, 3);
    steps = known_ints(c, 4);
    if (starts && !c.has_input(3)) axes = axes_between(0, static_cast<int64_t>(starts->size()));
    if (starts && !c.has_input(4)) steps = std::vector<int64_t>(starts->size(), 1);
  }
  const bool all_known = starts && ends && axes && steps;
  const bool by_ones = all_known && std::ranges::count(*steps, 1) == std::ssize(*steps);
  if (by_ones && c.input_type(0).is_ranked) {
    const std::vector<int64_t> pads = slice_pads(c.input_type(0).dims, *starts, *ends, *axes);
    if (!pads.empty()) return c.set_gradient(0, c.op("Pad", {c.gradient(), c.int64s(pads)}));
  }
  std::vector<Value> inputs = {flat_places(c)};
  if (c.opset_version() < 10) {
    inputs.insert(inputs.end(), {c.int64s(*starts), c.int64s(*ends), c.int64s(*axes)});
  } else {
    for (size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  }
  add_at_places(c, c.op("Slice", inputs), c.gradient());
}

// Padding with a constant is undone by negative pads, which crop; and the other way round.
void pad_gradient(GradientContext& c) {
  const std::string mode(c.attributes().get_string("mode", "constant"));
  std::vector<Value> inputs = {c.gradient()};
  const bool is_attribute = c.opset_version() < 11;
  const Value pads = is_attribute ? c.int64s(c.attributes().get_ints("pads")) : c.input(1);
  const Value axes = c.num_inputs() > 3 ? c.input(3) : Value{};
  if (mode != "constant") {
    const Value places = c.op("Pad", {flat_places(c), pads, Value{}, axes}, {{"mode", mode}});
    return add_at_places(c, places, c.gradient());
  }
  const Value inside = c.op("Pad", {c.gradient(), c.op("Neg", {pads}), Value{}, axes});
  if (c.wants(0)) c.set_gradient(0, inside);
  if (!c.wants(2)) return;
  const Attributes to_scalar = {{"keepdims", int64_t{0}}};
  const Value all = c.op("ReduceSum", {c.gradient()}, to_scalar);
  const Value rest = c.op("Sub", {all, c.op("ReduceSum", {inside}, to_scalar)});
  c.set_gradient(2, reshape_to_input(c, rest, 2));
}

void tile_gradient(GradientContext& c) {
  add_at_places(c, c.op("Tile", {flat_places(c), c.input(1)}), c.gradient());
}

void depth_to_space_gradient(GradientContext& c) {
  const int64_t block = c.attributes().get_int("blocksize", 1);
  const std::string mode(c.attributes().get_string("mode", "DCR"));
  if (mode == "DCR") {
    return c.set_gradient(0, c.op("SpaceToDepth", {c.gradient()}, {{"blocksize", block}}));
  }
  const Attributes attributes = {{"blocksize", block}, {"mode", mode}};
  add_at_places(c, c.op("DepthToSpace", {flat_places(c)}, attributes), c.gradient());
}

void space_to_depth_gradient(GradientContext& c) {
  const int64_t block = c.attributes().get_int("blocksize", 1);
  c.set_gradient(0, c.op("DepthToSpace", {c.gradient()}, {{"blocksize", block}}));
}

void trilu_gradient(GradientContext& c) {
  const Attributes attributes = {{"upper", c.attributes().get_int("upper", 1)}};
  c.set_gradient(0, c.op("Trilu", {c.gradient(), c.input(1)}, attributes));
}

void reverse_sequence_gradient(GradientContext& c) {
  const Attributes attributes = {{"batch_axis", c.attributes().get_int("batch_axis", 1)},
                                 {"time_axis", c.attributes().get_int("time_axis", 0)}};
  c.set_gradient(0, c.op("ReverseSequence", {c.gradient(), c.input(1)}, attributes));
}

GradientRule view(const char* op) {
  return {
      .op = op, .reads = {GradientReads{.input_shapes = 1}, kNothingBack}, .build = view_gradient};
}

}  // namespace

Status add_moving_gradients(GradientTable& table) {
  const GradientReads none{}, shape{.input_shapes = 1}, list{.inputs = 2};
  const GradientReads pad{.inputs = bits({1, 3}), .input_shapes = bits({0, 2})};
  return add_rules(
      table,
      {view("Reshape"),
       view("Flatten"),
       view("Squeeze"),
       view("Unsqueeze"),
       {.op = "Transpose", .reads = {none}, .build = transpose_gradient},
       {.op = "Expand", .reads = {shape, kNothingBack}, .build = expand_gradient},
       {.op = "Concat",
        .reads = {GradientReads{.input_shapes = kAllValues}},
        .build = concat_gradient},
       {.op = "Split",
        .reads = {GradientReads{.output_shapes = kAllValues}, kNothingBack},
        .build = split_gradient},
       {.op = "Slice",
        .reads = {GradientReads{.inputs = bits({1, 2, 3, 4}), .input_shapes = 1}, kNothingBack},
        .build = slice_gradient},
       {.op = "Pad", .reads = {pad, kNothingBack, pad, kNothingBack}, .build = pad_gradient},
       {.op = "Tile",
        .reads = {GradientReads{.inputs = 2, .input_shapes = 1}, kNothingBack},
        .build = tile_gradient},
       {.op = "DepthToSpace", .reads = {shape}, .build = depth_to_space_gradient},
       {.op = "SpaceToDepth", .reads = {none}, .build = space_to_depth_gradient},
       {.op = "Trilu", .reads = {list, kNothingBack}, .build = trilu_gradient},
       {.op = "ReverseSequence",
        .reads = {list, kNothingBack},
        .build = reverse_sequence_gradient}});
}

}  // namespace eddy
