// eddy plan prints what it promises: a model's plan with regions and loops, also by measured costs,
// a bare graph's in the documented format, and pictures.
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "graph/io/tensor_file.h"
#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

constexpr const char* kDiamond = R"({"nodes": 4, "edges": [[0,1],[0,2],[1,3],[2,3],[0,3]]})";

TEST(Plan, AModelHasRegionsLoopsAndAProof) {
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

// Exp of Abs beside Neg, Tanh, Sin; floats [8].
std::string write_two_chains() {
  return write_test_file(
      "chains.onnx",
      model(graph({.nodes = {node("Abs", {"x"}, {"size"}), node("Exp", {"size"}, {"left"}),
                             node("Neg", {"x"}, {"minus"}), node("Tanh", {"minus"}, {"tanh"}),
                             node("Sin", {"tanh"}, {"right"})},
                   .inputs = {info("x", floats({8}))},
                   .outputs = {info("left", floats({8})), info("right", floats({8}))}})));
}

std::string cost_file(const char* name, const std::string& entries) {
  return write_test_file(name, "{\"costs\": [" + entries + "]}");
}

constexpr const char* kDearExp =
    R"({"op": "Exp", "shapes": "float[8]->float[8]", "device": "cpu", "ns": 1e6})";

json plan_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "plan");
  arguments.push_back("--json");
  const Finished plan = run_eddy(arguments);
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  return plan.exit_code == 0 ? plan.json() : json();
}

TEST(Plan, CostsDecideTheOrderOfIssueWhereRanksCountThem) {
  const std::string model = write_two_chains();
  const std::string costs = cost_file("dear.json", kDearExp);
  const auto first = [](const json& plan) { return plan["regions"][0]["nodes"][0]; };
  const json by_nodes = plan_json({model, "--assign", "rank"});
  EXPECT_EQ(first(by_nodes)["kind"], "Neg");
  EXPECT_EQ(first(by_nodes)["rank"], 2);
  EXPECT_TRUE(by_nodes["costs"].is_null());
  const json measured = plan_json({model, "--assign", "rank", "--costs", costs});
  EXPECT_EQ(first(measured)["kind"], "Neg") << "ranks still count nodes";
  const json by_costs =
      plan_json({model, "--assign", "rank", "--costs", costs, "--rank-by", "costs"});
  EXPECT_EQ(first(by_costs)["kind"], "Abs");
  EXPECT_EQ(first(by_costs)["rank"], 1e6);
  EXPECT_EQ(by_costs["costs"], json({{"measured", 1}, {"estimated", 4}}));
  EXPECT_EQ(by_costs["proof"], "safe");
  EXPECT_NE(by_costs["fingerprint"], by_nodes["fingerprint"]);
}

