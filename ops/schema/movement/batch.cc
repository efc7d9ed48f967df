#include "ops/schema/movement/batch.h"

#include <algorithm>

#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// Lists of sizes are joined.
Status concat_counts(BatchContext& context) {
  std::vector<Count> joined;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const auto counts = counts_of(context, i);
    if (!counts || !context.is_ranked(i) || context.rank(i) != 1) return expect_tensors(context);
    joined.insert(joined.end(), counts->begin(), counts->end());
  }
  return set_counts(context, std::move(joined), 1);
}

bool has_samples(const BatchContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (context.is_along(i) || context.is_counts(i)) return true;
  }
  return false;
}

}  // namespace

Status batch_concat(BatchContext& context) {
  size_t first = 0;
  while (first < context.num_inputs() && !context.is_along(first)) ++first;
  if (first == context.num_inputs()) return concat_counts(context);
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  EDDY_ASSIGN_OR_RETURN(
      const int axis, normalize_axis(context.attributes().get_int("axis", 1), context.rank(first)));
  const int samples = context.axis(first);
  if (axis == samples) return crosses_samples("joins along", axis);
  Extent each = context.input(first).each;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.is_along(i)) {
      return unsupported("joins input " + std::to_string(i) +
                         ", which is the same for all samples, to what differs among them");
    }
    if (context.axis(i) != samples || each.differs(context.input(i).each)) {
      return unsupported("joins inputs whose samples lie along different axes");
    }
    if (!each.is_known()) each = context.input(i).each;
  }
  context.set_output(0, Batched::along(samples, each));
  return Status::ok();
}

Status batch_split(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), context.rank(0)));
  if (axis == context.axis(0)) return crosses_samples("splits", axis);
  context.set_outputs(context.input(0));
  return Status::ok();
}

namespace {

struct SliceLists {
  ListArgument starts, ends, axes, steps;
  bool is_known() const {
    const auto is_open = [](const ListArgument& list) { return list.state == ListState::kUnknown; };
    return !is_open(starts) && !is_open(ends) && !is_open(axes) && !is_open(steps) &&
           starts.length == ends.length;
  }
};

Status read_lists(const BatchContext& context, SliceLists& lists) {
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 1, "starts", lists.starts));
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 2, "ends", lists.ends));
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 3, "axes", lists.axes));
  return list_argument(context.types(), 4, "steps", lists.steps);
}

Status slice_counts(BatchContext& context, const SliceLists& lists) {
  const std::vector<Count>& counts = context.input(0).counts;
  if (!lists.is_known() || lists.starts.length != 1) return expect_tensors(context);
  const int64_t step = lists.steps.state == ListState::kKnown ? lists.steps.values[0] : 1;
  if (step == 0) return expect_tensors(context);
  const SliceRange range = resolve_slice_range(static_cast<int64_t>(counts.size()),
                                               lists.starts.values[0], lists.ends.values[0], step);
  std::vector<Count> part;
  for (int64_t i = 0; i < range.count; ++i) {
    part.push_back(counts[static_cast<size_t>(range.start + i * range.step)]);
  }
  return set_counts(context, std::move(part), 1);
}

// Whether entry i of the lists takes its axis whole, whatever its size.
bool is_whole(const SliceLists& lists, int i) {
  if (lists.ends.length != lists.starts.length) return false;
  return lists.starts.state == ListState::kKnown && lists.starts.values[i] == 0 &&
         lists.ends.state == ListState::kKnown && lists.ends.values[i] >= INT32_MAX &&
         (lists.steps.state == ListState::kAbsent ||
          (lists.steps.state == ListState::kKnown && i < lists.steps.length &&
           lists.steps.values[i] == 1));
}

}  // namespace

