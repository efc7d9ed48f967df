// The error of a thread that the system refuses.
#pragma once

#include <system_error>

#include "graph/base/status.h"

namespace eddy {

// kResourceExhausted.
Status no_thread(const std::system_error& error);

}  // namespace eddy
