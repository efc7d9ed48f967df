#include "graph/strategy/operator_file.h"

#include <algorithm>
#include <vector>

#include "graph/base/json_document.h"
#include "graph/simulate/json_fields.h"
#include "graph/strategy/memory_meter.h"
#include "graph/strategy/part_cost.h"
#include "graph/strategy/regions.h"

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

// One operator as the file has it, before its inputs are found.
struct RawOperator {
  Operator op;
  OperatorAttributes attributes;
  std::vector<std::string> inputs;
  std::string weights_of;
};

Status read_tiles(const JsonFields& fields, RawOperator& raw) {
  const Json* tiles = fields.find_or_null("exe_by_tile");
  if (tiles == nullptr) return Status::ok();
  if (!tiles->is_object() || tiles->empty()) {
    return fields.fail("exe_by_tile must be an object of times by tile, {\"8x16\": 3}");
  }
  for (const auto& [tile, time] : tiles->items()) {
    if (!time.is_number() || !(time.get<double>() >= 0)) {
      return fields.fail("exe_by_tile \"" + tile + "\" must be a time >= 0");
    }
    Dims dims;
    for (size_t at = 0; at <= tile.size();) {
      const size_t end = std::min(tile.find('x', at), tile.size());
      const std::string digits = tile.substr(at, end - at);
      if (digits.empty() || digits.size() > 18 || dims.rank() == kMaxRank ||
          digits.find_first_not_of("0123456789") != std::string::npos) {
        return fields.fail("exe_by_tile \"" + tile + "\" is no tile; write sizes as 8x16");
      }
      dims.push_back(std::stoll(digits));
      at = end + 1;
    }
    raw.op.exe_by_tile[tile_name(dims)] = time.get<double>();
  }
  return Status::ok();
}

Status read_attributes(const JsonFields& fields, OperatorAttributes& attributes) {
  EDDY_ASSIGN_OR_RETURN(attributes.kernel, fields.integers("kernel", true));
  EDDY_ASSIGN_OR_RETURN(attributes.stride, fields.integers("stride", true));
  EDDY_ASSIGN_OR_RETURN(attributes.axes, fields.integers("axes", true));
  EDDY_ASSIGN_OR_RETURN(attributes.perm, fields.integers("perm"));
  if (attributes.axes.empty()) {
    EDDY_ASSIGN_OR_RETURN(attributes.axes, fields.integers("axis", true));
  }
  EDDY_ASSIGN_OR_RETURN(attributes.in_features, fields.integer_or("in_features", 0));
  EDDY_ASSIGN_OR_RETURN(attributes.in_channels, fields.integer_or("in_channels", 0));
  EDDY_ASSIGN_OR_RETURN(attributes.groups, fields.integer_or("groups", 1));
  if (attributes.in_features < 0 || attributes.in_channels < 0) {
    return fields.fail("in_features and in_channels must be above 0");
  }
  return Status::ok();
}

Result<RawOperator> read_operator(const Json& entry, size_t i) {
  const JsonFields by_place(entry, "operator " + std::to_string(i));
  EDDY_RETURN_IF_ERROR(by_place.check_object());
  RawOperator raw;
  EDDY_ASSIGN_OR_RETURN(raw.op.name, by_place.text("name"));
  const JsonFields fields(entry, "operator '" + raw.op.name + "'");
  if (raw.op.name.empty()) return by_place.fail("has an empty name");
  EDDY_ASSIGN_OR_RETURN(raw.op.type, fields.text("type"));
  if (fields.find_or_null("shape") == nullptr) return fields.fail("needs the list \"shape\"");
  EDDY_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, fields.integers("shape"));
  if (shape.empty() || shape.size() > static_cast<size_t>(kMaxRank)) {
    return fields.fail("the shape must have 1.." + std::to_string(kMaxRank) + " dimensions");
  }
  raw.op.shape = Dims(shape);
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(raw.inputs.emplace_back(), JsonFields::name_of(input, fields.where()));
  }
  EDDY_RETURN_IF_ERROR(read_tiles(fields, raw));
  EDDY_RETURN_IF_ERROR(read_attributes(fields, raw.attributes));
  EDDY_ASSIGN_OR_RETURN(raw.op.flops, fields.number_or("flops", -1));
  if (raw.op.flops < 0 && fields.find_or_null("flops") != nullptr) {
    return fields.fail("\"flops\" must be >= 0");
  }
  if (fields.find_or_null("weights_of") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(raw.weights_of, fields.text("weights_of"));
  }
  return raw;
}

