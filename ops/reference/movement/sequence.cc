// Sequences and optionals. Elements are shared, never copied, and one is appended or taken off the
// end in O(1); only SplitToSequence and ConcatFromSequence move data, in rows, so no faster kernel
// is needed.
#include <algorithm>

#include "ops/reference/families.h"
#include "ops/reference/parts/copy_elements.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

struct AxisState : KernelState {
  int64_t axis = 0;
  bool flag = false;  // keepdims, new_axis
};

struct EmptyState : KernelState {
  ElementType element = ElementType::kFloat;
};

// ---- building and taking apart ----

Status construct(ValueContext& context) {
  context.begin_sequence(0, context.element_type(0));
  for (size_t i = 0; i < context.num_inputs(); ++i) context.append_input(0, i);
  return Status::ok();
}

Status make_empty(ValueContext& context) {
  context.begin_sequence(0, static_cast<const EmptyState&>(*context.state()).element);
  return Status::ok();
}

Status check_sequence(const ValueContext& context) {
  if (context.kind(0) == ValueKind::kSequence) return Status::ok();
  return invalid_argument("input 0 holds no sequence");
}

// Input i as a place among `count`, counted from the back when negative; `fallback` when omitted.
Status read_position(const ValueContext& context, size_t i, int64_t count, int64_t fallback,
                     size_t& position) {
  int64_t value = fallback;
  if (context.has_input(i)) {
    EDDY_RETURN_IF_ERROR(read_int(context.tensor(i), "position", value));
  }
  const int64_t length = static_cast<int64_t>(context.length(0));
  if (value < -length || value >= count) {
    return invalid_argument("position " + std::to_string(value) +
                            " is out of range for a sequence of length " + std::to_string(length));
  }
  position = static_cast<size_t>(value < 0 ? value + length : value);
  return Status::ok();
}

Status insert(ValueContext& context) {
  EDDY_RETURN_IF_ERROR(check_sequence(context));
  const size_t length = context.length(0);
  size_t position = 0;
  EDDY_RETURN_IF_ERROR(read_position(context, 2, static_cast<int64_t>(length) + 1,
                                     static_cast<int64_t>(length), position));
  if (position == length && length > 0) {
    context.share(0, 0);
    context.append_input(0, 1);
    return Status::ok();
  }
  context.begin_sequence(0, context.element_type(1));
  for (size_t i = 0; i < position; ++i) context.append_element(0, 0, i);
  context.append_input(0, 1);
  for (size_t i = position; i < length; ++i) context.append_element(0, 0, i);
  return Status::ok();
}

Status erase(ValueContext& context) {
  EDDY_RETURN_IF_ERROR(check_sequence(context));
  const size_t length = context.length(0);
  size_t position = 0;
  EDDY_RETURN_IF_ERROR(read_position(context, 1, static_cast<int64_t>(length),
                                     static_cast<int64_t>(length) - 1, position));
  if (position + 1 == length) {
    context.share(0, 0);
    context.remove_last(0);
    return Status::ok();
  }
  context.begin_sequence(0, context.element_type(0));
  for (size_t i = 0; i < length; ++i) {
    if (i != position) context.append_element(0, 0, i);
  }
  return Status::ok();
}

Status at(ValueContext& context) {
  EDDY_RETURN_IF_ERROR(check_sequence(context));
  size_t position = 0;
  EDDY_RETURN_IF_ERROR(
      read_position(context, 1, static_cast<int64_t>(context.length(0)), 0, position));
  context.share_element(0, 0, position);
  return Status::ok();
}

Status length(ValueContext& context) {
  EDDY_RETURN_IF_ERROR(check_sequence(context));
  EDDY_ASSIGN_OR_RETURN(const TensorView out, context.allocate(0, ElementType::kInt64, Dims()));
  out.mutable_as<int64_t>()[0] = static_cast<int64_t>(context.length(0));
  return Status::ok();
}

// ---- moving data ----

