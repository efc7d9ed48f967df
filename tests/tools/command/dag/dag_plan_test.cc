// Claim: plan_dag gives a proved plan for every DAG file, printed in the documented format and the
// same byte for byte; a file that is no DAG gives the error of the edge.
#include "tools/command/dag/dag_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

std::string plan_json(const std::string& json, const DagPlanOptions& options = {}) {
  const DagFile file = parse_dag_file(json).value();
  const Result<DagPlan> plan = plan_dag(file, options);
  return plan.is_ok() ? to_json(*plan) : plan.status().message();
}

TEST(DagPlanTest, PrintsTheFormat) {
  EXPECT_EQ(plan_json(R"({"nodes": 4, "edges": [[0,1],[0,2],[1,3],[2,3],[0,3]]})"),
            R"({"streams":[0,0,1,0],"issue_order":[0,1,2,3],"records":[[0,0],[1,2]],)"
            R"("waits":[[2,0],[3,1]],"ranks":[2,1,1,0],"reduced_edges":4,"matching":2,)"
            R"("proof":"safe","notices":[]})");
  EXPECT_EQ(plan_json(R"({"nodes": 0, "edges": []})"),
            R"({"streams":[],"issue_order":[],"records":[],"waits":[],"ranks":[],)"
            R"("reduced_edges":0,"matching":0,"proof":"safe","notices":[]})");
}

TEST(DagPlanTest, ANodeOnSeveralDevicesHasAListOfStreams) {
  const Json plan = Json::parse(
      plan_json(R"({"nodes": 3, "edges": [[0,1],[1,2]], "devices": ["a", ["a", "b"], "b"]})"));
  EXPECT_EQ(plan["streams"], Json::parse("[0, [0, 1], 1]"));
  EXPECT_EQ(plan["waits"], Json::array());
}

TEST(DagPlanTest, RanksByCostsAreCosts) {
  const std::string json = R"({"nodes": 3, "edges": [[0,1],[1,2]], "costs": [4, 0.5, 0.25]})";
  EXPECT_EQ(Json::parse(plan_json(json, {.rank_by_costs = true}))["ranks"],
            Json::parse("[0.75, 0.25, 0]"));
  EXPECT_EQ(Json::parse(plan_json(json))["ranks"], Json::parse("[2, 1, 0]"));
}

TEST(DagPlanTest, ACounterExampleIsPrintedAsThePair) {
  const DagFile file = parse_dag_file(R"({"nodes": 2, "edges": [[0,1]]})").value();
  DagPlan plan = plan_dag(file, {}).value();
  plan.proof.violations = {{Violation::Kind::kUnordered, 0, 1},
                           {Violation::Kind::kNeverLaunched, 1, 1}};
  EXPECT_EQ(Json::parse(to_json(plan))["proof"],
            Json::parse(R"({"unsafe": [[0, 1], "node 1 is never launched"]})"));
}

TEST(DagPlanTest, WhatIsNoDagIsAnError) {
  EXPECT_EQ(plan_json(R"({"nodes": 2, "edges": [[0,1],[1,0]]})"),
            "edge 0 [0, 1] closes a cycle: 1 -> 0 -> 1");
  EXPECT_EQ(plan_json(R"({"nodes": 2, "edges": [[0,2]]})"),
            "edge 0 [0, 2]: id 2 is out of range, the graph has 2 nodes");
  EXPECT_EQ(plan_json(R"({"nodes": 2, "edges": [[1,1]]})"),
            "edge 0 [1, 1]: a node cannot depend on itself");
}

TEST(DagPlanTest, CostsThatCannotBeUsedAreAnError) {
  EXPECT_EQ(plan_json(R"({"nodes": 1, "edges": []})", {.rank_by_costs = true}),
            "ranking by costs needs \"costs\" in the DAG file");
  EXPECT_EQ(plan_json(R"({"nodes": 3, "edges": [[0,1],[1,2]], "costs": [0, 1e308, 1e308]})",
                      {.rank_by_costs = true}),
            "the costs of a chain add up to infinity");
}

