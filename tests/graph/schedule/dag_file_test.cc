// Claim: a DAG file is read as DESIGN's format says, keys in any order, and every bad one gives an
// error that names the edge, the entry or the line; no input crashes the reader.
#include "graph/schedule/dag_file.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/base/random.h"

namespace eddy {
namespace {

std::string error_of(const std::string& json, const DagFileLimits& limits = {}) {
  const Result<DagFile> file = parse_dag_file(json, limits);
  return file.is_ok() ? "ok" : file.status().message();
}

void expect_error(const std::string& json, const std::string& part) {
  const std::string error = error_of(json);
  EXPECT_NE(error.find(part), std::string::npos) << json << "\n  gives: " << error;
}

TEST(dag_file, nodes_and_edges_are_enough) {
  const DagFile file = parse_dag_file(R"({"nodes": 3, "edges": [[0, 1], [1, 2], [0, 1]]})").value();
  EXPECT_EQ(file.num_nodes, 3u);
  EXPECT_EQ(file.edges, (std::vector<Edge>{{0, 1}, {1, 2}, {0, 1}}));
  EXPECT_TRUE(file.commands.empty());
  EXPECT_TRUE(file.costs.empty());
  EXPECT_TRUE(file.devices.empty());
  EXPECT_EQ(error_of(R"({"nodes": 0, "edges": []})"), "ok");
}

TEST(dag_file, keys_come_in_any_order_and_unknown_ones_are_ignored) {
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

TEST(dag_file, a_number_and_a_string_are_different_devices) {
  const DagFile file = parse_dag_file(R"({"nodes":2,"edges":[],"devices":[0,"0"]})").value();
  EXPECT_EQ(file.devices, (std::vector<uint32_t>{0, 1}));
}

TEST(dag_file, broken_json_is_an_error_with_its_line) {
  expect_error("", "line 1");
  expect_error("{\"nodes\": 3,\n\"edges\": [[0, 1], [1", "edge 1: parse error at line 2");
  expect_error("{\"nodes\": 3,\n\n\"edges\": [[0, 1]] \"costs\": []}", "line 3");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [1, NaN]})", "cost 1: parse error at line 1");
  expect_error(R"({"nodes": 2, "edges": [], "costs": [1, 1e999]})", "cost 1: number overflow");
  expect_error(R"({"nodes": 2, "edges": []} trailing)", "line 1");
  expect_error(R"({"nodes": 2, "edges": [], "commands": ["\ud800", "b"]})", "command 0");
  expect_error("{\"nodes\": 2, \"edges\": [], \"commands\": [\"\xff\", \"b\"]}", "command 0");
}

TEST(dag_file, the_wrong_shape_is_named) {
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

TEST(dag_file, bad_entries_are_named) {
  expect_error(R"({"nodes": 3, "edges": [[0, 1], [1, -7]]})", "edge 1: id -7 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 4294967295]]})", "id 4294967295 is out of range");
  expect_error(R"({"nodes": 3, "edges": [[0, 18446744073709551615]]})", "edge 0: id 1844");
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
  expect_error(R"({"nodes": 2, "edges": [], "devices": [0, [1, 2, 1]]})", "lists device 1 twice");
}

TEST(dag_file, limits_are_kept_before_memory_is_taken) {
  EXPECT_EQ(error_of(R"({"nodes": 100000000, "edges": []})"),
            "\"nodes\" is 100000000, more than the 10000000 accepted");
  EXPECT_EQ(error_of(R"({"nodes": 99999999999999999999, "edges": []})").substr(0, 10),
            "\"nodes\" mu");
  EXPECT_EQ(error_of(R"({"nodes": 9, "edges": [[0,1],[1,2],[2,3]]})", {.max_edges = 2}),
            "more than the 2 edges accepted");
  // Nesting is no recursion.
  const std::string deep(1'000'000, '[');
  expect_error("{\"x\": " + deep, "line 1");
  expect_error("{\"edges\": " + deep, "\"edges\" must be a list of pairs");
}

TEST(dag_file, damaged_files_give_an_error_or_a_graph) {
  const std::string good =
      R"({"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]], "commands": ["a", "b", "a", "c"],)"
      R"( "costs": [1, 2.5, 0, 1e3], "devices": ["cpu", 1, ["cpu", 1], 1]})";
  ASSERT_EQ(error_of(good), "ok");
  const std::string letters = "[]{},:\"0123456789-+.eE nul\\u\n";
  Random random(11);
  for (int round = 0; round < 8000; ++round) {
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
    EXPECT_FALSE(error_of(bad).empty());
  }
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error_of(good.substr(0, length)), "ok") << length;
  }
}

}  // namespace
}  // namespace eddy
