// eddy simulate takes operator graphs, loops and branches in them, models and searches; eddy
// measure writes the costs that it reads.
#include <csignal>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using Json = nlohmann::json;

Json pair_file() {
  return Json::parse(R"({
    "operators": [{"name": "A", "type": "elementwise", "shape": [8, 16],
                   "exe_by_tile": {"8x16": 5, "4x16": 3}},
                  {"name": "B", "type": "matmul", "shape": [8, 4], "in_features": 16,
                   "inputs": ["A"], "exe_by_tile": {"8x4": 7, "4x4": 4}}],
    "topology": {"devices": ["x", "y"], "bytes_per_element": 4, "bandwidth": {"default": 64}},
    "strategy": {"A": {"degree": [1, 1], "devices": ["x"]},
                 "B": {"degree": [2, 1], "devices": ["x", "y"]}},
    "edits": [{"op": "set_config", "operator": "B", "degree": [1, 1], "devices": ["y"]}]})");
}

TEST(SimulateOperators, NamesPartsAndTransfersAndAppliesEdits) {
  const std::string path = write_test_file("pair.json", pair_file().dump());
  for (const bool is_full : {false, true}) {
    std::vector<std::string> arguments = {"simulate", path, "--json"};
    if (is_full) arguments.push_back("--full");
    const Finished done = run_eddy(arguments);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Json timelines = done.json()["timelines"];
    ASSERT_EQ(timelines.size(), 2u);
    // A takes 5; 4 rows of 16 numbers of 4 bytes take 4 to send; a part of B takes 4.
    EXPECT_EQ(timelines[0]["makespan"], 13);
    EXPECT_EQ(timelines[0]["times"]["A.0->B.1"], Json::parse("[5, 9]"));
    EXPECT_EQ(timelines[0]["times"]["B.0"], Json::parse("[5, 9]"));
    EXPECT_EQ(timelines[1]["makespan"], 5 + 8 + 7);
    EXPECT_EQ(timelines[1]["times"]["B.0"], Json::parse("[13, 20]"));
    EXPECT_FALSE(done.json().contains("estimated"));
  }
}

