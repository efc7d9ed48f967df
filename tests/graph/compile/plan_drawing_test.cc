// A drawn plan holds every node and wait of the plan; its layout keeps boxes apart, inside their
// regions, to the right of what they wait for, and each rank at one place; labels are beside each
// other; its texts are stable.
#include "graph/compile/plan_drawing.h"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/compile/plan_dot.h"
#include "graph/compile/plan_layout.h"
#include "graph/compile/plan_svg.h"
#include "graph/compile/plan_text.h"
#include "graph/program/step_nodes.h"
#include "graph/schedule/plan/value_text.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tools/command/dag/dag_drawing.h"

namespace eddy {
namespace {

// A random DAG of `num_nodes`, planned by rank: each node has up to two edges from
// nodes at most `reach` ids before it, and at least `min_edges`.
DrawnRegion random_drawing(uint32_t num_nodes, uint64_t seed, uint32_t reach = 1000,
                           uint64_t min_edges = 0) {
  Random random(seed);
  std::string edges;
  for (uint32_t to = 1; to < num_nodes; ++to) {
    for (uint64_t k = std::max(min_edges, random.below(3)); k > 0; --k) {
      const uint64_t from = to - 1 - random.below(std::min(to, reach));
      edges += fmt::format("{}[{},{}]", edges.empty() ? "" : ",", from, to);
    }
  }
  auto file = parse_dag_file(fmt::format("{{\"nodes\":{},\"edges\":[{}]}}", num_nodes, edges));
  EXPECT_TRUE(file.is_ok()) << file.status().to_string();
  auto plan = plan_dag(*file, {});
  EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
  return draw_dag_plan(*file, *plan);
}

// Puts drawings of `depth` further levels into one node of each region.
DrawnRegion nested_drawing(uint32_t num_nodes, uint64_t seed, int depth) {
  DrawnRegion region = random_drawing(num_nodes, seed);
  if (depth == 0 || region.nodes.empty()) return region;
  DrawnNode& node = region.nodes[region.nodes.size() / 2];
  node.kind = "while";
  node.regions = {nested_drawing(num_nodes / 2, seed + 1, 0),
                  nested_drawing(num_nodes / 2, seed + 2, depth - 1)};
  return region;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// In a band all nodes of one rank begin at one x, and those of higher ranks before it.
void check_columns(const DrawnRegion& region, const RegionLayout& layout) {
  const auto rank = [&](size_t i) { return std::stod(region.nodes[i].rank); };
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (layout.nodes[i].band != layout.nodes[j].band) continue;
      if (rank(i) == rank(j)) {
        ASSERT_EQ(layout.nodes[i].x, layout.nodes[j].x) << i << " and " << j;
      } else {
        ASSERT_GT(rank(j), rank(i));
        ASSERT_GT(layout.nodes[i].x, layout.nodes[j].x) << i << " and " << j;
      }
    }
    for (size_t r = 0; r < region.nodes[i].regions.size(); ++r) {
      check_columns(region.nodes[i].regions[r], layout.nodes[i].regions[r]);
    }
  }
}

struct Box {
  double left, top, right, bottom;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

void check_layout(const DrawnRegion& region, const RegionLayout& layout) {
  ASSERT_EQ(layout.nodes.size(), region.nodes.size());
  std::vector<Box> boxes;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const NodeLayout& node = layout.nodes[i];
    ASSERT_EQ(node.centers.size(), region.nodes[i].streams.size());
    for (const double center : node.centers) {
      const Box box = {node.x, center - node.height / 2, node.x + node.width,
                       center + node.height / 2};
      EXPECT_GE(box.left, 0);
      EXPECT_GE(box.top, 0);
      EXPECT_LE(box.right, layout.width);
      EXPECT_LE(box.bottom, layout.height);
      for (const Box& other : boxes) EXPECT_FALSE(box.overlaps(other)) << "node " << i;
      boxes.push_back(box);
    }
    for (size_t r = 0; r < region.nodes[i].regions.size(); ++r) {
      const RegionLayout& inner = node.regions[r];
      EXPECT_LE(inner.x + inner.width, node.width);
      EXPECT_LE(inner.y + inner.height, node.height);
      check_layout(region.nodes[i].regions[r], inner);
    }
  }
  for (const DrawnWait& wait : region.waits) {
    const NodeLayout& from = layout.nodes[wait.from];
    const NodeLayout& to = layout.nodes[wait.to];
    EXPECT_LE(from.band, to.band);
    if (from.band == to.band) {
      EXPECT_GT(to.x, from.x + from.width);
    }
  }
}

TEST(PlanLayout, BoxesStayApartInsideAndBehindWhatTheyWaitFor) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const DrawnRegion region = nested_drawing(static_cast<uint32_t>(5 + seed * 4), seed, 3);
    check_layout(region, lay_out_plan(region, 900));
  }
}

