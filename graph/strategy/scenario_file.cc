#include "graph/strategy/scenario_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "graph/simulate/json_fields.h"
#include "graph/strategy/build_task_graph.h"
#include "graph/strategy/operator_file.h"
#include "graph/strategy/part_cost.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

bool is_control(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto type = entry.find("type");
  return type != entry.end() && (*type == "while" || *type == "case");
}

bool has_name(const Json& entry) {
  return entry.is_object() && entry.contains("name") && entry["name"].is_string();
}

constexpr uint32_t kNoDevice = UINT32_MAX;

class RegionReader {
 public:
  RegionReader(const Topology& topology, int64_t bytes_per_element, const Json* strategy_or_null,
               const OpTable* ops_or_null)
      : topology_(topology),
        bytes_per_element_(bytes_per_element),
        strategy_or_null_(strategy_or_null),
        ops_or_null_(ops_or_null) {}

  // `outside`: names of lists around. Those that are used here are added to `captured`.
  Result<ScenarioRegion> read(const Json& list, const std::string& where, int depth,
                              const std::set<std::string>& outside,
                              std::set<std::string>& captured);
  // Every name of the strategy must be an operator somewhere.
  Status check_strategy() const;
  std::vector<std::string> take_estimated() { return std::move(estimated_); }

 private:
  // One list while it is read.
  struct List {
    std::set<std::string> outside;
    std::map<std::string, uint32_t> control;             // name -> position
    std::map<std::string, std::vector<uint32_t>> tasks;  // operator -> positions of its parts
    // Operator -> the loops and branches it waits for.
    std::map<std::string, std::vector<std::string>> waits;
    ScenarioRegion region;
  };

  Status take_names(const Json& list, const std::string& where, List& at);
  Result<Json> plain_operator(const Json& entry, List& at, std::set<std::string>& captured) const;
  Status add_tasks(const Json& operators, List& at);
  Status add_control(const Json& entry, int depth, List& at, std::set<std::string>& captured);
  Status read_regions(const JsonFields& fields, int depth, const std::set<std::string>& outside,
                      ScenarioEntry& entry, std::set<std::string>& used);
  Status read_decision(const JsonFields& fields, ScenarioEntry::Kind kind,
                       Decision& decision) const;
  static Status read_distribution(const JsonFields& fields, Decision& decision);
  Status add_deps(const JsonFields& fields, const std::set<std::string>& used, List& at,
                  ScenarioEntry& entry, std::set<std::string>& captured) const;

  const Topology& topology_;
  const int64_t bytes_per_element_;
  const Json* strategy_or_null_;
  const OpTable* ops_or_null_;
  std::vector<std::string> estimated_;
  std::set<std::string> names_;  // of the whole file
};

Status RegionReader::take_names(const Json& list, const std::string& where, List& at) {
  if (!list.is_array()) return invalid_argument(where + ": must be a list of operators");
  for (const Json& entry : list) {
    if (!has_name(entry)) return invalid_argument(where + ": an operator needs \"name\"");
    const std::string name = entry["name"];
    if (!names_.insert(name).second) {
      return invalid_argument("two operators are called '" + name + "'");
    }
    if (is_control(entry)) at.control.emplace(name, 0);
  }
  return Status::ok();
}

// Without the inputs that are loops, branches or outside.
Result<Json> RegionReader::plain_operator(const Json& entry, List& at,
                                          std::set<std::string>& captured) const {
  Json plain = entry;
  const JsonFields fields(entry, "operator '" + entry["name"].get<std::string>() + "'");
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  plain["inputs"] = Json::array();
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    if (at.control.contains(name)) {
      at.waits[entry["name"]].push_back(name);
    } else if (at.outside.contains(name)) {
      captured.insert(name);
    } else {
      plain["inputs"].push_back(name);
    }
  }
  return plain;
}