Status batch_slice(BatchContext& context) {
  SliceLists lists;
  EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
  EDDY_RETURN_IF_ERROR(read_lists(context, lists));
  if (!context.input(0).counts.empty()) return slice_counts(context, lists);
  if (!context.is_along(0)) return Status::ok();
  const bool has_axes = lists.axes.state != ListState::kAbsent;
  const bool is_known = lists.axes.state != ListState::kUnknown && lists.starts.length >= 0;
  if (!is_known || (has_axes && lists.axes.length != lists.starts.length)) {
    return unsupported("slices axes that are not known");
  }
  for (int i = 0; i < lists.starts.length; ++i) {
    int axis = i;
    if (has_axes) {
      EDDY_ASSIGN_OR_RETURN(axis, normalize_axis(lists.axes.values[i], context.rank(0)));
    }
    if (axis != context.axis(0) || is_whole(lists, i)) continue;
    return crosses_samples("takes a part of", axis);
  }
  context.set_output(0, context.input(0));
  return Status::ok();
}

namespace {

Status gather_counts(BatchContext& context) {
  const std::vector<Count>& counts = context.input(0).counts;
  const TensorView* const indices = context.types().value_or_null(1);
  if (indices == nullptr || indices->rank > 1 || context.rank(0) != 1) {
    return expect_tensors(context);
  }
  std::vector<Count> picked;
  const auto size = static_cast<int64_t>(counts.size());
  for (int64_t i = 0; i < indices->count(); ++i) {
    const int64_t index = index_at(*indices, i);
    if (index < -size || index >= size) return index_out_of_range(index, 0, size);
    picked.push_back(counts[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  return set_counts(context, std::move(picked), indices->rank);
}

}  // namespace

Status batch_gather(BatchContext& context) {
  if (!context.input(0).counts.empty() && !context.is_along(1)) return gather_counts(context);
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!has_samples(context)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), context.rank(0)));
  if (context.is_along(0) && context.is_along(1)) {
    return unsupported("looks up entries of all samples by indices of each");
  }
  if (context.is_along(1)) {
    context.set_output(0, Batched::along(axis + context.axis(1), context.input(1).each));
    return Status::ok();
  }
  const int samples = context.axis(0);
  if (axis == samples) return crosses_samples("picks entries of", axis);
  const int shift = samples > axis ? context.rank(1) - 1 : 0;
  context.set_output(0, Batched::along(samples + shift, context.input(0).each));
  return Status::ok();
}

Status batch_transpose(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!context.is_along(0)) return Status::ok();
  IntList perm;
  EDDY_RETURN_IF_ERROR(
      resolve_permutation(context.attributes().get_ints("perm"), context.rank(0), perm));
  const auto place = std::ranges::find(perm.span(), context.axis(0));
  const int axis = static_cast<int>(place - perm.span().begin());
  context.set_output(0, Batched::along(axis, context.input(0).each));
  return Status::ok();
}

Status batch_pad(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  ListArgument pads, axes;
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 1, "pads", pads));
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 3, "axes", axes));
  if (pads.state != ListState::kKnown || axes.state == ListState::kUnknown) {
    return unsupported("pads by amounts that are not known");
  }
  PadAmounts amounts;
  EDDY_RETURN_IF_ERROR(resolve_pads(pads.values, axes.values, axes.state == ListState::kKnown,
                                    context.rank(0), amounts));
  const auto axis = static_cast<size_t>(context.axis(0));
  if (amounts.before[axis] != 0 || amounts.after[axis] != 0) {
    return crosses_samples("pads", context.axis(0));
  }
  context.set_output(0, context.input(0));
  return Status::ok();
}

namespace {

// The shape's entries, which may count samples; input 0 is a tensor.
Status read_sizes(const BatchContext& context, size_t i, std::vector<Count>& sizes) {
  if (context.is_counts(0)) return expect_tensors(context);
  if (!context.is_ranked(0)) {
    return unsupported("reads input 0, whose number of axes is not known");
  }
  const auto counts = counts_of(context, i);
  if (!counts) return unsupported("takes a shape whose dependence on samples is not known");
  sizes = *counts;
  return Status::ok();
}

int num_of_samples(std::span<const Count> sizes) {
  return static_cast<int>(
      std::ranges::count_if(sizes, [](const Count& size) { return size.is_of_samples; }));
}

Status two_sizes() { return unsupported("makes two axes whose sizes count samples"); }

}  // namespace

