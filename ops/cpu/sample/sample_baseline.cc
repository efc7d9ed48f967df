#include "ops/cpu/sample/sample_inl.h"
#include "ops/cpu/sample/sample_sets.h"

namespace eddy::cpu {
namespace {

constexpr SampleLoops kLoops = {find, sample_by_four};

}  // namespace

const SampleLoops& sample_loops_baseline() { return kLoops; }

}  // namespace eddy::cpu
