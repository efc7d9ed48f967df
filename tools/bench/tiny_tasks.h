// TinyTasks: graphs of tasks that do next to nothing, and the ways to run one: as a graph of
// Eddy's, as a flow graph of oneTBB's, and as oneTBB's task group with a counter for each task.
//
// A task adds what its predecessors have made and takes one step of a random sequence, so that a
// task that is lost, or comes too early, changes the result. Tasks are in topological order; the
// result is what the last one makes.
//
// Ownership: a contender keeps what it was made from. Threads: one run at a time. `num_threads`
// counts all threads that run tasks, in all three ways. Cost of a contender: some 500 bytes a task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct TaskShape {
  std::string name;
  std::vector<std::vector<uint32_t>> predecessors;  // by task; each lower than the task

  size_t size() const { return predecessors.size(); }
};

// One task, then all others at once, of which the last is the result.
TaskShape fan_out_tasks(uint32_t num_tasks);
// Forks to `width` tasks and joins them, again and again.
TaskShape diamond_tasks(uint32_t num_tasks, uint32_t width);
// `num_chains` chains beside each other, joined by one task.
TaskShape chain_tasks(uint32_t num_tasks, uint32_t num_chains);
// A task forks into two until there are enough leaves; what has been forked joins, likewise.
TaskShape fork_join_tasks(uint32_t num_tasks);

// The result of the last task, by one loop.
uint64_t run_in_order(const TaskShape& shape);

// Runs all tasks and returns the result of the last.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  virtual Result<uint64_t> run() = 0;
};

enum class TaskWay { kEddy, kFlowGraph, kTaskGroup };
const char* name_of(TaskWay way);
Result<std::unique_ptr<TaskRunner>> make_task_runner(TaskWay way, const TaskShape& shape,
                                                     int num_threads);

}  // namespace eddy