Status RegionReader::add_tasks(const Json& operators, List& at) {
  if (operators.empty()) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(OperatorGraph graph,
                        read_operators(Json{{"operators", operators}}, ops_or_null_));
  graph.bytes_per_element = bytes_per_element_;
  Strategy strategy = single_device_strategy(graph, topology_);
  if (strategy_or_null_ != nullptr) {
    Json own = Json::object();
    for (const Operator& op : graph.operators) {
      const auto config = strategy_or_null_->find(op.name);
      if (config != strategy_or_null_->end()) own[op.name] = *config;
    }
    EDDY_ASSIGN_OR_RETURN(strategy, read_strategy(own, graph, topology_));
  }
  EDDY_RETURN_IF_ERROR(check_memory(graph, topology_, strategy));
  for (const Operator& op : graph.operators) {
    if (is_estimated(op)) estimated_.push_back(op.name);
  }
  TaskGraph<double> tasks;
  std::vector<TaskLabel> labels;
  EDDY_RETURN_IF_ERROR(TaskGraphBuilder(graph, topology_).build(strategy, tasks, labels));
  tasks.make_predecessors();
  // Entries stand in the order of ranks, which is the order in which ties are settled.
  std::vector<uint32_t> order(tasks.num_slots());
  for (uint32_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return tasks.task(a).rank < tasks.task(b).rank; });
  std::vector<uint32_t> position(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (const uint32_t slot : order) {
    ScenarioEntry entry;
    entry.name = task_name(labels[slot], graph, topology_);
    entry.exe_time = tasks.task(slot).exe_time;
    entry.device = tasks.task(slot).device;
    for (const uint32_t from : tasks.predecessors(slot)) entry.deps.push_back(position[from]);
    if (!is_communication(labels[slot])) {
      at.tasks[graph.operators[labels[slot].op].name].push_back(position[slot]);
    }
    at.region.entries.push_back(std::move(entry));
  }
  return Status::ok();
}

// The device of all that the entry's regions hold; none where they hold nothing, or several.
std::optional<uint32_t> only_device(const ScenarioEntry& entry) {
  std::optional<uint32_t> device;
  for (const ScenarioRegion& region : entry.regions) {
    for (const ScenarioEntry& inner : region.entries) {
      const bool is_task = inner.kind == ScenarioEntry::Kind::kTask;
      const uint32_t own = is_task ? inner.device : inner.decision.device;
      if (device && *device != own) return std::nullopt;
      device = own;
    }
  }
  return device;
}

Status RegionReader::read_distribution(const JsonFields& fields, Decision& decision) {
  EDDY_ASSIGN_OR_RETURN(const Json* likely, fields.list("distribution", false));
  for (const Json& pair : *likely) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
        !pair[1].is_number()) {
      return fields.fail("\"distribution\" must be a list of pairs [value, probability]");
    }
    decision.distribution.push_back({pair[0].get<int64_t>(), pair[1].get<double>()});
  }
  EDDY_ASSIGN_OR_RETURN(const Json* probabilities, fields.list("probabilities", false));
  for (const Json& probability : *probabilities) {
    if (!probability.is_number()) return fields.fail("\"probabilities\" must be numbers");
    decision.distribution.push_back(
        {static_cast<int64_t>(decision.distribution.size()), probability.get<double>()});
  }
  return Status::ok();
}

