#include "runtime/mpi/mpi_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>

// Of the rule in BUILD.
extern "C" const unsigned char eddy_mpi_image[];
extern "C" const unsigned long eddy_mpi_image_length;

namespace eddy {
namespace {

Status no_memory_file() {
  return resource_exhausted(
      "cannot open MPI: the system refuses a file in memory; raise its limits (ulimit -n, -v, -f)");
}

// The image as a file in memory; its descriptor.
Result<int> write_image() {
  const int file = memfd_create("eddy_mpi", MFD_CLOEXEC);
  if (file < 0) return no_memory_file();
  size_t done = 0;
  while (done < eddy_mpi_image_length) {
    const ssize_t count = write(file, eddy_mpi_image + done, eddy_mpi_image_length - done);
    if (count <= 0) {
      ::close(file);
      return no_memory_file();
    }
    done += static_cast<size_t>(count);
  }
  return file;
}

}  // namespace

Result<const MpiTable*> load_mpi() {
  EDDY_ASSIGN_OR_RETURN(const int file, write_image());
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* const reason = library == nullptr ? dlerror() : nullptr;
  const std::string why = reason == nullptr ? "" : reason;
  ::close(file);
  if (library == nullptr) {
    return unsupported("cannot open MPI: " + why +
                       "; install Debian's openmpi-bin, or build Eddy with this machine's MPI");
  }
  using Function = const MpiTable* (*)();
  const auto table = reinterpret_cast<Function>(dlsym(library, kMpiTableSymbol));
  EDDY_CHECK(table != nullptr) << "the image of MPI has no " << kMpiTableSymbol;
  return table();
}

}  // namespace eddy
