// This machine's CPU for the fluid model, measured on micrographs: chains, loops and branches of
// steps that do nothing, and pairs of streams with kernels of known duration.
//
// Threads: the calling one and two workers. Cost: some two seconds.
#pragma once

#include <string>

#include "graph/base/status.h"
#include "graph/simulate/fluid_machine.h"
#include "tools/command/step_profile.h"

namespace eddy {

struct MeasuredMachine {
  FluidMachine machine;  // two workers
  LookingCosts looking;  // so that observed micrographs add up to what they take unobserved
};

// `rounds` repetitions of each micrograph; the best counts.
Result<MeasuredMachine> measure_machine(int rounds);

// Lines that end in newlines.
std::string to_text(const MeasuredMachine& measured);

}  // namespace eddy
