// Operators that the way back calls again rather than keep what they have made. Views are, too, and
// those that unary.cc lists.
#include "ops/gradient/families.h"

namespace eddy {

Status add_cheap_operators(GradientTable& table) {
  table.add_cheap(
      "", {"Add", "And", "Cast", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
           "LessOrEqual", "Max", "Min", "Mul", "Or", "Shape", "Size", "Sub", "Where"});
  table.add_cheap("eddy", {"FoldKey"});
  return Status::ok();
}

}  // namespace eddy
