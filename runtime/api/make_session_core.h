// make_session_core: from a graph to what is ready to run. Internal to runtime/api.
//
// The steps, each timed and reported to the log hook: simplify (fold constants, fix sizes) → make
// the devices → with several, place the nodes and plan the copies → plan → prove the plan →
// describe inputs, outputs and loops → bind kernels, after which constants that kernels have
// packed may go. Where another session has done so before (shared_programs.h), it is: make the
// devices → find the program → describe → bind what is the session's own. A prepared graph, that of
// a saved plan (saved_plan.h), is planned as it is.
//
// Errors: kInvalidArgument (options that contradict each other), kUnsupported (an operator or type
// without a kernel, by name), and what a device says when it is made. A plan
// without a proof is refused. What SessionOptions::check says, asked between the steps and while
// folding.
// Threads: none but the caller's; a host-driven session registers its devices' pollers and wakers
// with the scheduler, until ~SessionCore.
// Cost: that of planning and proving (graph/schedule, graph/proof), of folding, and of packing the
// constants.
#pragma once

#include <memory>

#include "ops/contract/packed_constants.h"
#include "runtime/api/session_core.h"

namespace eddy {

// Of a graph that make_graph_to_run() has made before.
struct PreparedGraph {
  Fingerprint made;         // simplified_fingerprint() of what it made then
  Fingerprint named = {};   // stands for the graph with its names
  Fingerprint proved = {};  // of a program that was proved: an equal one of this graph is, too
  PackingStore packings = {};
};

// The first of the steps. What the options' hooks throw goes through.
Result<Graph> make_graph_to_run(const Library& library, Graph graph, const SessionOptions& options);

// `given`: graph_fingerprint(graph), or what else stands for the graph and its constants.
// `prepared_or_null`: the graph is planned as it is.
Result<std::unique_ptr<SessionCore>> make_session_core(
    const Library& library, Graph graph, const Fingerprint& given, const SessionOptions& options,
    const PreparedGraph* prepared_or_null = nullptr);

}  // namespace eddy
