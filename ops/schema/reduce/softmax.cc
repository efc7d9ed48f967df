// Softmax, LogSoftmax and Hardmax: shape of the input. Before opset 13 they flatten to two
// dimensions at `axis` (1 by default); since then they work along `axis` alone (-1 by default).
#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

Status infer_along_axis(InferContext& context) {
  const int64_t axis = context.attributes().get_int("axis", -1);
  const TensorType& input = context.input(0).tensor;
  if (input.is_ranked && (input.dims.rank() > 0 || context.attributes().has("axis"))) {
    EDDY_RETURN_IF_ERROR(normalize_axis(axis, input.dims.rank()).take_status());
  }
  return infer_same_as_input(context);
}

Status infer_flattened(InferContext& context) {
  const int64_t axis = context.attributes().get_int("axis", 1);
  const TensorType& input = context.input(0).tensor;
  if (input.is_ranked) {
    EDDY_RETURN_IF_ERROR(normalize_axis_inclusive(axis, input.dims.rank()).take_status());
  }
  return infer_same_as_input(context);
}

Status batch_along_axis(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", -1), context.rank(0)));
  if (axis == context.axis(0)) return crosses_samples("normalizes", axis);
  return batch_entries(context);
}

Status batch_flattened(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(
      const int first,
      normalize_axis_inclusive(context.attributes().get_int("axis", 1), context.rank(0)));
  if (context.axis(0) >= first) return crosses_samples("normalizes", context.axis(0));
  return batch_entries(context);
}

OpDef softmax(std::string name, int since, InferFunction infer, BatchRule batch) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = since;
  def.inputs = {in("input", kFloatTypes)};
  def.attributes = {attribute("axis", AttributeKind::kInt)};
  def.infer = std::move(infer);
  def.in_place_inputs = 1;
  def.batch = batch;
  return def;
}

}  // namespace

Status add_softmax_schemas(OpTable& table) {
  std::vector<OpDef> defs;
  for (const char* name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    defs.push_back(softmax(name, 1, infer_flattened, batch_flattened));
    defs.push_back(softmax(name, 13, infer_along_axis, batch_along_axis));
  }
  return add_schemas(table, std::move(defs));
}

}  // namespace eddy
