#include <climits>

#include "ops/schema/families.h"
#include "ops/schema/movement/batch.h"
#include "ops/schema/movement/movement_rules.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr InputFlag kOptional = InputFlag::kOptional;
constexpr InputFlag kHost = InputFlag::kHostValue;
constexpr InputFlag kOptionalHost = InputFlag::kOptional | InputFlag::kHostValue;

constexpr TypeSet kInt64Only = {ElementType::kInt64};
constexpr TypeSet kIndexTypes = {ElementType::kInt32, ElementType::kInt64};
constexpr TypeSet kHalfTypes = {ElementType::kFloat16, ElementType::kBfloat16};
constexpr TypeSet kRangeTypes = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt16,
                                 ElementType::kInt32, ElementType::kInt64};

FormalAttribute an_int(const char* name, bool is_required = false) {
  return attribute(name, AttributeKind::kInt, is_required);
}
FormalAttribute some_ints(const char* name, bool is_required = false) {
  return attribute(name, AttributeKind::kInts, is_required);
}
FormalAttribute a_float(const char* name) { return attribute(name, AttributeKind::kFloat); }
FormalAttribute a_string(const char* name) { return attribute(name, AttributeKind::kString); }
FormalAttribute a_tensor(const char* name) { return attribute(name, AttributeKind::kTensor); }

std::vector<OpDef> joining_and_cutting() {
  return {
      {.name = "Concat",
       .since_version = 4,
       .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
       .attributes = {an_int("axis", true)},
       .infer = infer_concat,
       .may_append = true,
       .batch = batch_concat},
      {.name = "Split",
       .since_version = 2,
       .inputs = {in("input")},
       .max_outputs = INT_MAX,
       .attributes = {an_int("axis"), some_ints("split")},
       .infer = infer_split,
       .batch = batch_split},
      {.name = "Split",
       .since_version = 13,
       .inputs = {in("input"), in("split", kInt64Only, kOptionalHost)},
       .max_outputs = INT_MAX,
       .attributes = {an_int("axis"), since(18, an_int("num_outputs"))},
       .infer = infer_split,
       .batch = batch_split},
      {.name = "Slice",
       .since_version = 1,
       .inputs = {in("data")},
       .attributes = {some_ints("axes"), some_ints("starts", true), some_ints("ends", true)},
       .infer = infer_slice,
       .batch = batch_slice},
      {.name = "Slice",
       .since_version = 10,
       .inputs = {in("data"), in("starts", kIndexTypes, kHost), in("ends", kIndexTypes, kHost),
                  in("axes", kIndexTypes, kOptionalHost), in("steps", kIndexTypes, kOptionalHost)},
       .infer = infer_slice,
       .batch = batch_slice},
      {.name = "Gather",
       .since_version = 1,
       .inputs = {in("data"), in("indices", kIndexTypes)},
       .attributes = {an_int("axis")},
       .infer = infer_gather,
       .batch = batch_gather},
      {.name = "Trilu",
       .since_version = 14,
       .inputs = {in("input"), in("k", kInt64Only, kOptional)},
       .attributes = {flag("upper")},
       .infer = infer_trilu,
       .in_place_inputs = 1,
       .batch = batch_trilu},
  };
}

std::vector<OpDef> arranging() {
  return {
      {.name = "Transpose",
       .since_version = 1,
       .inputs = {in("data")},
       .attributes = {some_ints("perm")},
       .infer = infer_transpose,
       .batch = batch_transpose},
      {.name = "DepthToSpace",
       .since_version = 1,
       .inputs = {in("input")},
       .attributes = {an_int("blocksize", true), since(11, a_string("mode"))},
       .infer = infer_depth_to_space,
       .batch = batch_images},
      {.name = "SpaceToDepth",
       .since_version = 1,
       .inputs = {in("input")},
       .attributes = {an_int("blocksize", true)},
       .infer = infer_space_to_depth,
       .batch = batch_images},
  };
}

std::vector<OpDef> growing() {
  return {
      {.name = "Pad",
       .since_version = 2,
       .inputs = {in("data")},
       .attributes = {a_string("mode"), some_ints("pads", true), a_float("value")},
       .infer = infer_pad,
       .batch = batch_pad},
      {.name = "Pad",
       .since_version = 11,
       .inputs = {in("data"), in("pads", kInt64Only, kHost),
                  in("constant_value", kAllTypes, kOptional)},
       .attributes = {a_string("mode")},
       .infer = infer_pad,
       .batch = batch_pad},
      {.name = "Pad",
       .since_version = 18,
       .inputs = {in("data"), in("pads", kInt64Only, kHost),
                  in("constant_value", kAllTypes, kOptional),
                  in("axes", kIndexTypes, kOptionalHost)},
       .attributes = {a_string("mode")},
       .infer = infer_pad,
       .batch = batch_pad},
      {.name = "Expand",
       .since_version = 8,
       .inputs = {in("input"), in("shape", kInt64Only, kHost)},
       .infer = infer_expand,
       .batch = batch_expand},
      {.name = "Tile",
       .since_version = 6,
       .inputs = {in("input"), in("repeats", kInt64Only, kHost)},
       .infer = infer_tile,
       .batch = batch_tile},
  };
}