int64_t product(const TensorView& view, int first, int last) {
  int64_t result = 1;
  for (int d = first; d < last; ++d) result *= view.dims[d];
  return result;
}

// Where the parts of a SplitToSequence end.
class Parts {
 public:
  static Result<Parts> make(const ValueContext& context, int64_t total) {
    Parts parts;
    parts.total_ = total;
    if (!context.has_input(1)) return parts;
    const TensorView split = context.tensor(1);
    if (split.rank == 0) {
      EDDY_RETURN_IF_ERROR(read_int(split, "split", parts.chunk_));
      if (parts.chunk_ > 0) return parts;
      return invalid_argument("split must be positive, not " + std::to_string(parts.chunk_));
    }
    EDDY_ASSIGN_OR_RETURN(parts.sizes_, HostInts::read(split, "split"));
    parts.chunk_ = 0;
    EDDY_RETURN_IF_ERROR(parts.check_sizes());
    return parts;
  }

  int64_t count() const {
    return chunk_ > 0 ? total_ / chunk_ + (total_ % chunk_ != 0 ? 1 : 0) : sizes_.size();
  }
  int64_t size(int64_t i) const {
    return chunk_ > 0 ? std::min(chunk_, total_ - i * chunk_) : sizes_[i];
  }

 private:
  Status check_sizes() const {
    int64_t left = total_;
    for (int64_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i] < 0 || sizes_[i] > left) {
        return invalid_argument("split entry " + std::to_string(i) + " is " +
                                std::to_string(sizes_[i]) + ", but " + std::to_string(left) +
                                " elements of the axis are left");
      }
      left -= sizes_[i];
    }
    if (left == 0) return Status::ok();
    return invalid_argument("the sizes of split leave " + std::to_string(left) +
                            " elements of the axis over");
  }

  int64_t total_ = 0;
  int64_t chunk_ = 1;  // 0: by sizes_
  HostInts sizes_;
};

Status split(ValueContext& context) {
  const auto& state = static_cast<const AxisState&>(*context.state());
  const TensorView in = context.tensor(0);
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(state.axis, in.rank));
  EDDY_ASSIGN_OR_RETURN(const Parts parts, Parts::make(context, in.dims[axis]));
  const bool keeps_axis = state.flag || context.has_input(1);
  const int64_t outer = product(in, 0, axis), inner = product(in, axis + 1, in.rank);
  context.begin_sequence(0, in.element);
  int64_t start = 0;
  for (int64_t i = 0; i < parts.count(); ++i) {
    const int64_t size = parts.size(i);
    Dims dims;
    for (int d = 0; d < in.rank; ++d) {
      if (d != axis || keeps_axis) dims.push_back(d == axis ? size : in.dims[d]);
    }
    EDDY_ASSIGN_OR_RETURN(const TensorView out, context.append_new(0, in.element, dims));
    for (int64_t o = 0; o < outer; ++o) {
      copy_elements(in, (o * in.dims[axis] + start) * inner, out, o * size * inner, size * inner);
    }
    start += size;
  }
  return Status::ok();
}

// The shape of all elements joined at `axis`, or stacked along a new one.
Status joined_dims(const ValueContext& context, int axis, bool new_axis, Dims& dims) {
  const TensorView first = context.element(0, 0);
  for (int d = 0; d < first.rank; ++d) {
    if (new_axis && d == axis) EDDY_RETURN_IF_ERROR(push_dim(dims, 0));
    EDDY_RETURN_IF_ERROR(push_dim(dims, first.dims[d]));
  }
  if (new_axis && axis == first.rank) EDDY_RETURN_IF_ERROR(push_dim(dims, 0));
  int64_t size = 0;
  for (size_t i = 0; i < context.length(0); ++i) {
    const TensorView element = context.element(0, i);
    bool fits = element.rank == first.rank;
    for (int d = 0; fits && d < first.rank; ++d) {
      fits = element.dims[d] == first.dims[d] || (d == axis && !new_axis);
    }
    if (!fits) {
      return invalid_argument("elements 0 and " + std::to_string(i) + " do not join along axis " +
                              std::to_string(axis) + ": " + to_string(Dims(first.shape())) +
                              " and " + to_string(Dims(element.shape())));
    }
    if (__builtin_add_overflow(size, new_axis ? 1 : element.dims[axis], &size)) {
      return resource_exhausted("the joined axis exceeds int64");
    }
  }
  dims[axis] = size;
  return check_size(first.element, dims);
}

