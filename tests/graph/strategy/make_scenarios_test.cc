// Loops and branches wait for what they read and cross links for it, by as many bytes as are read:
// into a loop once, into a branch where it is taken, out of both where somebody reads on, from turn
// to turn at the end of each. A chain of operators costs the same with a loop of one turn around
// any stretch of it as without, and a loop over a chain as much as the chain written out.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/base/random.h"
#include "graph/simulate/full_simulation.h"
#include "graph/strategy/scenario_file.h"

namespace eddy {
namespace {

using Text = std::string;  // JSON
using Texts = std::vector<Text>;

Text list(const Texts& entries) {
  Text text;
  for (const Text& entry : entries) text += (text.empty() ? "" : ",") + entry;
  return "[" + text + "]";
}

Text names(const Texts& all) {
  Texts quoted;
  for (const Text& name : all) quoted.push_back('"' + name + '"');
  return list(quoted);
}

// Eight numbers of four bytes: 32 over a link of bandwidth 1, or 8 for a quarter of them.
Text op(const Text& name, double time, const Texts& inputs = {}) {
  const auto tile = [&](int size) {
    return '"' + std::to_string(size) + "\":" + std::to_string(time * size / 8);
  };
  return "{\"name\":\"" + name +
         "\",\"type\":\"elementwise\",\"shape\":[8],\"inputs\":" + names(inputs) +
         ",\"exe_by_tile\":{" + tile(8) + "," + tile(4) + "," + tile(2) + "}}";
}

Text loop(const Text& name, const Texts& inputs, int trips, const Texts& body,
          const Texts& before = {}) {
  return "{\"name\":\"" + name + "\",\"type\":\"while\",\"inputs\":" + names(inputs) +
         ",\"trips\":" + std::to_string(trips) + ",\"before\":" + list(before) +
         ",\"body\":" + list(body) + "}";
}

// Of those a loop carries, or with `initial` empty of one that is there from the start.
Text carried(const Text& name, const Text& next, const Text& initial = "") {
  return "{\"name\":\"" + name + "\",\"next\":\"" + next + '"' +
         (initial.empty() ? "" : ",\"initial\":\"" + initial + '"') + "}";
}

Text carrying(const Texts& values, Text loop) {
  return loop.insert(1, "\"carried\":" + list(values) + ",");
}

struct Placed {
  Text op;
  Texts devices;  // by part, along the first of `rank` dimensions
  int rank = 1;
};

Text strategy_text(const std::vector<Placed>& strategy) {
  Text text;
  for (const Placed& placed : strategy) {
    text += (text.empty() ? "" : ",") + ('"' + placed.op) + "\":{\"degree\":[" +
            std::to_string(placed.devices.size()) + (placed.rank == 2 ? ",1" : "") +
            "],\"devices\":" + names(placed.devices) + "}";
  }
  return "{" + text + "}";
}

constexpr char kTwoDevices[] = R"({"devices": ["x", "y"], "bandwidth": {"default": 1}})";

Text file(const Texts& operators, const std::vector<Placed>& strategy,
          const Text& topology = kTwoDevices) {
  return "{\"operators\":" + list(operators) + ",\"strategy\":" + strategy_text(strategy) +
         ",\"topology\":" + topology + "}";
}

Result<ScenarioFile> read(const Text& text) {
  return read_scenario_file(nlohmann::json::parse(text), nullptr);
}

double worst(const Text& document) {
  const auto made = read(document);
  if (!made.is_ok()) {
    ADD_FAILURE() << made.status().to_string();
    return -1;
  }
  const auto report = evaluate_scenarios(made->root);
  if (!report.is_ok()) {
    ADD_FAILURE() << report.status().to_string();
    return -1;
  }
  return report->worst;
}

std::string refusal(const Text& document) {
  const auto made = read(document);
  return made.is_ok() ? "" : made.status().message();
}

// Of the first scenario: time on devices, time on links, and the makespan.
struct Totals {
  double work = 0;
  double transfers = 0;
  double makespan = 0;
};

Totals totals(const Text& document) {
  Totals totals;
  const auto made = read(document);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string() << "\n" << document;
  if (!made.is_ok()) return totals;
  auto scenario = expand_scenario(made->root);
  EXPECT_TRUE(scenario.is_ok()) << scenario.status().to_string();
  if (!scenario.is_ok()) return totals;
  Timeline<double> timeline;
  simulate_full(scenario->graph, timeline);
  totals.makespan = timeline.makespan;
  for (uint32_t slot = 0; slot < scenario->graph.num_slots(); ++slot) {
    const auto& task = scenario->graph.task(slot);
    (task.device < made->topology.num_nodes() ? totals.work : totals.transfers) += task.exe_time;
  }
  return totals;
}

TEST(MakeScenarios, a_loop_fed_from_another_device_waits_for_one_transfer) {
  const std::vector<Placed> strategy = {{"start", {"x"}}, {"step", {"y"}}};
  const Text reading =
      file({op("start", 1), loop("loop", {}, 3, {op("step", 10, {"start"})})}, strategy);
  EXPECT_EQ(worst(reading), 1 + 32 + 3 * 10);
  // Named by the loop alone, it goes to who waits for nothing.
  const Text naming =
      file({op("start", 1), loop("loop", {"start"}, 3, {op("step", 10)})}, strategy);
  EXPECT_EQ(worst(naming), 1 + 32 + 3 * 10);
  const std::vector<Placed> at_home = {{"start", {"y"}}, {"step", {"y"}}};
  EXPECT_EQ(
      worst(file({op("start", 1), loop("loop", {}, 3, {op("step", 10, {"start"})})}, at_home)),
      1 + 3 * 10);
}

TEST(MakeScenarios, who_reads_a_loop_from_another_device_waits_for_its_result) {
  const std::vector<Placed> strategy = {{"step", {"x"}}, {"finish", {"y"}}};
  EXPECT_EQ(
      worst(file({loop("loop", {}, 2, {op("step", 10)}), op("finish", 1, {"loop"})}, strategy)),
      2 * 10 + 32 + 1);
}

TEST(MakeScenarios, a_result_is_what_nobody_in_the_list_reads) {
  const std::vector<Placed> strategy = {
      {"first", {"x"}}, {"second", {"y"}}, {"finish", {"y"}}, {"start", {"x"}}};
  // `first` is read by `second`, so only that is the result, and is there already.
  const Text document =
      file({op("start", 1),
            loop("loop", {"start"}, 1, {op("first", 10, {"start"}), op("second", 10, {"first"})}),
            op("finish", 1, {"loop"})},
           strategy);
  EXPECT_EQ(worst(document), 1 + 10 + 32 + 10 + 1);
}

TEST(MakeScenarios, an_inner_loop_is_fed_before_the_outer_one_begins) {
  const std::vector<Placed> strategy = {{"start", {"x"}}, {"step", {"y"}}};
  const Text inner = loop("inner", {}, 2, {op("step", 10, {"start"})});
  EXPECT_EQ(worst(file({op("start", 1), loop("outer", {}, 3, {inner})}, strategy)),
            1 + 32 + 3 * 2 * 10);
}

TEST(MakeScenarios, a_branch_pays_for_its_transfers_only_where_it_is_taken) {
  const auto branching = [](int taken) {
    const Texts branches = {list({op("near", 5, {"start"})}), list({op("far", 5, {"start"})})};
    const Text gate = R"({"name": "gate", "type": "case", "trace": [)" + std::to_string(taken) +
                      R"(], "branches": )" + list(branches) + "}";
    return file({op("start", 1), gate, op("finish", 1, {"gate"})},
                {{"start", {"x"}}, {"near", {"x"}}, {"far", {"y"}}, {"finish", {"x"}}});
  };
  EXPECT_EQ(worst(branching(0)), 1 + 5 + 1);
  EXPECT_EQ(worst(branching(1)), 1 + 32 + 5 + 32 + 1);
}

TEST(MakeScenarios, the_body_reads_what_before_made_in_each_turn) {
  const auto turning = [](const char* device) {
    return file({loop("loop", {}, 2, {op("step", 10, {"test"})}, {op("test", 1)})},
                {{"test", {"x"}}, {"step", {device}}});
  };
  EXPECT_EQ(worst(turning("x")), 3 * 1 + 2 * 10);
  EXPECT_EQ(worst(turning("y")), 3 * 1 + 2 * (32 + 10));
}

TEST(MakeScenarios, the_body_reads_a_loop_of_before) {
  const Texts before = {loop("search", {}, 2, {op("look", 1)})};
  const Text document = file({loop("loop", {}, 1, {op("step", 10, {"search"})}, before)},
                             {{"look", {"x"}}, {"step", {"y"}}});
  EXPECT_EQ(worst(document), 2 * (2 + 32) + 10);
}

TEST(MakeScenarios, only_what_is_read_of_a_part_crosses) {
  const Text step = op("step", 8, {"start"});
  const auto cut = [&](const Texts& start, const Texts& devices) {
    return totals(
        file({op("start", 8), loop("loop", {}, 1, {step})}, {{"start", start}, {"step", devices}}));
  };
  EXPECT_EQ(cut({"x", "y"}, {"x", "y"}).transfers, 0);
  EXPECT_EQ(cut({"x", "y"}, {"y", "x"}).transfers, 32);
  EXPECT_EQ(cut({"x", "y"}, {"y"}).transfers, 16);
  EXPECT_EQ(cut({"x"}, {"x", "x", "y", "x"}).transfers, 8);
}

TEST(MakeScenarios, a_product_reads_a_loop_without_in_features) {
  const Text product = R"({"name": "product", "type": "matmul", "shape": [8, 4],
                           "inputs": ["loop"], "exe_by_tile": {"8x4": 3}})";
  const Text step = R"({"name": "step", "type": "elementwise", "shape": [8, 2],
                        "exe_by_tile": {"8x2": 1}})";
  EXPECT_EQ(worst(file({loop("loop", {}, 2, {step}), product},
                       {{"step", {"x"}, 2}, {"product", {"y"}, 2}})),
            2 * 1 + 8 * 2 * 4 + 3);
}