std::vector<OpDef> viewing() {
  const OpDef squeeze = {.name = "Squeeze",
                         .since_version = 1,
                         .inputs = {in("data")},
                         .attributes = {some_ints("axes")},
                         .infer = infer_squeeze,
                         .is_view = true,
                         .batch = batch_squeeze};
  const OpDef unsqueeze = {.name = "Unsqueeze",
                           .since_version = 1,
                           .inputs = {in("data")},
                           .attributes = {some_ints("axes", true)},
                           .infer = infer_unsqueeze,
                           .is_view = true,
                           .batch = batch_unsqueeze};
  return {
      {.name = "Identity",
       .since_version = 1,
       .inputs = {in("input")},
       .infer = infer_identity,
       .is_view = true,
       .batch = batch_identity},
      {.name = "Reshape",
       .since_version = 5,
       .inputs = {in("data"), in("shape", kInt64Only, kHost)},
       .attributes = {since(14, flag("allowzero"))},
       .infer = infer_reshape,
       .is_view = true,
       .batch = batch_reshape},
      squeeze,
      {.name = "Squeeze",
       .since_version = 13,
       .inputs = {in("data"), in("axes", kInt64Only, kOptionalHost)},
       .infer = infer_squeeze,
       .is_view = true,
       .batch = batch_squeeze},
      unsqueeze,
      {.name = "Unsqueeze",
       .since_version = 13,
       .inputs = {in("data"), in("axes", kInt64Only, kHost)},
       .infer = infer_unsqueeze,
       .is_view = true,
       .batch = batch_unsqueeze},
      {.name = "Flatten",
       .since_version = 1,
       .inputs = {in("input")},
       .attributes = {an_int("axis")},
       .infer = infer_flatten,
       .is_view = true,
       .batch = batch_flatten},
  };
}

std::vector<OpDef> measuring() {
  return {
      {.name = "Shape",
       .since_version = 1,
       .inputs = {in("data", kAllTypes, InputFlag::kShapeOnly)},
       .attributes = {since(15, an_int("start")), since(15, an_int("end"))},
       .infer = infer_shape,
       .batch = batch_shape},
      {.name = "Size",
       .since_version = 1,
       .inputs = {in("data", kAllTypes, InputFlag::kShapeOnly)},
       .infer = infer_size,
       .batch = batch_size},
  };
}

// No view: in training mode the elements change, and the mask is a second output.
std::vector<OpDef> dropout() {
  return {
      {.name = "Dropout",
       .since_version = 1,
       .inputs = {in("data", kFloatTypes)},
       .max_outputs = 2,
       .attributes = {flag("is_test"), a_float("ratio"), consumed_inputs()},
       .infer = infer_dropout,
       .in_place_inputs = 1,
       .batch = batch_dropout},
      {.name = "Dropout",
       .since_version = 7,
       .inputs = {in("data", kFloatTypes)},
       .max_outputs = 2,
       .attributes = {a_float("ratio")},
       .infer = infer_dropout,
       .in_place_inputs = 1,
       .batch = batch_dropout},
      {.name = "Dropout",
       .since_version = 12,
       .inputs = {in("data", kFloatTypes), in("ratio", kFloatTypes, kOptional),
                  in("training_mode", kBoolType, kOptional)},
       .max_outputs = 2,
       .attributes = {an_int("seed")},
       .infer = infer_dropout,
       .in_place_inputs = 1,
       .batch = batch_dropout},
  };
}

std::vector<OpDef> making() {
  return {
      {.name = "Constant",
       .since_version = 1,
       .attributes = {a_tensor("value")},
       .infer = infer_constant},
      {.name = "Constant",
       .since_version = 12,
       .attributes = {a_tensor("value"), an_int("value_int"), some_ints("value_ints"),
                      a_float("value_float"), attribute("value_floats", AttributeKind::kFloats),
                      a_string("value_string"),
                      attribute("value_strings", AttributeKind::kStrings)},
       .infer = infer_constant},
      {.name = "ConstantOfShape",
       .since_version = 9,
       .inputs = {in("input", kInt64Only, kHost)},
       .attributes = {a_tensor("value")},
       .infer = infer_constant_of_shape,
       .batch = batch_constant_of_shape},
      {.name = "Range",
       .since_version = 11,
       .inputs = {in("start", kRangeTypes, kHost), in("limit", kRangeTypes, kHost),
                  in("delta", kRangeTypes, kHost)},
       .infer = infer_range},
      {.name = "Range",
       .since_version = 27,
       .inputs = {in("start", kRangeTypes | kHalfTypes, kHost),
                  in("limit", kRangeTypes | kHalfTypes, kHost),
                  in("delta", kRangeTypes | kHalfTypes, kHost)},
       .attributes = {an_int("stash_type")},
       .infer = infer_range},
      {.name = "EyeLike",
       .since_version = 9,
       .inputs = {in("input", kNumericTypes | kBoolType, InputFlag::kShapeOnly)},
       .attributes = {an_int("dtype"), an_int("k")},
       .infer = infer_eye_like},
      {.name = "OneHot",
       .since_version = 9,
       .inputs = {in("indices", kNumericTypes), in("depth", kNumericTypes, kHost), in("values")},
       .attributes = {an_int("axis")},
       .infer = infer_one_hot,
       .batch = batch_one_hot},
  };
}

}  // namespace

Status add_movement_schemas(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_schemas(table, joining_and_cutting()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, arranging()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, growing()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, viewing()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, measuring()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, dropout()));
  return add_schemas(table, making());
}

}  // namespace eddy
