#include <algorithm>
#include <string>

#include "ops/schema/movement/batch.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// The product of dimensions [first, last) of input 0; of the samples' axis: what one sample has.
Extent product_of(const BatchContext& context, int first, int last) {
  Extent product = Extent::number(1);
  for (int d = first; d < last; ++d) {
    const bool is_samples = context.is_along(0) && d == context.axis(0);
    product = product * (is_samples ? context.input(0).each : Extent::dim(context.dims(0)[d]));
  }
  return product;
}

// What a Reshape makes, 0 resolved; -1 stands as that number.
Status read_target(const BatchContext& context, std::vector<Count>& target) {
  const auto counts = counts_of(context, 1);
  if (!counts) return unsupported("takes a shape whose dependence on samples is not known");
  target = *counts;
  if (context.attributes().get_int("allowzero", 0) != 0) return Status::ok();
  for (size_t i = 0; i < target.size(); ++i) {
    if (!target[i].each.is_number(0)) continue;
    const int axis = static_cast<int>(i);
    if (axis >= context.rank(0)) return unsupported("copies an axis that is not there");
    target[i] = {context.axis(0) == axis, product_of(context, axis, axis + 1)};
  }
  return Status::ok();
}

// The size that -1 stands for, of one sample: where the other sizes divide what a sample has.
Extent inferred(const BatchContext& context, std::span<const Count> target) {
  Extent others = Extent::number(1);
  for (const Count& size : target) {
    if (size.is_of_samples) return {};
    if (!size.each.is_number(-1)) others = others * size.each;
  }
  return others.divided_into(product_of(context, 0, context.rank(0)));
}

Status moves_apart() {
  return unsupported(
      "is not surely to keep the entries of each sample together; give the axis of "
      "the samples as 0 in the shape, or by its symbol");
}

}  // namespace

Status batch_identity(BatchContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}

// Entries lie in the order prefix, samples, rest. What keeps the prefix and gives the next axis a
// multiple of the samples' number keeps each sample's entries together, in order.
Status batch_reshape(BatchContext& context) {
  if (!context.is_along(0)) {
    EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
    const auto shape = counts_of(context, 1);
    const int rank = shape ? static_cast<int>(shape->size()) : kMaxRank;
    return context.input(0).counts.empty() ? Status::ok()
                                           : set_counts(context, context.input(0).counts, rank);
  }
  std::vector<Count> target;
  EDDY_RETURN_IF_ERROR(read_target(context, target));
  const auto num_of_samples =
      std::ranges::count_if(target, [](const Count& size) { return size.is_of_samples; });
  if (num_of_samples > 1) return unsupported("makes two axes whose sizes count samples");
  const Extent before = product_of(context, 0, context.axis(0));
  Extent prefix = Extent::number(1);
  for (size_t i = 0; i < target.size(); ++i) {
    const bool is_inferred = target[i].each.is_number(-1);
    const Extent each = is_inferred ? inferred(context, target) : target[i].each;
    const bool is_place = target[i].is_of_samples || (is_inferred && each.is_known());
    if (is_place && prefix.equals(before)) {
      context.set_output(0, Batched::along(static_cast<int>(i), each));
      return Status::ok();
    }
    if (target[i].is_of_samples) return moves_apart();
    prefix = is_inferred ? Extent() : prefix * each;
  }
  return moves_apart();
}

Status batch_squeeze(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
  if (!context.input(0).counts.empty()) return set_counts(context, context.input(0).counts, 1);
  if (!context.is_along(0)) return Status::ok();
  ListArgument axes;
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 1, "axes", axes));
  if (axes.state != ListState::kKnown) return unsupported("drops axes that are not known");
  EDDY_ASSIGN_OR_RETURN(const uint32_t mask, axes_mask(axes.values.span(), context.rank(0)));
  int axis = context.axis(0);
  if ((mask >> axis) & 1u) return crosses_samples("drops", axis);
  for (int d = context.axis(0) - 1; d >= 0; --d) axis -= (mask >> d) & 1u ? 1 : 0;
  context.set_output(0, Batched::along(axis, context.input(0).each));
  return Status::ok();
}

Status batch_unsqueeze(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
  ListArgument axes;
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 1, "axes", axes));
  if (axes.state != ListState::kKnown) return unsupported("adds axes that are not known");
  const int rank = context.is_ranked(0) ? context.rank(0) + axes.values.size() : kMaxRank;
  if (!context.input(0).counts.empty()) return set_counts(context, context.input(0).counts, rank);
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const uint32_t mask, axes_mask(axes.values.span(), rank));
  int left = context.axis(0);
  int axis = 0;
  for (; ((mask >> axis) & 1u) != 0 || left > 0; ++axis) left -= (mask >> axis) & 1u ? 0 : 1;
  context.set_output(0, Batched::along(axis, context.input(0).each));
  return Status::ok();
}

Status batch_flatten(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!context.is_along(0)) return Status::ok();
  const int rank = context.rank(0), samples = context.axis(0);
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis_inclusive(context.attributes().get_int("axis", 1), rank));
  const bool is_row = samples < axis;
  const Extent before = product_of(context, is_row ? 0 : axis, samples);
  if (!before.is_number(1)) return moves_apart();
  const Extent each = product_of(context, samples, is_row ? axis : rank);
  context.set_output(0, Batched::along(is_row ? 0 : 1, each));
  return Status::ok();
}

// In training its mask is random.
Status batch_dropout(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (context.has_input(2)) {
    const TensorView* const trains = context.types().value_or_null(2);
    if (trains == nullptr || trains->as<bool>()[0]) {
      return unsupported("draws one mask for all samples (training_mode)");
    }
  }
  if (context.is_along(0)) context.set_outputs(context.input(0));
  return Status::ok();
}

Status batch_shape(BatchContext& context) {
  if (!context.is_ranked(0)) {
    return context.is_along(0) || context.is_counts(0) ? expect_tensors(context) : Status::ok();
  }
  const int64_t rank = context.rank(0);
  const SliceRange range = resolve_slice_range(rank, context.attributes().get_int("start", 0),
                                               context.attributes().get_int("end", rank), 1);
  std::vector<Count> counts;
  for (int64_t i = 0; i < range.count; ++i) {
    const int axis = static_cast<int>(range.start + i);
    counts.push_back(
        {context.is_along(0) && context.axis(0) == axis, product_of(context, axis, axis + 1)});
  }
  return set_counts(context, std::move(counts), 1);
}

Status batch_size(BatchContext& context) {
  if (!context.is_along(0)) return Status::ok();
  return set_counts(context, {{true, product_of(context, 0, context.rank(0))}}, 0);
}

}  // namespace eddy