// An order in which inputs come first, keeping the given one where it can: depth-first, by hand.
Result<std::vector<uint32_t>> topological(const std::vector<RawOperator>& raw,
                                          const OperatorNumbers& numbers) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(raw.size(), kNew);
  std::vector<uint32_t> order;
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (uint32_t root = 0; root < raw.size(); ++root) {
    if (state[root] != kNew) continue;
    stack.assign(1, {root, 0});
    state[root] = kOpen;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == raw[at].inputs.size()) {
        state[at] = kDone;
        order.push_back(at);
        stack.pop_back();
        continue;
      }
      const uint32_t input = numbers.at(raw[at].inputs[next++]);
      if (state[input] == kOpen) {
        return invalid_argument("operators '" + raw[at].op.name + "' and '" + raw[input].op.name +
                                "' are on a cycle");
      }
      if (state[input] == kNew) {
        state[input] = kOpen;
        stack.emplace_back(input, 0);
      }
    }
  }
  return order;
}

Status find_inputs(const std::vector<RawOperator>& raw, const OperatorNumbers& numbers) {
  for (const RawOperator& entry : raw) {
    for (const std::string& input : entry.inputs) {
      if (numbers.contains(input)) continue;
      return invalid_argument("operator '" + entry.op.name + "': no operator is called '" + input +
                              "', its input");
    }
    if (!entry.weights_of.empty() && !numbers.contains(entry.weights_of)) {
      return invalid_argument("operator '" + entry.op.name + "': no operator is called '" +
                              entry.weights_of + "', its weights_of");
    }
  }
  return Status::ok();
}

// Adds one operator whose inputs are in the graph already.
Status add_operator(RawOperator& raw, const OperatorNumbers& numbers,
                    const std::vector<uint32_t>& place, const OpTable* ops_or_null,
                    OperatorGraph& graph) {
  std::vector<Dims> shapes;
  for (const std::string& input : raw.inputs) {
    const uint32_t producer = place[numbers.at(input)];
    raw.op.inputs.push_back({.producer = producer});
    shapes.push_back(graph.operators[producer].shape);
  }
  const double given_flops = raw.op.flops;
  EDDY_RETURN_IF_ERROR(set_regions(raw.op, raw.attributes, shapes, ops_or_null));
  if (given_flops >= 0) raw.op.flops = given_flops;
  graph.operators.push_back(std::move(raw.op));
  return Status::ok();
}

constexpr uint32_t kNone = UINT32_MAX;

// By operator: the one that owns its weights, at the end of its weights_of.
Result<std::vector<uint32_t>> weight_owners(const std::vector<RawOperator>& raw,
                                            const OperatorNumbers& numbers) {
  std::vector<uint32_t> owners(raw.size(), kNone);
  std::vector<uint32_t> path;
  for (uint32_t i = 0; i < raw.size(); ++i) {
    uint32_t at = i;
    for (path.clear(); owners[at] == kNone && !raw[at].weights_of.empty();) {
      if (path.size() == raw.size()) {
        return invalid_argument("operator '" + raw[i].op.name + "': its weights_of go in a circle");
      }
      path.push_back(at);
      at = numbers.at(raw[at].weights_of);
    }
    if (owners[at] == kNone) owners[at] = at;
    for (const uint32_t user : path) owners[user] = owners[at];
  }
  return owners;
}

Status set_weight_groups(const std::vector<uint32_t>& owners, const std::vector<uint32_t>& place,
                         OperatorGraph& graph) {
  std::vector<uint32_t> group(owners.size(), kNone);
  for (uint32_t i = 0; i < owners.size(); ++i) {
    Operator& op = graph.operators[place[i]];
    const Operator& owning = graph.operators[place[owners[i]]];
    if (op.weight_elements != owning.weight_elements) {
      return invalid_argument("operator '" + op.name + "': has " +
                              std::to_string(op.weight_elements) + " weights, '" + owning.name +
                              "', whose it shares, has " + std::to_string(owning.weight_elements));
    }
    if (group[owners[i]] == kNone) group[owners[i]] = graph.num_weight_groups++;
    op.weight_group = group[owners[i]];
  }
  return Status::ok();
}

