// What stands in the environment before main: Open MPI's, and that of PMI launchers (MPICH, Slurm).
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/mpi/mpi_library.h"

namespace eddy {
namespace {

std::optional<uint32_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  uint32_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || stop == text) return std::nullopt;
  return number;
}

}  // namespace

std::optional<LaunchedRank> find_launched_rank() {
  static constexpr std::array<std::array<const char*, 4>, 2> kNames = {
      {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"}}};
  for (const auto& [rank, size, local, here] : kNames) {
    const std::optional<uint32_t> own = number_in(rank);
    const std::optional<uint32_t> all = number_in(size);
    if (!own || !all || *own >= *all) continue;
    // Several programs, as in `mpirun -n 1 A : -n 1 B`.
    const bool is_alike = number_in("OMPI_NUM_APP_CTX").value_or(1) == 1;
    const uint32_t num_local = std::clamp<uint32_t>(number_in(local).value_or(1), 1, *all);
    std::optional<uint32_t> number_here = number_in(here);
    if (number_here && *number_here >= num_local) number_here.reset();
    return LaunchedRank{*own, *all, num_local, is_alike, number_here};
  }
  return std::nullopt;
}

}  // namespace eddy
