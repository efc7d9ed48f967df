// How a program becomes the ranks of a job: Open MPI's mpirun runs it again, N times, and this
// process watches over them.
//
//   EDDY_ASSIGN_OR_RETURN(const Launch launch, make_launch({.num_ranks = 4, .arguments = argv}));
//   EDDY_ASSIGN_OR_RETURN(const JobEnd end, run_launch(launch, {.stall = …}));
//
// Ranks find themselves by find_launched_rank (mpi_library.h) and report by RankReport
// (job_board.h). mpirun says nothing of its own, passes its input to rank 0, merges what ranks
// print, which comes through this process (output_relay.h). Ranks may outnumber processors, and run
// on all of them; root, which mpirun refuses without two variables, gets these. Signals that this
// process blocks or ignores are as usual for them; a terminal's do not reach them, only this
// process. What ends this process ends them.
//
// A job ends, and no process of it is left, once mpirun does, or
//   a rank has ended without a report    the others are ended at once
//   a rank has given no sign for `stall` while ranks start; later they watch over each other, and
//                                        this process only in case they do not
//   `should_stop` says so                ranks in a run get SIGTERM, others are ended; all
//                                        are where one then gives no sign for two seconds
//
// Errors: kUnsupported where there is no mpirun, with the package; kInvalidArgument where the one
// that was named does not run. Cost: none of MPI; starting takes 0.25 to 0.3 s.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/mpi/output_relay.h"

namespace eddy {

struct LaunchRequest {
  uint32_t num_ranks = 1;
  std::string mpirun = {};                  // a path; empty: found in PATH
  std::string program = "/proc/self/exe";   // run as each rank
  std::vector<std::string> arguments = {};  // without the program
};

struct Launch {
  uint32_t num_ranks = 1;
  std::string mpirun;
  std::vector<std::string> arguments;    // with the program's name first
  std::vector<std::string> environment;  // "NAME=VALUE", all of it
  bool is_mpirun_given = false;          // by the request
};

Result<Launch> make_launch(const LaunchRequest& request);

struct WatchOptions {
  std::chrono::nanoseconds stall = std::chrono::seconds(30);
  // Asked again and again, on this thread.
  std::function<bool()> should_stop = [] { return false; };
  // The same: whether the ranks are to say where they stand (SIGQUIT).
  std::function<bool()> should_describe = [] { return false; };
};

// How a job has ended. Not ok: why, which no rank has said. Ok: all went well, or the rank that has
// failed first has said why.
struct JobEnd {
  int exit_code = 0;  // that rank's, 128 and its number for a signal; 0: what the status stands for
  Status status;
  OutputRelay::Passed passed = {};  // of what mpirun wrote
};

// Waits for its end. Waits for no child but its own.
Result<JobEnd> run_launch(const Launch& launch, const WatchOptions& options);

}  // namespace eddy
