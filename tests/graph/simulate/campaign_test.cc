// Delta equals full equals the definition, bit for bit, on random graphs under random edits:
// integers and doubles, with and without zero-length tasks, one change or several at once, after
// commit and after rollback, in every mode; rejection by threshold agrees with the whole
// simulation; cycles are found and are cycles. Full simulation is the same by heap and by calendar,
// whatever is kept.
//
// EDDY_SIMULATE_GRAPHS and EDDY_SIMULATE_EDITS (edits a graph) set the length of the campaign,
// EDDY_SIMULATE_SEED its first seed. A difference is shrunk and printed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <unordered_map>

#include "graph/simulate/delta_simulation.h"
#include "graph/simulate/full_simulation.h"
#include "tests/graph/simulate/random_edits.h"

namespace eddy {
namespace {

uint64_t setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// A graph under delta simulation, spoken to in ids.
template <TimeValue Time>
class Subject {
 public:
  Subject(const ReferenceGraph<Time>& graph, DeltaMode mode) : mode_(mode) {
    TaskGraph<Time> tasks;
    std::vector<TaskSpec<Time>> specs;
    std::vector<Edge> edges;
    for (const auto& [id, task] : graph) {
      slots_[id] = static_cast<uint32_t>(specs.size());
      specs.push_back({task.exe_time, task.device, id});
    }
    for (const auto& [id, task] : graph) {
      for (const uint32_t dep : task.deps) edges.push_back({slots_.at(dep), slots_.at(id)});
    }
    tasks.assign(specs, edges);
    is_sound_ = delta_.reset(std::move(tasks)).is_done();
  }

  bool is_sound() const { return is_sound_; }

  void apply(const Change<Time>& change) {
    using Op = typename Change<Time>::Op;
    switch (change.op) {
      case Op::kSetExe:
        return delta_.set_exe_time(slots_.at(change.id), change.exe_time);
      case Op::kSetDevice:
        return delta_.set_device(slots_.at(change.id), change.other);
      case Op::kAddDep:
        return delta_.add_dep(slots_.at(change.id), slots_.at(change.other));
      case Op::kRemoveDep:
        delta_.remove_dep(slots_.at(change.id), slots_.at(change.other));
        return;
      case Op::kAddTask:
        slots_[change.id] = delta_.add_task({change.exe_time, change.other, change.id});
        return;
      case Op::kRemoveTask:
        delta_.remove_task(slots_.at(change.id));
        slots_.erase(change.id);
        return;
    }
  }

  SimulationResult simulate(Time threshold) {
    return delta_.simulate({.threshold = threshold, .mode = mode_});
  }
  void commit() {
    delta_.commit();
    before_ = slots_;
  }
  void rollback() {
    delta_.rollback();
    slots_ = before_;
  }
  void remember() { before_ = slots_; }

  bool agrees_with(const ReferenceTimeline<Time>& expected) const {
    if (delta_.makespan() != expected.makespan) return false;
    if (slots_.size() != expected.tasks.size()) return false;
    for (const auto& [id, times] : expected.tasks) {
      const TaskTimes<Time>& found = delta_.times(slots_.at(id));
      if (found.ready != times.ready || found.start != times.start || found.end != times.end) {
        return false;
      }
    }
    return true;
  }

  // What the delta simulation keeps beside the times is what a full simulation would make.
  bool agrees_with_full() const {
    Timeline<Time> full;
    if (!simulate_full(delta_.graph(), full).is_done()) return false;
    if (full.order != delta_.timeline().order || full.makespan != delta_.makespan()) return false;
    for (const uint32_t slot : full.order) {
      if (full.tasks[slot].position != delta_.times(slot).position) return false;
      if (full.tasks[slot].end != delta_.times(slot).end) return false;
    }
    return true;
  }

