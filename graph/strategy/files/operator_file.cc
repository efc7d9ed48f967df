#include "graph/strategy/files/operator_file.h"

#include <set>
#include <string_view>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/json_document.h"
#include "graph/simulate/json_fields.h"
#include "graph/strategy/files/file_entries.h"
#include "graph/strategy/files/graph_reader.h"
#include "graph/strategy/operators/memory_meter.h"
#include "graph/strategy/operators/memory_use.h"
#include "graph/strategy/operators/part_cost.h"
#include "graph/strategy/scenarios/expand_graph.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

Result<DeviceSpec> read_device(const Json& entry, const DeviceSpec& shared, size_t i) {
  DeviceSpec device = shared;
  const std::string where = "topology device " + std::to_string(i);
  if (!entry.is_object()) {
    EDDY_ASSIGN_OR_RETURN(device.name, JsonFields::name_of(entry, where));
    return device;
  }
  const JsonFields fields(entry, where);
  if (fields.find_or_null("name") == nullptr) return fields.fail("needs \"name\"");
  EDDY_ASSIGN_OR_RETURN(device.name, JsonFields::name_of(entry["name"], where));
  EDDY_ASSIGN_OR_RETURN(device.flops, fields.number_or("flops", shared.flops));
  EDDY_ASSIGN_OR_RETURN(device.memory_rate, fields.number_or("memory_rate", shared.memory_rate));
  EDDY_ASSIGN_OR_RETURN(device.launch, fields.number_or("launch", shared.launch));
  EDDY_ASSIGN_OR_RETURN(device.memory_bytes,
                        fields.integer_or("memory_bytes", shared.memory_bytes));
  return device;
}

Result<LinkSpec> read_link(const Json& entry, size_t i) {
  const JsonFields fields(entry, "topology link " + std::to_string(i));
  EDDY_RETURN_IF_ERROR(fields.check_object());
  LinkSpec link;
  for (const auto& [key, name] : {std::pair("from", &link.from), std::pair("to", &link.to)}) {
    const Json* value = fields.find_or_null(key);
    if (value == nullptr) return fields.fail("needs \"" + std::string(key) + "\"");
    EDDY_ASSIGN_OR_RETURN(*name, JsonFields::name_of(*value, fields.where()));
  }
  if (fields.find_or_null("bandwidth") == nullptr) return fields.fail("needs \"bandwidth\"");
  EDDY_ASSIGN_OR_RETURN(link.bandwidth, fields.number_or("bandwidth", 0));
  EDDY_ASSIGN_OR_RETURN(link.latency, fields.number_or("latency", 0));
  if (fields.find_or_null("channel") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(link.channel, fields.text("channel"));
  }
  return link;
}

// {"default": x}, or x itself; 0 when absent.
Result<double> read_default(const JsonFields& topology, const char* key) {
  const Json* value = topology.find_or_null(key);
  if (value == nullptr || !value->is_object()) return topology.number_or(key, 0);
  const JsonFields fields(*value, "topology " + std::string(key));
  if (fields.find_or_null("default") == nullptr) return fields.fail("needs \"default\"");
  return fields.number_or("default", 0);
}

// Memory after every edit is checked, not only in the beginning.
class EditReader {
 public:
  explicit EditReader(OperatorFile& file)
      : file_(file),
        numbers_(numbers_by_name(file.graph)),
        costs_(file.graph, file.topology),
        memory_(file.graph, file.topology),
        strategy_(file.strategy) {
    memory_.reset(strategy_);
  }

  Status read(const Json& edits) {
    for (size_t i = 0; i < edits.size(); ++i) {
      const std::string where = "edit " + std::to_string(i);
      EDDY_RETURN_IF_ERROR(read_edit(edits[i], where, 0, file_.edits.emplace_back()));
      if (fits(file_.edits.back())) continue;
      return check_memory(file_.graph, file_.topology, strategy_).prepend_message(where);
    }
    return Status::ok();
  }

 private:
  // Makes the changes; whether the devices can hold what comes of all of them.
  bool fits(const ConfigEdit& edit) {
    bool fit = true;
    for (const ConfigChange& change : edit) {
      fit = memory_.try_change({change.op}, change.config);
      memory_.keep();
      strategy_[change.op] = change.config;
    }
    return fit;
  }

  Result<ConfigChange> read_change(const Json& entry, const std::string& where) const {
    const JsonFields fields(entry, where);
    EDDY_ASSIGN_OR_RETURN(const std::string name, fields.text("operator"));
    const auto number = numbers_.find(name);
    if (number == numbers_.end()) return fields.fail("no operator is called '" + name + "'");
    ConfigChange change;
    change.op = number->second;
    EDDY_ASSIGN_OR_RETURN(change.config, read_config(fields, file_.topology));
    Status status = check_config(file_.graph.operators[change.op], change.config, file_.topology);
    if (status.is_ok()) status = costs_.work(change.op, change.config).take_status();
    if (!status.is_ok()) return std::move(status.prepend_message(where));
    return change;
  }

