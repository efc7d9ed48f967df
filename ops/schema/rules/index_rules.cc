#include "ops/schema/rules/index_rules.h"

#include <algorithm>
#include <string>

#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

Status too_long(std::string_view what, int64_t length) {
  return invalid_argument(std::string(what) + " has " + text(length) +
                          " entries; a tensor has at most " + text(kMaxRank) + " dimensions");
}

Status check_list(const TensorView& view, std::string_view what) {
  if (!is_index_type(view.element)) {
    return invalid_argument(std::string(what) + " must be int32 or int64, not " +
                            std::string(element_type_name(view.element)));
  }
  if (view.rank > 1) {
    return invalid_argument(std::string(what) +
                            " must be a list of integers, not a tensor of rank " + text(view.rank));
  }
  return Status::ok();
}

// ceil(distance / step) for distance >= 0 and step > 0, without overflow.
int64_t steps_in(uint64_t distance, uint64_t step) {
  return distance == 0 ? 0 : static_cast<int64_t>(1 + (distance - 1) / step);
}

}  // namespace

Status read_ints(const TensorView& view, std::string_view what, IntList& list) {
  EDDY_RETURN_IF_ERROR(check_list(view, what));
  const int64_t count = view.count();
  if (count > IntList::kCapacity) return too_long(what, count);
  list.clear();
  for (int64_t i = 0; i < count; ++i) list.push_back(index_at(view, i));
  return Status::ok();
}

Status read_ints(std::span<const int64_t> values, std::string_view what, IntList& list) {
  const int64_t count = static_cast<int64_t>(values.size());
  if (count > IntList::kCapacity) return too_long(what, count);
  list.clear();
  for (int64_t value : values) list.push_back(value);
  return Status::ok();
}

Status read_int(const TensorView& view, std::string_view what, int64_t& value) {
  if (!is_index_type(view.element)) return check_list(view, what);
  if (view.count() != 1) {
    return invalid_argument(std::string(what) + " must have one element, not " +
                            text(view.count()));
  }
  value = index_at(view, 0);
  return Status::ok();
}

Status list_argument(const InferContext& context, size_t input, std::string_view name,
                     ListArgument& list) {
  list.state = ListState::kAbsent;
  list.length = -1;
  list.values.clear();
  if (context.attributes().has(name)) {
    EDDY_RETURN_IF_ERROR(read_ints(context.attributes().get_ints(name), name, list.values));
    list.state = ListState::kKnown;
  } else if (context.has_input(input)) {
    list.state = ListState::kUnknown;
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, input));
    if (const TensorView* view = context.value_or_null(input)) {
      EDDY_RETURN_IF_ERROR(read_ints(*view, name, list.values));
      list.state = ListState::kKnown;
    } else if (type->is_ranked && type->dims.rank() <= 1) {
      list.length = type->dims.count().value_or(-1);
      if (list.length > IntList::kCapacity) return too_long(name, list.length);
    }
  }
  if (list.state == ListState::kKnown) list.length = list.values.size();
  return Status::ok();
}

Status index_out_of_range(int64_t index, int axis, int64_t size) {
  return invalid_argument("index " + text(index) + " is out of range for axis " + text(axis) +
                          " of size " + text(size));
}

Status push_dim(Dims& dims, int64_t dim) {
  if (dims.rank() == kMaxRank) {
    return unsupported("the output would have more than " + text(kMaxRank) + " dimensions");
  }
  dims.push_back(dim);
  return Status::ok();
}

Status check_size(ElementType element, const Dims& dims) {
  if (!dims.is_static()) return Status::ok();
  const auto count = dims.count();
  int64_t bytes = 0;
  if (count &&
      !__builtin_mul_overflow(*count, static_cast<int64_t>(element_size_bytes(element)), &bytes)) {
    return Status::ok();
  }
  return resource_exhausted("the output " + to_string(dims) + " is too large");
}

Status set_checked_output(InferContext& context, size_t i, ElementType element, const Dims& dims) {
  EDDY_RETURN_IF_ERROR(check_size(element, dims));
  context.set_output(i, TensorType(element, dims));
  return Status::ok();
}