DagFile file_of(const Dag& dag, Random& random) {
  DagFile file;
  file.num_nodes = dag.num_nodes();
  const std::vector<Edge> edges = dag.edges();
  for (uint32_t place : testing::random_permutation(random, dag.num_edges())) {
    file.edges.push_back(edges[place]);
    if (random.below(4) == 0) file.edges.push_back(edges[place]);
  }
  return file;
}

TEST(DagPlanTest, TheOrderAndRepetitionOfEdgesDoNotChangeAByte) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 70, .num_edges = 140});
    DagPlanOptions options{.policy = static_cast<AssignPolicy>(seed % 3)};
    options.max_streams = seed % 2 == 0 ? 0 : 4;
    const std::string once = to_json(plan_dag(file_of(dag, random), options).value());
    EXPECT_EQ(to_json(plan_dag(file_of(dag, random), options).value()), once);
  }
}

// Up to three devices for each node, listed in any order; in half of the files.
void draw_devices(Random& random, DagFile& file) {
  if (random.below(2) == 0) return;
  file.device_names = {"a", "b", "c"};
  for (uint32_t node = 0; node < file.num_nodes; ++node) {
    const std::vector<uint32_t> listed = testing::random_permutation(random, 3);
    file.devices.push_back(listed[0]);
    for (uint64_t i = 1; i <= random.below(3); ++i) {
      file.listed_devices.push_back({node, listed[i]});
    }
  }
  file.further_devices = file.listed_devices;
  std::sort(file.further_devices.begin(), file.further_devices.end());
}

std::vector<std::string> devices_of(const DagFile& file, uint32_t node) {
  if (file.devices.empty()) return {""};
  std::vector<std::string> names = {file.device_names[file.devices[node]]};
  for (const NodeDevice& listed : file.listed_devices) {
    if (listed.node == node) names.push_back(file.device_names[listed.device]);
  }
  return names;
}

std::vector<uint32_t> streams_of(const Json& plan, uint32_t node) {
  const Json& streams = plan["streams"][node];
  if (streams.is_array()) return streams.get<std::vector<uint32_t>>();
  return {streams.get<uint32_t>()};
}

// A node has a stream of each of its devices, in the order of the file.
void expect_a_stream_of_each_device(const Json& plan, const DagFile& file, uint32_t max_streams) {
  std::map<uint32_t, std::string> device_of;  // by stream
  for (uint32_t node = 0; node < file.num_nodes; ++node) {
    const std::vector<uint32_t> streams = streams_of(plan, node);
    const std::vector<std::string> devices = devices_of(file, node);
    ASSERT_EQ(streams.size(), devices.size());
    ASSERT_EQ(plan["streams"][node].is_array(), streams.size() > 1);
    for (size_t i = 0; i < streams.size(); ++i) {
      ASSERT_EQ(device_of.try_emplace(streams[i], devices[i]).first->second, devices[i]);
    }
  }
  std::map<std::string, uint32_t> num_streams;
  for (const auto& [stream, device] : device_of) ++num_streams[device];
  for (const auto& [device, count] : num_streams) {
    ASSERT_TRUE(max_streams == 0 || count <= max_streams) << device;
  }
}

