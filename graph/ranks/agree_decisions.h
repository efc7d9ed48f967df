// agree_decisions: a graph whose ranks decide alike wherever they meet.
//
// Where a loop or case holds communication, its decision is not proved uniform, and the rules say
// how its ranks agree, the decision goes through communication: of a loop, each time at the end of
// `before`, with its trip limit, which may differ, too; of a case, before it.
//
//   while (p && iteration < limit)   becomes   while (agreed(p && iteration < limit))
//
// Marks on decisions (RankRules::mark) say how ranks agree, and are gone afterwards. So agreement
// is an operation like any other, ordered on its channel, planned and proved, and its result is
// uniform. Decisions that are uniform anyway cost nothing.
//
// Errors: those of find_decisions, and the builder's. Cost: O(nodes). Run it before tie_channels.
#pragma once

#include <functional>

#include "graph/base/status.h"
#include "graph/ir/builder.h"
#include "graph/ranks/communication.h"

namespace eddy {

// What agree_decisions adds, injected: graph/ names no operators.
struct AgreeRules {
  // The decision (bool, int32 or int64, one element) that all ranks of the agreement get, by a node
  // of that name, which is the same on all of them.
  std::function<Value(GraphBuilder&, Value decision, const Agreement&, std::string name)> agree;
  // predicate && iteration < limit
  std::function<Value(GraphBuilder&, Value predicate, Value iteration, Value limit)> within;
};

Result<Graph> agree_decisions(Graph&& graph, const OpTable& ops, const RankRules& rules,
                              const AgreeRules& agrees);

}  // namespace eddy