SliceRange resolve_slice_range(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  SliceRange range{0, step, 0};
  if (step > 0) {
    range.start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    if (end > range.start) {
      range.count = steps_in(static_cast<uint64_t>(end - range.start), static_cast<uint64_t>(step));
    }
  } else if (dim > 0) {
    range.start = std::clamp<int64_t>(start, -1, dim - 1);
    end = std::clamp<int64_t>(end, -1, dim - 1);
    if (range.start > end) {
      range.count =
          steps_in(static_cast<uint64_t>(range.start - end), 0 - static_cast<uint64_t>(step));
    }
  }
  if (range.count == 0) range.start = 0;
  if (range.count <= 1) range.step = 1;
  return range;
}

namespace {

Status check_slice_lists(int rank, const IntList& starts, const IntList& ends, const IntList& axes,
                         const IntList& steps) {
  const auto differs = [&](const IntList& list) { return list.size() != starts.size(); };
  if (differs(ends) || (!axes.is_empty() && differs(axes)) ||
      (!steps.is_empty() && differs(steps))) {
    return invalid_argument("starts, ends, axes and steps must be equally long, not " +
                            text(starts.size()) + ", " + text(ends.size()) + ", " +
                            text(axes.size()) + " and " + text(steps.size()));
  }
  if (axes.is_empty() && starts.size() > rank) {
    return invalid_argument(text(starts.size()) + " starts are given for a tensor of rank " +
                            text(rank));
  }
  return Status::ok();
}

SliceRange slice_of_unknown(int64_t dim, int64_t start, int64_t end, int64_t step) {
  const bool takes_all = start == 0 && step == 1 && end == INT64_MAX;
  return {start, step, takes_all ? dim : kUnknownDim};
}

}  // namespace

Status resolve_slice(const Dims& dims, const IntList& starts, const IntList& ends,
                     const IntList& axes, const IntList& steps, SliceRanges& ranges) {
  EDDY_RETURN_IF_ERROR(check_slice_lists(dims.rank(), starts, ends, axes, steps));
  for (int i = 0; i < dims.rank(); ++i) ranges[static_cast<size_t>(i)] = {0, 1, dims[i]};
  uint32_t seen = 0;
  for (int i = 0; i < starts.size(); ++i) {
    int axis = i;
    if (!axes.is_empty()) {
      EDDY_ASSIGN_OR_RETURN(axis, normalize_axis(axes[i], dims.rank()));
    }
    if ((seen >> axis) & 1u) return invalid_argument("axis " + text(axis) + " is sliced twice");
    seen |= 1u << axis;
    const int64_t step = steps.is_empty() ? 1 : steps[i];
    if (step == 0) return invalid_argument("the step of axis " + text(axis) + " is 0");
    const int64_t dim = dims[axis];
    ranges[static_cast<size_t>(axis)] = dim >= 0
                                            ? resolve_slice_range(dim, starts[i], ends[i], step)
                                            : slice_of_unknown(dim, starts[i], ends[i], step);
  }
  return Status::ok();
}

Status resolve_pads(const IntList& pads, const IntList& axes, bool has_axes, int rank,
                    PadAmounts& amounts) {
  amounts = PadAmounts();
  const int count = has_axes ? axes.size() : rank;
  if (pads.size() != 2 * count) {
    return invalid_argument("pads needs " + text(2 * count) + " entries, two for each of " +
                            text(count) + " axes, not " + text(pads.size()));
  }
  uint32_t seen = 0;
  for (int i = 0; i < count; ++i) {
    int axis = i;
    if (has_axes) {
      EDDY_ASSIGN_OR_RETURN(axis, normalize_axis(axes[i], rank));
    }
    if ((seen >> axis) & 1u) return invalid_argument("axis " + text(axis) + " is padded twice");
    seen |= 1u << axis;
    amounts.before[static_cast<size_t>(axis)] = pads[i];
    amounts.after[static_cast<size_t>(axis)] = pads[i + count];
  }
  return Status::ok();
}

Status parse_pad_mode(std::string_view name, int opset_version, PadMode& mode) {
  if (name == "constant") {
    mode = PadMode::kConstant;
  } else if (name == "reflect") {
    mode = PadMode::kReflect;
  } else if (name == "edge") {
    mode = PadMode::kEdge;
  } else if (name == "wrap" && opset_version >= 19) {
    mode = PadMode::kWrap;
  } else {
    return invalid_argument("mode '" + std::string(name) +
                            "' is none of constant, reflect, edge and (from opset 19) wrap");
  }
  return Status::ok();
}

