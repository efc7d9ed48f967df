#include "tests/graph/strategy/loop_files.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graph/simulate/full_simulation.h"

namespace eddy::loop_files {

Text list(const Texts& entries) {
  Text text;
  for (const Text& entry : entries) text += (text.empty() ? "" : ",") + entry;
  return "[" + text + "]";
}

namespace {

Text names(const Texts& all) {
  Texts quoted;
  for (const Text& name : all) quoted.push_back('"' + name + '"');
  return list(quoted);
}

}  // namespace

Text op(const Text& name, double time, const Texts& inputs) {
  const auto tile = [&](int size) {
    return '"' + std::to_string(size) + "\":" + std::to_string(time * size / 8);
  };
  return "{\"name\":\"" + name +
         "\",\"type\":\"elementwise\",\"shape\":[8],\"inputs\":" + names(inputs) +
         ",\"exe_by_tile\":{" + tile(8) + "," + tile(4) + "," + tile(2) + "}}";
}

Text loop(const Text& name, const Texts& inputs, int trips, const Texts& body,
          const Texts& before) {
  return "{\"name\":\"" + name + "\",\"type\":\"while\",\"inputs\":" + names(inputs) +
         ",\"trips\":" + std::to_string(trips) + ",\"before\":" + list(before) +
         ",\"body\":" + list(body) + "}";
}

Text carried(const Text& name, const Text& next, const Text& initial) {
  return "{\"name\":\"" + name + "\",\"next\":\"" + next + '"' +
         (initial.empty() ? "" : ",\"initial\":\"" + initial + '"') + "}";
}

Text branching(const Text& name, int taken, const std::vector<Texts>& branches) {
  Texts lists;
  for (const Texts& branch : branches) lists.push_back(list(branch));
  return "{\"name\":\"" + name + "\",\"type\":\"case\",\"distribution\":[[" +
         std::to_string(taken) + ",1]],\"branches\":" + list(lists) + "}";
}

Text carrying(const Texts& values, Text loop) {
  return loop.insert(1, "\"carried\":" + list(values) + ",");
}

Text strategy_text(const std::vector<Placed>& strategy) {
  Text text;
  for (const Placed& placed : strategy) {
    text += (text.empty() ? "" : ",") + ('"' + placed.op) + "\":{\"degree\":[" +
            std::to_string(placed.devices.size()) + (placed.rank == 2 ? ",1" : "") +
            "],\"devices\":" + names(placed.devices) + "}";
  }
  return "{" + text + "}";
}

Text file(const Texts& operators, const std::vector<Placed>& strategy, const Text& topology) {
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

}  // namespace eddy::loop_files
