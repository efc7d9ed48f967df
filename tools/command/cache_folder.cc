#include "tools/command/cache_folder.h"

#include <cstdlib>

namespace eddy {

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : (home != nullptr ? std::string(home) : "/tmp") + "/.cache";
  return folder + "/eddy";
}

}  // namespace eddy