// Whether it fits its operator is not looked at.
Result<OperatorConfig> read_config(const JsonFields& fields, const Topology& topology) {
  OperatorConfig config;
  if (fields.find_or_null("degree") == nullptr) return fields.fail("needs the list \"degree\"");
  EDDY_ASSIGN_OR_RETURN(const std::vector<int64_t> degree, fields.integers("degree"));
  if (degree.size() > static_cast<size_t>(kMaxRank)) return fields.fail("the degree is too long");
  config.degree = Dims(degree);
  EDDY_ASSIGN_OR_RETURN(config.reduce, fields.integer_or("reduce", 1));
  EDDY_ASSIGN_OR_RETURN(const Json* devices, fields.list("devices", true));
  for (const Json& entry : *devices) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(entry, fields.where()));
    const uint32_t device = topology.find(name);
    if (device == UINT32_MAX) {
      return fields.fail("the topology has no device '" + name + "'");
    }
    if (topology.node(device).is_switch) return fields.fail("'" + name + "' is a switch");
    config.devices.push_back(device);
  }
  return config;
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
  std::vector<RawOperator> raw;
  OperatorNumbers numbers;
  for (size_t i = 0; i < entries->size(); ++i) {
    EDDY_ASSIGN_OR_RETURN(raw.emplace_back(), read_operator((*entries)[i], i));
    if (!numbers.emplace(raw.back().op.name, static_cast<uint32_t>(i)).second) {
      return invalid_argument("two operators are called '" + raw.back().op.name + "'");
    }
  }
  if (raw.empty()) return invalid_argument("the file has no operators");
  EDDY_RETURN_IF_ERROR(find_inputs(raw, numbers));
  EDDY_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, topological(raw, numbers));
  EDDY_ASSIGN_OR_RETURN(const std::vector<uint32_t> owners, weight_owners(raw, numbers));
  OperatorGraph graph;
  std::vector<uint32_t> place(raw.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (const uint32_t at : order) {
    EDDY_RETURN_IF_ERROR(add_operator(raw[at], numbers, place, ops_or_null, graph));
  }
  EDDY_RETURN_IF_ERROR(set_weight_groups(owners, place, graph));
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

Result<Strategy> read_strategy(const Json& strategy, const OperatorGraph& graph,
                               const Topology& topology) {
  if (!strategy.is_object()) return invalid_argument("\"strategy\" must be a JSON object");
  const OperatorNumbers numbers = numbers_by_name(graph);
  for (const auto& [name, _] : strategy.items()) {
    if (numbers.contains(name)) continue;
    return invalid_argument("the strategy names '" + name + "', which is no operator");
  }
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

Result<OperatorFile> parse_operator_file(const Json& document, const OpTable* ops_or_null) {
  const JsonFields fields(document, "an operator-graph file");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  const Json* topology_json = fields.find_or_null("topology");
  if (topology_json == nullptr) return fields.fail("needs \"topology\"");
  EDDY_ASSIGN_OR_RETURN(Topology topology, read_topology(*topology_json));
  EDDY_ASSIGN_OR_RETURN(OperatorGraph graph, read_operators(document, ops_or_null));
  EDDY_ASSIGN_OR_RETURN(graph.bytes_per_element,
                        JsonFields(*topology_json, "topology").integer_or("bytes_per_element", 4));
  if (graph.bytes_per_element < 1 || graph.bytes_per_element > 64) {
    return invalid_argument("topology: bytes_per_element must be in 1..64");
  }
  const Json* strategy_json = fields.find_or_null("strategy");
  Strategy strategy = single_device_strategy(graph, topology);
  if (strategy_json != nullptr) {
    EDDY_ASSIGN_OR_RETURN(strategy, read_strategy(*strategy_json, graph, topology));
  }
  OperatorFile file{
      std::move(graph), std::move(topology), std::move(strategy), {}, strategy_json != nullptr};
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
