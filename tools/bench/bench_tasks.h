// eddy bench tasks: what a task costs that does next to nothing, beside oneTBB's flow graph and
// task group.
//
// Graphs of `num_tasks` tasks (tiny_tasks.h): one that forks to all others, diamonds of 1,000,
// one chain, 64 chains, and a binary tree of forks and joins, with each number of threads. All
// three ways run the same tasks in the same process, A B A B; their results are compared with a
// plain loop's in every run that is not measured, and that loop's time is printed, too: a task's
// work. Graphs are made before the clock starts; each run is a whole one.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchTasksArguments {
  uint32_t num_tasks = 1'000'000;
  BenchOptions common;
};

// kDiffers when a result is not the loop's. Slower than a rival is no failure.
Outcome bench_tasks(const BenchTasksArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
