// A valid call of each operator that is a function of others, for tests that go over all of them.
//
// Those between ranks are left out: they run in a session only.
#pragma once

#include <vector>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

std::vector<OpCall> function_calls(Random& random);

}  // namespace eddy::testing
