// CastMap, DictVectorizer and ZipMap of domain ai.onnx.ml, by name alone: they take or make maps,
// of which there are no values, and each says so and what to do instead.
#include "ops/schema/families.h"
#include "ops/schema/ml.h"
#include "ops/schema/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

Status refuse_zip_map(InferContext&) {
  return unsupported(
      "ZipMap makes a sequence of maps, and maps are not supported; export the model without it "
      "(zipmap=False) or take the scores that are its input as the graph's output");
}

Status refuse_map_input(InferContext&) {
  return unsupported(
      "its input is a map, and maps are not supported; export the model with tensors as inputs");
}

}  // namespace

Status add_ml_map_schemas(OpTable& table) {
  return add_schemas(table,
                     {{.name = "CastMap",
                       .domain = kMlDomain,
                       .inputs = {in("X")},
                       .attributes = {attribute("cast_to", kString), attribute("map_form", kString),
                                      attribute("max_map", kInt)},
                       .infer = refuse_map_input},
                      {.name = "DictVectorizer",
                       .domain = kMlDomain,
                       .inputs = {in("X")},
                       .attributes = {attribute("int64_vocabulary", kInts),
                                      attribute("string_vocabulary", kStrings)},
                       .infer = refuse_map_input},
                      {.name = "ZipMap",
                       .domain = kMlDomain,
                       .inputs = {in("X", {ElementType::kFloat})},
                       .attributes = {attribute("classlabels_int64s", kInts),
                                      attribute("classlabels_strings", kStrings)},
                       .infer = refuse_zip_map}});
}

}  // namespace eddy
