// Loops that tests of GPUs run in more than one way.
#pragma once

#include <functional>

#include "graph/ir/builder.h"
#include "runtime/api/library.h"

namespace eddy::testing {

using Build = std::function<void(GraphBuilder&)>;

// One for all of them.
const Library& library();
// A test failure where it does not build.
Graph graph_of(const Build& build);

// `n` loops side by side on input "x", a float, with different trip counts; outputs "y0", "y1"…
Build side_by_side(int n);
// A loop on input "x" of this type that never ends where one of its values is below 2; output "y".
Build endless(const ValueType& type);

}  // namespace eddy::testing
