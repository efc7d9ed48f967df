// The task graph of an operator graph has exactly the transfers that its operators need, element
// by element, and a bad operator-graph file is refused by name.
#include "graph/strategy/tasks/build_task_graph.h"
#include "graph/strategy/operators/memory_use.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "graph/base/random.h"
#include "graph/strategy/files/operator_file.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Element = std::vector<int64_t>;

// What one output element of `op` reads of its first input, from the definition of the type.
std::vector<Element> reads_of(const Json& op, const std::vector<int64_t>& input,
                              const Element& at) {
  const std::string type = op["type"];
  std::vector<Element> reads = {{}};
  const auto extend = [&](const std::vector<int64_t>& places) {
    std::vector<Element> longer;
    for (const Element& prefix : reads) {
      for (const int64_t place : places) {
        longer.push_back(prefix);
        longer.back().push_back(place);
      }
    }
    reads = longer;
  };
  for (size_t k = 0; k < input.size(); ++k) {
    std::vector<int64_t> places = {at[k]};
    const bool is_summed = (type == "matmul" && k == 1) || (type == "conv2d" && k == 1);
    const bool is_window = (type == "conv2d" && k >= 2) || (type == "conv1d" && k == 1);
    if (is_summed) {
      places.clear();
      for (int64_t i = 0; i < input[k]; ++i) places.push_back(i);
    }
    if (is_window) {
      const int64_t kernel = op["kernel"];
      const int64_t stride = op.value("stride", 1);
      const int64_t out = op["shape"][k];
      const int64_t padding = std::max<int64_t>((out - 1) * stride + kernel - input[k], 0);
      places.clear();
      for (int64_t tap = 0; tap < kernel; ++tap) {
        const int64_t place = at[k] * stride + tap - padding / 2;
        if (place >= 0 && place < input[k]) places.push_back(place);
      }
    }
    extend(places);
  }
  return reads;
}

// The part of a grid that an element is in.
int64_t part_of(const Element& at, const std::vector<int64_t>& shape,
                const std::vector<int64_t>& degree) {
  int64_t part = 0;
  for (size_t k = 0; k < shape.size(); ++k) {
    part = part * degree[k] + at[k] / (shape[k] / degree[k]);
  }
  return part;
}

void for_each_element(const std::vector<int64_t>& shape,
                      const std::function<void(const Element&)>& visit) {
  Element at(shape.size(), 0);
  for (;;) {
    visit(at);
    size_t k = shape.size();
    while (k > 0 && ++at[k - 1] == shape[k - 1]) at[--k] = 0;
    if (k == 0) return;
  }
}

std::map<std::string, double> transfers_by_definition(const Json& from, const Json& to,
                                                      const Json& strategy) {
  const std::vector<int64_t> in = from["shape"];
  const std::vector<int64_t> out = to["shape"];
  const Json& from_config = strategy["A"];
  const Json& to_config = strategy["B"];
  std::map<std::pair<int64_t, int64_t>, std::set<Element>> needed;
  for_each_element(out, [&](const Element& at) {
    const int64_t part = part_of(at, out, to_config["degree"]);
    for (const Element& read : reads_of(to, in, at)) {
      needed[{part_of(read, in, from_config["degree"]), part}].insert(read);
    }
  });
  std::map<std::string, double> transfers;
  for (const auto& [parts, elements] : needed) {
    const auto source = static_cast<size_t>(parts.first);
    const auto target = static_cast<size_t>(parts.second);
    if (from_config["devices"][source] == to_config["devices"][target]) continue;
    transfers["A." + std::to_string(source) + "->B." + std::to_string(target)] =
        static_cast<double>(elements.size());
  }
  return transfers;
}

std::map<std::string, double> transfers_built(const Json& file) {
  auto parsed = parse_operator_file(file, nullptr);
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().to_string() << file.dump();
  if (!parsed.is_ok()) return {};
  TaskGraph<double> tasks;
  std::vector<TaskLabel> labels;
  TaskGraphBuilder builder(parsed->graph, parsed->topology);
  const Status status = builder.build(parsed->strategy, tasks, labels);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  std::map<std::string, double> transfers;
  for (uint32_t slot = 0; slot < tasks.num_slots(); ++slot) {
    if (!is_communication(labels[slot])) continue;
    transfers[task_name(labels[slot], parsed->graph, parsed->topology)] = tasks.task(slot).exe_time;
  }
  return transfers;
}

