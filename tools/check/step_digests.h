// StepDigests: digests what every node of an observed run makes, and compares with the oracle.
//
// Outputs agree by luck more often than intermediate values do: a wrong value that nothing reads
// is still a wrong value. A test that is made twice in one iteration changes no value at all, and
// is noticed, too. Give one to SessionOptions::observer_or_null (simplify off, so that node
// ids are those of the oracle's graph), clear() before each run.
//
// Threads: steps may come from several threads; clear() and difference() only between runs.
// Cost: the bytes of the outputs, and one uncontended lock a step.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/execute/step_observer.h"
#include "tools/check/oracle.h"

namespace eddy::check {

class StepDigests : public StepObserver {
 public:
  Status before(RunState& state, const ::eddy::Step& step) override;
  void after(RunState& state, const ::eddy::Step& step, int32_t decision) override;

  void clear();
  // Empty when every execution that the oracle saw happened exactly once with the same result,
  // and nothing else did; else the first in the oracle's order that differs, in one line.
  std::string difference(const Graph& graph, const OracleResult& expected) const;

 private:
  std::mutex mutex_;
  std::vector<NodeExecution> executions_;  // under the mutex
  // Under the mutex, by loop: where it was tested last, its own iteration included.
  std::map<NodeId, Iterations> tested_;
  std::string tested_twice_;      // under the mutex: the path of a loop
  std::vector<int64_t> scratch_;  // under the mutex
};

}  // namespace eddy::check