TEST(PlanLayout, ARankIsAColumnAndHigherRanksStandToTheLeft) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const DrawnRegion region = nested_drawing(static_cast<uint32_t>(5 + seed * 4), seed, 3);
    ASSERT_NO_FATAL_FAILURE(check_columns(region, lay_out_plan(region, 900)));
  }
  const DrawnRegion wide = random_drawing(2000, 1);
  ASSERT_NO_FATAL_FAILURE(check_columns(wide, lay_out_plan(wide, 1500)));
}

TEST(PlanLayout, RanksByCostsOrderColumnsTooButNeedNoWidthForEach) {
  Random random(3);
  std::string edges = "[0,1]", costs = "1";
  for (int node = 1; node < 300; ++node) {
    costs += fmt::format(",{}", 1 + random.below(1000));
    if (node > 1) edges += fmt::format(",[{},{}]", random.below(static_cast<uint64_t>(node)), node);
  }
  const auto file =
      parse_dag_file(fmt::format("{{\"nodes\":300,\"edges\":[{}],\"costs\":[{}]}}", edges, costs));
  const auto plan = plan_dag(*file, {.rank_by_costs = true});
  const DrawnRegion region = draw_dag_plan(*file, *plan);
  const RegionLayout layout = lay_out_plan(region, 1500);
  check_layout(region, layout);
  ASSERT_NO_FATAL_FAILURE(check_columns(region, layout));
  EXPECT_LT(layout.bands.size(), 5u) << "300 columns beside each other need more";
}

TEST(PlanLayout, WhatACapPutsOnOneLaneStandsBehindEachOther) {
  const auto file = parse_dag_file(R"({"nodes":200,"edges":[]})");
  const auto plan = plan_dag(*file, {.max_streams = 2});
  const DrawnRegion region = draw_dag_plan(*file, *plan);
  const RegionLayout layout = lay_out_plan(region, 900);
  check_layout(region, layout);
  EXPECT_GT(layout.bands.size(), 3u);
  EXPECT_LE(layout.width, 910);
}

struct Label {
  double y, left, right;
};

// The events' names of a picture.
std::vector<Label> labels_of(const std::string& svg) {
  static const std::regex kLabel(
      "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" fill=\"#c22\" font-size=\"7\" "
      "text-anchor=\"(start|end)\">([^<]*)<title>");
  std::vector<Label> labels;
  for (std::sregex_iterator it(svg.begin(), svg.end(), kLabel), end; it != end; ++it) {
    const std::string text = (*it)[4];
    // A letter has one byte that does not go on an earlier one.
    const auto letters = std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
    const double width = static_cast<double>(letters) * 4.2;
    const double x = std::stod((*it)[1]);
    const double left = (*it)[3] == "start" ? x : x - width;
    labels.push_back({std::stod((*it)[2]), left, left + width});
  }
  return labels;
}

TEST(PlanLayout, NoLabelStandsOverAnother) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const DrawnRegion region = random_drawing(2000, seed, 1000, 2);
    uint32_t highest = 0;
    for (const DrawnWait& wait : region.waits) highest = std::max(highest, wait.event);
    EXPECT_GE(highest, 1000u) << "events of four digits";
    std::vector<Label> labels = labels_of(plan_svg(region, "labels"));
    EXPECT_GT(labels.size(), 1000u);
    std::ranges::sort(labels, {}, [](const Label& each) { return std::pair(each.y, each.left); });
    for (size_t i = 1; i < labels.size(); ++i) {
      if (labels[i].y != labels[i - 1].y) continue;
      ASSERT_LE(labels[i - 1].right, labels[i].left) << "at y " << labels[i].y;
    }
  }
}

