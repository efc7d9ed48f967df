// What eddy bench ranks measures: graphs that ranks share, and skeletons of many ranks.
//
//   turns     while i < turns: one operation of a value of so many bytes
//   alone     while i < turns: x = x / 2; communicates with no rank
//   late      a sum of all ranks behind `before` ms of work, beside `beside` ms of it
//   nothing   y = x
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/proof/rank_skeleton.h"
#include "runtime/api/library.h"

namespace eddy {

enum class RankTurn : uint8_t {
  kSumInAnyOrder,
  kSumInRankOrder,
  kGather,
  kAgree  // on whether to go on: the loop's predicate, of one byte
};

// Inputs "turns" (int64), and "x" (float[bytes / 4]) but of kAgree.
Result<Graph> rank_turns(const Library& library, RankTurn turn, int64_t bytes);
// Inputs "turns" (int64) and "x" (float).
Result<Graph> loop_alone(const Library& library);
// Inputs "before" and "beside" (double, ms); outputs "sum" and "worked". Needs add_work().
Result<Graph> late_sum(const Library& library);
Result<Graph> empty_model(const Library& library);

// Operator bench.Work: keeps a processor busy for as many ms as its input says, which it gives
// back.
Status add_work(Library& library);
void work_for(double ms);

// Of so many ranks: each posts so many sums of all ranks, one after another, on four channels in
// turn.
std::vector<RankSkeleton> long_skeletons(uint32_t num_ranks, uint32_t num_posts);

}  // namespace eddy
