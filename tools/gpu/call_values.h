// What calls of the conformance part are made of and compared with: seeded numbers by type, and
// how far from the reference's a result may be.
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/ir/owned_tensor.h"
#include "tools/gpu/conformance_cases.h"

namespace eddy {

// Small positive numbers, so that every function is defined; the type's own rounding applies. An
// omitted input has no bytes.
std::vector<OwnedTensor> make_inputs(const ConformanceCase& call, ElementType element,
                                     Random& random);

// Within a few units in the last place of the type, times `slack`. Errors: the element, and what
// was expected of it.
Status compare_values(const TensorView& actual, const TensorView& expected, double slack);

}  // namespace eddy