// Arrows are for what the eye can follow.
TEST(PlanLayout, AWaitAcrossManyLanesIsNoArrow) {
  const DrawnRegion wide = random_drawing(2000, 1);
  const RegionLayout layout = lay_out_plan(wide, 1500);
  ASSERT_EQ(layout.is_arrow.size(), wide.waits.size());
  size_t num_arrows = 0;
  for (size_t w = 0; w < wide.waits.size(); ++w) {
    if (!layout.is_arrow[w]) continue;
    ++num_arrows;
    const NodeLayout& from = layout.nodes[wide.waits[w].from];
    const NodeLayout& to = layout.nodes[wide.waits[w].to];
    ASSERT_EQ(from.band, to.band);
    const BandLayout& band = layout.bands[from.band];
    const double top = std::min(from.centers[0], to.centers[0]);
    const double bottom = std::max(from.centers[0], to.centers[0]);
    const auto between = std::ranges::count_if(band.lanes, [&](const LaneLayout& lane) {
      return lane.center > top && lane.center <= bottom;
    });
    if (band.lanes.size() > kManyLanes) {
      EXPECT_LE(between, static_cast<ptrdiff_t>(kNearLanes));
    }
  }
  EXPECT_GT(num_arrows, 0u);
  EXPECT_LT(num_arrows, wide.waits.size() / 2);
  // The rest has its event's name at both ends.
  const std::string svg = plan_svg(wide, "wide");
  EXPECT_EQ(count_of(svg, "marker-end"), num_arrows);
  EXPECT_GT(count_of(svg, "<title>waits for e"), 0u);

  const DrawnRegion narrow = random_drawing(20, 1);
  const RegionLayout few = lay_out_plan(narrow, 5000);
  EXPECT_EQ(std::ranges::count(few.is_arrow, true), std::ssize(narrow.waits));
}

TEST(PlanLayout, ALongPlanIsBrokenIntoBandsOfThePagesWidth) {
  const DrawnRegion region = random_drawing(2000, 1, 3, 1);
  const RegionLayout layout = lay_out_plan(region, 1500);
  EXPECT_LE(layout.width, 1510);
  EXPECT_GT(layout.bands.size(), 10u);
}

TEST(PlanLayout, ANodeThatWaitsAndIsWaitedForHasRoomForBothLabels) {
  DrawnRegion region;
  for (const char* name : {"a", "b", "c"}) {
    region.nodes.push_back({});
    region.nodes.back().name = name;
    region.nodes.back().streams = {0};
  }
  region.num_streams = 1;
  region.entry_waits = {0, 1};
  region.exit_waits = {1, 2};
  const RegionLayout layout = lay_out_plan(region, 1500);
  EXPECT_GE(layout.nodes[1].width, 52);
  EXPECT_LT(layout.nodes[0].width, 52);
  EXPECT_EQ(layout.nodes[0].width, layout.nodes[2].width);
}

TEST(PlanPictures, ShowEveryNodeOfEveryRegion) {
  const DrawnRegion region = nested_drawing(30, 7, 2);
  const DrawnTotals totals = count_drawn(region);
  EXPECT_EQ(totals.regions, 5u);
  EXPECT_EQ(count_of(plan_svg(region, "title"), "<g><title>"), totals.nodes);
  EXPECT_EQ(count_of(plan_text(region), "  rank "), totals.nodes);
  EXPECT_EQ(count_of(plan_dot(region), "fillcolor="), totals.nodes);
  EXPECT_EQ(count_of(plan_dot(region), "[color=red,"), totals.waits);
}

const DrawnRegion* find_open(const DrawnRegion& region) {
  if (!region.next_waits.empty()) return &region;
  for (const DrawnNode& node : region.nodes) {
    for (const DrawnRegion& inner : node.regions) {
      if (const DrawnRegion* found = find_open(inner)) return found;
    }
  }
  return nullptr;
}

// Each reference that a stream takes is said with the stream, the value and the node.
void expect_takes(const Graph& graph, const Plan& plan, RegionId id, const std::string& text) {
  const std::vector<Program::Step>& steps = plan.program.blocks[id.index()].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].op != Program::Op::kRetain) continue;
    std::string values;
    for (const Program::Alias& alias : plan.program.launches[steps[i].operand].aliases) {
      values += (values.empty() ? "" : ", ") + value_text(graph, ValueId(alias.from));
    }
    size_t next = i;
    while (!is_node(steps[next].op) || steps[next].stream != steps[i].stream) ++next;
    const std::string whole = fmt::format("stream {} takes {} before {}", steps[i].stream, values,
                                          graph.node(node_of(plan.program, steps[next])).name);
    EXPECT_NE(text.find(whole), std::string::npos) << whole;
  }
}

