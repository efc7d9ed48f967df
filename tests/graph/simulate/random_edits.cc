#include "tests/graph/simulate/random_edits.h"

#include <sstream>

namespace eddy {
namespace {

// Few different times, so that many are equal; some of no length, some that vanish in a sum.
template <TimeValue Time>
Time random_time(Random& random, bool has_zeros) {
  if (has_zeros && random.below(4) == 0) return 0;
  if constexpr (std::same_as<Time, double>) {
    constexpr double kTimes[] = {0.1, 0.2, 0.3, 1.0, 7.5, 1e-20, 3e9, 1.0 / 3};
    return kTimes[random.below(has_zeros ? 8 : 5)];
  } else {
    return 1 + static_cast<int64_t>(random.below(5));
  }
}

template <TimeValue Time>
Change<Time> random_change(Random& random, uint32_t num_ids, uint32_t num_devices, bool has_zeros) {
  using Op = typename Change<Time>::Op;
  Change<Time> change;
  change.op = static_cast<Op>(random.below(6));
  change.id = static_cast<uint32_t>(random.below(num_ids));
  change.other = static_cast<uint32_t>(random.below(num_devices));
  change.exe_time = random_time<Time>(random, has_zeros);
  if (change.op == Op::kAddDep || change.op == Op::kRemoveDep) {
    change.other = static_cast<uint32_t>(random.below(num_ids));
    // Mostly forward, so that cycles stay rare.
    if (change.other < change.id && random.below(8) > 0) std::swap(change.id, change.other);
  }
  return change;
}

}  // namespace

template <TimeValue Time>
Story<Time> random_story(uint64_t seed, uint32_t max_tasks, uint32_t num_edits) {
  Random random(seed);
  Story<Time> story;
  const auto num_tasks = static_cast<uint32_t>(1 + random.below(max_tasks));
  const uint32_t num_ids = num_tasks + 4;
  const auto num_devices = static_cast<uint32_t>(1 + random.below(5));
  const bool has_zeros = random.below(2) == 0;
  const bool is_topological = random.below(2) == 0;
  const uint64_t density = 1 + random.below(4);
  std::vector<uint32_t> ids(num_tasks);
  for (uint32_t i = 0; i < num_tasks; ++i) ids[i] = i;
  for (uint32_t i = num_tasks; !is_topological && i > 1; --i) {
    std::swap(ids[i - 1], ids[random.below(i)]);
  }
  for (uint32_t i = 0; i < num_tasks; ++i) {
    ReferenceTask<Time>& task = story.graph[ids[i]];
    task.exe_time = random_time<Time>(random, has_zeros);
    task.device = static_cast<uint32_t>(random.below(num_devices));
    for (uint64_t k = random.below(density + 1); i > 0 && k > 0; --k) {
      task.deps.insert(ids[random.below(i)]);
    }
  }
  for (uint32_t i = 0; i < num_edits; ++i) {
    Edit<Time> edit;
    for (uint64_t k = random.below(4) == 0 ? 1 + random.below(6) : 1; k > 0; --k) {
      edit.changes.push_back(random_change<Time>(random, num_ids, num_devices + 1, has_zeros));
    }
    edit.threshold = static_cast<Time>(random.below(4 * num_tasks));
    story.edits.push_back(std::move(edit));
  }
  return story;
}

template <TimeValue Time>
bool apply_change(const Change<Time>& change, ReferenceGraph<Time>& graph) {
  using Op = typename Change<Time>::Op;
  const auto task = graph.find(change.id);
  if (change.op == Op::kAddTask) {
    if (task != graph.end()) return false;
    graph[change.id] = {change.exe_time, change.other, {}};
    return true;
  }
  if (task == graph.end()) return false;
  switch (change.op) {
    case Op::kSetExe:
      task->second.exe_time = change.exe_time;
      return true;
    case Op::kSetDevice:
      task->second.device = change.other;
      return true;
    case Op::kAddDep:
      return change.id != change.other && graph.contains(change.other) &&
             graph[change.other].deps.insert(change.id).second;
    case Op::kRemoveDep:
      return graph.contains(change.other) && graph[change.other].deps.erase(change.id) > 0;
    case Op::kRemoveTask:
      graph.erase(task);
      for (auto& [id, other] : graph) other.deps.erase(change.id);
      return true;
    case Op::kAddTask:
      break;
  }
  return false;
}

template <TimeValue Time>
std::string to_string(const Story<Time>& story) {
  static constexpr const char* kNames[] = {"set_exe",    "set_device", "add_dep",
                                           "remove_dep", "add_task",   "remove_task"};
  std::ostringstream out;
  out.precision(17);
  for (const auto& [id, task] : story.graph) {
    out << "task " << id << " exe " << task.exe_time << " device " << task.device << " deps";
    for (const uint32_t dep : task.deps) out << ' ' << dep;
    out << '\n';
  }
  for (const Edit<Time>& edit : story.edits) {
    out << "edit, threshold " << edit.threshold << ':';
    for (const Change<Time>& change : edit.changes) {
      out << ' ' << kNames[static_cast<int>(change.op)] << '(' << change.id << ", " << change.other
          << ", " << change.exe_time << ')';
    }
    out << '\n';
  }
  return out.str();
}

template Story<int64_t> random_story(uint64_t, uint32_t, uint32_t);
template Story<double> random_story(uint64_t, uint32_t, uint32_t);
template bool apply_change(const Change<int64_t>&, ReferenceGraph<int64_t>&);
template bool apply_change(const Change<double>&, ReferenceGraph<double>&);
template std::string to_string(const Story<int64_t>&);
template std::string to_string(const Story<double>&);

}  // namespace eddy
