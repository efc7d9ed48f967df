// Claim: a DAG file is read by its documented format, keys in any order, and every bad one gives an
// error that names the edge, the entry or the line; no input crashes the reader, and what it
// accepts and reads is what a slow reader over the whole document accepts and reads.
#include "tools/command/dag/dag_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

std::string error_of(const std::string& json, const DagFileLimits& limits = {}) {
  const Result<DagFile> file = parse_dag_file(json, limits);
  return file.is_ok() ? "ok" : file.status().message();
}

void expect_error(const std::string& json, const std::string& part) {
  const std::string error = error_of(json);
  EXPECT_NE(error.find(part), std::string::npos) << json << "\n  gives: " << error;
}

TEST(DagFileTest, NodesAndEdgesAreEnough) {
  const DagFile file = parse_dag_file(R"({"nodes": 3, "edges": [[0, 1], [1, 2], [0, 1]]})").value();
  EXPECT_EQ(file.num_nodes, 3u);
  EXPECT_EQ(file.edges, (std::vector<Edge>{{0, 1}, {1, 2}, {0, 1}}));
  EXPECT_TRUE(file.commands.empty());
  EXPECT_TRUE(file.costs.empty());
  EXPECT_TRUE(file.devices.empty());
  EXPECT_EQ(error_of(R"({"nodes": 0, "edges": []})"), "ok");
}

TEST(DagFileTest, KeysComeInAnyOrderAndUnknownOnesAreIgnored) {
  const DagFile file = parse_dag_file(R"({
    "devices": ["cpu", 0, ["cpu", 0]], "x": {"nodes": [[{}]], "edges": 1}, "costs": [1, 0.5, 0],
    "edges": [[2, 1]], "y": [[[["deep"]]]], "commands": ["a", "b", "a"], "nodes": 3, "z": null})")
                           .value();
  EXPECT_EQ(file.num_nodes, 3u);
  EXPECT_EQ(file.edges, (std::vector<Edge>{{2, 1}}));
  EXPECT_EQ(file.costs, (std::vector<double>{1, 0.5, 0}));
  EXPECT_EQ(file.commands, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(file.command_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(file.devices, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(file.device_names, (std::vector<std::string>{"cpu", "0"}));
  EXPECT_EQ(file.further_devices, (std::vector<NodeDevice>{{2, 1}}));
}

TEST(DagFileTest, ANumberAndAStringAreDifferentDevices) {
  const DagFile file = parse_dag_file(R"({"nodes":2,"edges":[],"devices":[0,"0"]})").value();
  EXPECT_EQ(file.devices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(file.device_names, (std::vector<std::string>{"0", "\"0\""}));
}

TEST(DagFileTest, BrokenJsonIsAnErrorWithItsLine) {
  expect_error("", "line 1");
  expect_error("{\"nodes\": 3,\n\"edges\": [[0, 1], [1", "edge 1: parse error at line 2");
  expect_error("{\"nodes\": 3,\n\n\"edges\": [[0, 1]] \"costs\": []}", "line 3");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [1, NaN]})", "cost 1: parse error at line 1");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [1, 1e999]})", "cost 1: number overflow");
  expect_error(R"({"nodes": 2, "edges": []} trailing)", "line 1");
  expect_error(R"({"nodes": 2, "edges": [], "commands": ["\ud800", "b"]})", "command 0");
  expect_error("{\"nodes\": 2, \"edges\": [], \"commands\": [\"\xff\", \"b\"]}", "command 0");
}

TEST(DagFileTest, TheWrongShapeIsNamed) {
  expect_error("[]", "must be one JSON object");
  expect_error("3", "must be one JSON object");
  expect_error("{}", "needs the key \"nodes\"");
  expect_error(R"({"nodes": 2})", "needs the key \"edges\"");
  expect_error(R"({"nodes": 2, "edges": [], "nodes": 3})", "\"nodes\" appears twice");
  expect_error(R"({"nodes": "2", "edges": []})", "\"nodes\" must be the number of nodes");
  expect_error(R"({"nodes": 2.5, "edges": []})", "found 2.5");
  expect_error(R"({"nodes": -1, "edges": []})", "found -1");
  expect_error(R"({"nodes": [2], "edges": []})", "\"nodes\" must be the number of nodes");
  expect_error(R"({"nodes": 2, "edges": {}})", "\"edges\" must be a list of pairs");
  expect_error(R"({"nodes": 2, "edges": 1})", "\"edges\" must be a list of pairs");
  expect_error(R"({"nodes": 2, "edges": [0, 1]})", "edge 0: \"edges\" must be a list of pairs");
  expect_error(R"({"nodes": 3, "edges": [[0, 1], [1]]})", "edge 1");
  expect_error(R"({"nodes": 3, "edges": [[0, 1], [0, 1, 2]]})", "edge 1");
  expect_error(R"({"nodes": 3, "edges": [[0, [1]]]})", "edge 0");
  expect_error(R"({"nodes": 3, "edges": [[0, {}]]})", "edge 0");
  expect_error(R"({"nodes": 1, "edges": [], "costs": 1})", "\"costs\" must be a list");
  expect_error(R"({"nodes": 1, "edges": [], "costs": [[1]]})", "\"costs\" must be a list");
  expect_error(R"({"nodes": 1, "edges": [], "devices": "cpu"})", "\"devices\" must be a list");
  expect_error(R"({"nodes": 1, "edges": [], "devices": [[["cpu"]]]})", "\"devices\" must be");
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, []]})", "device of node 1");
}