TEST(PlanPictures, SayOfEachWaitBetweenIterationsWhichEdgeItServes) {
  uint32_t num_waits = 0;
  uint32_t num_takes = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = nested_graph(seed, {.max_depth = 2, .max_nodes = 60});
    const Plan plan = plan_graph(graph, {.is_auto = false});
    size_t expected = 0;
    for (uint32_t r = 0; r < plan.regions.size(); ++r) {
      const Program::Block& block = plan.program.blocks[r];
      if (!is_pipelined(plan.program, block)) continue;
      const std::vector<uint32_t> beside = find_step_nodes(block);
      expected = 0;
      for (size_t i = 0; i < block.steps.size(); ++i) {
        const Program::Op op = block.steps[i].op;
        const bool is_at_end = op == Program::Op::kWait && beside[i] == Program::kNone;
        expected += is_at_end || op == Program::Op::kWaitPrevious ? 1 : 0;
        num_takes += op == Program::Op::kRetain ? 1 : 0;
      }
      EXPECT_EQ(draw_region(graph, plan, RegionId(r)).next_waits.size(), expected);
    }
    const DrawnRegion drawing = draw_plan(graph, plan, {});
    const DrawnRegion* const open = find_open(drawing);
    if (open == nullptr) continue;
    const std::string text = plan_text(drawing);
    for (uint32_t r = 0; r < plan.regions.size(); ++r) expect_takes(graph, plan, RegionId(r), text);
    const std::string dot = plan_dot(drawing);
    const std::string svg = plan_svg(drawing, "plan");
    for (const DrawnNextWait& wait : open->next_waits) {
      ++num_waits;
      EXPECT_LT(wait.from, open->nodes.size());
      EXPECT_NE(wait.text.find(" waits for e" + std::to_string(wait.event) + " of "),
                std::string::npos);
      for (const std::string& form : {text, dot, svg}) {
        EXPECT_NE(form.find(wait.text), std::string::npos) << wait.text;
      }
    }
  }
  EXPECT_GT(num_waits, 30u);
  EXPECT_GT(num_takes, 10u);
}

TEST(PlanPictures, ShowEachWaitAtAnEntryOrExitAndCountAllThatAreIssued) {
  size_t num_at_entries = 0;
  size_t num_at_exits = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = nested_graph(seed, {.max_depth = 3, .max_nodes = 40});
    const Plan plan = plan_graph(graph, {.is_auto = false});
    size_t num_records = 0, num_waits = 0, num_entry = 0, num_exit = 0;
    const Program& nested = plan.program;
    for (size_t r = 0; r < nested.blocks.size(); ++r) {
      for (const Program::Step& command : nested.blocks[r].steps) {
        const uint32_t entry = first_frame_event(nested.blocks[r]);
        const bool is_wait = command.op == Program::Op::kWait;
        num_records += command.op == Program::Op::kRecord;
        num_waits += is_wait || command.op == Program::Op::kWaitPrevious;
        num_entry += is_wait && command.operand == entry;
        num_exit += is_wait && command.operand > entry;
      }
    }
    const DrawnRegion drawing = draw_plan(graph, plan, {});
    const DrawnTotals totals = count_drawn(drawing);
    EXPECT_EQ(totals.records, num_records);
    EXPECT_EQ(totals.waits, num_waits);
    const std::string text = plan_text(drawing);
    EXPECT_EQ(count_of(text, "  waits for the entry"), num_entry) << text;
    EXPECT_EQ(count_of(text, "  the exit waits for it"), num_exit) << text;
    const std::string svg = plan_svg(drawing, "plan");
    EXPECT_EQ(count_of(svg, "waits for the region's entry"), num_entry);
    EXPECT_EQ(count_of(svg, "the region's exit waits for"), num_exit);
    const std::string dot = plan_dot(drawing);
    EXPECT_EQ(count_of(dot, "_entry -> "), num_entry);
    EXPECT_EQ(count_of(dot, "_exit [color=red"), num_exit);
    num_at_entries += num_entry;
    num_at_exits += num_exit;
  }
  EXPECT_GT(num_at_entries, 100u);
  EXPECT_GT(num_at_exits, 100u);
}

TEST(PlanPictures, ALoopSaysHowItIsDrivenWhereThatFits) {
  DrawnRegion region = nested_drawing(30, 7, 1);
  DrawnNode& loop = region.nodes[region.nodes.size() / 2];
  loop.note = "host-driven";
  EXPECT_EQ(count_of(plan_svg(region, ""), ">, host-driven</tspan>"), 1u);
  loop.note = std::string(2000, 'x');
  EXPECT_EQ(count_of(plan_svg(region, ""), "</tspan>"), 0u);
}

