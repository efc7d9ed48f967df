// JobFolder: a folder for what Open MPI keeps in files while a job runs, in memory where the system
// has some: it goes with the job, whatever ended that.
//
// What a launcher left that was killed together with its ranks is removed when the next folder is
// made: one of this user whose lock nobody holds. Nothing else is touched.
//
// Errors: none; without a folder Open MPI has its files where it always has. Threads: one.
#pragma once

#include <string>
#include <vector>

namespace eddy {

class JobFolder {
 public:
  // `parents`: the first that is there; "/dev/shm" and "/tmp".
  explicit JobFolder(const std::vector<std::string>& parents = {"/dev/shm", "/tmp"});
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }  // empty: there is none
  // What has Open MPI use it, unless this process's environment says where its files go.
  void add_variables(std::vector<std::string>& environment) const;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace eddy
