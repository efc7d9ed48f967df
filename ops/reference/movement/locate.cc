#include <algorithm>

#include "graph/base/check.h"
#include "ops/reference/movement/movement_parts.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/locate.h"
#include "ops/reference/parts/number.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

Dims dims_of(const TensorView& view) { return Dims(view.shape()); }

// axis counted from the front; the schema has checked its range.
int front_axis(int64_t axis, int rank) {
  EDDY_DCHECK(axis >= -rank && axis < rank) << "axis " << axis << " of " << rank;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool locate_slice(const KernelArgs& args, int64_t* sources) {
  const LocateState& state = locate_state(args);
  IntList buffers[4];
  const IntList* lists[4];
  for (size_t i = 0; i < 4; ++i) {
    lists[i] = state.lists[i].read_or_null(args, buffers[i]);
    if (lists[i] == nullptr) return false;
  }
  SliceRanges ranges;
  Status status =
      resolve_slice(dims_of(args.inputs[0]), *lists[0], *lists[1], *lists[2], *lists[3], ranges);
  if (!status.is_ok()) return args.fail(std::move(status));
  const auto strides = strides_of(args.inputs[0]);
  const int64_t count = args.outputs[0].count();
  Coordinates at(args.outputs[0]);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    int64_t source = 0;
    for (int d = 0; d < args.outputs[0].rank; ++d) {
      const auto axis = static_cast<size_t>(d);
      source += (ranges[axis].start + at[d] * ranges[axis].step) * strides[axis];
    }
    sources[i] = source;
  }
  return true;
}

bool locate_gather(const KernelArgs& args, int64_t* sources) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  const int axis = front_axis(locate_state(args).axis, data.rank);
  const auto [outer, size, inner] = split_at_axis(data.shape(), axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < indices.count(); ++j) {
      int64_t index = index_at(indices, j);
      if (index < -size || index >= size) return args.fail(index_out_of_range(index, axis, size));
      if (index < 0) index += size;
      for (int64_t i = 0; i < inner; ++i) *sources++ = (o * size + index) * inner + i;
    }
  }
  return true;
}

bool locate_transpose(const KernelArgs& args, int64_t* sources) {
  const LocateState& state = locate_state(args);
  const TensorView& out = args.outputs[0];
  IntList buffer, perm;
  const IntList* given = state.lists[0].read_or_null(args, buffer);
  if (given == nullptr) return false;
  Status status = resolve_permutation(given->span(), out.rank, perm);
  if (!status.is_ok()) return args.fail(std::move(status));
  const auto strides = strides_of(args.inputs[0]);
  const int64_t count = out.count();
  Coordinates at(out);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    sources[i] = 0;
    for (int d = 0; d < out.rank; ++d) {
      sources[i] += at[d] * strides[static_cast<size_t>(perm[d])];
    }
  }
  return true;
}

// Which element of an axis of `size` > 0 the position shows, or kFill; outside it repeats by mode.
int64_t pad_position(int64_t position, int64_t size, PadMode mode) {
  EDDY_DCHECK(size > 0 || mode == PadMode::kConstant) << "an axis of " << size;
  if (position >= 0 && position < size) return position;
  switch (mode) {
    case PadMode::kConstant:
      return kFill;
    case PadMode::kEdge:
      return position < 0 ? 0 : size - 1;
    case PadMode::kWrap:
      return ((position % size) + size) % size;
    case PadMode::kReflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1);
      const int64_t phase = ((position % period) + period) % period;
      return phase < size ? phase : period - phase;
    }
  }
  return kFill;
}

bool locate_pad(const KernelArgs& args, int64_t* sources) {
  const LocateState& state = locate_state(args);
  const TensorView& in = args.inputs[0];
  IntList buffers[2];
  const IntList* pads = state.lists[0].read_or_null(args, buffers[0]);
  const IntList* axes = state.lists[1].read_or_null(args, buffers[1]);
  if (pads == nullptr || axes == nullptr) return false;
  PadAmounts amounts;
  Status status = resolve_pads(*pads, *axes, state.lists[1].is_given(), in.rank, amounts);
  if (!status.is_ok()) return args.fail(std::move(status));
  if (args.has_input(2) && args.inputs[2].count() != 1) {
    return args.fail(invalid_argument("constant_value must have one element"));
  }
  const auto strides = strides_of(in);
  const int64_t count = args.outputs[0].count();
  Coordinates at(args.outputs[0]);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    sources[i] = 0;
    for (int d = 0; d < in.rank && sources[i] != kFill; ++d) {
      const auto axis = static_cast<size_t>(d);
      const int64_t position = pad_position(at[d] - amounts.before[axis], in.dims[d], state.mode);
      sources[i] = position == kFill ? kFill : sources[i] + position * strides[axis];
    }
  }
  return true;
}

// Expand and Tile: coordinates modulo the input's sizes, aligned at the last axis.
bool locate_repeated(const KernelArgs& args, int64_t* sources) {
  const TensorView& in = args.inputs[0];
  const int shift = args.outputs[0].rank - in.rank;
  EDDY_DCHECK(shift >= 0) << args.outputs[0].rank << " axes of " << in.rank;
  const auto strides = strides_of(in);
  const int64_t count = args.outputs[0].count();
  Coordinates at(args.outputs[0]);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    sources[i] = 0;
    for (int d = 0; d < in.rank; ++d) {
      sources[i] += at[d + shift] % in.dims[d] * strides[static_cast<size_t>(d)];
    }
  }
  return true;
}

