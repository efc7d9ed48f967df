#include "runtime/mpi/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

namespace eddy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStem = "eddy-job-";
// Longer than it takes from making a folder to locking it.
constexpr time_t kYoungS = 10;

int open_folder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// A folder of this user that no launcher holds any more.
bool is_left(int folder) {
  struct stat known {};
  return fstat(folder, &known) == 0 && known.st_uid == geteuid() &&
         std::time(nullptr) - known.st_mtime > kYoungS && flock(folder, LOCK_EX | LOCK_NB) == 0;
}

void remove_left(const std::string& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(kStem)) continue;
    const int folder = open_folder(entry.path().string());
    if (folder < 0) continue;
    if (is_left(folder)) fs::remove_all(entry.path(), error);
    close(folder);
  }
}

}  // namespace

JobFolder::JobFolder(const std::vector<std::string>& parents) {
  for (const std::string& parent : parents) {
    remove_left(parent);
    std::string name = parent + "/" + kStem + "XXXXXX";
    if (!path_.empty() || mkdtemp(name.data()) == nullptr) continue;
    lock_ = open_folder(name);
    if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
    path_ = name;
  }
}

JobFolder::~JobFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void JobFolder::add_variables(std::vector<std::string>& environment) const {
  if (path_.empty()) return;
  for (const char* const name :
       {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_orte_tmpdir_base"}) {
    if (std::getenv(name) == nullptr) environment.push_back(std::string(name) + "=" + path_);
  }
}

}  // namespace eddy
