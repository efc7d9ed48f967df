#include <array>

#include "runtime/mpi/mpi_library.h"

namespace eddy {

std::string mpi_library_name(const MpiTable& mpi) {
  std::array<char, 512> text{};
  mpi.library_text(text.data(), text.size());
  const std::string all = text.data();
  return all.substr(0, all.find_first_of(",\n"));
}

Status mpi_status(const MpiTable& mpi, int32_t error, const std::string& what) {
  if (error == 0) return Status::ok();
  std::array<char, 512> text{};
  mpi.error_text(error, text.data(), text.size());
  return run_failed(what + ": " + text.data());
}

}  // namespace eddy
