#include "ops/schema/eddy_domain.h"

#include "ops/schema/rules.h"

namespace eddy {
namespace {

Status infer_host_predicate(InferContext& context) {
  if (context.attributes().get_string("name", "").empty()) {
    return invalid_argument("attribute 'name' of HostPredicate is empty: name the host function");
  }
  if (const AttributeValue* type = context.attributes().find_or_null("type")) {
    context.set_output(0, std::get<ValueType>(*type));
  } else {
    context.set_output(0, TensorType(ElementType::kBool, Dims()));
  }
  return Status::ok();
}

}  // namespace

Status add_eddy_schemas(OpTable& table) {
  return add_schemas(
      table, {{.name = "HostPredicate",
               .domain = "eddy",
               .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic | InputFlag::kOptional)},
               .attributes = {attribute("name", AttributeKind::kString, true),
                              attribute("type", AttributeKind::kType)},
               .infer = infer_host_predicate}});
}

}  // namespace eddy
