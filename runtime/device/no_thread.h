// What is said where the system refuses a thread.
#pragma once

#include <system_error>

#include "graph/base/status.h"

namespace eddy {

// kResourceExhausted.
Status no_thread(const std::system_error& error);

}  // namespace eddy
