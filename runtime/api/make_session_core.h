// make_session_core: from a graph to what is ready to run. Internal to runtime/api.
//
// The story, each step timed and logged: simplify (fold constants, fix sizes) → make
// the device → with an accelerator, place the nodes and plan the copies → plan → prove the plan →
// describe inputs, outputs and loops → bind kernels, after which constants that kernels have
// packed may go.
//
// Errors: kInvalidArgument (options that contradict each other), kUnsupported (an operator or type
// without a kernel, by name), and errors of the device or accelerator when it is made. A plan
// without a proof is refused. Failures of SessionOptions::check, asked between the steps and while
// folding.
// Threads: none but the caller's; a host-driven session registers its devices' pollers and wakers
// with the scheduler, until ~SessionCore.
// Cost: that of planning and proving (graph/schedule, graph/proof), of folding, and of packing the
// constants.
#pragma once

#include <memory>

#include "runtime/api/session_core.h"

namespace eddy {

Result<std::unique_ptr<SessionCore>> make_session_core(const Library& library, Graph graph,
                                                       const SessionOptions& options);

}  // namespace eddy
