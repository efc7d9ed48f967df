// How a decision with a distribution is drawn: by seed, sample, the hash of the control's name and
// which of its executions in the sample this is (from 0), and by nothing else. Internal to scenario
// and fluid_model: tasks and plans with decisions of the same names see the same scenarios.
//
// Threads: pure. Source of common random numbers: Law, Simulation Modeling and Analysis,
// chapter 11.
#pragma once

#include <cstdint>

#include "graph/base/random.h"

namespace eddy {

// Uniform in [0, 1).
inline double draw_uniform(uint64_t seed, uint64_t sample, uint64_t name_hash, uint64_t execution) {
  // First the seed by itself: neighbouring seeds would only swap neighbouring samples.
  seed = Random(seed).next();
  for (const uint64_t part : {sample, name_hash, execution}) seed = Random(seed ^ part).next();
  return Random(seed).uniform();
}

}  // namespace eddy
