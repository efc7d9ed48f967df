// What tests of runs need of a handle besides its public face. Internal to runtime/api and
// tools/check.
#pragma once

#include "runtime/api/call.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

// As the run's deadline does, at a moment of the caller's.
void stop_run(const RunHandle& run, StopReason reason);

}  // namespace eddy
