// CaseState: a case-of node of one run: the decision, and one set of transfers for each branch.
//
// select() returns the region to run. Out of range: the default region, else the pass-through
// values become the outputs and no region runs, else the run fails.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "runtime/execute/run_slots.h"
#include "runtime/execute/values/transfer.h"

namespace eddy {

class CaseState {
 public:
  CaseState(RunSlots& run, NodeId id);

  // A branch's last command: moves its results into the outputs.
  struct Branch {
    CaseState* owner = nullptr;
    Transfers results;
  };

  static int32_t select(void* case_state);
  static bool finish_branch(void* branch);

  Branch& branch(size_t i) {
    EDDY_DCHECK(i < branches_.size()) << "branch " << i << " of " << branches_.size();
    return branches_[i];
  }
  void connect();

 private:
  RunSlots& run_;
  const NodeId id_;
  const Slot* selector_ = nullptr;
  std::deque<Branch> branches_;
  Transfers pass_through_;
  bool has_pass_through_ = false;
};

}  // namespace eddy