  // By the heap and by the calendar, from the start and behind half of the tasks, up to a threshold
  // that is the makespan and below it.
  bool agrees_in_every_way() const {
    FullSimulation<Time> simulation;
    const Timeline<Time>& expected = delta_.timeline();
    for (const uint32_t num_little : {0u, EventLoop::kLittle}) {
      for (const size_t num_kept : {size_t{0}, expected.order.size() / 2}) {
        FullOptions<Time> options{.old_or_null = &expected,
                                  .num_kept = static_cast<uint32_t>(num_kept),
                                  .num_little = num_little};
        Timeline<Time> found;
        if (!simulation.run(delta_.graph(), found, options).is_done()) return false;
        if (found.order != expected.order || found.makespan != expected.makespan) return false;
        for (const uint32_t slot : found.order) {
          if (found.tasks[slot].ready != expected.tasks[slot].ready) return false;
          if (found.tasks[slot].start != expected.tasks[slot].start) return false;
        }
        options.threshold = expected.makespan;
        if (!simulation.run(delta_.graph(), found, options).is_done()) return false;
        if (found.order != expected.order) return false;
        if (expected.makespan == 0) continue;
        options.threshold = expected.makespan / 2;
        if (simulation.run(delta_.graph(), found, options).is_done()) return false;
      }
    }
    return true;
  }

  bool is_cycle(const std::vector<uint32_t>& slots) const {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!delta_.graph().has_dep(slots[i], slots[(i + 1) % slots.size()])) return false;
    }
    return !slots.empty();
  }

 private:
  DeltaMode mode_;
  DeltaSimulation<Time> delta_;
  std::unordered_map<uint32_t, uint32_t> slots_;
  std::unordered_map<uint32_t, uint32_t> before_;
  bool is_sound_ = false;
};

// Applies the edit's changes that mean something; the graph after them.
template <TimeValue Time>
ReferenceGraph<Time> apply_edit(const Edit<Time>& edit, const ReferenceGraph<Time>& graph,
                                Subject<Time>& subject) {
  ReferenceGraph<Time> edited = graph;
  for (const Change<Time>& change : edit.changes) {
    if (apply_change(change, edited)) subject.apply(change);
  }
  return edited;
}

// Where the story goes wrong in this mode; empty where it does not.
template <TimeValue Time>
std::string find_difference(const Story<Time>& story, DeltaMode mode) {
  const auto initial = simulate_reference(story.graph);
  Subject<Time> subject(story.graph, mode);
  if (!initial) return subject.is_sound() ? "a cycle is not found" : "";
  if (!subject.is_sound() || !subject.agrees_with(*initial)) return "the first timeline";
  ReferenceGraph<Time> graph = story.graph;
  ReferenceTimeline<Time> timeline = *initial;
  for (size_t i = 0; i < story.edits.size(); ++i) {
    const std::string where = " at edit " + std::to_string(i);
    const Edit<Time>& edit = story.edits[i];
    subject.remember();
    // First against the threshold, and back; then in earnest.
    ReferenceGraph<Time> edited = apply_edit(edit, graph, subject);
    const auto expected = simulate_reference(edited);
    const SimulationResult tried = subject.simulate(edit.threshold);
    if (expected && tried.is_done() != (expected->makespan <= edit.threshold)) {
      return "the verdict" + where;
    }
    subject.rollback();
    if (!subject.agrees_with(timeline)) return "the rollback" + where;
    if (!subject.agrees_with_full()) return "the order after the rollback" + where;

    apply_edit(edit, graph, subject);
    const SimulationResult result = subject.simulate(std::numeric_limits<Time>::max());
    if (!expected) {
      if (result.end != SimulationEnd::kCycle || !subject.is_cycle(result.culprits)) {
        return "the cycle" + where;
      }
      subject.rollback();
      if (!subject.agrees_with(timeline)) return "the rollback of a cycle" + where;
      continue;
    }
    if (!result.is_done() || !subject.agrees_with(*expected)) return "the timeline" + where;
    subject.commit();
    if (!subject.agrees_with_full()) return "the order" + where;
    if (!subject.agrees_in_every_way()) return "a way to simulate in full" + where;
    graph = std::move(edited);
    timeline = *expected;
  }
  return "";
}