TEST(MakeScenarios, a_result_that_does_not_fit_its_reader_is_read_whole) {
  const Text step = R"({"name": "step", "type": "elementwise", "shape": [3],
                        "exe_by_tile": {"3": 1}})";
  EXPECT_EQ(worst(file({loop("loop", {}, 1, {step}), op("finish", 1, {"loop"})},
                       {{"step", {"x"}}, {"finish", {"y"}}})),
            1 + 3 * 4 + 1);
}

TEST(MakeScenarios, inputs_from_lists_beside_are_refused_and_named) {
  const Text document = file({loop("loop", {}, 1, {op("step", 1)}), op("finish", 1, {"step"})},
                             {{"step", {"x"}}, {"finish", {"x"}}});
  EXPECT_EQ(refusal(document),
            "operator 'finish': 'step' is inside a loop or branch that this one is not in; only "
            "operators of the same list and of lists around it can be inputs");
  const Text backward = file({loop("loop", {}, 1, {op("step", 1)}, {op("test", 1, {"step"})})},
                             {{"step", {"x"}}, {"test", {"x"}}});
  EXPECT_NE(refusal(backward).find("'step' is inside a loop"), std::string::npos);
  const Text nowhere = file({loop("loop", {"none"}, 1, {op("step", 1)})}, {{"step", {"x"}}});
  EXPECT_NE(refusal(nowhere).find("is called 'none'"), std::string::npos) << refusal(nowhere);
  const Text itself = file({loop("loop", {"loop"}, 1, {op("step", 1)})}, {{"step", {"x"}}});
  EXPECT_NE(refusal(itself).find("depends on itself"), std::string::npos) << refusal(itself);
}