Status RegionReader::read_decision(const JsonFields& fields, ScenarioEntry::Kind kind,
                                   Decision& decision) const {
  const bool is_loop = kind == ScenarioEntry::Kind::kLoop;
  const char* const own = is_loop ? "trips" : "probabilities";
  const char* const others = is_loop ? "probabilities" : "trips";
  int given = 0;
  for (const char* key : {own, "distribution", "trace"}) {
    given += fields.find_or_null(key) != nullptr;
  }
  if (given != 1 || fields.find_or_null(others) != nullptr) {
    return fields.fail(std::string("a ") + (is_loop ? "while" : "case") + " needs one of \"" + own +
                       "\", \"distribution\" and \"trace\", and nothing else that decides");
  }
  EDDY_RETURN_IF_ERROR(read_distribution(fields, decision));
  EDDY_ASSIGN_OR_RETURN(decision.trace, fields.integers("trace"));
  if (fields.find_or_null("trips") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(const int64_t trips, fields.integer_or("trips", 0));
    decision.distribution.push_back({trips, 1});
  }
  decision.device = kNoDevice;
  const Json* costs = fields.find_or_null("decision");
  if (costs == nullptr) return Status::ok();
  const JsonFields cost(*costs, fields.where() + ": decision");
  EDDY_RETURN_IF_ERROR(cost.check_object());
  EDDY_ASSIGN_OR_RETURN(decision.time, cost.number_or("time", 0));
  if (decision.time < 0) return cost.fail("\"time\" must be >= 0");
  if (cost.find_or_null("device") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(const std::string device,
                          JsonFields::name_of((*costs)["device"], cost.where()));
    decision.device = topology_.find(device);
    if (decision.device == UINT32_MAX) {
      return cost.fail("the topology has no device '" + device + "'");
    }
  }
  return Status::ok();
}

Status RegionReader::read_regions(const JsonFields& fields, int depth,
                                  const std::set<std::string>& outside, ScenarioEntry& entry,
                                  std::set<std::string>& used) {
  std::vector<const Json*> lists;
  if (entry.kind == ScenarioEntry::Kind::kLoop) {
    EDDY_ASSIGN_OR_RETURN(const Json* before, fields.list("before", false));
    EDDY_ASSIGN_OR_RETURN(const Json* body, fields.list("body", false));
    lists = {before, body};
  } else {
    EDDY_ASSIGN_OR_RETURN(const Json* branches, fields.list("branches", true));
    for (const Json& branch : *branches) lists.push_back(&branch);
  }
  for (const Json* list : lists) {
    EDDY_ASSIGN_OR_RETURN(entry.regions.emplace_back(),
                          read(*list, fields.where(), depth + 1, outside, used));
  }
  return Status::ok();
}

// The entry waits for its inputs and for what its operators use of this list.
Status RegionReader::add_deps(const JsonFields& fields, const std::set<std::string>& used, List& at,
                              ScenarioEntry& entry, std::set<std::string>& captured) const {
  std::set<std::string> names = used;
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(std::string name, JsonFields::name_of(input, fields.where()));
    names.insert(std::move(name));
  }
  for (const std::string& name : names) {
    const auto tasks = at.tasks.find(name);
    const auto control = at.control.find(name);
    if (tasks != at.tasks.end()) {
      entry.deps.insert(entry.deps.end(), tasks->second.begin(), tasks->second.end());
    } else if (control != at.control.end()) {
      if (name == entry.name) return fields.fail("depends on itself");
      entry.deps.push_back(control->second);
    } else if (at.outside.contains(name)) {
      captured.insert(name);
    } else {
      return fields.fail("no operator is called '" + name + "', its input");
    }
  }
  return Status::ok();
}

Status RegionReader::add_control(const Json& json, int depth, List& at,
                                 std::set<std::string>& captured) {
  const std::string name = json["name"];
  const JsonFields fields(json, "'" + name + "'");
  ScenarioEntry entry;
  entry.name = name;
  entry.kind = json["type"] == "while" ? ScenarioEntry::Kind::kLoop : ScenarioEntry::Kind::kCase;
  EDDY_RETURN_IF_ERROR(read_decision(fields, entry.kind, entry.decision));
  std::set<std::string> outside = at.outside;
  for (const auto& [op, _] : at.tasks) outside.insert(op);
  for (const auto& [other, _] : at.control) outside.insert(other);
  std::set<std::string> used;
  EDDY_RETURN_IF_ERROR(read_regions(fields, depth, outside, entry, used));
  EDDY_RETURN_IF_ERROR(add_deps(fields, used, at, entry, captured));
  if (entry.decision.device == kNoDevice) {
    entry.decision.device = only_device(entry).value_or(topology_.devices()[0]);
  }
  at.region.entries.push_back(std::move(entry));
  return Status::ok();
}

