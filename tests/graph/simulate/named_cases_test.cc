// The cases that the printed delta algorithm leaves open, each by hand: what the new timeline is,
// that delta simulation finds it, and that taking the edit back restores the old one.
#include <gtest/gtest.h>

#include <initializer_list>

#include "graph/simulate/delta_simulation.h"
#include "graph/simulate/full_simulation.h"

namespace eddy {
namespace {

struct Given {
  int64_t exe_time;
  uint32_t device;
  std::initializer_list<uint32_t> deps;
};

// Slots and ranks are positions in the list.
DeltaSimulation<int64_t> simulated(std::initializer_list<Given> given) {
  std::vector<TaskSpec<int64_t>> specs;
  std::vector<Edge> edges;
  for (const Given& task : given) {
    const auto slot = static_cast<uint32_t>(specs.size());
    specs.push_back({task.exe_time, task.device, slot});
    for (const uint32_t dep : task.deps) edges.push_back({dep, slot});
  }
  TaskGraph<int64_t> graph;
  graph.assign(specs, edges);
  DeltaSimulation<int64_t> delta;
  EXPECT_TRUE(delta.reset(std::move(graph)).is_done());
  return delta;
}

using Starts = std::vector<int64_t>;

Starts starts(const DeltaSimulation<int64_t>& delta) {
  Starts result;
  for (uint32_t slot = 0; slot < delta.graph().num_slots(); ++slot) {
    result.push_back(delta.graph().is_live(slot) ? delta.times(slot).start : -1);
  }
  return result;
}

// The edit once with rollback and once for good, in every mode.
template <typename MakeEdit>
void expect_edit(std::initializer_list<Given> given, MakeEdit edit, const Starts& before,
                 const Starts& after, int64_t makespan) {
  for (const DeltaMode mode :
       {DeltaMode::kAuto, DeltaMode::kRepair, DeltaMode::kResimulate, DeltaMode::kFull}) {
    DeltaSimulation<int64_t> delta = simulated(given);
    EXPECT_EQ(starts(delta), before);
    const int64_t old_makespan = delta.makespan();
    edit(delta);
    EXPECT_TRUE(delta.simulate({.mode = mode}).is_done());
    EXPECT_EQ(starts(delta), after);
    EXPECT_EQ(delta.makespan(), makespan);
    delta.rollback();
    EXPECT_EQ(starts(delta), before);
    EXPECT_EQ(delta.makespan(), old_makespan);

    edit(delta);
    EXPECT_TRUE(delta.simulate({.mode = mode}).is_done());
    delta.commit();
    EXPECT_EQ(starts(delta), after);
    EXPECT_EQ(delta.makespan(), makespan);
    Timeline<int64_t> full;
    EXPECT_TRUE(simulate_full(delta.graph(), full).is_done());
    EXPECT_EQ(full.order, delta.timeline().order);
  }
}

using Delta = DeltaSimulation<int64_t>;

TEST(NamedCases, TasksChangePlacesOnADevice) {
  // 2 and 3 wait for 0 and 1 and share device 2.
  expect_edit(
      {{1, 0, {}}, {2, 1, {}}, {5, 2, {0}}, {5, 2, {1}}}, [](Delta& d) { d.set_exe_time(0, 3); },
      {0, 0, 1, 6}, {0, 0, 7, 2}, 12);
}

TEST(NamedCases, TheFollowerOfATaskThatMovedStartsEarlier) {
  // 3 followed 2 on device 2; once 2 has gone behind 4, 3 starts when it is ready.
  expect_edit(
      {{1, 0, {}}, {2, 1, {}}, {5, 2, {0}}, {1, 2, {1}}, {1, 2, {1}}},
      [](Delta& d) { d.set_exe_time(0, 4); }, {0, 0, 1, 6, 7}, {0, 0, 4, 2, 3}, 9);
}

TEST(NamedCases, AmongEqualReadyTimesTheSmallerRankGoesFirst) {
  expect_edit(
      {{3, 0, {}}, {2, 1, {}}, {4, 2, {0}}, {4, 2, {1}}}, [](Delta& d) { d.set_exe_time(1, 3); },
      {0, 0, 6, 2}, {0, 0, 3, 7}, 11);
}

TEST(NamedCases, TheFollowerOfARemovedTaskMovesUp) {
  expect_edit(
      {{4, 0, {}}, {4, 0, {}}, {4, 0, {}}}, [](Delta& d) { d.remove_task(1); }, {0, 4, 8},
      {0, -1, 4}, 8);
}

TEST(NamedCases, TheMakespanFallsWhenTheLastTaskGoes) {
  expect_edit(
      {{4, 0, {}}, {9, 1, {0}}, {3, 2, {0}}}, [](Delta& d) { d.remove_task(1); }, {0, 4, 4},
      {0, -1, 4}, 7);
}

TEST(NamedCases, AStaleOrderDoesNotStopTheSimulation) {
  // Old order on both devices and the new dependency form a circle: 0 before 1 on device 0, 2
  // before 3 on device 1, and now 0 after 3 and 2 after 1.
  expect_edit(
      {{1, 0, {}}, {1, 0, {}}, {1, 1, {}}, {1, 1, {}}},
      [](Delta& d) {
        d.add_dep(3, 0);
        d.add_dep(1, 2);
      },
      {0, 1, 0, 1}, {1, 0, 1, 0}, 2);
}

TEST(NamedCases, AShorterTaskMayLengthenTheMakespan) {
  // Graham's anomaly: 0 ends earlier, so 2 overtakes 3, which the long 4 waits for.
  expect_edit(
      {{3, 0, {}}, {2, 1, {}}, {5, 2, {0}}, {2, 2, {1}}, {9, 1, {3}}},
      [](Delta& d) { d.set_exe_time(0, 1); }, {0, 0, 4, 2, 4}, {0, 0, 1, 6, 8}, 17);
}

TEST(NamedCases, ATaskOfNoLengthMayReleaseOneOfSmallerRankAtItsOwnInstant) {
  // 4 takes no time and releases 1, which then comes after 3 although its rank is smaller.
  DeltaSimulation<int64_t> delta =
      simulated({{2, 0, {}}, {5, 1, {4}}, {1, 2, {}}, {5, 1, {0}}, {0, 3, {0}}});
  EXPECT_EQ(starts(delta), (Starts{0, 7, 0, 2, 2}));
}

TEST(NamedCases, ATaskOfNoLengthStopsDelayingThoseItReleases) {
  // Task 4 ends at 3 before and after; before, it left the queue at 3 as well, behind 3 and so
  // too late for 2; now it leaves at 2 and 2 is there in time.
  expect_edit(
      {{3, 0, {}}, {3, 1, {}}, {5, 2, {4}}, {5, 2, {1}}, {0, 1, {0}}},
      [](Delta& d) { d.set_exe_time(0, 2); }, {0, 0, 8, 3, 3}, {0, 0, 3, 8, 3}, 13);
}

TEST(NamedCases, ATaskOfNoLengthBeginsToDelayThoseItReleases) {
  expect_edit(
      {{2, 0, {}}, {3, 1, {}}, {5, 2, {4}}, {5, 2, {1}}, {0, 1, {0}}},
      [](Delta& d) { d.set_exe_time(0, 3); }, {0, 0, 3, 8, 3}, {0, 0, 8, 3, 3}, 13);
}

TEST(NamedCases, AMovedTaskLeavesOneDeviceAndJoinsAnother) {
  expect_edit(
      {{4, 0, {}}, {4, 0, {}}, {4, 0, {}}, {1, 1, {}}}, [](Delta& d) { d.set_device(1, 1); },
      {0, 4, 8, 0}, {0, 0, 4, 4}, 8);
}

TEST(NamedCases, ANewTaskGetsTheSlotOfOneRemovedOnlyAfterCommit) {
  DeltaSimulation<int64_t> delta = simulated({{1, 0, {}}, {1, 0, {0}}});
  delta.remove_task(1);
  const uint32_t slot = delta.add_task({7, 0, 5});
  EXPECT_EQ(slot, 2u);
  EXPECT_TRUE(delta.simulate().is_done());
  EXPECT_EQ(delta.makespan(), 8);
  delta.commit();
  EXPECT_EQ(delta.add_task({1, 0, 6}), 1u);
  delta.rollback();
  EXPECT_EQ(delta.add_task({1, 0, 6}), 1u) << "a rollback gives the slot back";
}

TEST(NamedCases, ACycleNamesItsTasksInOrder) {
  DeltaSimulation<int64_t> delta = simulated({{1, 0, {}}, {1, 0, {0}}, {1, 0, {1}}, {1, 0, {2}}});
  delta.add_dep(2, 0);
  const SimulationResult result = delta.simulate();
  EXPECT_EQ(result.end, SimulationEnd::kCycle);
  EXPECT_EQ(result.culprits.size(), 3u);
  delta.rollback();
  EXPECT_EQ(delta.makespan(), 4);
}

TEST(NamedCases, AnEndThatDoesNotFitIsOverflow) {
  constexpr int64_t kHuge = INT64_MAX / 2 + 1;
  DeltaSimulation<int64_t> delta = simulated({{kHuge, 0, {}}, {1, 0, {0}}});
  delta.set_exe_time(1, kHuge);
  const SimulationResult result = delta.simulate();
  EXPECT_EQ(result.end, SimulationEnd::kOverflow);
  EXPECT_EQ(result.culprits, std::vector<uint32_t>{1});
  delta.rollback();
  EXPECT_EQ(delta.makespan(), kHuge + 1);

  TaskGraph<double> doubles;
  const std::vector<TaskSpec<double>> specs = {{1e308, 0, 0}, {1e308, 0, 1}};
  doubles.assign(specs, {});
  Timeline<double> timeline;
  EXPECT_EQ(simulate_full(doubles, timeline).end, SimulationEnd::kOverflow);
}

TEST(NamedCases, AnEmptyGraphTakesNoTimeAndCanGrow) {
  DeltaSimulation<int64_t> delta = simulated({});
  EXPECT_EQ(delta.makespan(), 0);
  delta.add_task({3, 7, 0});
  EXPECT_TRUE(delta.simulate().is_done());
  delta.commit();
  EXPECT_EQ(delta.makespan(), 3);
  delta.remove_task(0);
  EXPECT_TRUE(delta.simulate().is_done());
  delta.commit();
  EXPECT_EQ(delta.makespan(), 0);
}

TEST(NamedCases, AnEditFarBehindTouchesLittle) {
  std::vector<TaskSpec<int64_t>> specs;
  for (uint32_t i = 0; i < 1000; ++i) specs.push_back({1, i % 2, i});
  TaskGraph<int64_t> graph;
  graph.assign(specs, {});
  DeltaSimulation<int64_t> delta;
  EXPECT_TRUE(delta.reset(std::move(graph)).is_done());
  delta.set_exe_time(990, 5);
  EXPECT_TRUE(delta.simulate().is_done());
  EXPECT_LE(delta.statistics().num_processed + delta.statistics().num_passed, 1000u);
  EXPECT_EQ(delta.statistics().num_processed, 1u);
}

TEST(NamedCases, ARejectionComesAsSoonAsADeviceHasTooMuchWork) {
  std::vector<TaskSpec<int64_t>> specs;
  for (uint32_t i = 0; i < 1000; ++i) specs.push_back({1, i % 2, i});
  TaskGraph<int64_t> graph;
  graph.assign(specs, {});
  DeltaSimulation<int64_t> delta;
  EXPECT_TRUE(delta.reset(std::move(graph)).is_done());
  for (const DeltaMode mode :
       {DeltaMode::kAuto, DeltaMode::kRepair, DeltaMode::kResimulate, DeltaMode::kFull}) {
    delta.set_exe_time(0, 5);
    EXPECT_EQ(delta.simulate({.threshold = 503, .mode = mode}).end, SimulationEnd::kExceeds);
    EXPECT_LE(delta.statistics().num_processed + delta.statistics().num_passed, 2u);
    delta.rollback();
    delta.set_exe_time(0, 5);
    EXPECT_TRUE(delta.simulate({.threshold = 504, .mode = mode}).is_done());
    EXPECT_EQ(delta.makespan(), 504);
    delta.rollback();
    EXPECT_EQ(delta.makespan(), 500);
  }
}

}  // namespace
}  // namespace eddy
