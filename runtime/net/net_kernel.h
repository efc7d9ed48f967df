// Kernels of the operators that communicate, bound by the session that has the ranks.
//
// A kernel starts its operation in the run that it finds as its native stream, and answers later
// where the operation takes longer than a moment (PendingCall): the strand that made the call
// waits, and no worker does.
//
// An operation over one rank is computed at once; so is Rank.
#pragma once

#include "graph/ir/graph.h"
#include "ops/contract/kernel.h"

namespace eddy {

class RankSession;

// AllReduce … Barrier, and Rank.
bool is_collective(const OpDef& op);

// The session must outlive the kernel. Before RankSession::agree().
Result<BoundKernel> bind_collective(RankSession& session, const KernelInit& init);

}  // namespace eddy