Result<ScenarioRegion> RegionReader::read(const Json& list, const std::string& where, int depth,
                                          const std::set<std::string>& outside,
                                          std::set<std::string>& captured) {
  if (depth > kMaxControlDepth) return invalid_argument(where + ": is nested too deep");
  List at;
  at.outside = outside;
  EDDY_RETURN_IF_ERROR(take_names(list, where, at));
  Json operators = Json::array();
  for (const Json& entry : list) {
    if (is_control(entry)) continue;
    EDDY_ASSIGN_OR_RETURN(Json plain, plain_operator(entry, at, captured));
    operators.push_back(std::move(plain));
  }
  EDDY_RETURN_IF_ERROR(add_tasks(operators, at));
  auto position = static_cast<uint32_t>(at.region.entries.size());
  for (const Json& entry : list) {
    if (is_control(entry)) at.control[entry["name"]] = position++;
  }
  for (const auto& [op, controls] : at.waits) {
    for (const uint32_t task : at.tasks[op]) {
      for (const std::string& control : controls) {
        at.region.entries[task].deps.push_back(at.control[control]);
      }
    }
  }
  for (const Json& entry : list) {
    if (is_control(entry)) EDDY_RETURN_IF_ERROR(add_control(entry, depth, at, captured));
  }
  return std::move(at.region);
}

Status RegionReader::check_strategy() const {
  if (strategy_or_null_ == nullptr) return Status::ok();
  for (const auto& [name, _] : strategy_or_null_->items()) {
    if (names_.contains(name)) continue;
    return invalid_argument("the strategy names '" + name + "', which is no operator");
  }
  return Status::ok();
}

}  // namespace

bool has_control_flow(const Json& document) {
  const auto operators = document.is_object() ? document.find("operators") : document.end();
  return operators != document.end() && operators->is_array() &&
         std::any_of(operators->begin(), operators->end(), is_control);
}

Result<ScenarioFile> read_scenario_file(const Json& document, const OpTable* ops_or_null) {
  const JsonFields fields(document, "an operator-graph file");
  const Json* topology_json = fields.find_or_null("topology");
  if (topology_json == nullptr) return fields.fail("needs \"topology\"");
  EDDY_ASSIGN_OR_RETURN(const bool is_training, fields.flag_or("training", false));
  EDDY_ASSIGN_OR_RETURN(const Json* edits, fields.list("edits", false));
  if (is_training || !edits->empty()) {
    return fields.fail("with loops or branches it can have neither edits nor training");
  }
  EDDY_ASSIGN_OR_RETURN(Topology topology, read_topology(*topology_json));
  EDDY_ASSIGN_OR_RETURN(const int64_t bytes_per_element,
                        JsonFields(*topology_json, "topology").integer_or("bytes_per_element", 4));
  if (bytes_per_element < 1 || bytes_per_element > 64) {
    return invalid_argument("topology: bytes_per_element must be in 1..64");
  }
  const Json* strategy = fields.find_or_null("strategy");
  if (strategy != nullptr && !strategy->is_object()) {
    return fields.fail("\"strategy\" must be a JSON object");
  }
  RegionReader reader(topology, bytes_per_element, strategy, ops_or_null);
  std::set<std::string> captured;
  EDDY_ASSIGN_OR_RETURN(ScenarioRegion root,
                        reader.read(document["operators"], "the file", 0, {}, captured));
  EDDY_RETURN_IF_ERROR(reader.check_strategy());
  return ScenarioFile{std::move(topology), std::move(root), reader.take_estimated()};
}

}  // namespace eddy