// The promises of the JSON, checked on the JSON alone.
void expect_promises(const Json& plan, const Dag& dag) {
  ASSERT_EQ(plan["proof"], "safe");
  std::vector<size_t> position(dag.num_nodes());
  for (size_t i = 0; i < plan["issue_order"].size(); ++i) {
    position[plan["issue_order"][i].get<size_t>()] = i;
  }
  std::vector<uint32_t> node_of_event(plan["records"].size(), UINT32_MAX);
  for (const Json& record : plan["records"]) {
    ASSERT_EQ(node_of_event.at(record[0].get<size_t>()), UINT32_MAX) << "events are unique";
    node_of_event[record[0].get<size_t>()] = record[1].get<uint32_t>();
  }
  // Streams in issue order and waits, and nothing else, order every edge.
  std::vector<Edge> order;
  std::map<uint32_t, uint32_t> last;  // by stream
  for (const Json& node : plan["issue_order"]) {
    for (const uint32_t stream : streams_of(plan, node.get<uint32_t>())) {
      if (last.contains(stream)) order.push_back({last[stream], node.get<uint32_t>()});
      last[stream] = node.get<uint32_t>();
    }
  }
  for (const Json& wait : plan["waits"]) {
    const uint32_t source = node_of_event.at(wait[1].get<size_t>());
    ASSERT_LT(position[source], position[wait[0].get<size_t>()]);
    order.push_back({source, wait[0].get<uint32_t>()});
  }
  const testing::Relation reach =
      testing::model_reachability(testing::dag_of(dag.num_nodes(), order));
  for (const Edge& edge : dag.edges()) ASSERT_TRUE(reach[edge.from][edge.to]);
}

TEST(DagPlanTest, KeepsItsPromisesUnderEveryPolicyAndCapOnOneDeviceOrThree) {
  for (uint64_t seed = 0; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 45, .num_edges = 100});
    DagPlanOptions options{.policy = static_cast<AssignPolicy>(seed % 3)};
    options.max_streams = static_cast<uint32_t>(random.below(4));
    DagFile file = file_of(dag, random);
    draw_devices(random, file);
    const Json plan = Json::parse(to_json(plan_dag(file, options).value()));
    ASSERT_NO_FATAL_FAILURE(expect_promises(plan, dag));
    ASSERT_NO_FATAL_FAILURE(expect_a_stream_of_each_device(plan, file, options.max_streams));
    ASSERT_EQ(plan["reduced_edges"], testing::model_reduction(dag).size());
    if (options.policy == AssignPolicy::kMatching && options.max_streams == 0) {
      ASSERT_EQ(plan["waits"].size(),
                plan["reduced_edges"].get<size_t>() - plan["matching"].get<size_t>());
    }
  }
}

TEST(DagPlanTest, SaysHowMatchingSavedStreams) {
  const std::string json = R"({"nodes": 2, "edges": [[0,1]]})";
  const Json plan = Json::parse(plan_json(json, {.policy = AssignPolicy::kMatching}));
  ASSERT_EQ(plan["notices"].size(), 1u);
  EXPECT_NE(plan["notices"][0].get<std::string>().find("exactly"), std::string::npos);
}

std::string matching_notice(const std::string& json) {
  const Json plan = Json::parse(plan_json(json, {.policy = AssignPolicy::kMatching}));
  EXPECT_EQ(plan["notices"].size(), 1u);
  return plan["notices"][0].get<std::string>();
}

TEST(DagPlanTest, SaysExactlyOnlyWhereNoTwoNodesOfAnEdgeShareSeveralDevices) {
  const std::string copies = R"({"nodes": 3, "edges": [[0,1],[1,2]], "devices": )";
  EXPECT_NE(matching_notice(copies + R"(["a", ["a", "b"], "b"]})").find("exactly"),
            std::string::npos);
  const std::string shared = matching_notice(copies + R"([["a", "b"], ["a", "b"], "b"]})");
  EXPECT_NE(shared.find("fewest waits"), std::string::npos) << shared;
  EXPECT_NE(shared.find("not proved fewest"), std::string::npos) << shared;
}

TEST(DagPlanTest, SaysThatAbove2000NodesStreamsMayBeMoreThanTheFewest) {
  for (uint32_t num_nodes : {2000u, 2001u}) {
    DagFile file;
    file.num_nodes = num_nodes;
    for (uint32_t node = 1; node < num_nodes; ++node) file.edges.push_back({node - 1, node});
    const DagPlan plan = plan_dag(file, {.policy = AssignPolicy::kMatching}).value();
    ASSERT_EQ(plan.notices.size(), 1u);
    const bool is_exact = plan.notices[0].find("exactly") != std::string::npos;
    EXPECT_EQ(is_exact, num_nodes == 2000) << plan.notices[0];
    EXPECT_EQ(plan.notices[0].find("not proved fewest") == std::string::npos, is_exact);
  }
}