  Status read_edit(const Json& entry, const std::string& where, int depth, ConfigEdit& edit) const {
    const JsonFields fields(entry, where);
    EDDY_RETURN_IF_ERROR(fields.check_object());
    EDDY_ASSIGN_OR_RETURN(const std::string op, fields.text("op"));
    if (op == "batch" && depth == 0) {
      EDDY_ASSIGN_OR_RETURN(const Json* parts, fields.list("ops", true));
      for (size_t i = 0; i < parts->size(); ++i) {
        EDDY_RETURN_IF_ERROR(
            read_edit((*parts)[i], where + "." + std::to_string(i), depth + 1, edit));
      }
      return Status::ok();
    }
    if (op != "set_config") {
      return fields.fail("unknown op \"" + op + "\"; operator graphs know set_config and batch");
    }
    EDDY_ASSIGN_OR_RETURN(ConfigChange change, read_change(entry, where));
    edit.push_back(std::move(change));
    return Status::ok();
  }

  OperatorFile& file_;
  const OperatorNumbers numbers_;
  const PartCost costs_;
  MemoryMeter memory_;
  Strategy strategy_;
};

}  // namespace

bool is_operator_file(const Json& document) {
  return document.is_object() && document.contains("operators");
}

Result<OperatorGraph> read_operators(const Json& document, const OpTable* ops_or_null) {
  const JsonFields fields(document, "an operator-graph file");
  EDDY_ASSIGN_OR_RETURN(const Json* entries, fields.list("operators", true));
  if (entries->empty()) return invalid_argument("the file has no operators");
  EDDY_ASSIGN_OR_RETURN(FileGraph made, read_graph(*entries, nullptr, ops_or_null));
  OperatorGraph graph = std::move(made.costs.regions[0].operators);
  EDDY_ASSIGN_OR_RETURN(graph.is_training, fields.flag_or("training", false));
  return graph;
}

Result<Topology> read_topology(const Json& topology) {
  const JsonFields fields(topology, "topology");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  TopologySpec spec;
  DeviceSpec shared;
  EDDY_ASSIGN_OR_RETURN(shared.flops, fields.number_or("flops", 0));
  EDDY_ASSIGN_OR_RETURN(shared.memory_rate, fields.number_or("memory_rate", 0));
  EDDY_ASSIGN_OR_RETURN(shared.launch, fields.number_or("launch", 0));
  EDDY_ASSIGN_OR_RETURN(shared.memory_bytes, fields.integer_or("memory_bytes", 0));
  EDDY_ASSIGN_OR_RETURN(const Json* devices, fields.list("devices", true));
  for (const Json& entry : *devices) {
    EDDY_ASSIGN_OR_RETURN(spec.devices.emplace_back(),
                          read_device(entry, shared, spec.devices.size()));
  }
  EDDY_ASSIGN_OR_RETURN(const Json* switches, fields.list("switches", false));
  for (const Json& entry : *switches) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(entry, "topology switch"));
    spec.devices.push_back({.name = name, .is_switch = true});
  }
  EDDY_ASSIGN_OR_RETURN(const Json* links, fields.list("links", false));
  for (const Json& entry : *links) {
    EDDY_ASSIGN_OR_RETURN(spec.links.emplace_back(), read_link(entry, spec.links.size()));
  }
  EDDY_ASSIGN_OR_RETURN(spec.default_bandwidth, read_default(fields, "bandwidth"));
  EDDY_ASSIGN_OR_RETURN(spec.default_latency, read_default(fields, "latency"));
  if (spec.default_bandwidth == 0 && fields.find_or_null("bandwidth") != nullptr) {
    return fields.fail("the default bandwidth must be > 0");
  }
  return Topology::create(std::move(spec));
}

namespace {

Status check_names(const Json& strategy, const std::set<std::string_view>& operators) {
  if (!strategy.is_object()) return invalid_argument("\"strategy\" must be a JSON object");
  for (const auto& [name, _] : strategy.items()) {
    if (operators.contains(name)) continue;
    return invalid_argument("the strategy names '" + name +
                            "', which is no operator; of a loop or branch, name those inside");
  }
  return Status::ok();
}

Result<Strategy> read_configs(const Json& strategy, const OperatorGraph& graph,
                              const Topology& topology) {
  Strategy configs;
  for (const Operator& op : graph.operators) {
    const auto entry = strategy.find(op.name);
    if (entry == strategy.end()) {
      return invalid_argument("operator '" + op.name + "' has no entry in the strategy");
    }
    const JsonFields fields(*entry, "strategy of '" + op.name + "'");
    EDDY_RETURN_IF_ERROR(fields.check_object());
    EDDY_ASSIGN_OR_RETURN(configs.emplace_back(), read_config(fields, topology));
    EDDY_RETURN_IF_ERROR(check_config(op, configs.back(), topology));
  }
  return configs;
}

void add_names(const OperatorGraph& graph, std::set<std::string_view>& names) {
  for (const Operator& op : graph.operators) names.insert(op.name);
}

// What files with and without loops have in common.
struct FileParts {
  const Json* topology_json;
  Topology topology;
  int64_t bytes_per_element;
};

Result<FileParts> read_parts(const JsonFields& fields) {
  EDDY_RETURN_IF_ERROR(fields.check_object());
  const Json* topology_json = fields.find_or_null("topology");
  if (topology_json == nullptr) return fields.fail("needs \"topology\"");
  EDDY_ASSIGN_OR_RETURN(Topology topology, read_topology(*topology_json));
  EDDY_ASSIGN_OR_RETURN(const int64_t bytes_per_element,
                        JsonFields(*topology_json, "topology").integer_or("bytes_per_element", 4));
  if (bytes_per_element < 1 || bytes_per_element > 64) {
    return invalid_argument("topology: bytes_per_element must be in 1..64");
  }
  return FileParts{topology_json, std::move(topology), bytes_per_element};
}

}  // namespace

