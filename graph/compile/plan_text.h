// A plan as text: for each region its streams, records and waits, then its nodes in issue order
// with stream, rank, what they wait for and what they record. Nested regions are indented.
//
// The same plan gives the same text. Threads: pure. Cost: O(size of the text).
#pragma once

#include <string>

#include "graph/compile/plan_drawing.h"

namespace eddy {

std::string plan_text(const DrawnRegion& root);

}  // namespace eddy
