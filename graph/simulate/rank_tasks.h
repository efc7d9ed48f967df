// join_rank_tasks: the programs of several ranks as one task graph: what each computes on a
// processor of its own, and between them operations, each of which begins once all of its ranks
// have come, takes what the links say, and ends for all of them at once. Simulating it
// (full_simulation.h) runs all ranks in one event loop.
//
//   EDDY_ASSIGN_OR_RETURN(const RankTasks tasks, join_rank_tasks(ranks, links));
//   simulate_full(tasks.graph, timeline);
//
// Streams of a rank share its one processor: kernels of several take turns, and go on beside
// operations. Loops and branches are unrolled, of one run that is typical: decisions are those of
// their traces, one after another, else the mean number of trips and the likeliest branch. A loop
// of more than max_rounds trips has so many, each standing for several: all times inside count as
// many times.
//
// Operations of one lane match by their order on it (graph/proof/rank_skeleton.h). Which step of
// the program is an operation is the caller's to say, as are names.
//
// Errors (invalid argument): ranks that come to a lane unequally often, which the message names, as
// where loops with communication are decided unequally; those of check_fluid_costs. Resource
// exhausted beyond max_tasks. Threads: pure. Cost: O(steps that run).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/program/program.h"
#include "graph/simulate/fluid_costs.h"
#include "graph/simulate/rank_links.h"
#include "graph/simulate/task_graph.h"

namespace eddy {

struct RankOperation {
  std::string lane;             // equal on its ranks, and of no other operations
  std::vector<uint32_t> ranks;  // ascending, this one among them
  std::string kind;             // as RankLinks knows it
  double bytes = 0;             // of the operand
};

struct RankProgram {
  const Program& program;
  const FluidCosts& costs;
  std::vector<std::optional<RankOperation>> operations;  // by launch; none: a kernel
};

struct RankTasks {
  enum class What : uint8_t { kKernel, kControl, kArrival, kOperation };
  struct Task {
    What what = What::kKernel;
    uint32_t rank = 0;       // of an operation: the first of its ranks
    uint32_t operand = 0;    // the launch; of kControl: the loop, or behind all loops the case
    uint32_t operation = 0;  // of kArrival and kOperation: in `operations`
  };
  // One time that ranks meet.
  struct Operation {
    uint32_t task = 0;
    std::vector<uint32_t> ranks = {};
    std::vector<uint32_t> arrivals = {};  // tasks, by place in `ranks`
    std::vector<uint32_t> launches = {};  // likewise
  };
  TaskGraph<double> graph;  // devices: of the ranks, then one for each lane
  std::vector<Task> tasks;  // by slot
  std::vector<Operation> operations;
  std::vector<std::string> lanes;
};

struct RankTaskOptions {
  uint64_t max_rounds = 16;
  uint32_t max_tasks = 2'000'000;
};

Result<RankTasks> join_rank_tasks(std::span<const RankProgram> ranks, const RankLinks& links,
                                  const RankTaskOptions& options = {});

}  // namespace eddy
