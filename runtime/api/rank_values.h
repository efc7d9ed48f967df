// spread_values, gather_values: values of one rank handed to all, or those of all ranks to rank 0.
//
//   // Inputs that only rank 0 has:
//   EDDY_ASSIGN_OR_RETURN(const NamedTensors inputs, spread_values(*world, own));
//   // Outputs that rank 0 wants of all:
//   EDDY_ASSIGN_OR_RETURN(const auto parts, gather_values(*world, outputs));   // by rank
//
// A session's inputs are each rank's own; those that are equal on all ranks, as these are, may be
// declared so (RankOptions::replicated), and are then compared in each run. Its outputs are each
// rank's own, too.
//
// Values are tensors of any type, sequences and nothing, in host memory. Errors, the same on all
// ranks: those of `own` where it failed on one, which the status names; device_lost where the world
// is. All ranks call these in the same order (runtime/net/gather.h, as are threads and cost).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/api/tensor.h"
#include "runtime/net/world.h"

namespace eddy {

// `own` of other ranks than 0 is read for its status alone.
Result<NamedTensors> spread_values(World& world, const Result<NamedTensors>& own);
// By rank, on rank 0; elsewhere empty.
Result<std::vector<NamedTensors>> gather_values(World& world, const Result<NamedTensors>& own);

// The same values on every processor. Reading takes any bytes: kInternal where they are none.
std::string write_values(const NamedTensors& values);
Result<NamedTensors> read_values(std::string_view bytes);

}  // namespace eddy
