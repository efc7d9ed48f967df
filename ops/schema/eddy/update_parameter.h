// UpdateParameter: its definition, and its attributes as numbers (update_form.h).
#pragma once

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "graph/ir/op.h"
#include "ops/schema/eddy/update_form.h"

namespace eddy {

const char* to_string(UpdateRule rule);
// kInvalidArgument for a rule that is unknown.
Result<UpdateForm> parse_update(const Attributes& attributes);
OpDef update_parameter_op();

}  // namespace eddy