bool locate_depth_to_space(const KernelArgs& args, int64_t* sources) {
  const LocateState& state = locate_state(args);
  const int64_t block = state.other;
  const TensorView& in = args.inputs[0];
  EDDY_DCHECK(block > 0 && in.rank == 4) << "blocks of " << block << " of " << in.rank << " axes";
  const auto strides = strides_of(in);
  const int64_t depth = args.outputs[0].dims[1];
  const int64_t count = args.outputs[0].count();
  Coordinates at(args.outputs[0]);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    const int64_t place = at[2] % block * block + at[3] % block;
    const int64_t channel = state.flag ? at[1] * block * block + place : place * depth + at[1];
    sources[i] = at[0] * strides[0] + channel * strides[1] + at[2] / block * strides[2] +
                 at[3] / block * strides[3];
  }
  return true;
}

bool locate_space_to_depth(const KernelArgs& args, int64_t* sources) {
  const int64_t block = locate_state(args).other;
  const TensorView& in = args.inputs[0];
  EDDY_DCHECK(block > 0 && in.rank == 4) << "blocks of " << block << " of " << in.rank << " axes";
  const auto strides = strides_of(in);
  const int64_t count = args.outputs[0].count();
  Coordinates at(args.outputs[0]);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    const int64_t place = at[1] / in.dims[1];
    sources[i] = at[0] * strides[0] + at[1] % in.dims[1] * strides[1] +
                 (at[2] * block + place / block) * strides[2] +
                 (at[3] * block + place % block) * strides[3];
  }
  return true;
}

bool locate_trilu(const KernelArgs& args, int64_t* sources) {
  const bool upper = locate_state(args).flag;
  const TensorView& out = args.outputs[0];
  EDDY_DCHECK(out.rank >= 2) << out.rank << " axes";
  int64_t k = 0;
  if (args.has_input(1)) {
    Status status = read_int(args.inputs[1], "k", k);
    if (!status.is_ok()) return args.fail(std::move(status));
  }
  const int64_t rows = out.dims[out.rank - 2], columns = out.dims[out.rank - 1];
  k = std::clamp(k, -rows, columns);
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t column = i % columns, row = i / columns % rows;
    sources[i] = (upper ? column - row >= k : column - row <= k) ? i : kFill;
  }
  return true;
}

// ---- bind ----

Result<BoundKernel> bind_slice(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  EDDY_ASSIGN_OR_RETURN(state->lists[0], ListSource::make(init, 1, "starts"));
  EDDY_ASSIGN_OR_RETURN(state->lists[1], ListSource::make(init, 2, "ends"));
  EDDY_ASSIGN_OR_RETURN(state->lists[2], ListSource::make(init, 3, "axes"));
  EDDY_ASSIGN_OR_RETURN(state->lists[3], ListSource::make(init, 4, "steps"));
  return bind_locate<locate_slice>(init, std::move(state));
}

Result<BoundKernel> bind_gather(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->axis = init.attributes.get_int("axis", 0);
  return bind_locate<locate_gather>(init, std::move(state));
}

Result<BoundKernel> bind_transpose(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  EDDY_ASSIGN_OR_RETURN(state->lists[0], ListSource::make(init, SIZE_MAX, "perm"));
  return bind_locate<locate_transpose>(init, std::move(state));
}

Result<BoundKernel> bind_pad(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  EDDY_RETURN_IF_ERROR(parse_pad_mode(init.attributes.get_string("mode", "constant"),
                                      init.opset_version, state->mode));
  EDDY_ASSIGN_OR_RETURN(state->lists[0], ListSource::make(init, 1, "pads"));
  EDDY_ASSIGN_OR_RETURN(state->lists[1], ListSource::make(init, 3, "axes"));
  state->fill_input = 2;
  const ElementType element = init.outputs[0].tensor.element;
  if (init.attributes.has("value") && kNumberTypes.contains(element)) {
    store_number({state->fill.data(), nullptr, 0, element}, 0,
                 Number::of_double(init.attributes.get_float("value", 0)));
  }
  return bind_locate<locate_pad>(init, std::move(state));
}

Result<BoundKernel> bind_repeated(const KernelInit& init) {
  return bind_locate<locate_repeated>(init, std::make_unique<LocateState>());
}

Result<BoundKernel> bind_depth_to_space(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->other = init.attributes.get_int("blocksize", 1);
  state->flag = init.attributes.get_string("mode", "DCR") == "CRD";
  return bind_locate<locate_depth_to_space>(init, std::move(state));
}

Result<BoundKernel> bind_space_to_depth(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->other = init.attributes.get_int("blocksize", 1);
  return bind_locate<locate_space_to_depth>(init, std::move(state));
}

Result<BoundKernel> bind_trilu(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->flag = init.attributes.get_int("upper", 1) != 0;
  return bind_locate<locate_trilu>(init, std::move(state));
}

}  // namespace

void add_movement_locate_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("Slice", bind_slice);
  add("Gather", bind_gather);
  add("Transpose", bind_transpose);
  add("Pad", bind_pad);
  add("Expand", bind_repeated);
  add("Tile", bind_repeated);
  add("DepthToSpace", bind_depth_to_space);
  add("SpaceToDepth", bind_space_to_depth);
  add("Trilu", bind_trilu);
}

}  // namespace eddy
