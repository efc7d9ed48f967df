// Where there was no mpi.h when this was built.
#include "runtime/mpi/mpi_library.h"

namespace eddy {

Result<const MpiTable*> load_mpi() {
  return unsupported(
      "this build has no MPI, which ranks need: install Debian's libopenmpi-dev and openmpi-bin "
      "and build again");
}

}  // namespace eddy