namespace {

// What is left on both sides of a Reshape once copied dimensions are taken away.
struct ReshapeRest {
  int64_t from_known = 1;  // product of the known dimensions of the input
  int from_unknown = 0;    // how many are not known, and the last of them
  int64_t unknown = kUnknownDim;
  int64_t to_known = 1;
  int inferred_axis = -1;
  bool is_empty = false;  // a copied dimension is 0: any other dimensions fit
};

Status multiply(int64_t& product, int64_t factor, const Dims& dims) {
  if (__builtin_mul_overflow(product, factor, &product)) {
    return resource_exhausted("the elements of " + to_string(dims) + " exceed int64");
  }
  return Status::ok();
}

Status reshape_targets(const Dims& from, const IntList& shape, bool allow_zero, Dims& to,
                       ReshapeRest& rest, uint32_t& copied) {
  bool has_zero = false;
  for (int i = 0; i < shape.size(); ++i) {
    int64_t dim = shape[i];
    if (dim == -1) {
      if (rest.inferred_axis >= 0) return invalid_argument("shape has more than one -1");
      rest.inferred_axis = i;
      dim = kUnknownDim;
    } else if (dim < -1) {
      return invalid_argument("shape has the negative size " + text(dim));
    } else if (dim == 0 && !allow_zero) {
      if (i >= from.rank()) {
        return invalid_argument("shape copies axis " + text(i) + " of a tensor of rank " +
                                text(from.rank()));
      }
      dim = from[i];
      copied |= 1u << i;
      rest.is_empty |= dim == 0;
    } else {
      has_zero |= dim == 0;
      EDDY_RETURN_IF_ERROR(multiply(rest.to_known, dim, from));
    }
    EDDY_RETURN_IF_ERROR(push_dim(to, dim));
  }
  if (has_zero && rest.inferred_axis >= 0) {
    return invalid_argument("-1 can't be inferred beside a dimension of 0 (allowzero is set)");
  }
  return Status::ok();
}

Status settle_reshape(const Dims& from, Dims& to, const ReshapeRest& rest) {
  const bool fits = rest.inferred_axis < 0 ? rest.from_known == rest.to_known || rest.is_empty
                                           : rest.from_known % rest.to_known == 0;
  if (rest.from_unknown == 0) {
    if (!fits) {
      return invalid_argument("the elements of " + to_string(from) + " do not fit the shape " +
                              to_string(to));
    }
    if (rest.inferred_axis >= 0) to[rest.inferred_axis] = rest.from_known / rest.to_known;
  } else if (rest.from_unknown == 1 && rest.inferred_axis >= 0 &&
             rest.from_known == rest.to_known) {
    to[rest.inferred_axis] = rest.unknown;
  }
  return Status::ok();
}

}  // namespace

Status resolve_reshape(const Dims& from, const IntList& shape, bool allow_zero, Dims& to) {
  to = Dims();
  ReshapeRest rest;
  uint32_t copied = 0;
  EDDY_RETURN_IF_ERROR(reshape_targets(from, shape, allow_zero, to, rest, copied));
  for (int axis = 0; axis < from.rank(); ++axis) {
    if ((copied >> axis) & 1u) continue;
    if (from[axis] >= 0) {
      EDDY_RETURN_IF_ERROR(multiply(rest.from_known, from[axis], from));
    } else {
      ++rest.from_unknown;
      rest.unknown = from[axis];
    }
  }
  return settle_reshape(from, to, rest);
}

Status resolve_permutation(std::span<const int64_t> perm, int rank, IntList& resolved) {
  resolved.clear();
  if (perm.empty()) {
    for (int axis = rank - 1; axis >= 0; --axis) resolved.push_back(axis);
    return Status::ok();
  }
  if (static_cast<int>(perm.size()) != rank) {
    return invalid_argument("perm has " + std::to_string(perm.size()) +
                            " entries for a tensor of rank " + text(rank));
  }
  uint32_t seen = 0;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= rank) {
      return invalid_argument("perm names axis " + text(axis) + " of a tensor of rank " +
                              text(rank));
    }
    if ((seen >> axis) & 1u) return invalid_argument("perm names axis " + text(axis) + " twice");
    seen |= 1u << axis;
    resolved.push_back(axis);
  }
  return Status::ok();
}

Status equal_part(int64_t total, int64_t parts, bool uneven, int64_t& size) {
  if (parts < 1) return invalid_argument("an axis can't be split into " + text(parts) + " parts");
  if (!uneven && total % parts != 0) {
    return invalid_argument("an axis of size " + text(total) + " does not split into " +
                            text(parts) + " equal parts");
  }
  size = total / parts + (total % parts != 0 ? 1 : 0);
  return Status::ok();
}

}  // namespace eddy