Status batch_expand(BatchContext& context) {
  if (!has_samples(context)) return Status::ok();
  std::vector<Count> sizes;
  EDDY_RETURN_IF_ERROR(read_sizes(context, 1, sizes));
  const int length = static_cast<int>(sizes.size());
  const int rank = std::max(length, context.rank(0));
  if (num_of_samples(sizes) > 1) return two_sizes();
  const int shift = rank - context.rank(0);
  if (!context.is_along(0)) {
    const auto place = std::ranges::find_if(sizes, [](const Count& s) { return s.is_of_samples; });
    const int axis = static_cast<int>(place - sizes.begin()) + rank - length;
    if (axis >= shift && context.dims(0)[axis - shift] != 1) {
      return unsupported("stretches an axis that is not surely 1 to the number of samples");
    }
    context.set_output(0, Batched::along(axis, place->each));
    return Status::ok();
  }
  const int axis = context.axis(0) + shift;
  for (int i = 0; i < length; ++i) {
    const Count& size = sizes[static_cast<size_t>(i)];
    const bool is_there = i + rank - length == axis;
    const bool fits = is_there
                          ? size.each.is_number(1) ||
                                (size.is_of_samples && !size.each.differs(context.input(0).each))
                          : !size.is_of_samples;
    if (!fits) return crosses_samples("stretches, by another size or beside it,", axis);
  }
  context.set_output(0, Batched::along(axis, context.input(0).each));
  return Status::ok();
}

Status batch_tile(BatchContext& context) {
  if (!has_samples(context)) return Status::ok();
  std::vector<Count> repeats;
  EDDY_RETURN_IF_ERROR(read_sizes(context, 1, repeats));
  if (static_cast<int>(repeats.size()) != context.rank(0)) {
    return unsupported("repeats an unknown number of axes");
  }
  if (num_of_samples(repeats) > (context.is_along(0) ? 0 : 1)) return two_sizes();
  if (context.is_along(0)) {
    if (!repeats[static_cast<size_t>(context.axis(0))].each.is_number(1)) {
      return crosses_samples("repeats", context.axis(0));
    }
    context.set_output(0, context.input(0));
    return Status::ok();
  }
  for (int axis = 0; axis < context.rank(0); ++axis) {
    const Count& size = repeats[static_cast<size_t>(axis)];
    if (!size.is_of_samples) continue;
    context.set_output(0, Batched::along(axis, Extent::dim(context.dims(0)[axis]) * size.each));
  }
  return Status::ok();
}

Status batch_trilu(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  if (context.axis(0) >= context.rank(0) - 2) {
    return crosses_samples("takes a triangle of", context.axis(0));
  }
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status batch_constant_of_shape(BatchContext& context) {
  if (!has_samples(context)) return Status::ok();
  const auto sizes = counts_of(context, 0);
  if (!sizes) return unsupported("takes a shape that differs among samples");
  if (num_of_samples(*sizes) > 1) return two_sizes();
  for (size_t i = 0; i < sizes->size(); ++i) {
    if (!(*sizes)[i].is_of_samples) continue;
    context.set_output(0, Batched::along(static_cast<int>(i), (*sizes)[i].each));
  }
  return Status::ok();
}

Status batch_one_hot(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(context.attributes().get_int("axis", -1),
                                                       context.rank(0) + 1));
  const int samples = context.axis(0);
  context.set_output(0,
                     Batched::along(samples < axis ? samples : samples + 1, context.input(0).each));
  return Status::ok();
}

}  // namespace eddy