// A chain; its first nodes of even number are on both devices.
DagFile on_two_devices(uint32_t num_nodes, uint32_t num_on_both) {
  DagFile file;
  file.num_nodes = num_nodes;
  file.device_names = {"a", "b"};
  file.devices.resize(num_nodes, 0);
  for (uint32_t node = 1; node < num_nodes; ++node) file.edges.push_back({node - 1, node});
  // No edge joins two of them.
  for (uint32_t i = 0; i < num_on_both; ++i) file.further_devices.push_back({2 * i, 1});
  file.listed_devices = file.further_devices;
  return file;
}

TEST(DagPlanTest, TheLimitCountsNodesAndNotTheirPlacesOnDevices) {
  for (const auto& [num_nodes, num_on_both, is_exact] :
       {std::tuple(1900u, 150u, true), std::tuple(2000u, 1000u, true),
        std::tuple(2001u, 0u, false)}) {
    SCOPED_TRACE(num_nodes);
    const DagFile file = on_two_devices(num_nodes, num_on_both);
    const DagPlan plan = plan_dag(file, {.policy = AssignPolicy::kMatching}).value();
    ASSERT_EQ(plan.notices.size(), 1u);
    EXPECT_EQ(plan.notices[0].find("exactly") != std::string::npos, is_exact) << plan.notices[0];
    EXPECT_EQ(plan.streams.num_streams, num_on_both > 0 ? 2u : 1u);
    EXPECT_TRUE(plan.proof.is_safe());
  }
}

TEST(DagPlanTest, PlacesOnDevicesAreLimitedToo) {
  for (const uint32_t num_devices : {8u, 9u}) {
    DagFile file;
    file.num_nodes = 1000;
    file.devices.resize(file.num_nodes, 0);
    for (uint32_t d = 0; d < num_devices; ++d) file.device_names.push_back(std::to_string(d));
    for (uint32_t node = 0; node < file.num_nodes; ++node) {
      for (uint32_t d = 1; d < num_devices; ++d) file.further_devices.push_back({node, d});
    }
    file.listed_devices = file.further_devices;
    const DagPlan plan = plan_dag(file, {.policy = AssignPolicy::kMatching}).value();
    ASSERT_EQ(plan.notices.size(), 1u);
    const bool is_exact = plan.notices[0].find("exactly") != std::string::npos;
    EXPECT_EQ(is_exact, num_devices == 8) << plan.notices[0];
  }
}

TEST(DagPlanTest, ACapTakesTheClaimAwayOnlyWhereItIsReached) {
  DagFile file;
  file.num_nodes = 6;  // two chains of three
  file.edges = {{0, 1}, {1, 2}, {3, 4}, {4, 5}};
  std::vector<std::string> notices;
  for (const uint32_t cap : {0u, 1u, 2u, 3u}) {
    const DagPlanOptions options{.policy = AssignPolicy::kMatching, .max_streams = cap};
    const DagPlan plan = plan_dag(file, options).value();
    ASSERT_EQ(plan.notices.size(), 1u);
    notices.push_back(plan.notices[0]);
  }
  EXPECT_NE(notices[0].find("exactly"), std::string::npos);
  EXPECT_NE(notices[1].find("cap"), std::string::npos);
  EXPECT_EQ(notices[2], notices[0]);
  EXPECT_EQ(notices[3], notices[0]);
}

TEST(DagPlanTest, NamesAndTimesItsSteps) {
  const DagFile file = parse_dag_file(R"({"nodes": 2, "edges": [[0,1]]})").value();
  const DagPlan plan = plan_dag(file, {}).value();
  std::string names;
  for (const DagPlan::Step& step : plan.steps) {
    names += step.name + " ";
    EXPECT_GE(step.duration_ns, 0);
  }
  EXPECT_EQ(names, "build rank reduce order assign synchronise prove ");
}

}  // namespace
}  // namespace eddy
