// eddy simulate MODEL.onnx: the model's operators on one CPU device, or on a topology under a
// strategy; with loops and branches, over the scenarios that --costs tells of.
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/base/json_document.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/strategy/files/operator_file.h"
#include "graph/strategy/scenarios/expand_graph.h"
#include "graph/strategy/scenarios/model_costs.h"
#include "tools/command/model.h"
#include "tools/command/simulate.h"
#include "tools/command/text_file.h"

namespace eddy {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

Result<nlohmann::json> read_document(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path, kMaxFileBytes));
  auto document = parse_json_document(text);
  if (!document.is_ok()) return std::move(document.take_status().prepend_message(path));
  return document;
}

// The topology itself, or a document that has one under "topology".
Result<Topology> load_topology(const std::string& path) {
  if (path.empty()) return cpu_topology();
  EDDY_ASSIGN_OR_RETURN(const nlohmann::json document, read_document(path));
  const bool is_wrapped = document.is_object() && document.contains("topology");
  auto topology = read_topology(is_wrapped ? document["topology"] : document);
  if (!topology.is_ok()) return std::move(topology.take_status().prepend_message(path));
  return topology;
}

Status load_strategies(const std::string& path, const Topology& topology, GraphCosts& costs) {
  if (path.empty()) return read_strategies(nullptr, topology, costs);
  EDDY_ASSIGN_OR_RETURN(const nlohmann::json strategy, read_strategy_file(path));
  Status status = read_strategies(&strategy, topology, costs);
  return status.is_ok() ? Status::ok() : status.prepend_message(path);
}

Result<CostTable> load_costs(const std::string& path) {
  if (path.empty()) return CostTable();
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path, kMaxFileBytes));
  auto table = parse_cost_table(text);
  if (!table.is_ok()) return std::move(table.take_status().prepend_message(path));
  return table;
}

// Either of them: the model has loops or branches, or none.
struct LoadedModel {
  std::optional<OperatorFile> flat;
  std::optional<ScenarioFile> scenarios;
};

Result<LoadedModel> load_operators(const SimulateArguments& arguments, Console& console) {
  EDDY_ASSIGN_OR_RETURN(const CostTable measured, load_costs(arguments.costs));
  EDDY_ASSIGN_OR_RETURN(Topology topology, load_topology(arguments.topology));
  ModelArguments model_arguments;
  model_arguments.dims = arguments.dims;
  model_arguments.shapes = arguments.shapes;
  model_arguments.threads = 1;
  EDDY_ASSIGN_OR_RETURN(SessionOptions options, make_session_options(model_arguments));
  const Library library;
  EDDY_ASSIGN_OR_RETURN(const Model model, load_model(library, arguments.file, options));
  const Graph& graph = model.session->graph();
  auto made = model_costs(graph, library.ops(), &measured, "cpu");
  if (!made.is_ok()) return std::move(made.take_status().prepend_message(arguments.file));
  if (!arguments.costs.empty()) {
    console.remark(
        fmt::format("{}: measured {} of {} operators{}", arguments.costs, made->num_measured,
                    made->num_operators,
                    made->num_measured < made->num_operators ? "; the others are estimated" : ""));
  }
  GraphCosts& costs = made->costs;
  EDDY_RETURN_IF_ERROR(load_strategies(arguments.strategy, topology, costs));
  LoadedModel loaded;
  if (costs.controls.empty()) {
    RegionCosts& root = costs.regions[0];
    loaded.flat = OperatorFile{std::move(root.operators),
                               std::move(topology),
                               std::move(root.strategy),
                               {},
                               !arguments.strategy.empty()};
    return loaded;
  }
  auto root = expand_graph(graph, costs, topology);
  if (!root.is_ok()) return std::move(root.take_status().prepend_message(arguments.file));
  loaded.scenarios =
      ScenarioFile{std::move(topology), std::move(*root), estimated_operators(graph, costs)};
  return loaded;
}

}  // namespace

Result<nlohmann::json> read_strategy_file(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(nlohmann::json document, read_document(path));
  if (!document.is_object()) return invalid_argument(path + ": a strategy must be a JSON object");
  const auto inner = document.find("strategy");
  if (inner == document.end() || !inner->is_object()) return document;
  const bool is_operator = inner->contains("degree") && (*inner)["degree"].is_array();
  return is_operator ? document : nlohmann::json(std::move(*inner));
}

Outcome simulate_model(const SimulateArguments& arguments, Console& console,
                       Interrupts& interrupts) {
  auto model = load_operators(arguments, console);
  if (!model.is_ok()) return model.take_status();
  if (model->scenarios) {
    Status status = check_scenario_arguments(arguments);
    if (!status.is_ok()) return Outcome::usage(status.message());
    return say_scenarios(arguments, *model->scenarios, console, interrupts);
  }
  if (arguments.search) return search_operators(arguments, *model->flat, console, interrupts);
  return simulate_operator_graph(arguments, *model->flat, console);
}

}  // namespace eddy