Json random_config(const std::vector<int64_t>& shape, Random& random) {
  Json config = {{"degree", Json::array()}, {"devices", Json::array()}};
  int64_t parts = 1;
  for (const int64_t extent : shape) {
    int64_t degree = 1 + static_cast<int64_t>(random.below(4));
    while (extent % degree != 0) --degree;
    config["degree"].push_back(degree);
    parts *= degree;
  }
  for (int64_t p = 0; p < parts; ++p) {
    config["devices"].push_back("d" + std::to_string(random.below(3)));
  }
  return config;
}

// Operators A and B of random types; B reads A.
Json random_file(Random& random) {
  static constexpr const char* kTypes[] = {"elementwise", "matmul", "conv1d", "conv2d"};
  const std::string type = kTypes[random.below(4)];
  const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
  std::vector<int64_t> in = {size(6), size(8)};
  if (type == "conv2d") in = {size(3), size(4), size(8), size(8)};
  Json to = {{"name", "B"}, {"type", type}, {"inputs", {"A"}}};
  std::vector<int64_t> out = in;
  if (type == "matmul") {
    out[1] = size(6);
    to["in_features"] = in[1];
  }
  if (type == "conv1d") to["kernel"] = size(5);
  if (type == "conv2d") {
    const int64_t stride = size(2);
    out[1] = size(4);
    out[2] = (in[2] + stride - 1) / stride;
    out[3] = (in[3] + stride - 1) / stride;
    to["stride"] = stride;
    to["kernel"] = stride + size(3) - 1;
  }
  to["shape"] = out;
  Json from = {{"name", "A"}, {"type", "elementwise"}, {"shape", in}};
  return {{"operators", {from, to}},
          {"topology",
           {{"devices", {"d0", "d1", "d2"}},
            {"bytes_per_element", 1},
            {"bandwidth", {{"default", 1}}}}},
          {"strategy", {{"A", random_config(in, random)}, {"B", random_config(out, random)}}}};
}

TEST(BuildTaskGraph, TransfersAreWhatTheDefinitionsOfTheOperatorsSayElementByElement) {
  constexpr uint64_t kSeed = 20261120;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 600; ++round) {
    const Json file = random_file(random);
    EXPECT_EQ(transfers_built(file),
              transfers_by_definition(file["operators"][0], file["operators"][1], file["strategy"]))
        << "round " << round << ": " << file.dump();
    if (HasFailure()) return;
  }
}

// Two devices in two nodes of a network, A on one and B on the other.
Json pair_file() {
  return Json::parse(R"({
    "operators": [{"name": "A", "type": "elementwise", "shape": [8, 16],
                   "exe_by_tile": {"8x16": 5, "4x16": 3}},
                  {"name": "B", "type": "matmul", "shape": [8, 4], "in_features": 16,
                   "inputs": ["A"], "exe_by_tile": {"8x4": 7, "4x4": 4, "8x2": 4}}],
    "topology": {"devices": ["x", "y"], "switches": ["s"], "bytes_per_element": 4,
                 "links": [{"from": "x", "to": "s", "bandwidth": 2, "latency": 1},
                           {"from": "s", "to": "y", "bandwidth": 4},
                           {"from": "y", "to": "x", "bandwidth": 8}]},
    "strategy": {"A": {"degree": [1, 1], "devices": ["x"]},
                 "B": {"degree": [2, 1], "devices": ["x", "y"]}}})");
}

TEST(BuildTaskGraph, ARouteOfTwoLinksIsTwoTransfersOneAfterTheOther) {
  const std::map<std::string, double> expected = {{"A.0->B.1@x>s", 1 + 4 * 16 * 4 / 2.0},
                                                  {"A.0->B.1@s>y", 4 * 16 * 4 / 4.0}};
  EXPECT_EQ(transfers_built(pair_file()), expected);
}

TEST(BuildTaskGraph, ATransferOverOneLinkIsDirectAlsoAfterOneOverTwo) {
  Json file = pair_file();
  file["strategy"]["A"] = {{"degree", {2, 1}}, {"devices", {"x", "y"}}};
  file["strategy"]["B"]["devices"] = {"y", "x"};
  const std::map<std::string, double> expected = {{"A.0->B.0@x>s", 1 + 4 * 16 * 4 / 2.0},
                                                  {"A.0->B.0@s>y", 4 * 16 * 4 / 4.0},
                                                  {"A.1->B.1", 4 * 16 * 4 / 8.0}};
  EXPECT_EQ(transfers_built(file), expected);
}