TEST(PlanPictures, BlueEventsHaveALegendWhereThereAreAny) {
  DrawnRegion region = nested_drawing(30, 7, 1);
  EXPECT_EQ(count_of(plan_svg(region, ""), "for the next iteration"), 0u);
  DrawnNode& loop = region.nodes[region.nodes.size() / 2];
  loop.regions[1].next_waits = {{.event = 1, .from = 0, .to = 1, .text = "waits"}};
  EXPECT_EQ(count_of(plan_svg(region, ""), "for the next iteration"), 1u);
}

TEST(PlanPictures, TheSamePlanGivesTheSameBytes) {
  EXPECT_EQ(plan_svg(nested_drawing(40, 3, 2), "t"), plan_svg(nested_drawing(40, 3, 2), "t"));
  EXPECT_EQ(plan_text(random_drawing(40, 3)), plan_text(random_drawing(40, 3)));
}

TEST(PlanPictures, NamesCannotBreakOutOfTheirPlace) {
  DrawnRegion region = random_drawing(1, 1);
  region.nodes[0].name = "</svg><script>\"&\n";
  const std::string svg = plan_svg(region, "<&>");
  EXPECT_EQ(count_of(svg, "<script"), 0u);
  EXPECT_EQ(count_of(svg, "</svg>"), 1u);
  EXPECT_EQ(count_of(plan_dot(region), "\\\"&"), 1u) << plan_dot(region);
  region.nodes[0].name = "a\xef\xbf\xbe\xef\xbf\xbf";  // no characters of XML
  EXPECT_EQ(count_of(plan_svg(region, ""), "\xef\xbf"), 0u);
  EXPECT_GT(count_of(plan_svg(region, ""), "a??"), 0u);
  region.nodes[0].name = "a\nb";
  region.nodes[0].kind = "\x1b]0;c";
  EXPECT_EQ(count_of(plan_text(region), "?]0;c a?b"), 1u) << plan_text(region);
}

TEST(PlanPictures, DevicesAreNamedAndMatchingClaimsWhatHolds) {
  auto file = parse_dag_file(
      R"({"nodes":3,"edges":[[0,1],[0,2]],"devices":[["x","y"],["x","y"],["x","y"]]})");
  auto plan = plan_dag(*file, {.policy = AssignPolicy::kMatching});
  const std::string text = plan_text(draw_dag_plan(*file, *plan));
  EXPECT_EQ(count_of(text, " x+y "), 3u) << text;
  const std::string svg = plan_svg(draw_dag_plan(*file, *plan), "devices");
  EXPECT_GT(count_of(svg, ">s0 x<") + count_of(svg, ">s0 y<"), 0u) << "lanes name devices";
  EXPECT_EQ(count_of(plan_dot(draw_dag_plan(*file, *plan)), " on x+y"), 3u);
  const std::regex part("<rect [^>]* fill=\"(#[0-9a-f]+)\" stroke=\"#567\"");
  std::vector<std::string> fills;
  for (std::sregex_iterator it(svg.begin(), svg.end(), part), end; it != end; ++it) {
    fills.push_back((*it)[1]);
  }
  ASSERT_EQ(fills.size(), 6u);
  for (size_t i = 0; i < 6; i += 2) EXPECT_EQ(fills[i], fills[i + 1]) << "two parts of one launch";
  EXPECT_EQ(count_of(svg, " stroke=\"#567\"/>\n"), 3u) << "with a line between them";
  ASSERT_EQ(plan->notices.size(), 1u);
  EXPECT_NE(plan->notices[0].find("where two nodes share several"), std::string::npos);

  file = parse_dag_file(R"({"nodes":3,"edges":[[0,1],[0,2]]})");
  plan = plan_dag(*file, {.policy = AssignPolicy::kMatching, .max_streams = 1});
  ASSERT_EQ(plan->notices.size(), 1u);
  EXPECT_NE(plan->notices[0].find("under a cap"), std::string::npos);
}

TEST(PlanPictures, ADiamondReadsAsExpected) {
  auto file = parse_dag_file(R"({"nodes":4,"edges":[[0,1],[0,2],[1,3],[2,3]]})");
  auto plan = plan_dag(*file, {});
  EXPECT_EQ(plan_text(draw_dag_plan(*file, *plan)),
            "graph: 4 nodes on 2 streams, 2 records, 2 waits\n"
            "  stream 0  rank 2  node 0  records e0\n"
            "  stream 0  rank 1  node 1\n"
            "  stream 1  rank 1  node 2  waits for e0 of 0  records e1\n"
            "  stream 0  rank 0  node 3  waits for e1 of 2\n");
}

}  // namespace
}  // namespace eddy
