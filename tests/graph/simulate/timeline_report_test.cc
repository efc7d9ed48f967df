// Timelines read as they are: JSON with exact integers and quoted names, text that names the busy
// devices, a critical path that is one, and pictures with boxes at the tasks' places.
#include "graph/simulate/timeline_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/base/random.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/timeline_svg.h"

namespace eddy {
namespace {

template <TimeValue Time>
struct Simulated {
  TaskGraph<Time> graph;
  Timeline<Time> timeline;
  std::vector<uint32_t> slots;

  Simulated(const std::vector<TaskSpec<Time>>& specs, const std::vector<Edge>& edges) {
    graph.assign(specs, edges);
    graph.make_predecessors();
    EXPECT_TRUE(simulate_full(graph, timeline).is_done());
    for (uint32_t slot = 0; slot < graph.num_slots(); ++slot) slots.push_back(slot);
  }
  TimelineView<Time> view() const {
    return {
        graph,
        timeline,
        slots,
        [](uint32_t slot) { return "t" + std::to_string(slot); },
        [](uint32_t device) { return device == 2 ? "link:\"a\">b" : "d" + std::to_string(device); },
        [this](uint32_t slot) { return graph.task(slot).device == 2; }};
  }
};

// 0 on d0, 1 on the link after it, 2 on d1 after that, 3 on d0 behind 0.
template <TimeValue Time>
Simulated<Time> four_tasks(Time unit) {
  return {{{unit, 0, 0}, {2 * unit, 2, 1}, {3 * unit, 1, 2}, {unit, 0, 3}}, {{0, 1}, {1, 2}}};
}

TEST(TimelineReport, JsonHoldsExactIntegersAndShortestDoubles) {
  std::string json;
  append_timeline_json(four_tasks<int64_t>(1'000'000'000'000'000'001).view(), json);
  EXPECT_EQ(json,
            "{\"makespan\":6000000000000000006,\"times\":{\"t0\":[0,1000000000000000001],"
            "\"t1\":[1000000000000000001,3000000000000000003],"
            "\"t2\":[3000000000000000003,6000000000000000006],"
            "\"t3\":[1000000000000000001,2000000000000000002]}}");
  json.clear();
  append_timeline_json(four_tasks<double>(0.1).view(), json);
  const auto document = nlohmann::json::parse(json);
  EXPECT_EQ(document["times"]["t2"][0].get<double>(), 0.1 + 2 * 0.1);
  EXPECT_EQ(document["makespan"].get<double>(), 0.1 + 2 * 0.1 + 3 * 0.1);
}

TEST(TimelineReport, JsonQuotesWhatNamesMayHold) {
  const Simulated<int64_t> simulated({{1, 0, 0}}, {});
  TimelineView<int64_t> view = simulated.view();
  const std::string name = "a\"b\\c\n\x01é";
  view.task_name = [&name](uint32_t) { return name; };
  std::string json;
  append_timeline_json(view, json);
  EXPECT_TRUE(nlohmann::json::parse(json)["times"].contains(name));
}

TEST(TimelineReport, TextSaysHowBusyEachDeviceIs) {
  EXPECT_EQ(timeline_text(four_tasks<int64_t>(5).view(), "initial"),
            "initial: makespan 30, 4 tasks on 3 devices\n"
            "  d0           33 % busy, 2 tasks:  t0 0-5  t3 5-10\n"
            "  d1           50 % busy, 1 task:  t2 15-30\n"
            "  link:\"a\">b   33 % busy, 1 task:  t1 5-15\n");
  const Simulated<int64_t> empty({}, {});
  EXPECT_EQ(timeline_text(empty.view(), "x"), "x: makespan 0, 0 tasks on 0 devices\n");
  const Simulated<int64_t> one({{5, 0, 0}}, {});
  EXPECT_TRUE(timeline_text(one.view(), "x").starts_with("x: makespan 5, 1 task on 1 device\n"));
}

TEST(TimelineReport, TheCriticalPathIsAChainWithoutGapsFromZeroToTheMakespan) {
  EXPECT_EQ(critical_path(four_tasks<int64_t>(5).graph, four_tasks<int64_t>(5).timeline),
            (std::vector<uint32_t>{0, 1, 2}));
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::vector<TaskSpec<int64_t>> specs;
    std::vector<Edge> edges;
    for (uint32_t i = 0; i < 60; ++i) {
      specs.push_back(
          {static_cast<int64_t>(random.below(5)), static_cast<uint32_t>(random.below(4)), i});
      if (i > 0) edges.push_back({static_cast<uint32_t>(random.below(i)), i});
    }
    const Simulated<int64_t> simulated(specs, edges);
    const std::vector<uint32_t> path = critical_path(simulated.graph, simulated.timeline);
    int64_t time = 0;
    for (const uint32_t slot : path) {
      EXPECT_EQ(simulated.timeline.tasks[slot].start, time) << "seed " << seed;
      time = simulated.timeline.tasks[slot].end;
    }
    EXPECT_EQ(time, simulated.timeline.makespan) << "seed " << seed;
  }
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(TimelineSvg, EveryTaskIsABoxAndTheCriticalOnesAreFramed) {
  const std::string svg = timeline_svg(four_tasks<int64_t>(5).view(), "a <title>");
  EXPECT_EQ(count(svg, "<title>"), 4u);
  EXPECT_NE(svg.find("<title>t2: 15 to 30</title>"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;title&gt;: makespan 30, 4 tasks"), std::string::npos);
  // Three on the path, and one in the legend.
  EXPECT_EQ(count(svg, "stroke=\"#d11\""), 4u);
  // One transfer, and one in the legend.
  EXPECT_EQ(count(svg, "fill=\"#fcd9a8\""), 2u);
  EXPECT_EQ(svg, timeline_svg(four_tasks<int64_t>(5).view(), "a <title>"));
  EXPECT_LT(svg.find(">d1<"), svg.find(">link:\"a\"&gt;b<")) << "links come last";
}

TEST(TimelineSvg, TasksTooNarrowToSeeAreDrawnTogether) {
  std::vector<TaskSpec<double>> specs;
  for (uint32_t i = 0; i < 100'000; ++i) specs.push_back({1e-3, i % 2, i});
  specs.push_back({1e3, 0, 100'000});
  const std::string svg = timeline_svg(Simulated<double>(specs, {}).view(), "many");
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_NE(svg.find("50000 tasks, 0 to "), std::string::npos);
  EXPECT_NE(timeline_svg(Simulated<int64_t>({}, {}).view(), "none").find("</svg>"),
            std::string::npos);
}

}  // namespace
}  // namespace eddy
