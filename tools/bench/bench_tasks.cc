#include "tools/bench/bench_tasks.h"

#include <fmt/format.h>

#include "tools/bench/tiny_tasks.h"

namespace eddy {
namespace {

constexpr const char* kLine = "{:<11}{:>8}  {:<20}{:>34}{:>8}";

class TasksBench {
 public:
  TasksBench(const BenchTasksArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), suite_("tasks", arguments.common, console, interrupts) {}

  Outcome run() {
    const uint32_t n = arguments_.num_tasks;
    const std::function<TaskShape()> shapes[] = {
        [n] { return fan_out_tasks(n); }, [n] { return diamond_tasks(n, 1000); },
        [n] { return chain_tasks(n, 1); }, [n] { return chain_tasks(n, 64); },
        [n] { return fork_join_tasks(n); }};
    for (const auto& make : shapes) {
      const TaskShape shape = make();
      if (!suite_.is_wanted(shape.name)) continue;
      for (const int threads : thread_counts(arguments_.common.threads)) {
        const Status status = add_rows(shape, threads);
        if (!status.is_ok()) return Outcome::of_run(status);
      }
    }
    return suite_.finish();
  }

 private:
  Status add_rows(const TaskShape& shape, int threads) {
    suite_.console().progress(fmt::format("measuring {}, threads: {}", shape.name, threads));
    const uint64_t expected = run_in_order(shape);
    std::vector<std::unique_ptr<TaskRunner>> runners;
    std::vector<Contender> contenders;
    for (const TaskWay way : {TaskWay::kEddy, TaskWay::kFlowGraph, TaskWay::kTaskGroup}) {
      EDDY_ASSIGN_OR_RETURN(auto runner, make_task_runner(way, shape, threads));
      EDDY_ASSIGN_OR_RETURN(const uint64_t found, runner->run());
      if (found != expected) {
        suite_.differs(fmt::format("{}, threads: {}: {} makes {}, a loop {}", shape.name, threads,
                                   name_of(way), found, expected));
      }
      contenders.push_back({name_of(way), [&one = *runner] { return one.run().status(); }});
      runners.push_back(std::move(runner));
    }
    contenders.push_back({"a loop", [&shape] {
                            return run_in_order(shape) != 0 ? Status::ok()
                                                            : internal_error("no task was run");
                          }});
    EDDY_ASSIGN_OR_RETURN(const auto all,
                          suite_.measure(contenders, static_cast<double>(shape.size())));
    for (size_t i = 0; i < all.size(); ++i) add_row(shape, threads, all[i], ratio(all, i));
    return Status::ok();
  }

  // Of medians, to the better of oneTBB's ways.
  static double ratio(const std::vector<Samples>& all, size_t i) {
    return all[i].median() / std::min(all[1].median(), all[2].median());
  }

  void add_row(const TaskShape& shape, int threads, const Samples& one, double by_tbb) {
    Json json = {{"graph", shape.name}, {"tasks", shape.size()}, {"threads", threads}};
    json["way"] = one.name;
    json["by_best_of_onetbb"] = by_tbb;
    json["ns_per_task"] = samples_json(one);
    std::string text = fmt::format(kLine, shape.name, threads, one.name, samples_text(one),
                                   fmt::format("{:.2f}", by_tbb));
    if (suite_.is_empty()) {
      text = fmt::format(kLine, "graph", "threads", "run by", "a task: best (median, 10 to 90 %)",
                         "ratio") +
             "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  const BenchTasksArguments& arguments_;
  BenchSuite suite_;
};

}  // namespace

Outcome bench_tasks(const BenchTasksArguments& arguments, Console& console,
                    Interrupts& interrupts) {
  return TasksBench(arguments, console, interrupts).run();
}

}  // namespace eddy
