// PartCost: how long one part of an operator takes on one device.
//
// In this order: exe_by_tile's time for the part's tile; the operator's measured time, divided by
// the number of parts; a roofline estimate:
//
//   launch + max(flops / device rate, bytes moved / memory rate),
//
// where a part's flops are its share, and the bytes are its tile, its share of the inputs and its
// share of the weights. Where the device has no rates, kAssumedFlops and kAssumedMemoryRate (per
// unit of time, so per second when times are seconds) are taken. uses_assumed_rates() says
// whether results rest on them.
//
// The backward pass of an operator with weights takes twice its forward time (one product for the
// input's gradient, one for the weights'), of one without weights the same time. The sum of
// partial tiles takes the roofline time of reading them all; 0 where times come from exe_by_tile.
//
// Errors (invalid argument): exe_by_tile lacks the tile, naming the ones it has; a time that is
// negative, NaN or infinite. Threads: const access from any.
// Cost: O(1) a question, one map look-up where exe_by_tile is given.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

inline constexpr double kAssumedFlops = 1e13;
inline constexpr double kAssumedMemoryRate = 5e11;

// Whether the operator's times come from the roofline, with these rates or a device's own.
bool is_estimated(const Operator& op);

class PartCost {
 public:
  // Borrows both.
  PartCost(const OperatorGraph& graph, const Topology& topology);

  // What all parts of one operator under one configuration have in common.
  struct Work {
    double fixed = -1;  // >= 0: the time itself
    double flops = 0;
    double bytes = 0;
    double sum_bytes = 0;        // moved to add the partial sums of one tile
    double backward_factor = 1;  // backward time / forward time
  };
  Result<Work> work(uint32_t op, const OperatorConfig& config) const;
  double time(const Work& work, uint32_t device) const {
    if (work.fixed >= 0) return work.fixed;
    EDDY_DCHECK(device < rates_.size()) << "device " << device << " of " << rates_.size();
    const Rates& rates = rates_[device];
    return rates.launch + std::max(work.flops * rates.per_flop, work.bytes * rates.per_byte);
  }
  double sum_time(const Work& work, uint32_t device) const {
    if (work.fixed >= 0) return 0;
    return rates_[device].launch + work.sum_bytes * rates_[device].per_byte;
  }

  bool uses_assumed_rates() const { return uses_assumed_rates_; }

 private:
  struct Rates {
    double launch = 0;
    double per_flop = 0;
    double per_byte = 0;
  };
  const OperatorGraph* graph_;
  std::vector<Rates> rates_;  // by node of the topology
  bool uses_assumed_rates_ = false;
};

}  // namespace eddy
