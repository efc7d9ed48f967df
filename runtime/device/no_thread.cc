#include "runtime/device/no_thread.h"

#include <string>

namespace eddy {

Status no_thread(const std::system_error& error) {
  return resource_exhausted(std::string("the system gives no more threads: ") + error.what() +
                            "; raise their limit (ulimit -u) or that of memory (ulimit -v), or let "
                            "sessions share threads");
}

}  // namespace eddy
