// A plan's simulated timeline as a picture: a lane for each stream, time in nanoseconds from left
// to right; steps of loops and branches are named after what they do.
//
// Each execution of a node is a box; where a loop was cut to a few rounds (FluidOptions), each box
// stands for several. A frame stands around each execution of a loop or branch, over the lanes that
// it uses, and a red arrow for each wait, from the end of what is waited for (at most kMostDrawn of
// each). The timeline must have been made with wants_spans.
//
// The same timeline gives the same bytes. Threads: pure. Cost: O((spans + waits) log spans).
#pragma once

#include <string>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"
#include "graph/simulate/fluid_model.h"

namespace eddy {

std::string plan_timeline_svg(const Graph& graph, const Plan& plan, const FluidTimeline& timeline,
                              const std::string& title);

}  // namespace eddy