TEST(MakeScenarios, a_missing_link_is_named) {
  const Text document = file({op("start", 1), loop("loop", {}, 1, {op("step", 1, {"start"})})},
                             {{"start", {"x"}}, {"step", {"y"}}}, R"({"devices": ["x", "y"]})");
  EXPECT_EQ(refusal(document),
            "no link leads from 'x' to 'y', which 'step' needs; add one to the topology");
}

// The first value comes from x, the next ones from where `last` is.
TEST(MakeScenarios, a_carried_value_crosses_at_the_end_of_each_turn) {
  const auto turning = [](int trips, const char* first, const char* last) {
    const Texts body = {op("first", 10, {"state"}), op("last", 5, {"first"})};
    return worst(file({op("start", 1), carrying({carried("state", "last", "start")},
                                                loop("loop", {}, trips, body))},
                      {{"start", {"x"}}, {"first", {first}}, {"last", {last}}}));
  };
  EXPECT_EQ(turning(3, "x", "x"), 1 + 3 * 15);
  EXPECT_EQ(turning(3, "x", "y"), 1 + 3 * (10 + 32 + 5 + 32));
  EXPECT_EQ(turning(3, "y", "y"), 1 + 32 + 3 * 15);
  EXPECT_EQ(turning(3, "y", "x"), 1 + 32 + 3 * (10 + 32 + 5 + 32));
  EXPECT_EQ(turning(0, "y", "x"), 1 + 32);
}

