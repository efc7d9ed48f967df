#include "ops/schema/movement/indexing_batch.h"

#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

bool has_samples(const BatchContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (context.is_along(i)) return true;
  }
  return false;
}

// Each of the inputs has its samples along the same axis: an entry of one sample meets only entries
// of this sample.
Status expect_side_by_side(const BatchContext& context, size_t num_inputs) {
  for (size_t i = 0; i < num_inputs; ++i) {
    if (context.is_along(i) && context.axis(i) == context.axis(0) &&
        !context.input(i).each.differs(context.input(0).each)) {
      continue;
    }
    return unsupported("needs the samples of inputs 0 and " + std::to_string(i == 0 ? 1 : i) +
                       " along one axis");
  }
  return Status::ok();
}

// The attribute's axis is another than the samples'.
Status expect_other_axis(const BatchContext& context, int64_t given, const char* does) {
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(given, context.rank(0)));
  return axis == context.axis(0) ? crosses_samples(does, axis) : Status::ok();
}

Status batch_elements(BatchContext& context, size_t num_inputs, const char* does) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!has_samples(context)) return Status::ok();
  EDDY_RETURN_IF_ERROR(expect_side_by_side(context, num_inputs));
  EDDY_RETURN_IF_ERROR(expect_other_axis(context, context.attributes().get_int("axis", 0), does));
  context.set_output(0, context.input(0));
  return Status::ok();
}

}  // namespace

Status batch_gather_elements(BatchContext& context) {
  return batch_elements(context, 2, "picks entries of");
}

Status batch_scatter_elements(BatchContext& context) {
  return batch_elements(context, 3, "writes entries of");
}

// Tuples of indices: into each sample's own data, or into what is the same for all.
Status batch_gather_nd(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!has_samples(context)) return Status::ok();
  const int64_t num_batch = context.attributes().get_int("batch_dims", 0);
  const bool picks_own = context.is_along(0) && context.axis(0) < num_batch;
  const bool picks_shared = !context.is_along(0) && num_batch == 0;
  if (picks_own) EDDY_RETURN_IF_ERROR(expect_side_by_side(context, 2));
  if ((!picks_own && !picks_shared) || context.axis(1) >= context.rank(1) - 1) {
    return unsupported("picks by tuples that may lead to other samples");
  }
  context.set_output(0, context.input(1));
  return Status::ok();
}

// Indices lead into the axes of data from the first on.
Status batch_scatter_nd(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!has_samples(context)) return Status::ok();
  return unsupported("writes by tuples that may lead to other samples");
}

Status batch_reverse_sequence(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!has_samples(context)) return Status::ok();
  if (!context.is_along(0))
    return unsupported("has lengths that differ among samples, of one data");
  const int64_t batch = context.attributes().get_int("batch_axis", 1);
  const bool is_batch = context.axis(0) == batch;
  if (is_batch != context.is_along(1)) {
    return unsupported("needs the lengths of each sample along axis " + std::to_string(batch));
  }
  if (context.axis(0) == context.attributes().get_int("time_axis", 0)) {
    return crosses_samples("reverses", context.axis(0));
  }
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status batch_top_k(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_RETURN_IF_ERROR(
      expect_other_axis(context, context.attributes().get_int("axis", -1), "orders"));
  context.set_outputs(context.input(0));
  return Status::ok();
}

Status batch_cum_sum(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  const TensorView* const view = context.types().value_or_null(1);
  if (view == nullptr) return unsupported("adds up along an axis that is not known");
  int64_t axis = 0;
  EDDY_RETURN_IF_ERROR(read_int(*view, "axis", axis));
  EDDY_RETURN_IF_ERROR(expect_other_axis(context, axis, "adds up along"));
  context.set_output(0, context.input(0));
  return Status::ok();
}

Status batch_compress(BatchContext& context) {
  if (!context.attributes().has("axis")) return batch_never(context);
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_RETURN_IF_ERROR(
      expect_other_axis(context, context.attributes().get_int("axis", 0), "picks entries of"));
  context.set_output(0, context.input(0));
  return Status::ok();
}

}  // namespace eddy
