// Uniformity: which values are equal, bit for bit, on all ranks of a group, wherever these ranks
// come by.
//
//   Varying are the inputs that are not replicated, what differs by itself (RankRules), and what is
//   computed from varying values, round loops as often as it takes. Results of communication over
//   the group are equal. What a loop or case with a varying decision leaves behind varies, unless
//   its ranks agree on the decision.
//   In a loop, equal means: in iterations of one number.
//
// Idea: a value that varies makes its readers vary: a graph over values, searched breadth first
// from the sources, so that a shortest reason is kept. What is not reached is uniform: the largest
// fixpoint.
//
// Cost: O(values + uses).
#pragma once

#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ranks/communication.h"

namespace eddy {

// `group`: ascending ranks.
class Uniformity {
 public:
  Uniformity(const Graph& graph, const RankRules& rules, const std::vector<uint32_t>& group);

  bool is_uniform(ValueId value) const {
    EDDY_DCHECK(value.is_none() || value.index() < reason_.size()) << "a value of another graph";
    return value.is_none() || reason_[value.index()] == kUniform;
  }
  // Of a varying value: its source first, then what is made of that, up to the value.
  std::vector<ValueId> reasons(ValueId value) const;

 private:
  static constexpr uint32_t kUniform = UINT32_MAX;
  static constexpr uint32_t kSource = UINT32_MAX - 1;
  std::vector<uint32_t> reason_;  // by value: what makes it vary
};

// How the loops and cases that hold communication are decided; others are kVarying: ranks may loop
// apart there. An error names a loop or case whose ranks may decide differently, the value that may
// differ, its way to the decision, and the communication.
struct Decisions {
  std::vector<bool> holds;         // by node: a loop or case with communication inside
  std::vector<Agreement> by_node;  // kUniform where nothing need be sent
};
Result<Decisions> find_decisions(const Graph& graph, const RankRules& rules);

}  // namespace eddy
