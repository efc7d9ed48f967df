// Operators that the way back calls again rather than keep what they have made. Views are, too.
#include "ops/gradient/families.h"

namespace eddy {

Status add_cheap_operators(GradientTable& table) {
  table.add_cheap("", {"Abs",   "Add",       "And",   "BitwiseNot",  "Cast",    "Ceil",
                       "Clip",  "Div",       "Equal", "Floor",       "Greater", "GreaterOrEqual",
                       "IsNaN", "LeakyRelu", "Less",  "Max",         "Min",     "Mul",
                       "Neg",   "Not",       "Or",    "LessOrEqual", "Relu",    "Reciprocal",
                       "Round", "Shape",     "Sign",  "Size",        "Sub",     "Where"});
  return Status::ok();
}

}  // namespace eddy
