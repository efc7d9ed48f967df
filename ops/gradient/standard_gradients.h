// add_standard_gradients: the gradient rules of the standard's operators.
#pragma once

#include "graph/base/status.h"
#include "graph/differentiate/gradient_rule.h"

namespace eddy {

Status add_standard_gradients(GradientTable& table);

}  // namespace eddy
