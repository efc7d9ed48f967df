// share_machine: what one rank takes of its machine, where several stand on it.
//
// Memory and threads are divided, where nothing else was asked for. So are the processors that this
// process may use, if there are as many as ranks: this thread, and those that it starts from then
// on, keep to the rank's own, the ones of a core together. Else the threads that move ranks'
// messages on gather on one processor, and that rank's kernels wait for all of them.
//
// A machine of fewer processors than ranks, a rank that mpirun has bound already, and more threads
// than the rank's processors leave them as they are. Errors: none. Threads: the main one, before it
// starts any.
#pragma once

#include <sched.h>

#include "runtime/api/session_options.h"
#include "runtime/mpi/mpi_library.h"

namespace eddy {

void share_machine(SessionOptions& options, const LaunchedRank& rank);

// While it lives, what this thread starts may use all processors that the process was given.
class WholeMachine {
 public:
  WholeMachine();
  ~WholeMachine();
  WholeMachine(const WholeMachine&) = delete;
  WholeMachine& operator=(const WholeMachine&) = delete;

 private:
  const cpu_set_t kept_;
};

}  // namespace eddy
