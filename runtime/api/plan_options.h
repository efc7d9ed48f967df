// What a session's options say of how its graph is planned: for the session itself, and for tools
// that show its plan.
//
// `communicates`: the graph has operations between ranks, so that plans are not chosen by
// simulation; it would serialise what must stand side by side.
#pragma once

#include "graph/schedule/plan_graph.h"
#include "runtime/api/session_options.h"

namespace eddy {

PlanOptions plan_options(const SessionOptions& options, bool communicates);

}  // namespace eddy