TEST(BuildTaskGraph, ACutSumSendsItsPartialTilesToOnePlaceAndConsumersReadThere) {
  Json file = pair_file();
  file["operators"].push_back({{"name", "C"},
                               {"type", "elementwise"},
                               {"shape", {8, 4}},
                               {"inputs", {"B"}},
                               {"exe_by_tile", {{"8x4", 1}}}});
  file["strategy"]["B"] = {{"degree", {1, 1}}, {"reduce", 2}, {"devices", {"y", "x"}}};
  file["strategy"]["C"] = {{"degree", {1, 1}}, {"devices", {"x"}}};
  const std::map<std::string, double> expected = {
      {"A.0->B.0@x>s", 1 + 8 * 8 * 4 / 2.0},     {"A.0->B.0@s>y", 8 * 8 * 4 / 4.0},
      {"B.1->B.sum.0@x>s", 1 + 8 * 4 * 4 / 2.0}, {"B.1->B.sum.0@s>y", 8 * 4 * 4 / 4.0},
      {"B.sum.0->C.0", 8 * 4 * 4 / 8.0},
  };
  EXPECT_EQ(transfers_built(file), expected);
}

TEST(BuildTaskGraph, TrainingSendsGradientsBackAndSumsThoseOfWeightsInARing) {
  Json file = pair_file();
  file["training"] = true;
  file["topology"]["links"][0]["to"] = "y";  // x>y directly
  const std::map<std::string, double> expected = {
      {"A.0->B.1", 1 + 4 * 16 * 4 / 2.0},
      {"B.1.grad->A.0.grad", 4 * 16 * 4 / 8.0},
      // Two holders of 16 x 4 weights: each hop carries 2 (2-1)/2 of them, with two latencies.
      {"B.sync0.0:x>y", 2 * 1 + 16 * 4 * 4 / 2.0},
      {"B.sync0.1:y>x", 16 * 4 * 4 / 8.0},
  };
  EXPECT_EQ(transfers_built(file), expected);
}

struct Refusal {
  const char* what;
  void (*spoil)(Json& file);
  const char* message;
};

TEST(OperatorFile, RefusesWhatIsWrongByName) {
  const Refusal kRefusals[] = {
      {"cycle", [](Json& f) { f["operators"][0]["inputs"] = {"B"}; },
       "'A' depends on itself: it waits for 'B', which waits for 'A'"},
      {"unknown input", [](Json& f) { f["operators"][1]["inputs"] = {"Z"}; },
       "no operator is called 'Z'"},
      {"unknown device", [](Json& f) { f["strategy"]["A"]["devices"] = {"z"}; }, "no device 'z'"},
      {"degree",
       [](Json& f) {
         f["strategy"]["B"]["degree"] = {3, 1};
       },
       "degree 3 does not divide dimension 0 of extent 8"},
      {"part", [](Json& f) { f["strategy"]["B"]["devices"] = {"x"}; }, "part 1 has no device"},
      {"parts",
       [](Json& f) {
         f["strategy"]["A"]["devices"] = {"x", "y"};
       },
       "2 devices for 1 parts"},
      {"entry", [](Json& f) { f["strategy"].erase("B"); }, "no entry in the strategy"},
      {"rank", [](Json& f) { f["strategy"]["B"]["degree"] = {1}; }, "degree has 1 entries"},
      {"zero",
       [](Json& f) {
         f["strategy"]["B"]["degree"] = {0, 1};
       },
       "must be at least 1"},
      {"time", [](Json& f) { f["operators"][0]["exe_by_tile"]["8x16"] = -1; }, "time >= 0"},
      {"tile name", [](Json& f) { f["operators"][0]["exe_by_tile"]["8y16"] = 1; }, "no tile"},
      {"shape",
       [](Json& f) {
         f["operators"][0]["shape"] = {8, -16};
       },
       "1..2^31"},
      {"type", [](Json& f) { f["operators"][1]["in_features"] = 15; }, "in_features is 15"},
      {"twice", [](Json& f) { f["operators"][1]["name"] = "A"; }, "are called 'A'"},
      {"bandwidth", [](Json& f) { f["topology"]["links"][0]["bandwidth"] = 0; }, "> 0"},
      {"latency", [](Json& f) { f["topology"]["links"][0]["latency"] = -1; }, ">= 0"},
      {"link end", [](Json& f) { f["topology"]["links"][0]["to"] = "q"; }, "no device 'q'"},
      {"arrow in a name",
       [](Json& f) {
         f["topology"]["devices"] = {"x", "y", "x>y"};
       },
       "device 'x>y' has a '>' in its name"},
      {"stranger", [](Json& f) { f["strategy"]["Q"] = f["strategy"]["A"]; }, "no operator"},
      {"edit op", [](Json& f) { f["edits"] = Json::parse(R"([{"op": "set_exe"}])"); },
       "edit 0: unknown op"},
      {"edit operator",
       [](Json& f) { f["edits"] = Json::parse(R"([{"op": "set_config", "operator": "Q"}])"); },
       "edit 0: no operator is called 'Q'"},
      {"edit tile",
       [](Json& f) {
         f["edits"] = Json::parse(R"([{"op": "set_config", "operator": "B", "degree": [4, 1],
                                       "devices": ["x", "x", "y", "y"]}])");
       },
       "exe_by_tile has no tile 2x4"},
      {"memory", [](Json& f) { f["topology"]["memory_bytes"] = 100; }, "device 'x' would hold"},
  };
  for (const Refusal& refusal : kRefusals) {
    Json file = pair_file();
    refusal.spoil(file);
    auto parsed = parse_operator_file(file, nullptr);
    ASSERT_FALSE(parsed.is_ok()) << refusal.what;
    EXPECT_NE(parsed.status().message().find(refusal.message), std::string::npos)
        << refusal.what << ": " << parsed.status().message();
    EXPECT_EQ(parsed.status().message().find('\n'), std::string::npos);
  }
}

