// NonZero, Compress and Unique: the shape of the result is in the data, so they make their own.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/reference/movement/indexing_parts.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/copy_elements.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

struct SelectState : KernelState {
  bool has_axis = false;
  int64_t axis = 0;
  bool sorted = true;
  size_t num_outputs = 1;
};

const SelectState& state_of(const ValueContext& context) {
  return static_cast<const SelectState&>(*context.state());
}

bool is_nonzero(const TensorView& view, int64_t i) {
  if (view.element == ElementType::kString) return !view.as<std::string>()[i].empty();
  if (view.element == ElementType::kBool) return view.as<bool>()[i];
  const Number number = load_number(view, i);
  return number.kind == Number::Kind::kFloat ? number.float_value != 0.0
                                             : number.unsigned_value != 0;
}

// A scalar has no coordinates: its result is [0, 1] or [0, 0].
Status non_zero(ValueContext& context) {
  const TensorView in = context.tensor(0);
  const int64_t count = in.count();
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += is_nonzero(in, i) ? 1 : 0;
  EDDY_ASSIGN_OR_RETURN(const TensorView out,
                        context.allocate(0, ElementType::kInt64, {in.rank, found}));
  auto* rows = out.mutable_as<int64_t>();
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_nonzero(in, i)) continue;
    int64_t rest = i;
    for (int d = in.rank - 1; d >= 0; --d) {
      rows[d * found + next] = rest % in.dims[d];
      rest /= in.dims[d];
    }
    ++next;
  }
  return Status::ok();
}

Result<BoundKernel> bind_non_zero(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (!kNumberTypes.contains(element) && element != ElementType::kString) {
    return unsupported("NonZero of " + std::string(element_type_name(element)) +
                       " is not supported");
  }
  return BoundKernel{.run_value = non_zero, .state = nullptr};
}

// A tensor's slices along an axis; without one, its elements.
struct Slices : AxisSplit {
  static Result<Slices> make(const TensorView& view, const SelectState& state) {
    if (!state.has_axis) return Slices{split_flattened(view.shape(), 0), -1};
    EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(state.axis, view.rank));
    return Slices{split_at_axis(view.shape(), axis), axis};
  }
  // The shape with another number of slices.
  Dims with_count(const TensorView& view, int64_t new_count) const {
    if (axis < 0) return {new_count};
    Dims dims(view.shape());
    dims[axis] = new_count;
    return dims;
  }
  int axis;
};

// Output 0: the slices of input 0 named by `chosen`, in that order.
Status take(ValueContext& context, const Slices& slices, const int64_t* chosen, int64_t count) {
  const TensorView in = context.tensor(0);
  EDDY_ASSIGN_OR_RETURN(const TensorView out,
                        context.allocate(0, in.element, slices.with_count(in, count)));
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (int64_t j = 0; j < count; ++j) {
      copy_elements(in, (o * slices.count + chosen[j]) * slices.inner, out,
                    (o * count + j) * slices.inner, slices.inner);
    }
  }
  return Status::ok();
}

Result<int64_t*> scratch_for(ValueContext& context, int64_t count) {
  size_t bytes = 0;
  void* const memory =
      __builtin_mul_overflow(static_cast<size_t>(count) + 1, sizeof(int64_t), &bytes)
          ? nullptr
          : context.scratch().reserve(bytes);
  if (memory == nullptr) return resource_exhausted("out of scratch memory");
  return static_cast<int64_t*>(memory);
}

Status compress(ValueContext& context) {
  const TensorView condition = context.tensor(1);
  EDDY_ASSIGN_OR_RETURN(const Slices slices, Slices::make(context.tensor(0), state_of(context)));
  const int64_t length = condition.count();
  if (condition.rank != 1) return invalid_argument("condition must have one dimension");
  EDDY_ASSIGN_OR_RETURN(int64_t * chosen, scratch_for(context, std::min(length, slices.count)));
  int64_t count = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (!condition.as<bool>()[i]) continue;
    if (i >= slices.count) {
      return invalid_argument("condition chooses element " + std::to_string(i) + " of " +
                              std::to_string(slices.count));
    }
    chosen[count++] = i;
  }
  return take(context, slices, chosen, count);
}

// ---- Unique ----

// -1, 0 or 1; NaN comes last and equals itself.
int compare_numbers(const Number& a, const Number& b) {
  const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a.kind == Number::Kind::kSigned) return order(a.signed_value, b.signed_value);
  if (a.kind == Number::Kind::kUnsigned) return order(a.unsigned_value, b.unsigned_value);
  const bool a_nan = std::isnan(a.float_value), b_nan = std::isnan(b.float_value);
  if (a_nan || b_nan) return order(a_nan, b_nan);
  return order(a.float_value, b.float_value);
}

