#include "graph/simulate/fluid_sharing.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

double share_of(const FluidDemand& demand, int resource) {
  return resource == 0 ? demand.units : demand.bandwidth;
}

}  // namespace

void fluid_rates(double num_units, std::span<const FluidDemand> demands, std::span<double> rates) {
  EDDY_CHECK(demands.size() == rates.size()) << "one rate for each demand";
  constexpr double kRising = 0;  // not yet settled
  std::ranges::fill(rates, kRising);
  const double capacity[2] = {num_units, 1};
  for (;;) {
    // The level at which the first resource is used up.
    double level = 1;
    int exhausted = -1;
    for (int resource = 0; resource < 2; ++resource) {
      double settled = 0;
      double rising = 0;
      for (size_t i = 0; i < demands.size(); ++i) {
        const double share = share_of(demands[i], resource);
        (rates[i] == kRising ? rising : settled) += rates[i] == kRising ? share : share * rates[i];
      }
      if (rising <= 0) continue;
      const double reached = (capacity[resource] - settled) / rising;
      if (reached < level) {
        level = reached;
        exhausted = resource;
      }
    }
    EDDY_DCHECK(level > 0) << "nothing is left of resource " << exhausted;
    for (size_t i = 0; i < demands.size(); ++i) {
      const bool stops = exhausted < 0 || share_of(demands[i], exhausted) > 0;
      if (rates[i] == kRising && stops) rates[i] = level;
    }
    if (exhausted < 0) return;
  }
}

}  // namespace eddy
