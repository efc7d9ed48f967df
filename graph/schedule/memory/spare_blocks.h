// drop_spare_blocks: takes back the further blocks of carried values that need none.
//
// A value that a loop carries has a block more for each holder (storages.h): a loop's parameter
// that may stand for an older instance while the writer makes the next. Where nothing uses the
// older one from there on, the writer may take its block, and the holder is dropped: every use of
// any name that the parameter hands it to, in the same iteration, has surely ended when the writer
// starts. An older one that the loop goes on with (passed to another parameter, stacked as a row,
// forwarded out of a `before` that writes) is used until the end.
//
// A spare block stays where it buys overlap: where another stream of `after` than the writer's uses
// the new instance, the next iteration's writer would have to wait for it (pipelined_loops.h). It
// stays, too, where the writer itself reads the older instance, or both stand in one nested loop or
// branch.
//
// Contract: `order` is of the plan that the storages are laid out for. Cost: O(uses) for each
// holder.
#pragma once

#include "graph/ir/graph.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/memory/node_order.h"
#include "graph/schedule/memory/storages.h"

namespace eddy {

void drop_spare_blocks(const Graph& graph, const RegionTree& tree, const NodeOrder& order,
                       Storages& storages);

}  // namespace eddy
