// A plan for Graphviz: dependences as arrows (those that cost a wait in red, with the event),
// streams as colours, regions as nested boxes. For small graphs; plan_svg needs no other program.
//
// Threads: pure. Cost: O(size of the text).
#pragma once

#include <string>

#include "graph/compile/plan_drawing.h"

namespace eddy {

std::string plan_dot(const DrawnRegion& root);

}  // namespace eddy
