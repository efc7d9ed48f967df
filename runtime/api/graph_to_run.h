// make_graph_to_run: the passes over a graph before it is planned: constants folded, sizes set,
// then what suits the kernels of the processor, or of the first of `devices` behind the host's
// (none: there is only the host). Internal to runtime/api; what the options' hooks
// throw goes through. Errors: those of building the graph.
#pragma once

#include <span>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/session_options.h"
#include "runtime/api/step_log.h"
#include "runtime/device/execution_device.h"

namespace eddy {

Result<Graph> make_graph_to_run(const Library& library, Graph graph, const SessionOptions& options,
                                std::span<const ExecutionDevice> devices, StepLog& log);

}  // namespace eddy