TEST(MakeScenarios, before_reads_what_the_body_made) {
  const Text document =
      file({carrying({carried("state", "step")},
                     loop("loop", {}, 2, {op("step", 10, {"test"})}, {op("test", 1, {"state"})}))},
           {{"test", {"x"}}, {"step", {"y"}}});
  EXPECT_EQ(worst(document), 3 * 1 + 2 * (32 + 10 + 32));
}

TEST(MakeScenarios, what_before_made_is_carried_past_the_decision) {
  const auto turning = [](const Texts& body) {
    return worst(
        file({carrying({carried("state", "test")},
                       loop("loop", {}, 2, body, {op("test", 1), op("read", 2, {"state"})}))},
             {{"test", {"x"}}, {"read", {"y"}}, {"step", {"x"}}}));
  };
  EXPECT_EQ(turning({op("step", 40)}), 3 * 2 + 2 * 40) << "sent beside the step";
}

// Without a body the result is that of `before`, whatever is carried.
TEST(MakeScenarios, a_loop_without_a_body_carries_too) {
  EXPECT_EQ(
      worst(file({carrying({carried("state", "test")},
                           loop("loop", {}, 2, {}, {op("test", 1), op("read", 2, {"state"})})),
                  op("finish", 1, {"loop"})},
                 {{"test", {"x"}}, {"read", {"y"}}, {"finish", {"y"}}})),
      3 * 2 + 2 * 32 + 32 + 1);
}

TEST(MakeScenarios, only_what_is_read_of_a_carried_part_crosses) {
  const auto cut = [](const Texts& devices, const Texts& of_last) {
    return totals(file({carrying({carried("state", "last")},
                                 loop("loop", {}, 2,
                                      {op("step", 8, {"state"}), op("last", 8, {"step"})}))},
                       {{"step", devices}, {"last", of_last}}))
        .transfers;
  };
  EXPECT_EQ(cut({"x", "y"}, {"x", "y"}), 0);
  EXPECT_EQ(cut({"x", "y"}, {"y", "x"}), 2 * (32 + 32));
  EXPECT_EQ(cut({"x"}, {"x", "x", "x", "y"}), 2 * (8 + 8));
}

// Turn by turn one behind the other: what ends the chain is sent, and what each begins with.
TEST(MakeScenarios, carried_values_follow_one_another) {
  const auto reading = [](const Text& name) {
    return totals(file({op("start", 1), op("other", 1),
                        carrying(
                            {carried("newer", "step", "start"), carried("older", "newer", "other"),
                             carried("round", "and", ""), carried("and", "round", "")},
                            loop("loop", {}, 4, {op("step", 1), op("read", 1, {name})}))},
                       {{"start", {"x"}}, {"other", {"y"}}, {"step", {"y"}}, {"read", {"x"}}}))
        .transfers;
  };
  EXPECT_EQ(reading("newer"), 4 * 32);
  EXPECT_EQ(reading("older"), 32 + 4 * 32);
  EXPECT_EQ(reading("round"), 0);
}

