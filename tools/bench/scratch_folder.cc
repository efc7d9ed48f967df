#include "tools/bench/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace eddy {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  std::string path = (parent / "eddy_bench_XXXXXX").string();
  if (!error && mkdtemp(path.data()) == nullptr) error.assign(errno, std::generic_category());
  if (error) {
    return invalid_argument(
        fmt::format("no temporary folder can be made ({}); set TMPDIR to a folder that takes one",
                    error.message()));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace eddy
