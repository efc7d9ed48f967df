// extract_skeleton: the communication that a planned program will issue on this rank
// (graph/proof/rank_skeleton.h), from its steps and from nothing else.
//
// A step counts as begun once all in front of it on its stream has ended, and what its stream waits
// for. A runtime may start an operation earlier, where it reads nothing and writes over nothing of
// what is under way, as long as it starts them in order: what is proved holds for it, too, since it
// only drops waits between ranks and no order of starts.
//
// Ids of streams, events and blocks must be valid (graph/program/validate.h). Cost: O(steps).
//
// write_skeleton, read_skeleton: as bytes for other ranks, the same on every processor. What is
// read is bounded by the bytes that are there; whether it means something is asked by the proof.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/base/status.h"
#include "graph/program/program.h"
#include "graph/ranks/communication.h"
#include "graph/ranks/uniform.h"

namespace eddy {

// Errors: a group that is not ascending ranks.
Result<RankSkeleton> extract_skeleton(const Graph& graph, const Program& program,
                                      const RankRules& rules, const Decisions& decisions);

std::vector<std::byte> write_skeleton(const RankSkeleton& skeleton);
Result<RankSkeleton> read_skeleton(std::span<const std::byte> bytes);

}  // namespace eddy
