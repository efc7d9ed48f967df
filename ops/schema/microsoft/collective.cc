// AllReduce, AllGather and AllToAll of com.microsoft: those of domain `eddy` over all ranks, of
// which there are `group_size`.
#include <string>

#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// The operator that is built says its shape and what is wrong with it.
Status infer_element(InferContext& context) {
  context.set_output(0, TensorType(context.input(0).tensor.element));
  return Status::ok();
}

void expand_over_all(Expansion& e, std::string_view name) {
  Attributes attributes;
  for (const auto& [key, value] : e.attributes().entries()) {
    attributes.set(key == "group_size" ? "size" : key, value);
  }
  const Value x = e.input(0);
  e.set_output(0, e.eddy_op(name, {&x, 1}, std::move(attributes)));
}
void expand_all_reduce(Expansion& e) { expand_over_all(e, "AllReduce"); }
void expand_all_gather(Expansion& e) { expand_over_all(e, "AllGather"); }
void expand_all_to_all(Expansion& e) { expand_over_all(e, "AllToAll"); }

OpDef over_all(const char* name, TypeSet types, std::vector<FormalAttribute> attributes,
               ExpandFunction expand) {
  return {.name = name,
          .domain = kMicrosoft,
          .inputs = {in("input", types)},
          .attributes = std::move(attributes),
          .infer = infer_element,
          .expand = expand};
}

}  // namespace

Status add_microsoft_collectives(OpTable& table) {
  const TypeSet moved = kNumericTypes | kBoolType;
  const FormalAttribute size = attribute("group_size", kInt, true), axis = attribute("axis", kInt);
  return add_schemas(table, {over_all("AllReduce", kFloatTypes, {}, expand_all_reduce),
                             over_all("AllGather", moved, {size, axis}, expand_all_gather),
                             over_all("AllToAll", moved, {size}, expand_all_to_all)});
}

}  // namespace eddy
