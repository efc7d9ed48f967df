// ScratchFolder: an empty folder of its own below the system's for temporary files, which goes with
// all it holds when the object does.
//
// What ends the process at once leaves it behind: while one lives, look after interrupts
// (Interrupts::Patience). Errors: kInvalidArgument when the system's folder takes none.
#pragma once

#include <memory>
#include <string>

#include "graph/base/status.h"

namespace eddy {

class ScratchFolder {
 public:
  static Result<std::unique_ptr<ScratchFolder>> make();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Where a file of that name would be.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace eddy
