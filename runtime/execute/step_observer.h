// StepObserver: sees every step of a run: each node's execution, and each decision and transfer of
// loops and branches. For campaigns that digest results, check what happens before what, or make
// steps fail; a session without one pays nothing, because only observed programs record these
// commands.
//
//   exec           reads the node's inputs, writes its outputs
//   enter, leave   a loop's initial values become its parameters; its results its outputs
//   test, select   a decision reads the predicate or selector
//   advance        the body's results become the next iteration's parameters
//   row            of pipelined loops: one of the body's results is stacked, beside other steps
//   take           of pipelined loops: a strand takes references of its own to carried values
//   finish_branch  a branch's results become the outputs of its case-of
//
// Errors: a failure that before() returns becomes the step's own, with node and iteration path,
// and the step does not run.
// Threads: called by the thread that runs the step, so at once from several threads where strands
// of one run do, or several runs. Never calls into the session that it observes, cancelling
// excepted.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

class RunState;

enum class StepKind : uint8_t {
  kExec,
  kEnter,
  kTest,
  kAdvance,
  kRow,
  kTake,
  kLeave,
  kSelect,
  kFinishBranch
};

struct Step {
  StepKind kind = StepKind::kExec;
  NodeId node;
  uint32_t strand = 0;  // of its run; 0 is the main one
  uint32_t branch = 0;  // kFinishBranch; kRow: which result of `after`; kTake: which taking
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual Status before(RunState& state, const Step& step) = 0;
  // `decision`: of kTest and kSelect, < 0 where it failed; 1 or 0 of others: whether they worked.
  virtual void after(RunState& state, const Step& step, int32_t decision) = 0;
};

}  // namespace eddy