TEST(DagFileTest, BadEntriesAreNamed) {
  expect_error(R"({"nodes": 3, "edges": [[0, 1], [1, -7]]})", "edge 1: id -7 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 4294967295]]})", "id 4294967295 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 18446744073709551615]]})", "edge 0: id 1844");
  expect_error(R"({"nodes": 3, "edges": [[0, 9223372036854775808]]})",
               "edge 0: id 9223372036854775808 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 18446744073709551616]]})",
               "edge 0: id 18446744073709551616 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[-99999999999999999999, 0]]})",
               "edge 0: id -99999999999999999999 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 1e0]]})", "edge 0: an id must be an integer");
  expect_error(R"({"nodes": 3, "edges": [[0, 1.5]]})", "edge 0: an id must be an integer");
  expect_error(R"({"nodes": 3, "edges": [[0, null]]})", "found null");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [0, -0.5]})", "cost 1: must be a finite");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [0, "1"]})", "cost 1");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [0]})", "\"costs\" has 1 entries");
  expect_error(R"({"nodes": 0, "edges": [], "costs": [0]})", "\"costs\" has 1 entries");
  expect_error(R"({"nodes": 2, "edges": [], "commands": ["a", 3]})", "command 1");
  expect_error(R"({"nodes": 2, "edges": [], "commands": []})", "\"commands\" has 0 entries");
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, true]})", "device of node 1");
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, 0.5]})", "device of node 1");
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, 99999999999999999999]})",
               "device of node 1: device 99999999999999999999 is out of range");
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, [1, 2, 1]]})", "lists device 1 twice");
}

TEST(DagFileTest, LimitsAreKeptBeforeMemoryIsTaken) {
  EXPECT_EQ(error_of(R"({"nodes": 100000000, "edges": []})"),
            "\"nodes\" is 100000000, out of range: more than the 10000000 accepted");
  expect_error(R"({"nodes": 9223372036854775808, "edges": []})", "is 9223372036854775808, out of");
  expect_error(R"({"nodes": 99999999999999999999, "edges": []})",
               "is 99999999999999999999, out of");
  expect_error(R"({"nodes": -99999999999999999999, "edges": []})", "must be the number of nodes");
  EXPECT_EQ(error_of(R"({"nodes": 9, "edges": [[0,1],[1,2],[2,3]]})", {.max_edges = 2}),
            "more than the 2 edges accepted");
  // Nesting is no recursion.
  const std::string deep(1'000'000, '[');
  expect_error("{\"x\": " + deep, "line 1");
  expect_error("{\"edges\": " + deep, "\"edges\" must be a list of pairs");
}

// The document, unless one of the format's keys appears twice in it.
std::optional<Json> read_document(const std::string& text) {
  static const std::set<std::string> kKeys = {"nodes", "edges", "commands", "costs", "devices"};
  std::set<std::string> seen;
  bool is_repeated = false;
  const auto note_keys = [&](int depth, Json::parse_event_t event, Json& key) {
    if (depth != 1 || event != Json::parse_event_t::key) return true;
    is_repeated |= kKeys.contains(key.get<std::string>()) && !seen.insert(key).second;
    return true;
  };
  const Json document = Json::parse(text, note_keys, false);
  if (is_repeated || !document.is_object()) return std::nullopt;
  return document;
}

bool is_id(const Json& id) {
  return id.is_number_integer() && id >= 0 && id < uint64_t{UINT32_MAX};
}

bool is_device(const Json& device) {
  return device.is_string() || (device.is_number_integer() && device <= INT64_MAX);
}

bool is_devices(const Json& devices) {
  if (!devices.is_array()) return is_device(devices);
  for (const Json& each : devices) {
    if (!is_device(each) || std::ranges::count(devices, each) > 1) return false;
  }
  return !devices.empty();
}

// Whether the document has no such list, or one with a good entry for each node.
template <typename IsGood>
bool is_list(const Json& document, const char* key, IsGood is_good) {
  if (!document.contains(key)) return true;
  const Json& list = document[key];
  return list.is_array() && list.size() == document["nodes"] && std::ranges::all_of(list, is_good);
}

