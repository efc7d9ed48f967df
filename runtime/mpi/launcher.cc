#include "runtime/mpi/launcher.h"

#include <unistd.h>
#include <climits>
#include <cstdlib>
#include <sstream>

namespace eddy {
namespace {

bool runs(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// Debian's own name first: mpirun may be another MPI's.
std::string find_in_path() {
  const char* const variable = std::getenv("PATH");
  const std::string folders = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  for (const char* const name : {"mpirun.openmpi", "mpirun"}) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');) {
      std::string path = (folder.empty() ? "." : folder) + "/" + name;
      if (runs(path)) return path;
    }
  }
  return "";
}

// A path that stays the same program in another process.
std::string real_program(const std::string& program) {
  std::string path(PATH_MAX, '\0');
  return realpath(program.c_str(), path.data()) == nullptr ? program : std::string(path.c_str());
}

}  // namespace

Result<Launch> make_launch(const LaunchRequest& request) {
  Launch launch;
  launch.num_ranks = request.num_ranks;
  launch.is_mpirun_given = !request.mpirun.empty();
  launch.mpirun = request.mpirun.empty() ? find_in_path() : request.mpirun;
  if (launch.mpirun.empty()) {
    return unsupported(
        "cannot start ranks: there is no mpirun in PATH; install Debian's openmpi-bin");
  }
  if (!runs(launch.mpirun)) {
    return invalid_argument("cannot start ranks: '" + launch.mpirun +
                            "' is no program that runs; name Open MPI's mpirun");
  }
  // Open MPI takes the folder above a path in front of its name for where it is on all machines.
  const std::string name =
      request.mpirun.empty() ? launch.mpirun.substr(launch.mpirun.rfind('/') + 1) : request.mpirun;
  launch.arguments = {name,
                      "--quiet",
                      "--oversubscribe",
                      "--bind-to",
                      "none",
                      "-n",
                      std::to_string(request.num_ranks),
                      real_program(request.program)};
  launch.arguments.insert(launch.arguments.end(), request.arguments.begin(),
                          request.arguments.end());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    launch.environment.emplace_back(*variable);
  }
  if (geteuid() == 0) {
    launch.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
    launch.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
  return launch;
}

}  // namespace eddy