Status concat(ValueContext& context) {
  EDDY_RETURN_IF_ERROR(check_sequence(context));
  const auto& state = static_cast<const AxisState&>(*context.state());
  if (context.length(0) == 0) return invalid_argument("an empty sequence can't be concatenated");
  const TensorView first = context.element(0, 0);
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(state.axis, first.rank + (state.flag ? 1 : 0)));
  Dims dims;
  EDDY_RETURN_IF_ERROR(joined_dims(context, axis, state.flag, dims));
  EDDY_ASSIGN_OR_RETURN(const TensorView out, context.allocate(0, first.element, dims));
  const int64_t outer = product(out, 0, axis), row = product(out, axis, out.rank);
  int64_t start = 0;
  for (size_t i = 0; i < context.length(0); ++i) {
    const TensorView element = context.element(0, i);
    const int64_t part = product(element, axis, element.rank);
    for (int64_t o = 0; o < outer; ++o) {
      copy_elements(element, o * part, out, o * row + start, part);
    }
    start += part;
  }
  return Status::ok();
}

// ---- optionals ----

Status make_optional(ValueContext& context) {
  if (context.has_input(0)) {
    context.share(0, 0);
  } else {
    context.set_none(0);
  }
  return Status::ok();
}

bool holds_value(const ValueContext& context) {
  return context.has_input(0) && context.kind(0) != ValueKind::kNone;
}

Status get_element(ValueContext& context) {
  if (!holds_value(context)) return invalid_argument("the optional is empty");
  context.share(0, 0);
  return Status::ok();
}

Status has_element(ValueContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorView out, context.allocate(0, ElementType::kBool, Dims()));
  out.mutable_as<bool>()[0] = holds_value(context);
  return Status::ok();
}

// ---- bind ----

template <ValueKernelFunction function>
Result<BoundKernel> bind_plain(const KernelInit&) {
  return BoundKernel{.run_value = function, .state = nullptr};
}

Result<BoundKernel> bind_empty(const KernelInit& init) {
  auto state = std::make_unique<EmptyState>();
  state->element = init.outputs[0].tensor.element;
  return BoundKernel{.run_value = make_empty, .state = std::move(state)};
}

Result<BoundKernel> bind_split(const KernelInit& init) {
  auto state = std::make_unique<AxisState>();
  state->axis = init.attributes.get_int("axis", 0);
  state->flag = init.attributes.get_int("keepdims", 1) != 0;
  return BoundKernel{.run_value = split, .state = std::move(state)};
}

Result<BoundKernel> bind_concat(const KernelInit& init) {
  auto state = std::make_unique<AxisState>();
  state->axis = init.attributes.get_int("axis", 0);
  state->flag = init.attributes.get_int("new_axis", 0) != 0;
  return BoundKernel{.run_value = concat, .state = std::move(state)};
}

}  // namespace

void add_sequence_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("SequenceConstruct", bind_plain<construct>);
  add("SequenceEmpty", bind_empty);
  add("SequenceInsert", bind_plain<insert>);
  add("SequenceErase", bind_plain<erase>);
  add("SequenceAt", bind_plain<at>);
  add("SequenceLength", bind_plain<length>);
  add("SplitToSequence", bind_split);
  add("ConcatFromSequence", bind_concat);
  add("Optional", bind_plain<make_optional>);
  add("OptionalGetElement", bind_plain<get_element>);
  add("OptionalHasElement", bind_plain<has_element>);
}

}  // namespace eddy