TEST(BuildTaskGraph, RefusesDevicesThatCannotReachEachOther) {
  Json file = pair_file();
  file["topology"]["links"].erase(1);
  auto parsed = parse_operator_file(file, nullptr);
  ASSERT_TRUE(parsed.is_ok());
  TaskGraph<double> tasks;
  const Status status =
      TaskGraphBuilder(parsed->graph, parsed->topology).build(parsed->strategy, tasks);
  ASSERT_FALSE(status.is_ok());
  EXPECT_NE(status.message().find("no link leads from 'x' to 'y'"), std::string::npos)
      << status.message();
}

// Each shares the weights of the next: followed from every one to the end, that is quadratic.
TEST(OperatorFile, AChainOfSharedWeightsIsOneGroupAndACircleIsRefused) {
  constexpr int kCount = 100'000;
  Json operators = Json::array();
  for (int i = 0; i < kCount; ++i) {
    operators.push_back({{"name", std::to_string(i)}, {"type", "input"}, {"shape", {8}}});
    if (i + 1 < kCount) operators.back()["weights_of"] = std::to_string(i + 1);
  }
  const auto graph = read_operators(Json{{"operators", operators}}, nullptr);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(graph->num_weight_groups, 1u);

  operators.back()["weights_of"] = "5";
  const auto circle = read_operators(Json{{"operators", operators}}, nullptr);
  ASSERT_FALSE(circle.is_ok());
  EXPECT_NE(circle.status().message().find("weights_of go in a circle"), std::string::npos);
}

// Device x holds A's 64 elements; B's go there one edit after A's have left, or in the same batch.
TEST(OperatorFile, MemoryIsCheckedAfterEachEditAndNotInside) {
  const auto move = [](const char* op, const char* device) {
    return Json{{"op", "set_config"}, {"operator", op}, {"degree", {1, 1}}, {"devices", {device}}};
  };
  Json file = pair_file();
  for (Json& op : file["operators"]) op.erase("exe_by_tile");
  file["strategy"] = {{"A", {{"degree", {1, 1}}, {"devices", {"x"}}}},
                      {"B", {{"degree", {1, 1}}, {"devices", {"y"}}}}};
  const auto parsed = parse_operator_file(file, nullptr);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  const std::vector<int64_t> use = memory_use(parsed->graph, parsed->topology, parsed->strategy);
  file["topology"]["memory_bytes"] = std::max(use[0], use[1]);

  file["edits"] = {{{"op", "batch"}, {"ops", {move("B", "x"), move("A", "y")}}},
                   {{"op", "batch"}, {"ops", {move("B", "y"), move("A", "x")}}}};
  EXPECT_TRUE(parse_operator_file(file, nullptr).is_ok())
      << parse_operator_file(file, nullptr).status().to_string();
  file["edits"].push_back(move("B", "x"));
  const auto refused = parse_operator_file(file, nullptr);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.status().message().find("edit 2: device 'x' would hold"), std::string::npos)
      << refused.status().message();
}

TEST(OperatorFile, StrategiesComeBackFromTheirJson) {
  auto parsed = parse_operator_file(pair_file(), nullptr);
  ASSERT_TRUE(parsed.is_ok());
  const std::string text = strategy_json(parsed->graph, parsed->topology, parsed->strategy);
  auto back = read_strategy(Json::parse(text), parsed->graph, parsed->topology);
  ASSERT_TRUE(back.is_ok()) << back.status().to_string();
  EXPECT_EQ(*back, parsed->strategy);
}

}  // namespace
}  // namespace eddy