template <TimeValue Time>
std::string find_difference(const Story<Time>& story) {
  for (const DeltaMode mode :
       {DeltaMode::kAuto, DeltaMode::kRepair, DeltaMode::kResimulate, DeltaMode::kFull}) {
    const std::string difference = find_difference(story, mode);
    if (!difference.empty()) {
      return difference + " in mode " + std::to_string(static_cast<int>(mode));
    }
  }
  return "";
}

// Leaves out edits, changes, tasks and dependencies as long as the rest still differs.
template <TimeValue Time>
Story<Time> shrink(Story<Time> story) {
  const auto try_without = [&story](auto remove) {
    Story<Time> smaller = story;
    remove(smaller);
    if (find_difference(smaller).empty()) return false;
    story = std::move(smaller);
    return true;
  };
  for (bool has_shrunk = true; has_shrunk;) {
    has_shrunk = false;
    for (size_t i = story.edits.size(); i-- > 0;) {
      has_shrunk |= try_without([i](Story<Time>& s) { s.edits.erase(s.edits.begin() + i); });
    }
    for (size_t i = 0; i < story.edits.size(); ++i) {
      for (size_t k = story.edits[i].changes.size(); k-- > 0;) {
        has_shrunk |= try_without(
            [i, k](Story<Time>& s) { s.edits[i].changes.erase(s.edits[i].changes.begin() + k); });
      }
    }
    std::vector<uint32_t> ids;
    for (const auto& [id, task] : story.graph) ids.push_back(id);
    for (const uint32_t id : ids) {
      has_shrunk |= try_without([id](Story<Time>& s) {
        apply_change({.op = Change<Time>::Op::kRemoveTask, .id = id}, s.graph);
      });
    }
    for (const auto& [id, task] : ReferenceGraph<Time>(story.graph)) {
      for (const uint32_t dep : task.deps) {
        has_shrunk |= try_without([id = id, dep](Story<Time>& s) {
          if (s.graph.contains(id)) s.graph[id].deps.erase(dep);
        });
      }
    }
  }
  return story;
}

template <TimeValue Time>
void run_campaign(uint64_t num_graphs, uint32_t num_edits, uint32_t max_tasks) {
  const uint64_t first_seed = setting("EDDY_SIMULATE_SEED", 1);
  std::cout << num_graphs << " graphs of up to " << max_tasks << " tasks, " << num_edits
            << " edits each, seeds from " << first_seed << '\n';
  for (uint64_t seed = first_seed; seed < first_seed + num_graphs; ++seed) {
    const Story<Time> story = random_story<Time>(seed, max_tasks, num_edits);
    const std::string difference = find_difference(story);
    if (difference.empty()) continue;
    const Story<Time> smallest = shrink(story);
    FAIL() << difference << ", seed " << seed << "; shrunk:\n"
           << to_string(smallest) << "differs: " << find_difference(smallest);
  }
}

TEST(Campaign, DeltaOnIntegersIsTheDefinition) {
  run_campaign<int64_t>(setting("EDDY_SIMULATE_GRAPHS", 2000),
                        static_cast<uint32_t>(setting("EDDY_SIMULATE_EDITS", 10)), 16);
}

TEST(Campaign, DeltaOnDoublesIsTheDefinition) {
  run_campaign<double>(setting("EDDY_SIMULATE_GRAPHS", 2000),
                       static_cast<uint32_t>(setting("EDDY_SIMULATE_EDITS", 10)), 16);
}

TEST(Campaign, LargerGraphsToo) {
  run_campaign<int64_t>(10, 20, 120);
  run_campaign<double>(10, 20, 120);
}

}  // namespace
}  // namespace eddy
