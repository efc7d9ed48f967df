#include "ops/cpu/sample/region_inl.h"
#include "ops/cpu/sample/sample_inl.h"
#include "ops/cpu/sample/sample_sets.h"

namespace eddy::cpu {
namespace {

constexpr SampleLoops kLoops = {find, find_moved, sample_by_four};
constexpr RegionLoops kRegionLoops = {mean_of_bins, most_of_bins};

}  // namespace

const SampleLoops& sample_loops_baseline() { return kLoops; }
const RegionLoops& region_loops_baseline() { return kRegionLoops; }

}  // namespace eddy::cpu