TEST(SimulateOperators, TheTasksItEmitsHaveTheSameTimeline) {
  const std::string path = write_test_file("pair.json", pair_file().dump());
  const std::string tasks = write_test_file("tasks.json", "");
  ASSERT_EQ(run_eddy({"simulate", path, "--emit-tasks", tasks}).exit_code, 0);
  const Finished done = run_eddy({"simulate", tasks, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["timelines"][0]["makespan"], 13);
}

TEST(SimulateOperators, JsonNamesTheOperatorsWhoseTimesAreEstimates) {
  Json file = pair_file();
  file["operators"][1].erase("exe_by_tile");
  const Finished done =
      run_eddy({"simulate", write_test_file("estimated.json", file.dump()), "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["estimated"], Json::parse(R"(["B"])"));
  EXPECT_NE(done.err.find("estimated"), std::string::npos) << done.err;
}

TEST(SimulateOperators, TheSearchFindsAStrategyThatItsOwnJsonRepeats) {
  Json file = pair_file();
  file.erase("edits");
  for (auto& op : file["operators"]) op.erase("exe_by_tile");
  file["topology"]["flops"] = 10;
  file["topology"]["memory_rate"] = 1000;
  const std::string path = write_test_file("search.json", file.dump());
  const Finished found =
      run_eddy({"simulate", path, "--search", "--budget", "400steps", "--seed", "5", "--json"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json report = found.json();
  EXPECT_EQ(report["seed"], 5);
  EXPECT_EQ(report["estimated"], Json::parse(R"(["A", "B"])"));
  EXPECT_LE(report["steps"], 400);
  file["strategy"] = report["strategy"];
  const Finished again =
      run_eddy({"simulate", write_test_file("found.json", file.dump()), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.json()["timelines"][0]["makespan"], report["makespan"]);
  EXPECT_EQ(run_eddy({"simulate", path, "--search", "--budget", "soon"}).exit_code, 2);
}

TEST(SimulateOperators, WhatASearchWroteIsReadAgain) {
  Json file = pair_file();
  file.erase("edits");
  const std::string path = write_test_file("search.json", file.dump());
  const std::string output = fresh_folder("output") + "/best.json";
  const Finished found = run_eddy(
      {"simulate", path, "--search", "--budget", "100steps", "--output", output, "--json"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  for (const std::string& strategy : {output, write_test_file("report.json", found.out)}) {
    const Finished again = run_eddy({"simulate", path, "--strategy", strategy, "--json"});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.json()["timelines"][0]["makespan"], found.json()["makespan"]);
  }
  const std::string tasks = write_test_file("tasks.json", R"({"tasks": []})");
  EXPECT_EQ(run_eddy({"simulate", tasks, "--strategy", output}).exit_code, 2);
}

TEST(SimulateOperators, TasksOfOneNameAreRefusedWhereNamesTellThemApart) {
  Json file = pair_file();
  file["operators"].push_back({{"name", "A.0->B"}, {"type", "elementwise"}, {"shape", {2, 2}}});
  file["strategy"]["A.0->B"] = Json::parse(R"({"degree": [2, 1], "devices": ["x", "x"]})");
  const std::string path = write_test_file("names.json", file.dump());
  EXPECT_EQ(run_eddy({"simulate", path}).exit_code, 0);
  const Finished done = run_eddy({"simulate", path, "--json"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_NE(done.err.find("two tasks are called 'A.0->B.1'"), std::string::npos) << done.err;
}

TEST(SimulateOperators, NamesOfDevicesKeepTheirControlCharactersToThemselves) {
  Json file = pair_file();
  file["topology"]["devices"] = {"x\u001b[31m", "y"};
  file.erase("strategy");
  file.erase("edits");
  const Finished done = run_eddy({"simulate", write_test_file("escape.json", file.dump())});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out.find('\x1b'), std::string::npos) << done.out;
}

TEST(SimulateOperators, TheSearchDrawsAndEmitsWhatItFound) {
  Json file = pair_file();
  file.erase("edits");
  const std::string path = write_test_file("search.json", file.dump());
  const std::string folder = fresh_folder("found");
  const Finished found = run_eddy({"simulate", path, "--search", "--budget", "50steps", "--json",
                                   "--svg", folder + "/f.svg", "--emit-tasks", folder + "/f.json"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_TRUE(std::ifstream(folder + "/f.svg").good());
  const Finished again = run_eddy({"simulate", folder + "/f.json", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.json()["timelines"][0]["makespan"], found.json()["makespan"]);
}

TEST(SimulateOperators, WhatASearchHasNoUseForIsAUsageError) {
  const std::string edited = write_test_file("edited.json", pair_file().dump());
  const Finished done = run_eddy({"simulate", edited, "--search", "--budget", "9steps"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_NE(done.err.find("applies no edits"), std::string::npos) << done.err;
  EXPECT_EQ(run_eddy({"simulate", edited, "--search", "--full"}).exit_code, 2);
}

TEST(SimulateOperators, AnInterruptedSearchTellsTheBestSoFar) {
  Json file = pair_file();
  file.erase("edits");
  const std::string path = write_test_file("search.json", file.dump());
  const std::string output = fresh_folder("interrupted") + "/best.json";
  const Finished done =
      run_eddy({"simulate", path, "--search", "--budget", "600", "--json", "--output", output},
               {{SIGINT, 1000}});
  EXPECT_EQ(done.exit_code, 5);
  EXPECT_GT(done.json()["makespan"].get<double>(), 0) << done.err;
  EXPECT_TRUE(std::ifstream(output).good());
}

TEST(SimulateOperators, FilesToWriteHavePlacesOfTheirOwn) {
  const std::string path = write_test_file("pair.json", pair_file().dump());
  const std::string folder = fresh_folder("places");
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"--svg", path},
        {"--svg", folder + "/none/x.svg"},
        {"--svg", ""},
        {"--emit-tasks", "-"},
        {"--svg", folder + "/x", "--emit-tasks", folder + "/x"}}) {
    std::vector<std::string> arguments = {"simulate", path};
    arguments.insert(arguments.end(), bad.begin(), bad.end());
    const Finished done = run_eddy(arguments);
    EXPECT_EQ(done.exit_code, 2) << bad[0] << " " << bad[1];
    EXPECT_TRUE(is_one_line(done.err)) << done.err;
  }
  EXPECT_EQ(run_eddy({"simulate", path}).exit_code, 0) << "the file is as it was";
}

// The loop runs on y alone, so what decides it does not wait for x.
TEST(SimulateOperators, ALoopDecidesWhereItRuns) {
  const std::string path = write_test_file("elsewhere.json", R"({
    "operators": [
      {"name": "long", "type": "elementwise", "shape": [4], "exe_by_tile": {"4": 1000}},
      {"name": "loop", "type": "while", "trips": 2,
       "body": [{"name": "step", "type": "elementwise", "shape": [4], "exe_by_tile": {"4": 2}}]}],
    "strategy": {"long": {"degree": [1], "devices": ["x"]},
                 "step": {"degree": [1], "devices": ["y"]}},
    "topology": {"devices": ["x", "y"], "bandwidth": {"default": 1}}})");
  const Finished done = run_eddy({"simulate", path, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_DOUBLE_EQ(done.json()["scenarios"]["worst"].get<double>(), 1000);
}

TEST(SimulateOperators, LoopsTakeTripsAndBranchesProbabilities) {
  const auto refused = [](const char* control) {
    const std::string file = std::string(R"({"operators": [{"name": "c", )") + control +
                             R"(}], "topology": {"devices": ["x"], "bandwidth": {"default": 1}}})";
    return run_eddy({"simulate", write_test_file("control.json", file)});
  };
  const Finished loop = refused(R"("type": "while", "probabilities": [1], "body": [])");
  EXPECT_EQ(loop.exit_code, 3);
  EXPECT_NE(loop.err.find("a while needs one of \"trips\""), std::string::npos) << loop.err;
  const Finished branch = refused(R"("type": "case", "trips": 1, "branches": [[]])");
  EXPECT_EQ(branch.exit_code, 3);
  EXPECT_NE(branch.err.find("a case needs one of \"probabilities\""), std::string::npos)
      << branch.err;
}

// 16,384 parts that each need all of 16,384 others: 268 million transfers in a small file.
TEST(SimulateOperators, MorePartsThanCanBeSimulatedAreRefused) {
  Json file = Json::parse(R"({
    "operators": [{"name": "A", "type": "elementwise", "shape": [16384, 16384]},
                  {"name": "B", "type": "matmul", "shape": [16384, 4], "in_features": 16384,
                   "inputs": ["A"]}],
    "topology": {"devices": ["x", "y"], "bandwidth": {"default": 1}}})");
  for (const char* const other : {"y", "x"}) {
    const Json devices(std::vector<std::string>(16384, "x"));
    const Json others(std::vector<std::string>(16384, other));
    file["strategy"] = {{"A", {{"degree", {1, 16384}}, {"devices", devices}}},
                        {"B", {{"degree", {16384, 1}}, {"devices", others}}}};
    const Finished done = run_eddy({"simulate", write_test_file("many.json", file.dump())});
    EXPECT_EQ(done.exit_code, 3) << other;
    EXPECT_NE(done.err.find("give the operators fewer parts"), std::string::npos) << done.err;
  }
}

TEST(SimulateOperators, LoopsAndBranchesAreSimulatedByTheirScenarios) {
  const std::string path = write_test_file("loop.json", R"({
    "operators": [
      {"name": "start", "type": "elementwise", "shape": [4], "exe_by_tile": {"4": 1}},
      {"name": "decode", "type": "while", "inputs": ["start"],
       "distribution": [[2, 0.5], [4, 0.5]], "decision": {"time": 1},
       "body": [{"name": "step", "type": "elementwise", "shape": [4], "inputs": ["start"],
                 "exe_by_tile": {"4": 10}},
                {"name": "gate", "type": "case", "inputs": ["step"], "probabilities": [1, 0],
                 "branches": [[], [{"name": "dear", "type": "elementwise", "shape": [4],
                                    "exe_by_tile": {"4": 1000}}]]}]},
      {"name": "finish", "type": "elementwise", "shape": [4], "inputs": ["decode"],
       "exe_by_tile": {"4": 2}}],
    "topology": {"devices": ["gpu"], "bandwidth": {"default": 1}}})");
  const Finished done = run_eddy({"simulate", path, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json report = done.json()["scenarios"];
  // n trips: 1 + n (1 + 10) + 1 + 2.
  EXPECT_EQ(report["exact"], true);
  EXPECT_DOUBLE_EQ(report["expectation"].get<double>(), 4 + 3 * 11);
  EXPECT_DOUBLE_EQ(report["best"].get<double>(), 4 + 2 * 11);
  EXPECT_DOUBLE_EQ(report["worst"].get<double>(), 4 + 4 * 11);
  EXPECT_FALSE(done.json().contains("estimated"));
  // One scenario is drawn, with its decisions.
  const std::string picture = fresh_folder("scenario") + "/s.svg";
  const Finished drawn = run_eddy({"simulate", path, "--svg", picture});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  std::ifstream file(picture);
  const std::string svg{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(svg.find("decode[1]/step.0"), std::string::npos) << svg;
  EXPECT_NE(svg.find("decode[2]?"), std::string::npos) << svg;
}

TEST(SimulateOperators, WhatLoopsHaveNoUseForIsAUsageErrorThatSaysWhy) {
  const std::string path = write_test_file("third.json", R"({
    "operators": [{"name": "loop", "type": "while", "distribution": [[1, 0.3], [2, 0.7]],
                   "body": [{"name": "step", "type": "elementwise", "shape": [4],
                             "exe_by_tile": {"4": 0.1}}]}],
    "topology": {"devices": ["gpu"]}})");
  const auto refusal = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"simulate", path};
    words.insert(words.end(), options.begin(), options.end());
    const Finished done = run_eddy(words);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    return done.err;
  };
  EXPECT_NE(refusal({"--search"}).find("in a file of their own"), std::string::npos);
  EXPECT_NE(refusal({"--emit-tasks", "t.json"}).find("--svg draws one"), std::string::npos);
  EXPECT_NE(refusal({"--full"}).find("have no edits"), std::string::npos);
  const Finished done = run_eddy({"simulate", path});
  EXPECT_NE(done.out.find("expected makespan 0.17\n"), std::string::npos) << done.out;
}

TEST(SimulateOperators, BadFilesAreRefusedWithExitCodeThree) {
  Json file = pair_file();
  file["strategy"]["B"]["degree"] = {3, 1};
  const Finished done = run_eddy({"simulate", write_test_file("bad.json", file.dump())});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_TRUE(is_one_line(done.err)) << done.err;
  EXPECT_NE(done.err.find("degree 3 does not divide dimension 0"), std::string::npos) << done.err;
}

TEST(SimulateOperators, BadNumbersAreNamedWithTheirPlaces) {
  const auto said = [](const std::string& text) {
    const Finished done = run_eddy({"simulate", write_test_file("numbers.json", text)});
    EXPECT_EQ(done.exit_code, 3);
    EXPECT_TRUE(is_one_line(done.err)) << done.err;
    return done.err;
  };
  EXPECT_NE(said("{\"tasks\":\n [1e400]}").find("1e400 does not fit a double, at line 2, column 3"),
            std::string::npos);
  EXPECT_NE(said("{\"tasks\": [99999999999999999999]}").find("64 bits, at line 1, column 12"),
            std::string::npos);
  Json file = pair_file();
  file["operators"][0]["shape"] = {-7, 16};
  EXPECT_NE(said(file.dump()).find("the size -7 in its shape"), std::string::npos);
  file = pair_file();
  file["edits"][0]["degree"] = "much";
  const std::string edit = said(file.dump());
  EXPECT_NE(edit.find(": edit 0: \"degree\" must be"), std::string::npos) << edit;
  EXPECT_EQ(edit.find("edit 0: edit 0"), std::string::npos) << edit;
  file["edits"][0]["degree"] = {3, 1};
  EXPECT_NE(said(file.dump()).find(": edit 0: operator 'B': degree 3"), std::string::npos);
}

// Trips and branches come from the measurements of eddy measure; the model does not hold them.
TEST(SimulateModel, LoopsTakeTheTripsThatMeasureSaw) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const std::string costs = write_test_file("costs.json", "");
  const Finished measured = run_eddy({"measure", model, "--whole", "--set", "trip=9", "--set",
                                      "x=0", "--set", "limit=3", "--output", costs, "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  Json table = measured.json();
  ASSERT_EQ(table["decisions"]["count"], Json::parse("[3]"));
  const auto time = [&table](const char* op) {
    for (const Json& cost : table["costs"]) {
      if (cost["op"] == op) return cost["ns"].get<double>() * 1e-9;
    }
    return 0.0;
  };
  const double less = time("Less");
  const double turn = time("Add") + less;
  const auto expectation = [&] {
    std::ofstream(costs) << table.dump();
    const Finished done = run_eddy({"simulate", model, "--costs", costs, "--json"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.json()["scenarios"]["expectation"].get<double>();
  };
  EXPECT_NEAR(expectation(), less + 3 * turn, 1e-15);
  table["decisions"]["count"] = Json::parse(R"({"distribution": [[0, 0.5], [4, 0.5]]})");
  EXPECT_NEAR(expectation(), less + 2 * turn, 1e-15);
  EXPECT_EQ(run_eddy({"simulate", model, "--costs", costs, "--search"}).exit_code, 2);
}

TEST(SimulateModel, ReadsModelsAndTheCostsThatMeasureWrites) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const std::string costs = write_test_file("costs.json", "");
  const Finished measured =
      run_eddy({"measure", model, "--dim", "s7=3", "--output", costs, "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json table = measured.json();
  ASSERT_EQ(table["costs"].size(), 1u);
  EXPECT_EQ(table["costs"][0]["op"], "Add");
  EXPECT_EQ(table["costs"][0]["shapes"], "float[3,2],float[3,2]->float[3,2]");
  EXPECT_GE(table["costs"][0]["samples"], 3);
  EXPECT_LE(table["costs"][0]["low_ns"], table["costs"][0]["high_ns"]);

  const Finished simulated =
      run_eddy({"simulate", model, "--dim", "s7=3", "--costs", costs, "--json"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_NE(simulated.err.find("measured 1 of 1"), std::string::npos) << simulated.err;
  EXPECT_DOUBLE_EQ(simulated.json()["timelines"][0]["makespan"].get<double>(),
                   table["costs"][0]["ns"].get<double>() * 1e-9);

  const Finished open = run_eddy({"simulate", model});
  EXPECT_EQ(open.exit_code, 3);
  EXPECT_NE(open.err.find("--dim"), std::string::npos) << open.err;
  const Finished loop = run_eddy({"simulate", write_test_file("count.onnx", counting_model())});
  EXPECT_EQ(loop.exit_code, 3);
  EXPECT_NE(loop.err.find("how often this loop runs"), std::string::npos) << loop.err;
}

}  // namespace
}  // namespace eddy::test
