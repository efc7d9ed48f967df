// The graph of NASNet-A large (Zoph et al., 2018), batch norms folded into convolutions where
// they follow one: 1,007 operators, 1,222 edges. Nimble's largest model for stream assignment.
#pragma once

#include "graph/analysis/dag.h"

namespace eddy::testing {

Dag nasnet_a_large();

}  // namespace eddy::testing
