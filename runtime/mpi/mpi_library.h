// load_mpi: the table of MPI's calls (mpi_table.h), and what is known of ranks before it is opened.
//
// The shared object that was compiled with mpi.h travels inside of the program, as bytes, and needs
// the libmpi of its kind on the machine; nothing of it is touched before this call (1 to 5 ms),
// which starts no MPI. It stays to the end of the process, because MPI's own threads may.
//
// Errors: kUnsupported, with the package to install: the program was built without mpi.h, or the
// library is missing. Threads: any, but see mpi_table.h for what is returned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/base/status.h"
#include "runtime/mpi/mpi_table.h"

namespace eddy {

Result<const MpiTable*> load_mpi();

// What the launcher left in the environment of this process; none: there was no launcher.
struct LaunchedRank {
  uint32_t rank = 0;
  uint32_t num_ranks = 1;
  uint32_t num_local = 1;  // ranks on this machine
  bool is_alike = true;    // all ranks have the same command line
  std::optional<uint32_t> number_here = {};  // among those of this machine, where it is known
  bool operator==(const LaunchedRank&) const = default;
};
std::optional<LaunchedRank> find_launched_rank();

// "Open MPI v4.1.4".
std::string mpi_library_name(const MpiTable& mpi);

// "what: MPI's words" with code kRunFailed; ok for 0.
Status mpi_status(const MpiTable& mpi, int32_t error, const std::string& what);

}  // namespace eddy
