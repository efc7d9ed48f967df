// The options of everything that runs or plans a model over several ranks, and the ranks
// themselves: this command as all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/mpi/job_board.h"
#include "runtime/mpi/mpi_library.h"
#include "runtime/net/rank_options.h"
#include "tools/command/console.h"
#include "tools/command/interrupts.h"

namespace eddy {

struct RankArguments {
  uint32_t num_ranks = 0;               // 0: not given
  std::vector<std::string> replicated;  // names of inputs
  std::vector<std::string> agree;       // NAME=all, any, root or root:R
  std::string mpirun;                   // empty: found in PATH
  double stall_s = 30;                  // a rank that does not answer for so long is lost
  bool checks = false;                  // signatures are compared as operations start
  bool is_one_of_several = false;       // set where ranks have met
};

// --ranks, --replicated, --agree.
void add_rank_options(CLI::App& app, RankArguments& arguments);
// --mpirun, --stall: of what starts ranks.
void add_launch_options(CLI::App& app, RankArguments& arguments);
// These and --check-ranks: of what runs models that communicate.
void add_rank_run_options(CLI::App& app, RankArguments& arguments);

// A name with {rank} as the rank's number: ranks may have files of their own.
bool names_rank(const std::string& file);
std::string file_of_rank(const std::string& file, uint32_t rank);

// All but the world. `model` says whether ranks may have graphs of their own.
Result<RankOptions> make_rank_options(const RankArguments& arguments, const std::string& model);
// --agree and --replicated name what the graph has, and ranks that there are.
Status check_rank_options(const RankOptions& options, const Graph& graph, uint32_t num_ranks);

// Whether the command is to be, or is, one of several ranks.
bool wants_ranks(const RankArguments& arguments);
// What one of the ranks that mpirun started does, once all have met.
using OnRank = std::function<Outcome(const std::shared_ptr<World>& world,
                                     const LaunchedRank& launched, RankReport& report)>;
// As one of them, `on_rank`. Where there was no mpirun: starts it, which starts this command again
// as each rank, and waits for the end of all of them; where one has failed, or was ended, this ends
// the process with its code.
Outcome run_as_ranks(const RankArguments& arguments, Console& console, Interrupts& interrupts,
                     const OnRank& on_rank);
// What has failed on all ranks, as rank 0 says it. Where the world is lost, each that sees it says
// so, and ends the job.
Outcome say_shared(const Outcome& outcome, World& world, Console& console, RankReport& report);
// What all ranks have, behind the making of their sessions, before they run: where `own` or another
// rank's is not ok, that of the lowest on all of them.
Status agree_ready(const RankOptions& options, const Status& own);

}  // namespace eddy