bool is_good(const Json& document) {
  if (!document.contains("nodes") || !document.contains("edges")) return false;
  const Json& nodes = document["nodes"];
  if (!nodes.is_number_integer() || nodes < 0 || nodes > 10'000'000) return false;
  const auto is_edge = [](const Json& edge) {
    return edge.is_array() && edge.size() == 2 && is_id(edge[0]) && is_id(edge[1]);
  };
  const auto is_cost = [](const Json& cost) { return cost.is_number() && cost >= 0; };
  return document["edges"].is_array() && std::ranges::all_of(document["edges"], is_edge) &&
         is_list(document, "commands", [](const Json& name) { return name.is_string(); }) &&
         is_list(document, "costs", is_cost) && is_list(document, "devices", is_devices);
}

// What was read, as a document; names without the quotes of those that are numbers, too.
Json document_of(const DagFile& file) {
  Json document = {{"nodes", file.num_nodes}, {"edges", Json::array()}};
  for (const Edge& edge : file.edges) document["edges"].push_back({edge.from, edge.to});
  for (const uint32_t command : file.commands) {
    document["commands"].push_back(file.command_names[command]);
  }
  for (const double cost : file.costs) document["costs"].push_back(cost);
  for (uint32_t node = 0; node < file.devices.size(); ++node) {
    Json devices = {file.device_names[file.devices[node]]};
    for (const NodeDevice& more : file.listed_devices) {
      if (more.node == node) devices.push_back(file.device_names[more.device]);
    }
    document["devices"].push_back(devices);
  }
  return document;
}

// Device names as text: of the string "0" beside the integer 0, with quotes.
Json expected_document(const Json& document) {
  Json expected = {{"nodes", document["nodes"]}, {"edges", document["edges"]}};
  if (document["nodes"] == 0) return expected;
  if (document.contains("commands")) expected["commands"] = document["commands"];
  for (const Json& cost : document.value("costs", Json::array())) {
    expected["costs"].push_back(cost.get<double>());
  }
  const Json all = document.value("devices", Json::array());
  std::set<std::string> numbers;
  for (const Json& each : all.flatten()) {
    if (each.is_number()) numbers.insert(each.dump());
  }
  const auto name = [&](const Json& device) {
    const bool is_plain = device.is_string() && !numbers.contains(device.get<std::string>());
    return is_plain ? device.get<std::string>() : device.dump();
  };
  for (const Json& each : all) {
    Json devices = Json::array();
    for (const Json& device : each.is_array() ? each : Json::array({each})) {
      devices.push_back(name(device));
    }
    expected["devices"].push_back(devices);
  }
  return expected;
}

// Each error names its place: the line, the entry or the key.
bool names_a_place(const std::string& error) {
  for (const char* place :
       {"line ", "edge ", "cost ", "command ", "device of node ", "key \"", "\"nodes\"",
        "\"edges\"", "\"costs\"", "\"commands\"", "\"devices\"", "one JSON object"}) {
    if (error.find(place) != std::string::npos) return true;
  }
  return false;
}

// Returns whether it is a graph.
bool expect_as_slow_reader(const std::string& text) {
  const std::optional<Json> document = read_document(text);
  const Result<DagFile> file = parse_dag_file(text);
  const bool is_graph = document && is_good(*document);
  EXPECT_EQ(file.is_ok(), is_graph) << text << "\n  gives: " << error_of(text);
  if (!file.is_ok()) {
    EXPECT_TRUE(names_a_place(file.status().message())) << file.status().message();
    EXPECT_EQ(file.status().message().find('\n'), std::string::npos);
  } else if (is_graph) {
    EXPECT_EQ(document_of(*file), expected_document(*document)) << text;
  }
  return is_graph;
}

TEST(DagFileTest, DamagedFilesGiveAnErrorWithItsPlaceOrWhatTheySay) {
  const std::string good =
      R"({"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]], "commands": ["a", "b", "a", "c"],)"
      R"( "costs": [1, 2.5, 0, 1e3], "devices": ["cpu", 1, ["cpu", 1], 1]})";
  ASSERT_TRUE(expect_as_slow_reader(good));
  uint32_t num_graphs = 0;
  const std::string letters = "[]{},:\"0123456789-+.eE nul\\u\n";
  Random random(11);
  for (int round = 0; round < 8000 && !testing::Test::HasFailure(); ++round) {
    std::string bad = good;
    for (uint64_t i = 1 + random.below(3); i > 0; --i) {
      const size_t place = random.below(bad.size());
      const char letter = letters[random.below(letters.size())];
      switch (random.below(3)) {
        case 0:
          bad[place] = letter;
          break;
        case 1:
          bad.erase(place, 1 + random.below(5));
          break;
        default:
          bad.insert(place, 1, letter);
      }
    }
    num_graphs += expect_as_slow_reader(bad) ? 1 : 0;
  }
  std::cout << "seed 11: " << num_graphs << " of 8000 damaged files are graphs\n";
  EXPECT_GT(num_graphs, 400u);
  EXPECT_LT(num_graphs, 4000u);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error_of(good.substr(0, length)), "ok") << length;
  }
}

}  // namespace
}  // namespace eddy