Result<Strategy> read_strategy(const Json& strategy, const OperatorGraph& graph,
                               const Topology& topology) {
  std::set<std::string_view> names;
  add_names(graph, names);
  EDDY_RETURN_IF_ERROR(check_names(strategy, names));
  return read_configs(strategy, graph, topology);
}

Status read_strategies(const Json* strategy_or_null, const Topology& topology, GraphCosts& costs) {
  std::set<std::string_view> names;
  for (const RegionCosts& region : costs.regions) add_names(region.operators, names);
  if (strategy_or_null != nullptr) EDDY_RETURN_IF_ERROR(check_names(*strategy_or_null, names));
  for (RegionCosts& region : costs.regions) {
    region.strategy = single_device_strategy(region.operators, topology);
    if (strategy_or_null == nullptr) continue;
    EDDY_ASSIGN_OR_RETURN(region.strategy,
                          read_configs(*strategy_or_null, region.operators, topology));
  }
  return Status::ok();
}

bool has_loops_or_branches(const Json& document) {
  return is_operator_file(document) && has_control_flow(document["operators"]);
}

Result<ScenarioFile> read_scenario_file(const Json& document, const OpTable* ops_or_null) {
  const JsonFields fields(document, "an operator-graph file");
  EDDY_ASSIGN_OR_RETURN(FileParts parts, read_parts(fields));
  EDDY_ASSIGN_OR_RETURN(const bool is_training, fields.flag_or("training", false));
  EDDY_ASSIGN_OR_RETURN(const Json* edits, fields.list("edits", false));
  if (is_training || !edits->empty()) {
    return fields.fail("with loops or branches it can have neither edits nor training");
  }
  EDDY_ASSIGN_OR_RETURN(const Json* operators, fields.list("operators", true));
  EDDY_ASSIGN_OR_RETURN(FileGraph made, read_graph(*operators, &parts.topology, ops_or_null));
  for (RegionCosts& region : made.costs.regions) {
    region.operators.bytes_per_element = parts.bytes_per_element;
  }
  EDDY_RETURN_IF_ERROR(
      read_strategies(fields.find_or_null("strategy"), parts.topology, made.costs));
  EDDY_ASSIGN_OR_RETURN(ScenarioRegion root, expand_graph(made.graph, made.costs, parts.topology));
  return ScenarioFile{std::move(parts.topology), std::move(root),
                      estimated_operators(made.graph, made.costs)};
}

Result<OperatorFile> parse_operator_file(const Json& document, const OpTable* ops_or_null) {
  const JsonFields fields(document, "an operator-graph file");
  EDDY_ASSIGN_OR_RETURN(FileParts parts, read_parts(fields));
  EDDY_ASSIGN_OR_RETURN(OperatorGraph graph, read_operators(document, ops_or_null));
  graph.bytes_per_element = parts.bytes_per_element;
  const Json* strategy_json = fields.find_or_null("strategy");
  Strategy strategy = single_device_strategy(graph, parts.topology);
  if (strategy_json != nullptr) {
    EDDY_ASSIGN_OR_RETURN(strategy, read_strategy(*strategy_json, graph, parts.topology));
  }
  OperatorFile file{std::move(graph),
                    std::move(parts.topology),
                    std::move(strategy),
                    {},
                    strategy_json != nullptr};
  if (file.has_strategy) {
    EDDY_RETURN_IF_ERROR(check_memory(file.graph, file.topology, file.strategy));
  }
  EDDY_ASSIGN_OR_RETURN(const Json* edits, fields.list("edits", false));
  if (!edits->empty()) EDDY_RETURN_IF_ERROR(EditReader(file).read(*edits));
  return file;
}

Result<OperatorFile> parse_operator_file(std::string_view json, const OpTable* ops_or_null) {
  EDDY_ASSIGN_OR_RETURN(const Json document, parse_json_document(json));
  return parse_operator_file(document, ops_or_null);
}

std::string strategy_json(const OperatorGraph& graph, const Topology& topology,
                          const Strategy& strategy) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    EDDY_CHECK(i < strategy.size()) << graph.operators[i].name << " has no configuration";
    const OperatorConfig& config = strategy[i];
    auto& entry = document[graph.operators[i].name];
    entry["degree"] = config.degree.span();
    if (config.reduce > 1) entry["reduce"] = config.reduce;
    for (const uint32_t device : config.devices) {
      entry["devices"].push_back(topology.node(device).name);
    }
  }
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace eddy
