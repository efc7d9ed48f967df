// eddy simulate MODEL.onnx: the model's operators on one CPU device, or on a topology under a
// strategy.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "graph/io/file_bytes.h"
#include "graph/schedule/cost_table.h"
#include "graph/simulate/json_document.h"
#include "graph/strategy/model_operators.h"
#include "tools/command/model.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

Result<std::string> read_text(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const auto file, read_file(path, kMaxFileBytes));
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<nlohmann::json> read_document(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path));
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

Result<Strategy> load_strategy(const std::string& path, const OperatorGraph& graph,
                               const Topology& topology) {
  if (path.empty()) return single_device_strategy(graph, topology);
  EDDY_ASSIGN_OR_RETURN(const nlohmann::json document, read_document(path));
  const bool is_wrapped =
      document.is_object() && document.contains("strategy") && graph.find("strategy") == UINT32_MAX;
  auto strategy = read_strategy(is_wrapped ? document["strategy"] : document, graph, topology);
  if (!strategy.is_ok()) return std::move(strategy.take_status().prepend_message(path));
  return strategy;
}

Result<CostTable> load_costs(const std::string& path) {
  if (path.empty()) return CostTable();
  EDDY_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  auto table = parse_cost_table(text);
  if (!table.is_ok()) return std::move(table.take_status().prepend_message(path));
  return table;
}

Result<OperatorFile> load_operators(const SimulateArguments& arguments, Console& console) {
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
    console.remark(fmt::format("{}: measured {} of {} operators; the others are estimated",
                               arguments.costs, made->num_measured, made->graph.operators.size()));
  }
  EDDY_ASSIGN_OR_RETURN(Strategy strategy,
                        load_strategy(arguments.strategy, made->graph, topology));
  return OperatorFile{std::move(made->graph),
                      std::move(topology),
                      std::move(strategy),
                      {},
                      !arguments.strategy.empty()};
}

}  // namespace

Outcome simulate_model(const SimulateArguments& arguments, Console& console,
                       Interrupts& interrupts) {
  auto file = load_operators(arguments, console);
  if (!file.is_ok()) return file.take_status();
  if (arguments.search) return search_operators(arguments, *file, console, interrupts);
  return simulate_operator_graph(arguments, *file, console);
}

}  // namespace eddy
