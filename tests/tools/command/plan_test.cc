// eddy plan prints what it promises: a model's plan with regions and loops, a bare graph's in the
// documented format, and pictures.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

constexpr const char* kDiamond = R"({"nodes": 4, "edges": [[0,1],[0,2],[1,3],[2,3],[0,3]]})";

TEST(Plan, a_model_has_regions_loops_and_a_proof) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const Finished plan = run_eddy({"plan", path, "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json document = plan.json();
  EXPECT_EQ(document["proof"], "safe");
  EXPECT_EQ(document["regions"].size(), 3u);
  ASSERT_EQ(document["loops"].size(), 1u);
  EXPECT_EQ(document["loops"][0]["path"], "count");
  EXPECT_EQ(document["loops"][0]["driven"], "device");
  EXPECT_FALSE(document["loops"][0]["reason"].get<std::string>().empty());
  const Finished text = run_eddy({"plan", path, "--loops", "host"});
  EXPECT_NE(text.out.find("loop count: driven by the host"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("proof: safe"), std::string::npos) << text.out;
}

TEST(Plan, a_bare_graph_prints_the_documented_document) {
  const std::string path = write_test_file("diamond.json", kDiamond);
  const Finished plan = run_eddy({"plan", "--dag", path, "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json document = plan.json();
  EXPECT_EQ(document["ranks"], json::array({2, 1, 1, 0}));
  EXPECT_EQ(document["reduced_edges"], 4);
  EXPECT_EQ(document["proof"], "safe");
  EXPECT_EQ(document["streams"].size(), 4u);
  EXPECT_EQ(document["waits"].size(), 2u);
  const Finished serial = run_eddy({"plan", "--dag", path, "--json", "--assign", "serial"});
  EXPECT_EQ(serial.json()["waits"].size(), 0u);
}

TEST(Plan, a_folder_as_a_bare_graph_is_a_bad_input) {
  const Finished plan = run_eddy({"plan", "--dag", fresh_folder("graph")});
  EXPECT_EQ(plan.exit_code, 3);
  EXPECT_NE(plan.err.find("is not a regular file; --dag takes a JSON file"), std::string::npos)
      << plan.err;
}

TEST(Plan, a_size_does_not_take_the_model_behind_it) {
  const std::string path = write_test_file("add.onnx", adding_model());
  const Finished plan = run_eddy({"plan", "--dim", "s7=2", path});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
}

TEST(Plan, pictures_show_every_node_and_wait) {
  const std::string path = write_test_file("diamond.json", kDiamond);
  const std::string folder = fresh_folder("pictures");
  const Finished plan =
      run_eddy({"plan", "--dag", path, "--dot", folder + "/p.dot", "--svg", folder + "/p.svg"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const std::string svg = read_text(folder + "/p.svg");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 100);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* title : {"node 0, ", "node 1, ", "node 2, ", "node 3, ", "event 0", "event 1"}) {
    EXPECT_NE(svg.find(title), std::string::npos) << title;
  }
  const std::string dot = read_text(folder + "/p.dot");
  EXPECT_TRUE(dot.starts_with("digraph"));
  EXPECT_NE(dot.find("label=\"e1\""), std::string::npos) << dot;
}

TEST(Plan, bad_graphs_are_bad_input) {
  for (const char* text : {"", "{", R"({"nodes": 2, "edges": [[0,1],[1,0]]})",
                           R"({"nodes": 2, "edges": [[0,5]]})", R"({"edges": []})"}) {
    const std::string path = write_test_file("bad.json", text);
    const Finished plan = run_eddy({"plan", "--dag", path});
    EXPECT_EQ(plan.exit_code, 3) << text;
    EXPECT_TRUE(is_one_line(plan.err)) << plan.err;
    EXPECT_NE(plan.err.find("bad.json"), std::string::npos) << plan.err;
  }
  EXPECT_EQ(run_eddy({"plan", "--dag", "/nonexistent.json"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
