// add_standard_schemas: the operators of ONNX (domain "") that Eddy supports, opset 1 to 28, those
// of domain "ai.onnx.ml", versions 1 to 5, and those of domain "eddy" (eddy/eddy_domain.cc).
//
// Call once on an empty table, which stays where it is, before graphs are built with it: rules of
// domain "eddy" look others up. The kernels are elsewhere (ops/reference, ops/cpu): an operator may
// be known here and still have no kernel.
//
// Errors: kInternal when a definition is given twice.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace eddy {

Status add_standard_schemas(OpTable& table);

}  // namespace eddy