TEST(Plan, WhatATableLacksIsEstimatedAndNamed) {
  const std::string model = write_two_chains();
  const std::string costs = cost_file("dear.json", kDearExp);
  for (const char* command : {"plan", "run"}) {
    std::vector<std::string> arguments = {command, model, "--costs", costs};
    if (command == std::string("run")) arguments.insert(arguments.end(), {"--random-inputs", "1"});
    const Finished finished = run_eddy(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.err.find("4 of 5 nodes are not in the table"), std::string::npos)
        << finished.err;
    EXPECT_NE(finished.err.find("Neg float[8]->float[8]"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("Exp float[8]"), std::string::npos) << finished.err;
  }
}

TEST(Plan, ATableThatEddyMeasureWroteCoversItsModel) {
  const std::string model = write_two_chains();
  const std::string costs = fresh_folder("measured") + "/costs.json";
  const Finished measured = run_eddy({"measure", model, "--repeat", "3", "--output", costs});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const json plan = plan_json({model, "--costs", costs, "--rank-by", "costs"});
  EXPECT_EQ(plan["costs"], json({{"measured", 5}, {"estimated", 0}}));
}

// The normalization has gone into the weights, and images are blocked: what is measured is what
// runs.
TEST(Plan, AllThatRunsOfAConvolutionIsMeasured) {
  const std::vector<float> weights(32 * 32, 0.5f), ones(32, 1.0f);
  const std::string path = write_test_file(
      "norm.onnx",
      model(graph({.nodes = {node("Conv", {"x", "w"}, {"c"}),
                             node("BatchNormalization", {"c", "one", "one", "one", "one"}, {"y"})},
                   .inputs = {info("x", floats({1, 32, 9, 9}))},
                   .outputs = {info("y", floats({1, 32, 9, 9}))},
                   .initializers = {tensor<float>("w", {32, 32, 1, 1}, weights),
                                    tensor<float>("one", {32}, ones)}})));
  for (const bool is_whole : {false, true}) {
    const std::string costs = fresh_folder("norms") + "/costs.json";
    std::vector<std::string> arguments = {"measure", path, "--repeat", "3", "--output", costs};
    if (is_whole) arguments.insert(arguments.end(), {"--whole", "--set", "x=0.5"});
    const Finished measured = run_eddy(arguments);
    ASSERT_EQ(measured.exit_code, 0) << measured.err;
    const json plan = plan_json({path, "--costs", costs});
    EXPECT_EQ(plan["costs"]["estimated"], 0) << plan["costs"];
    EXPECT_GT(plan["costs"]["measured"], 0) << plan["costs"];
    EXPECT_EQ(measured.out.find("BatchNormalization"), std::string::npos) << measured.out;
  }
}

TEST(Plan, ABadCostTableIsABadInput) {
  const std::string model = write_two_chains();
  const std::vector<std::pair<std::string, std::string>> bad = {
      {cost_file("less.json", R"({"op": "Add", "shapes": "", "device": "cpu", "ns": -1})"),
       "cost 0: the times"},
      {cost_file("twice.json", std::string(kDearExp) + "," + kDearExp), "given twice"},
      {cost_file("lacks.json", R"({"op": "Add", "shapes": "", "ns": 1})"), "device"},
      {write_test_file("text.json", "costs"), "is no JSON"},
      {write_test_file("empty.json", ""), "is no JSON"},
      {write_test_file("list.json", "[]"), "needs the list"},
      {"no_such_costs.json", "eddy measure"},
      {fresh_folder("folder"), "eddy measure"}};
  for (const auto& [path, message] : bad) {
    for (const char* command : {"plan", "run"}) {
      const Finished refused = run_eddy({command, model, "--costs", path});
      EXPECT_EQ(refused.exit_code, 3) << path;
      EXPECT_TRUE(is_one_line(refused.err)) << refused.err;
      EXPECT_NE(refused.err.find(path), std::string::npos) << refused.err;
      EXPECT_NE(refused.err.find(message), std::string::npos) << refused.err;
    }
  }
  const std::string dag = write_test_file("diamond.json", kDiamond);
  EXPECT_EQ(run_eddy({"plan", "--dag", dag, "--costs", "costs.json"}).exit_code, 2);
}

TEST(Plan, ABareGraphPrintsTheDocumentedDocument) {
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

TEST(Plan, ABareGraphSaysItsAssignmentAndTheUnitOfItsRanks) {
  const std::string path = write_test_file(
      "dear.json", R"({"nodes": 3, "edges": [[0,1],[0,2]], "costs": [1e-6, 0.5, 2]})");
  const std::string svg = fresh_folder("assignment") + "/p.svg";
  for (const char* assign : {"rank", "matching", "serial"}) {
    const Finished plan = run_eddy({"plan", "--dag", path, "--assign", assign, "--svg", svg});
    const std::string words = std::string("assignment ") + assign;
    EXPECT_NE(plan.out.find("; " + words + "\n"), std::string::npos) << plan.out;
    EXPECT_NE(read_text(svg).find(words + "</text>"), std::string::npos);
  }
  const Finished by_default = run_eddy({"plan", "--dag", path, "--rank-by", "costs"});
  EXPECT_NE(by_default.out.find("assignment rank (what auto takes for a bare graph)"),
            std::string::npos)
      << by_default.out;
  EXPECT_NE(by_default.out.find("  rank 2 s  node 0"), std::string::npos) << by_default.out;
}

TEST(Plan, APlanWithKnownCostsSaysItsSimulatedTimeAndWhyItWasChosen) {
  const std::string path = write_two_chains();
  const std::string costs = cost_file("dear.json", kDearExp);
  const json planned = plan_json({path, "--threads", "2", "--costs", costs});
  EXPECT_EQ(planned["simulated"]["machine"], "cpu");
  EXPECT_GT(planned["simulated"]["ns"], 1e6);
  ASSERT_EQ(planned["notices"].size(), 1u);
  EXPECT_NE(planned["notices"][0].get<std::string>().find("assign auto: serial "),
            std::string::npos)
      << planned["notices"][0];
  const json unknown = plan_json({path, "--threads", "2"});
  EXPECT_TRUE(unknown["simulated"].is_null());
  EXPECT_NE(unknown["notices"][0].get<std::string>().find("no costs are known"), std::string::npos);
  EXPECT_EQ(plan_json({path, "--threads", "2", "--assign", "rank"})["notices"].size(), 0u);
}

TEST(Plan, AMachineIsReadPlannedForAndSimulated) {
  const std::string path = write_two_chains();
  const std::string machine = write_test_file(
      "machine.json",
      R"({"name":"toy","units":4,"flops_per_ns":1,"bytes_per_ns":1,"shortest_ns":1000,"streams":2})");
  const json planned = plan_json({path, "--threads", "2", "--machine", machine});
  EXPECT_EQ(planned["simulated"]["machine"], "toy");
  EXPECT_EQ(planned["num_streams"], 2);
  // Three kernels of the shortest length in a row.
  EXPECT_NEAR(planned["simulated"]["ns"].get<double>(), 3000, 1e-6);
  const Finished bad = run_eddy({"plan", path, "--machine", write_test_file("bad.json", "{}")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("--machine "), std::string::npos) << bad.err;
}

TEST(Plan, ALoopWithLikelyTripsIsPredictedOverScenarios) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const std::string machine =
      write_test_file("driven.json", R"({"name":"toy","units":4,"flops_per_ns":1,"bytes_per_ns":1,
                         "shortest_ns":1000,"readback_ns":5000,"streams":2})");
  const std::string likely = write_test_file(
      "likely.json", R"({"costs":[],"decisions":{"count":{"distribution":[[2,0.5],[12,0.5]]}}})");
  const json planned = plan_json({path, "--machine", machine, "--costs", likely});
  const json& scenarios = planned["simulated"]["scenarios"];
  EXPECT_EQ(scenarios["exact"], true) << planned["simulated"];
  EXPECT_EQ(scenarios["scenarios"], 2);
  const double best = scenarios["best"];
  const double worst = scenarios["worst"];
  EXPECT_DOUBLE_EQ(scenarios["expectation"].get<double>(), (best + worst) / 2);
  // Ten more trips read back ten more predicates, and run the body as often.
  EXPECT_GE(worst - best, 10 * (5000 + 1000));
  const Finished text = run_eddy({"plan", path, "--machine", machine, "--costs", likely});
  EXPECT_NE(text.out.find("over 2 scenarios"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("worst "), std::string::npos) << text.out;
  EXPECT_TRUE(plan_json({path, "--machine", machine})["simulated"]["scenarios"].is_null())
      << "one scenario is none";
}

TEST(Plan, MatchingSaysHowItSavedStreams) {
  const std::string path = write_two_chains();
  const Finished plan = run_eddy({"plan", path, "--assign", "matching"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find("notice: matching: fewest streams"), std::string::npos) << plan.out;
  const Finished capped = run_eddy({"plan", path, "--assign", "matching", "--streams", "1"});
  EXPECT_NE(capped.out.find("notice: matching: under a cap"), std::string::npos) << capped.out;
  EXPECT_EQ(run_eddy({"plan", path, "--assign", "rank"}).out.find("matching:"), std::string::npos);
}

TEST(Plan, LanesRunOverSimulatedTimeWhereCostsAreKnown) {
  const std::string path = write_two_chains();
  const std::string svg = fresh_folder("timeline") + "/p.svg";
  const Finished plan = run_eddy({"plan", path, "--costs", cost_file("dear.json", kDearExp),
                                  "--svg", svg, "--svg-over", "time"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(read_text(svg).find("stream 0"), std::string::npos);
  EXPECT_EQ(read_text(svg).find("critical path"), std::string::npos) << "lanes have no edges";
  const auto figure = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", path, "--costs", cost_file("dear.json", kDearExp),
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_eddy(arguments).out;
  };
  EXPECT_EQ(figure({}), figure({"--svg", svg, "--svg-over", "time"}))
      << "a picture changes nothing";
  const Finished unknown = run_eddy({"plan", path, "--svg", svg, "--svg-over", "time"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("give --costs or --machine"), std::string::npos) << unknown.err;
}

TEST(Plan, MeasuringAWholeModelSeesItsTrips) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const Finished measured = run_eddy({"measure", path, "--whole", "--set", "trip=7", "--set", "x=0",
                                      "--set", "limit=100", "--repeat", "3", "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(measured.json()["decisions"]["count"], json({7})) << measured.out;
  EXPECT_EQ(run_eddy({"measure", path, "--set", "trip=7"}).exit_code, 2);
}

// Seeds alone give values of -1 to 1: on those the loop would end by its limit at once.
TEST(Plan, MeasuringAWholeModelOnADataSetSeesItsTrips) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const std::string folder = fresh_folder("data");
  int64_t trip = 7;
  float from = 0;
  float limit = 100;
  const auto write = [&](const char* file, void* scalar, ElementType type) {
    const HostValue value = HostValue::copy_of({scalar, nullptr, 0, type});
    EXPECT_TRUE(write_value(folder + file, value).is_ok());
  };
  write("/input_0.pb", &trip, ElementType::kInt64);
  write("/input_1.pb", &from, ElementType::kFloat);
  write("/input_2.pb", &limit, ElementType::kFloat);
  const auto trips = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"measure", path,       "--whole", "--inputs",
                                          folder,    "--repeat", "3",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished measured = run_eddy(arguments);
    EXPECT_EQ(measured.exit_code, 0) << measured.err;
    return measured.json()["decisions"]["count"];
  };
  EXPECT_EQ(trips({}), json({7}));
  EXPECT_EQ(trips({"--set", "trip=5"}), json({5})) << "what is said by name goes first";
}

TEST(Plan, AFolderAsABareGraphIsABadInput) {
  const Finished plan = run_eddy({"plan", "--dag", fresh_folder("graph")});
  EXPECT_EQ(plan.exit_code, 3);
  EXPECT_NE(plan.err.find("is not a regular file; name one that is; --dag takes a JSON file"),
            std::string::npos)
      << plan.err;
}

TEST(Plan, StreamsOfANodeAreListedAsItsDevicesAre) {
  const std::string path =
      write_test_file("joint.json", R"({"nodes": 4, "edges": [[0,3],[1,3],[2,3]],
                        "devices": ["a", "b", "c", ["c", "b", "a"]]})");
  const Finished plan = run_eddy({"plan", "--dag", path, "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json streams = plan.json()["streams"];
  EXPECT_EQ(streams[3], json({streams[2], streams[1], streams[0]})) << streams;
}

TEST(Plan, MemorySaysOfEachValueWhereItIsMadeAndWhereItStands) {
  const std::string path = write_two_chains();
  const Finished text = run_eddy({"plan", path, "--assign", "serial"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* line : {"in place in root: tanh over minus\n",
                           "no block in root: left, right; each leaving the graph\n"}) {
    EXPECT_NE(text.out.find(line), std::string::npos) << line << text.out;
  }
  const json plan = plan_json({path, "--assign", "serial"});
  uint32_t num_in_place = 0;
  for (const json& value : plan["memory"]["values"]) {
    EXPECT_EQ(value["region"], "root") << value;
    if (!value.contains("in_place_of")) continue;
    ++num_in_place;
    EXPECT_EQ(value["value"], "tanh");
    EXPECT_EQ(value["in_place_of"], "minus");
  }
  EXPECT_EQ(num_in_place, 1u);
  const std::string loop = write_test_file("count.onnx", counting_model());
  std::set<std::string> regions;
  bool any_shares = false;
  const json looped = plan_json({loop});
  for (const json& value : looped["memory"]["values"]) {
    regions.insert(value["region"].get<std::string>());
    any_shares |= value.contains("shares");
  }
  EXPECT_TRUE(regions.contains("count/after")) << json(regions);
  EXPECT_TRUE(any_shares);
}

TEST(Plan, ValuesThatDoNotFitIntoALineStandOneALine) {
  GraphParts parts;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "a_rather_long_name_" + std::to_string(i);
    const std::string input = "x" + std::to_string(i);
    parts.inputs.push_back(info(input, floats({8})));
    parts.nodes.push_back(node("Abs", {input}, {name}));
    parts.outputs.push_back(info(name, floats({8})));
  }
  const Finished plan = run_eddy({"plan", write_test_file("names.onnx", model(graph(parts)))});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const char* const expected =
      "no block in root, each leaving the graph:\n"
      "  a_rather_long_name_0\n"
      "  a_rather_long_name_1\n";
  EXPECT_NE(plan.out.find(expected), std::string::npos) << plan.out;
}

TEST(Plan, ASimulatedTimeNamesTheDecisionsItGuesses) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const std::string machine = write_test_file(
      "guess.json",
      R"({"name":"toy","units":4,"flops_per_ns":1,"bytes_per_ns":1,"shortest_ns":1000,"streams":2})");
  const Finished text = run_eddy({"plan", path, "--machine", machine});
  EXPECT_NE(text.out.find("guessed: trips of count (1000)"), std::string::npos) << text.out;
  EXPECT_EQ(plan_json({path, "--machine", machine})["simulated"]["guessed"],
            "trips of count (1000)");
  const std::string seen =
      write_test_file("seen.json", R"({"costs":[],"decisions":{"count":[7]}})");
  EXPECT_EQ(plan_json({path, "--machine", machine, "--costs", seen})["simulated"]["guessed"], "");
}

TEST(Plan, OptionsForModelsAreRefusedBesideABareGraph) {
  const std::string dag = write_test_file("diamond.json", kDiamond);
  const std::vector<std::vector<std::string>> options = {{"--loops", "host"}, {"--device", "cpu"},
                                                         {"--threads", "2"},  {"--exact"},
                                                         {"--dim", "n=2"},    {"--memory", "1000"}};
  for (const std::vector<std::string>& option : options) {
    std::vector<std::string> arguments = {"plan", "--dag", dag};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const Finished refused = run_eddy(arguments);
    EXPECT_EQ(refused.exit_code, 2) << option[0];
    EXPECT_NE(refused.err.find(option[0] + " is for models"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(run_eddy({"plan", "--dag", dag, "--assign", "matching", "--streams", "2", "--json"})
                .exit_code,
            0);
}

TEST(Plan, TwoPicturesNeedTwoFiles) {
  const std::string dag = write_test_file("diamond.json", kDiamond);
  const std::string folder = fresh_folder("same");
  for (const char* again : {"/p", "/./p"}) {
    const Finished refused =
        run_eddy({"plan", "--dag", dag, "--dot", folder + "/p", "--svg", folder + again});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("--dot and --svg name the same file"), std::string::npos)
        << refused.err;
  }
}

TEST(Plan, APictureNeverGoesOverWhatIsRead) {
  const std::string dag = write_test_file("read.json", kDiamond);
  const std::string model = write_test_file("read.onnx", adding_model());
  for (const char* option : {"--dot", "--svg"}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"plan", "--dag", dag, option, dag},
          {"plan", model, option, model}}) {
      const Finished refused = run_eddy(arguments);
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_NE(refused.err.find("is a file that this command reads"), std::string::npos)
          << refused.err;
    }
  }
  EXPECT_EQ(run_eddy({"plan", model}).exit_code, 0) << "it is still there";
}

TEST(Plan, RanksByCostsSayThatNoneWereMeasured) {
  const std::string model = write_test_file("ranked.onnx", adding_model());
  const Finished plan = run_eddy({"plan", model, "--rank-by", "costs"});
  EXPECT_NE(plan.out.find("notice: ranks count estimated costs"), std::string::npos) << plan.out;
  EXPECT_EQ(run_eddy({"plan", model}).out.find("notice: ranks"), std::string::npos);
}

TEST(Plan, ASizeDoesNotTakeTheModelBehindIt) {
  const std::string path = write_test_file("add.onnx", adding_model());
  const Finished plan = run_eddy({"plan", "--dim", "s7=2", path});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
}

TEST(Plan, PicturesShowEveryNodeAndWait) {
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

TEST(Plan, BadGraphsAreBadInput) {
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