TEST(MakeScenarios, inner_loops_and_branches_read_carried_values) {
  const Text inner = loop("inner", {}, 5, {op("read", 1, {"state"})});
  EXPECT_EQ(totals(file({carrying({carried("state", "step")},
                                  loop("outer", {}, 3, {op("step", 1), inner}))},
                        {{"step", {"x"}}, {"read", {"y"}}}))
                .transfers,
            3 * 32);
  const Text gate = R"({"name": "gate", "type": "case", "probabilities": [1],
                        "branches": [[)" +
                    op("taken", 1, {"state"}) + "]]}";
  // What is carried may be made by a branch.
  EXPECT_EQ(totals(file({carrying({carried("state", "gate")},
                                  loop("outer", {}, 3, {op("read", 1, {"state"}), gate}))},
                        {{"read", {"x"}}, {"taken", {"y"}}}))
                .transfers,
            3 * 32);
}

// A value that stays what it was outside is sent once.
TEST(MakeScenarios, what_is_carried_from_outside_crosses_once) {
  EXPECT_EQ(worst(file({op("start", 1), carrying({carried("state", "start", "start")},
                                                 loop("loop", {}, 3, {op("step", 10, {"state"})}))},
                       {{"start", {"x"}}, {"step", {"y"}}})),
            1 + 32 + 3 * 10);
}

TEST(MakeScenarios, bad_carried_values_are_named) {
  const auto refused = [](const Text& value) {
    return refusal(file({op("start", 1), carrying({value}, loop("loop", {}, 1, {op("step", 1)}))},
                        {{"start", {"x"}}, {"step", {"x"}}}));
  };
  EXPECT_EQ(refused(carried("state", "none")),
            "'loop': carried 'state': no operator of the loop or of lists around is called 'none', "
            "its \"next\"");
  EXPECT_EQ(
      refused(carried("state", "step", "step")),
      "'loop': carried 'state': no operator outside the loop is called 'step', its \"initial\"");
  EXPECT_EQ(refused(carried("start", "step")), "'loop': 'start' is called as something else is");
  EXPECT_EQ(refused("{\"next\":\"step\"}"), "'loop': a carried value needs \"name\"");
  EXPECT_NE(refused("{\"name\":\"state\"}").find("\"next\""), std::string::npos);
  EXPECT_EQ(refused(carried("state", "loop")), "") << "nobody reads it";
  const Text itself =
      file({carrying({carried("state", "loop")}, loop("loop", {}, 1, {op("step", 1, {"state"})}))},
           {{"step", {"x"}}});
  EXPECT_EQ(refusal(itself), "'loop': depends on itself");
  const Text outside =
      file({carrying({carried("state", "step")}, loop("loop", {}, 1, {op("step", 1)})),
            op("finish", 1, {"state"})},
           {{"step", {"x"}}, {"finish", {"x"}}});
  EXPECT_NE(refusal(outside).find("'state' is inside a loop"), std::string::npos)
      << refusal(outside);
}

constexpr char kRing[] = R"({"devices": ["a", "b", "c", "d"], "links": [
    {"from": "a", "to": "b", "bandwidth": 2, "latency": 1},
    {"from": "b", "to": "c", "bandwidth": 2, "latency": 1},
    {"from": "c", "to": "d", "bandwidth": 2, "latency": 1},
    {"from": "d", "to": "a", "bandwidth": 2, "latency": 1}]})";

// A chain of operators on random devices, without and with a loop around a stretch of it.
struct Chain {
  Text flat;
  Text looped;
};

