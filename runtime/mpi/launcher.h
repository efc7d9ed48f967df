// How a program becomes the ranks of a job: Open MPI's mpirun runs it again, N times.
//
//   EDDY_ASSIGN_OR_RETURN(const Launch launch, make_launch({.num_ranks = 4, .arguments = argv}));
//   return become(launch);   // returns only where it failed
//
// Ranks find themselves by find_launched_rank (mpi_library.h). mpirun says nothing of its own,
// passes its input to rank 0, merges what ranks print, and ends with the exit code of the rank that
// failed first, 128 and its number for a signal. Ranks may outnumber processors, and run on all of
// them; root, which mpirun refuses without two variables, gets these. Signals that this process
// blocks or ignores are as usual for what it becomes.
//
// Errors: kUnsupported where there is no mpirun, with the package; kInvalidArgument where the one
// that was named does not run. Cost: none of MPI; starting takes 0.25 to 0.3 s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct LaunchRequest {
  uint32_t num_ranks = 1;
  std::string mpirun = {};                  // a path; empty: found in PATH
  std::string program = "/proc/self/exe";   // run as each rank
  std::vector<std::string> arguments = {};  // without the program
};

struct Launch {
  std::string mpirun;
  std::vector<std::string> arguments;    // with the program's name first
  std::vector<std::string> environment;  // "NAME=VALUE", all of it
};

Result<Launch> make_launch(const LaunchRequest& request);

// Replaces this process.
Status become(const Launch& launch);

}  // namespace eddy
