// make_scenarios: the tasks and transfers of operators with loops and branches (scenario.h).
//
// Within one list, operators become tasks and transfers as in task_emitter.h. A loop or branch
// waits for every operator outside that it or its operators name, and who names a loop or branch
// waits for it as a whole. What crosses the border of a list crosses links where it must, each part
// by what of it is read:
//
//   into a loop       once, before it begins: values from outside stay the same
//   into a branch     after its decision, and only where it is taken; likewise what a loop's body
//                     reads of its `before`, in each turn; where a branch made that, see below
//   carried in a loop the first one once, before it begins; the next one at the end of each turn,
//                     also of the last, since the decision comes later; of values that pass
//                     through several carried ones, what the others begin with is not sent
//   out of a loop     after its last decision: the tiles of its result; where a branch made that,
//                     those of the one taken last, which all parts of the reader wait for
//   out of a branch   at its end, inside it: the tiles of the result of the branch taken
//
// What an operator reads twice alike, by whichever names, crosses once; so does what it reads of a
// turn and then carried of the turn before, unless it is in a branch.
//
// The result of a loop is that of its body, or of `before` where the body is empty. A list's result
// is what nobody in the list reads; where some of that has the shape that the reader expects, the
// reader takes only that, else all of it, whole. What a loop or branch names as its own
// input and no operator in it reads goes whole to the devices of its operators that wait for
// nothing.
//
// Errors (invalid argument): those of task_emitter.h; a name that is nowhere around; no link
// between two devices that must talk; memory over a device's limit (list_memory.h). Resource
// exhausted: more than kMaxBorderTransfers (border_transfers.h). Cost: linear in the tasks and
// transfers of each list.
#pragma once

#include "graph/base/status.h"
#include "graph/strategy/operator_list.h"

namespace eddy {

Result<ScenarioRegion> make_scenarios(const OperatorList& root, const Topology& topology);

}  // namespace eddy