class SliceOrder {
 public:
  SliceOrder(const TensorView& view, const Slices& slices) : view_(view), slices_(slices) {}
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < slices_.outer; ++o) {
      for (int64_t i = 0; i < slices_.inner; ++i) {
        const int order = compare_elements((o * slices_.count + a) * slices_.inner + i,
                                           (o * slices_.count + b) * slices_.inner + i);
        if (order != 0) return order;
      }
    }
    return 0;
  }

 private:
  int compare_elements(int64_t a, int64_t b) const {
    if (view_.element == ElementType::kString) {
      const int order = view_.as<std::string>()[a].compare(view_.as<std::string>()[b]);
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    return compare_numbers(load_number(view_, a), load_number(view_, b));
  }
  const TensorView& view_;
  const Slices& slices_;
};

Status write_output(ValueContext& context, size_t o, const int64_t* values, int64_t count) {
  if (o >= state_of(context).num_outputs) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorView out, context.allocate(o, ElementType::kInt64, {count}));
  std::copy_n(values, count, out.mutable_as<int64_t>());
  return Status::ok();
}

// The distinct slices of an axis, in ascending order or in that of appearance; arrays of `size`.
struct Distinct {
  explicit Distinct(int64_t* memory, int64_t axis_size)
      : size(axis_size),
        order(memory),
        first(memory + size),
        inverse(memory + 2 * size),
        counts(memory + 3 * size),
        spare(memory + 4 * size) {}

  void number_by_value(const SliceOrder& slices) {
    std::iota(order, order + size, int64_t{0});
    std::sort(order, order + size, [&](int64_t a, int64_t b) {
      const int relation = slices.compare(a, b);
      return relation != 0 ? relation < 0 : a < b;
    });
    for (int64_t i = 0; i < size; ++i) {
      if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
        first[count] = order[i];
        counts[count++] = 0;
      }
      inverse[order[i]] = count - 1;
      ++counts[count - 1];
    }
  }

  // After number_by_value.
  void renumber_by_appearance() {
    std::iota(order, order + count, int64_t{0});
    std::sort(order, order + count, [&](int64_t a, int64_t b) { return first[a] < first[b]; });
    permute(first);
    permute(counts);
    for (int64_t i = 0; i < count; ++i) spare[order[i]] = i;
    for (int64_t i = 0; i < size; ++i) inverse[i] = spare[inverse[i]];
  }

  int64_t size;
  int64_t count = 0;
  int64_t* order;    // scratch: slices with equal ones side by side
  int64_t* first;    // of each distinct slice, its first place
  int64_t* inverse;  // of each slice, the number of its distinct slice
  int64_t* counts;   // of each distinct slice, how often it appears

 private:
  void permute(int64_t* values) {
    for (int64_t i = 0; i < count; ++i) spare[i] = values[order[i]];
    std::copy_n(spare, count, values);
  }
  int64_t* spare;
};

Status unique(ValueContext& context) {
  const TensorView in = context.tensor(0);
  EDDY_ASSIGN_OR_RETURN(const Slices slices, Slices::make(in, state_of(context)));
  EDDY_ASSIGN_OR_RETURN(int64_t * memory, scratch_for(context, 5 * slices.count));
  Distinct distinct(memory, slices.count);
  distinct.number_by_value(SliceOrder(in, slices));
  if (!state_of(context).sorted) distinct.renumber_by_appearance();
  EDDY_RETURN_IF_ERROR(take(context, slices, distinct.first, distinct.count));
  EDDY_RETURN_IF_ERROR(write_output(context, 1, distinct.first, distinct.count));
  EDDY_RETURN_IF_ERROR(write_output(context, 2, distinct.inverse, slices.count));
  return write_output(context, 3, distinct.counts, distinct.count);
}

template <ValueKernelFunction function>
Result<BoundKernel> bind_select(const KernelInit& init) {
  auto state = std::make_unique<SelectState>();
  state->has_axis = init.attributes.has("axis");
  state->axis = init.attributes.get_int("axis", 0);
  state->sorted = init.attributes.get_int("sorted", 1) != 0;
  state->num_outputs = init.outputs.size();
  return BoundKernel{.run_value = function, .state = std::move(state)};
}

Result<BoundKernel> bind_unique(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  if (!kNumberTypes.contains(element) && element != ElementType::kString) {
    return unsupported("Unique of " + std::string(element_type_name(element)) +
                       " is not supported");
  }
  return bind_select<unique>(init);
}

}  // namespace

void add_indexing_select_reference(KernelRegistry& registry) {
  registry.add({.op = "NonZero", .bind = bind_non_zero, .provider = "reference"});
  registry.add({.op = "Compress", .bind = bind_select<compress>, .provider = "reference"});
  registry.add({.op = "Unique", .bind = bind_unique, .provider = "reference"});
}

}  // namespace eddy
