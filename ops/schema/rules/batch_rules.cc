#include "ops/schema/rules/batch_rules.h"

#include <algorithm>

#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

// Where the samples lie, counted from the last axis of the result, and how many entries each has.
struct Place {
  int from_end = 0;
  Extent each;
  size_t input = 0;
};

Status join(const BatchContext& context, size_t i, std::optional<Place>& place) {
  const Place found = {context.rank(i) - context.axis(i), context.input(i).each, i};
  if (!place) {
    place = found;
    return Status::ok();
  }
  if (place->from_end != found.from_end) {
    return unsupported("aligns the samples of inputs " + text(static_cast<int64_t>(place->input)) +
                       " and " + text(static_cast<int64_t>(i)) + " with different axes");
  }
  if (place->each.differs(found.each)) {
    return unsupported("aligns inputs of " + text(place->each.number()) + " and " +
                       text(found.each.number()) + " entries for each sample");
  }
  if (!place->each.is_known()) place->each = found.each;
  return Status::ok();
}

}  // namespace

Status crosses_samples(const std::string& what, int axis) {
  return unsupported(what + " axis " + text(axis) + ", along which the samples lie");
}

Status expect_shared(const BatchContext& context, size_t first) {
  for (size_t i = first; i < context.num_inputs(); ++i) {
    if (!context.is_along(i) && !context.is_counts(i)) continue;
    return unsupported("takes input " + text(static_cast<int64_t>(i)) +
                       " once for all samples, but it " +
                       (context.is_counts(i) ? "counts them" : "differs among them"));
  }
  return Status::ok();
}

Status expect_tensors(const BatchContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    if (context.is_counts(i)) {
      return unsupported("computes with the number of samples in a way that is not followed");
    }
    if (!context.is_ranked(i)) {
      return unsupported("reads input " + text(static_cast<int64_t>(i)) +
                         ", whose number of axes is not known");
    }
  }
  return Status::ok();
}

Status expect_first_alone(const BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
  return expect_tensors(context);
}

std::optional<std::vector<Count>> counts_of(const BatchContext& context, size_t i) {
  if (!context.has_input(i) || context.is_along(i)) return std::nullopt;
  if (!context.input(i).counts.empty()) return context.input(i).counts;
  const ValueType& type = context.types().input(i);
  if (!type.is_tensor() || !is_index_type(type.tensor.element)) return std::nullopt;
  if (!type.is_static_tensor() || type.tensor.dims.rank() > 1) return std::nullopt;
  std::vector<Count> counts(static_cast<size_t>(type.tensor.dims.count().value_or(0)));
  if (const TensorView* view = context.types().value_or_null(i)) {
    for (size_t k = 0; k < counts.size(); ++k) {
      counts[k].each = Extent::number(index_at(*view, static_cast<int64_t>(k)));
    }
  }
  return counts;
}

Status set_counts(BatchContext& context, std::vector<Count> counts, int rank) {
  Batched batched = Batched::of_counts(std::move(counts));
  if (rank > 1) {
    if (batched.is_counts()) {
      return unsupported("makes a matrix of sizes that count samples, which is not followed");
    }
    batched = Batched::shared();
  }
  context.set_output(0, std::move(batched));
  return Status::ok();
}

Status batch_elementwise(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  std::optional<Place> place;
  int rank = 0;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    rank = std::max(rank, context.rank(i));
    if (context.is_along(i)) EDDY_RETURN_IF_ERROR(join(context, i, place));
  }
  if (!place) return Status::ok();
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i) || context.is_along(i)) continue;
    const int axis = context.rank(i) - place->from_end;
    if (axis < 0 || context.dims(i)[axis] == 1) continue;
    return unsupported("aligns axis " + text(axis) + " of input " + text(static_cast<int64_t>(i)) +
                       ", " + to_string(context.dims(i)) +
                       " and the same for all samples, with the samples");
  }
  context.set_outputs(Batched::along(rank - place->from_end, place->each));
  return Status::ok();
}

Status batch_entries(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_shared(context, 1));
  if (context.is_counts(0)) EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (context.is_along(0)) context.set_outputs(context.input(0));
  return Status::ok();
}

Status batch_images(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  if (context.axis(0) != 0)
    return crosses_samples("takes axis 0 for samples, and mixes", context.axis(0));
  context.set_outputs(context.input(0));
  return Status::ok();
}

Status batch_rows(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  if (context.axis(0) == context.rank(0) - 1) return crosses_samples("sums over", context.axis(0));
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status batch_never(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  return unsupported("makes results whose number or values depend on all samples together");
}

}  // namespace eddy
