// open_mpi_transport: the ranks that mpirun started, as what World is opened with.
//
//   EDDY_ASSIGN_OR_RETURN(auto transport, open_mpi_transport({}));
//   const std::shared_ptr<World> world = World::open(std::move(transport));
//
// Transfers are MPI's non-blocking calls, one or several pieces each. Messages go on a communicator
// of their own: a frame small enough that sending it waits for nobody, and behind it at once what
// it does not hold. One receive of a frame from any rank is always posted. One MPI_Testsome a poll
// covers all of that.
//
// It loads and starts MPI, which happens once in a process: a second transport after the first has
// gone is refused, unless the program had started MPI by itself (for threads that take turns,
// MPI_THREAD_SERIALIZED), and then ends it itself. Without a launcher there is one rank. The
// transport's end waits for all ranks, unless the world was lost or transfers are under way: then
// MPI is left as it is, and the process should end.
//
// What MPI reduces as Eddy does, with 32 and 64 bits: sums and products, least and greatest whole
// numbers (of floats MPI may lose a NaN); and, or of bools. Open MPI 4.1 saturates sums of fewer
// bits.
//
// Errors: what load_mpi says; kRunFailed when MPI does not start; kDeviceLost afterwards.
// Threads: as Transport, and no other transport or MPI call of the process at the same time.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/base/status.h"
#include "runtime/mpi/mpi_table.h"
#include "runtime/net/transport.h"

namespace eddy {

struct MpiTransportOptions {
  int64_t max_piece_bytes = 0;  // 0: what MPI takes in one call
  // Up to so many ranks, gathers and swaps are a message between any two, which take 0.5 to 0.9 of
  // the time of MPI's non-blocking collectives (Open MPI 4.1, 2 to 16 ranks of one machine).
  size_t swapped_places = 16;
  // For tests; null: load_mpi's.
  const MpiTable* table_or_null = nullptr;
};

Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiTransportOptions& options);

}  // namespace eddy
