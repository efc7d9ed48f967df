// eddy simulate MODEL.onnx: the model's operators on one CPU device, or on a topology under a
// strategy; with loops and branches, over the scenarios of --costs.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/base/json_document.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/strategy/make_scenarios.h"
#include "graph/strategy/model_operators.h"
#include "graph/strategy/part_cost.h"
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

// Sets the strategies of every list: single devices where no strategy is given. Adds the names that
// the strategy uses.
Status set_strategies(const nlohmann::json* strategy_or_null, const Topology& topology,
                      OperatorList& list, std::set<std::string>& names) {
  for (const Operator& op : list.graph.operators) names.insert(op.name);
  list.strategy = single_device_strategy(list.graph, topology);
  if (strategy_or_null != nullptr) {
    EDDY_ASSIGN_OR_RETURN(list.strategy,
                          read_list_strategy(*strategy_or_null, list.graph, topology));
  }
  for (ControlOperator& control : list.controls) {
    for (OperatorList& inner : control.lists) {
      EDDY_RETURN_IF_ERROR(set_strategies(strategy_or_null, topology, inner, names));
    }
  }
  return Status::ok();
}

Status load_strategies(const std::string& path, const Topology& topology, OperatorList& root) {
  std::set<std::string> names;
  if (path.empty()) return set_strategies(nullptr, topology, root, names);
  EDDY_ASSIGN_OR_RETURN(const nlohmann::json strategy, read_strategy_file(path));
  Status status = set_strategies(&strategy, topology, root, names);
  for (const auto& [name, _] : strategy.items()) {
    if (!status.is_ok() || names.contains(name)) continue;
    status = invalid_argument("the strategy names '" + name + "', which is no operator");
  }
  return status.is_ok() ? Status::ok() : status.prepend_message(path);
}

Result<CostTable> load_costs(const std::string& path) {
  if (path.empty()) return CostTable();
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path, kMaxFileBytes));
  auto table = parse_cost_table(text);
  if (!table.is_ok()) return std::move(table.take_status().prepend_message(path));
  return table;
}

struct LoadedModel {
  OperatorList root;
  Topology topology;
};

Result<LoadedModel> load_operators(const SimulateArguments& arguments, Console& console) {
  EDDY_ASSIGN_OR_RETURN(const CostTable costs, load_costs(arguments.costs));
  EDDY_ASSIGN_OR_RETURN(Topology topology, load_topology(arguments.topology));
  ModelArguments model_arguments;
  model_arguments.dims = arguments.dims;
  model_arguments.shapes = arguments.shapes;
  model_arguments.threads = 1;
  EDDY_ASSIGN_OR_RETURN(SessionOptions options, make_session_options(model_arguments));
  const Library library;
  EDDY_ASSIGN_OR_RETURN(const Model model, load_model(library, arguments.file, options));
  auto made = model_operators(model.session->graph(), library.ops(), &costs, "cpu");
  if (!made.is_ok()) return std::move(made.take_status().prepend_message(arguments.file));
  if (!arguments.costs.empty()) {
    console.remark(
        fmt::format("{}: measured {} of {} operators{}", arguments.costs, made->num_measured,
                    made->num_operators,
                    made->num_measured < made->num_operators ? "; the others are estimated" : ""));
  }
  EDDY_RETURN_IF_ERROR(load_strategies(arguments.strategy, topology, made->root));
  return LoadedModel{std::move(made->root), std::move(topology)};
}

void add_estimated(const OperatorList& list, std::vector<std::string>& names) {
  for (const Operator& op : list.graph.operators) {
    if (is_estimated(op)) names.push_back(op.name);
  }
  for (const ControlOperator& control : list.controls) {
    for (const OperatorList& inner : control.lists) add_estimated(inner, names);
  }
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
  if (model->root.controls.empty()) {
    const OperatorFile file{std::move(model->root.graph),
                            std::move(model->topology),
                            std::move(model->root.strategy),
                            {},
                            !arguments.strategy.empty()};
    if (arguments.search) return search_operators(arguments, file, console, interrupts);
    return simulate_operator_graph(arguments, file, console);
  }
  Status status = check_scenario_arguments(arguments);
  if (!status.is_ok()) return Outcome::usage(status.message());
  std::vector<std::string> estimated;
  add_estimated(model->root, estimated);
  auto root = make_scenarios(model->root, model->topology);
  if (!root.is_ok()) return std::move(root.take_status().prepend_message(arguments.file));
  return say_scenarios(arguments,
                       {std::move(model->topology), std::move(*root), std::move(estimated)},
                       console, interrupts);
}

}  // namespace eddy