Chain random_chain(Random& random, bool is_cut) {
  const uint64_t count = 3 + random.below(6);
  const uint64_t first = random.below(count);
  const uint64_t last = first + random.below(count - first);
  // A loop that never turns makes the other a file of scenarios, too.
  Texts flat = {loop("nothing", {}, 0, {})};
  Texts outside;
  Texts inside;
  std::vector<Placed> strategy;
  for (uint64_t i = 0; i < count; ++i) {
    const Text name = "op" + std::to_string(i);
    const double time = 8.0 * static_cast<double>(random.below(5));
    const Text before = "op" + std::to_string(i - 1);
    const Texts inputs = i > 0 ? Texts{before} : Texts{};
    flat.push_back(op(name, time, inputs));
    (i >= first && i <= last ? inside : outside)
        .push_back(op(name, time, i == last + 1 ? Texts{"loop"} : inputs));
    Placed& placed = strategy.emplace_back(Placed{name, {}});
    for (uint64_t parts = is_cut ? uint64_t{1} << random.below(3) : 1; parts > 0; --parts) {
      placed.devices.push_back(Text(1, static_cast<char>('a' + random.below(4))));
    }
  }
  outside.push_back(loop("loop", {}, 1, inside));
  return {file(flat, strategy, kRing), file(outside, strategy, kRing)};
}

// Where operators are cut, parts that wait for others may go earlier or later: the makespan is not
// compared.
TEST(MakeScenarios, a_chain_costs_the_same_with_a_loop_of_one_turn_around_any_stretch) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool is_cut = seed % 2 == 0;
    const Chain chain = random_chain(random, is_cut);
    const Totals without = totals(chain.flat);
    const Totals with = totals(chain.looped);
    EXPECT_EQ(without.work, with.work);
    EXPECT_EQ(without.transfers, with.transfers);
    if (!is_cut) {
      EXPECT_EQ(without.makespan, with.makespan);
    }
  }
}

// Operators on random devices that a loop runs in turn, and the same written out; who reads last
// what is carried stands for the next turn's first operator.
Chain random_turns(Random& random, bool is_cut) {
  const uint64_t count = 1 + random.below(4);
  const uint64_t trips = random.below(5);
  std::vector<Placed> places;
  for (uint64_t i = 0; i <= count; ++i) {
    Placed& placed = places.emplace_back();
    for (uint64_t parts = is_cut ? uint64_t{1} << random.below(3) : 1; parts > 0; --parts) {
      placed.devices.push_back(Text(1, static_cast<char>('a' + random.below(4))));
    }
  }
  Texts flat = {loop("nothing", {}, 0, {}), op("start", 8)};
  Texts body;
  std::vector<Placed> strategy;
  const auto place = [&](const Text& name, uint64_t i) {
    strategy.push_back({name, places[i].devices});
    return name;
  };
  place("start", count);
  const Text name_of_last = "op" + std::to_string(count - 1);
  for (uint64_t i = 0; i < count; ++i) {
    const Text before = i > 0 ? "op" + std::to_string(i - 1) : "state";
    body.push_back(op(place("op" + std::to_string(i), i), 8, {before}));
  }
  const std::vector<Placed> of_loop = strategy;
  strategy.resize(1);
  Text last = "start";
  for (uint64_t turn = 0; turn < trips; ++turn) {
    for (uint64_t i = 0; i < count; ++i) {
      const Text name = fmt::format("turn{}.op{}", turn, i);
      flat.push_back(op(place(name, i), 8, {last}));
      last = name;
    }
  }
  flat.push_back(op(place("reader", 0), 0, {last}));
  return {file(flat, strategy, kRing),
          file({op("start", 8), carrying({carried("state", name_of_last, "start")},
                                         loop("loop", {}, static_cast<int>(trips), body))},
               of_loop, kRing)};
}

TEST(MakeScenarios, a_loop_over_a_chain_costs_what_the_chain_written_out_does) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool is_cut = seed % 2 == 0;
    const Chain chain = random_turns(random, is_cut);
    const Totals written_out = totals(chain.flat);
    const Totals with = totals(chain.looped);
    EXPECT_EQ(written_out.work, with.work);
    EXPECT_EQ(written_out.transfers, with.transfers);
    if (!is_cut) {
      EXPECT_EQ(written_out.makespan, with.makespan);
    }
  }
}

}  // namespace
}  // namespace eddy
