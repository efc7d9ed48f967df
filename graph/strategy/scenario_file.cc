#include "graph/strategy/scenario_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "graph/simulate/json_fields.h"
#include "graph/strategy/make_scenarios.h"
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

// Depth is bounded before anything walks the lists.
Status check_depth(const Json& list, int depth) {
  if (depth > kMaxControlDepth) {
    return invalid_argument("loops and branches are nested more than " +
                            std::to_string(kMaxControlDepth) + " deep");
  }
  for (const Json& entry : list) {
    if (!is_control(entry)) continue;
    for (const char* key : {"before", "body"}) {
      if (entry.contains(key)) EDDY_RETURN_IF_ERROR(check_depth(entry[key], depth + 1));
    }
    if (!entry.contains("branches") || !entry["branches"].is_array()) continue;
    for (const Json& branch : entry["branches"]) {
      EDDY_RETURN_IF_ERROR(check_depth(branch, depth + 1));
    }
  }
  return Status::ok();
}

// The lists of a loop or branch, as far as they are there.
std::vector<const Json*> lists_of(const Json& control) {
  std::vector<const Json*> lists;
  for (const char* key : {"before", "body"}) {
    if (control.contains(key)) lists.push_back(&control[key]);
  }
  if (control.contains("branches") && control["branches"].is_array()) {
    for (const Json& branch : control["branches"]) lists.push_back(&branch);
  }
  return lists;
}

// Everything that the entry or what it holds names as an input.
void add_inputs(const Json& entry, std::set<std::string>& names) {
  if (!entry.is_object()) return;
  if (entry.contains("inputs") && entry["inputs"].is_array()) {
    for (const Json& input : entry["inputs"]) {
      auto name = JsonFields::name_of(input, "");
      if (name.is_ok()) names.insert(std::move(*name));
    }
  }
  if (!is_control(entry)) return;
  for (const Json* list : lists_of(entry)) {
    for (const Json& inner : *list) add_inputs(inner, names);
  }
}

void add_names(const Json& list, std::set<std::string>& names) {
  for (const Json& entry : list) {
    if (has_name(entry)) names.insert(entry["name"].get<std::string>());
    if (!is_control(entry)) continue;
    for (const Json* inner : lists_of(entry)) add_names(*inner, names);
    if (entry.contains("carried")) add_names(entry["carried"], names);
  }
}

// What the reader of a loop or branch gets, as make_scenarios.h says: the shape of the one thing
// that nobody in its last list reads. Null where that is not one.
const Json* shape_or_null(const Json& entry) {
  if (!is_control(entry)) {
    const bool has_shape = entry.contains("shape") && entry["shape"].is_array();
    return has_shape ? &entry["shape"] : nullptr;
  }
  const Json* last = nullptr;
  for (const Json* list : lists_of(entry)) {
    if (list->empty()) continue;
    last = list;
    if (entry["type"] == "case") break;
  }
  if (last == nullptr) return nullptr;
  std::set<std::string> read;
  for (const Json& inner : *last) add_inputs(inner, read);
  const Json* only = nullptr;
  for (const Json& inner : *last) {
    if (!has_name(inner) || read.contains(inner["name"].get<std::string>())) continue;
    if (only != nullptr) return nullptr;
    only = &inner;
  }
  return only == nullptr ? nullptr : shape_or_null(*only);
}

// By name: the shape, or null where it is not known.
using Shapes = std::map<std::string, const Json*>;

class ListReader {
 public:
  ListReader(const Topology& topology, int64_t bytes_per_element, const Json* strategy_or_null,
             const OpTable* ops_or_null)
      : topology_(topology),
        bytes_per_element_(bytes_per_element),
        strategy_or_null_(strategy_or_null),
        ops_or_null_(ops_or_null) {}

  Result<OperatorList> read_file(const Json& list);
  std::vector<std::string> take_estimated() { return std::move(estimated_); }

 private:
  // What operators of one list read of controls and lists around: `shapes` are those that stand
  // in for them among its operators.
  struct Outer {
    Shapes shapes;
    std::vector<std::pair<std::string, std::string>> whole;  // operator, what it reads
  };

  // `around`: of lists around.
  Result<OperatorList> read(const Json& list, const std::string& where, const Shapes& around);
  Status take_names(const Json& list, const std::string& where, const std::string& kind,
                    Shapes& own);
  Result<Json> plain_operator(const Json& entry, const Shapes& own, const Shapes& around,
                              bool guesses, Outer& outer) const;
  Result<OperatorList> read_plain(const Json& list, const Shapes& own, const Shapes& around,
                                  bool guesses) const;
  Status set_strategy(OperatorList& list);
  Status read_carried(const Json& loop, const Shapes& around, ControlOperator& control,
                      Shapes& visible);
  Result<ControlOperator> read_control(const Json& entry, const Shapes& around);
  Status read_decision(const JsonFields& fields, ScenarioEntry::Kind kind,
                       Decision& decision) const;
  static Status read_distribution(const JsonFields& fields, Decision& decision);
  Status check_strategy() const;

  const Topology& topology_;
  const int64_t bytes_per_element_;
  const Json* strategy_or_null_;
  const OpTable* ops_or_null_;
  std::vector<std::string> estimated_;
  std::set<std::string> all_;    // of the whole file
  std::set<std::string> names_;  // of those read so far
  std::set<std::string> controls_;
};

// The operators of the list; loops and branches go to `own` alone.
Status ListReader::take_names(const Json& list, const std::string& where, const std::string& kind,
                              Shapes& own) {
  if (!list.is_array()) return invalid_argument(where + ": must be a list of " + kind + "s");
  for (const Json& entry : list) {
    if (!has_name(entry)) {
      return invalid_argument(
          fmt::format("{}: {} {} needs \"name\"", where, kind == "operator" ? "an" : "a", kind));
    }
    const std::string name = entry["name"];
    if (!names_.insert(name).second) {
      return invalid_argument(kind == "operator"
                                  ? "two operators are called '" + name + "'"
                                  : where + ": '" + name + "' is called as something else is");
    }
    if (is_control(entry)) controls_.insert(name);
    own[name] = shape_or_null(entry);
  }
  return Status::ok();
}

// With stand-ins for those of its inputs that have a shape and are loops, branches or around.
Result<Json> ListReader::plain_operator(const Json& entry, const Shapes& own, const Shapes& around,
                                        bool guesses, Outer& outer) const {
  Json plain = entry;
  const std::string own_name = entry["name"];
  const JsonFields fields(entry, "operator '" + own_name + "'");
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  plain["inputs"] = Json::array();
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    const bool is_control = controls_.contains(name);
    const auto here = own.find(name);
    const auto outside = around.find(name);
    if (here == own.end() && outside == around.end() && all_.contains(name)) {
      return fields.fail("'" + name +
                         "' is inside a loop or branch that this one is not in; only "
                         "operators of the same list and of lists around it can be inputs");
    }
    if (!is_control && outside == around.end()) {
      plain["inputs"].push_back(name);
      continue;
    }
    const Json* shape = here != own.end() ? here->second : outside->second;
    if (shape == nullptr || (is_control && !guesses)) {
      outer.whole.emplace_back(own_name, name);
    } else {
      outer.shapes[name] = shape;
      plain["inputs"].push_back(name);
    }
  }
  return plain;
}

// Takes the stand-ins out again.
OperatorList without(const Shapes& stand_ins, OperatorGraph graph) {
  OperatorList list;
  std::vector<uint32_t> place(graph.operators.size(), UINT32_MAX);
  for (uint32_t i = 0; i < graph.operators.size(); ++i) {
    Operator& op = graph.operators[i];
    if (stand_ins.contains(op.name)) continue;
    const auto number = static_cast<uint32_t>(list.graph.operators.size());
    place[i] = number;
    std::vector<OperatorInput> inner;
    for (const OperatorInput& input : op.inputs) {
      const Operator& producer = graph.operators[input.producer];
      if (place[input.producer] != UINT32_MAX) {
        inner.push_back({place[input.producer], input.dims});
      } else {
        list.outer_inputs.push_back({number, producer.name, producer.shape, input.dims});
      }
    }
    op.inputs = std::move(inner);
    list.graph.operators.push_back(op);
  }
  list.graph.num_weight_groups = graph.num_weight_groups;
  return list;
}

// `guesses`: the shapes of what loops and branches make are believed.
Result<OperatorList> ListReader::read_plain(const Json& list, const Shapes& own,
                                            const Shapes& around, bool guesses) const {
  Outer outer;
  Json operators = Json::array();
  for (const Json& entry : list) {
    if (is_control(entry)) continue;
    EDDY_ASSIGN_OR_RETURN(Json plain, plain_operator(entry, own, around, guesses, outer));
    operators.push_back(std::move(plain));
  }
  if (operators.empty()) return OperatorList();
  for (const auto& [name, shape] : outer.shapes) {
    operators.push_back({{"name", name}, {"type", "elementwise"}, {"shape", *shape}});
  }
  EDDY_ASSIGN_OR_RETURN(OperatorGraph graph,
                        read_operators(Json{{"operators", operators}}, ops_or_null_));
  OperatorList made = without(outer.shapes, std::move(graph));
  made.graph.bytes_per_element = bytes_per_element_;
  const OperatorNumbers numbers = numbers_by_name(made.graph);
  for (const auto& [op, from] : outer.whole) {
    made.outer_inputs.push_back({.op = numbers.at(op), .from = from});
  }
  return made;
}

Status ListReader::set_strategy(OperatorList& list) {
  list.strategy = single_device_strategy(list.graph, topology_);
  for (const Operator& op : list.graph.operators) {
    if (is_estimated(op)) estimated_.push_back(op.name);
  }
  if (strategy_or_null_ == nullptr) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(list.strategy,
                        read_list_strategy(*strategy_or_null_, list.graph, topology_));
  return Status::ok();
}

Status ListReader::read_distribution(const JsonFields& fields, Decision& decision) {
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

Status ListReader::read_decision(const JsonFields& fields, ScenarioEntry::Kind kind,
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
  decision.device = kAnyDevice;
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

// Names of the loop's lists, with shapes.
Shapes shapes_inside(const Json& loop) {
  Shapes shapes;
  for (const Json* list : lists_of(loop)) {
    for (const Json& entry : *list) {
      if (has_name(entry)) shapes[entry["name"].get<std::string>()] = shape_or_null(entry);
    }
  }
  return shapes;
}

// Adds them to what operators in the loop see.
Status ListReader::read_carried(const Json& loop, const Shapes& around, ControlOperator& control,
                                Shapes& visible) {
  const JsonFields fields(loop, "'" + control.name + "'");
  EDDY_ASSIGN_OR_RETURN(const Json* carried, fields.list("carried", false));
  Shapes own;
  EDDY_RETURN_IF_ERROR(take_names(*carried, fields.where(), "carried value", own));
  Shapes inside = shapes_inside(loop);
  inside.insert(around.begin(), around.end());
  for (const Json& entry : *carried) {
    CarriedValue value;
    value.name = entry["name"];
    const JsonFields of_value(entry, fields.where() + ": carried '" + value.name + "'");
    EDDY_ASSIGN_OR_RETURN(value.next, of_value.text("next"));
    if (!inside.contains(value.next) && !own.contains(value.next)) {
      return of_value.fail("no operator of the loop or of lists around is called '" + value.next +
                           "', its \"next\"");
    }
    if (of_value.find_or_null("initial") != nullptr) {
      EDDY_ASSIGN_OR_RETURN(value.initial, of_value.text("initial"));
      if (!around.contains(value.initial)) {
        return of_value.fail("no operator outside the loop is called '" + value.initial +
                             "', its \"initial\"");
      }
    }
    own[value.name] = nullptr;
    for (const std::string& maker : {value.initial, value.next}) {
      const auto shape = inside.find(maker);
      if (shape != inside.end() && shape->second != nullptr) own[value.name] = shape->second;
    }
    controls_.insert(value.name);  // its shape may be that of one
    control.carried.push_back(std::move(value));
  }
  visible.insert(own.begin(), own.end());
  return Status::ok();
}

Result<ControlOperator> ListReader::read_control(const Json& entry, const Shapes& around) {
  ControlOperator control;
  control.name = entry["name"];
  const JsonFields fields(entry, "'" + control.name + "'");
  const bool is_loop = entry["type"] == "while";
  control.kind = is_loop ? ScenarioEntry::Kind::kLoop : ScenarioEntry::Kind::kCase;
  EDDY_RETURN_IF_ERROR(read_decision(fields, control.kind, control.decision));
  std::vector<const Json*> lists;
  if (is_loop) {
    for (const char* key : {"before", "body"}) {
      EDDY_ASSIGN_OR_RETURN(lists.emplace_back(), fields.list(key, false));
    }
  } else {
    EDDY_ASSIGN_OR_RETURN(const Json* branches, fields.list("branches", true));
    for (const Json& branch : *branches) lists.push_back(&branch);
  }
  Shapes visible = around;
  if (is_loop) EDDY_RETURN_IF_ERROR(read_carried(entry, around, control, visible));
  for (const Json* list : lists) {
    EDDY_ASSIGN_OR_RETURN(control.lists.emplace_back(), read(*list, fields.where(), visible));
    if (!is_loop) continue;
    // The body reads what `before` made.
    for (const Json& made : *list) visible[made["name"]] = shape_or_null(made);
  }
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    if (!around.contains(name)) {
      return fields.fail("no operator of its list or of lists around is called '" + name +
                         "', its input");
    }
    control.inputs.push_back(name);
  }
  return control;
}

Result<OperatorList> ListReader::read(const Json& list, const std::string& where,
                                      const Shapes& around) {
  Shapes own;
  EDDY_RETURN_IF_ERROR(take_names(list, where, "operator", own));
  auto made = read_plain(list, own, around, true);
  if (!made.is_ok()) made = read_plain(list, own, around, false);
  if (!made.is_ok()) return made;
  EDDY_RETURN_IF_ERROR(set_strategy(*made));
  own.insert(around.begin(), around.end());
  for (const Json& entry : list) {
    if (!is_control(entry)) continue;
    EDDY_ASSIGN_OR_RETURN(ControlOperator control, read_control(entry, own));
    made->controls.push_back(std::move(control));
  }
  return made;
}

Result<OperatorList> ListReader::read_file(const Json& list) {
  EDDY_RETURN_IF_ERROR(check_depth(list, 0));
  add_names(list, all_);
  EDDY_ASSIGN_OR_RETURN(OperatorList root, read(list, "the file", {}));
  EDDY_RETURN_IF_ERROR(check_strategy());
  return root;
}

Status ListReader::check_strategy() const {
  if (strategy_or_null_ == nullptr) return Status::ok();
  for (const auto& [name, _] : strategy_or_null_->items()) {
    if (names_.contains(name)) continue;
    return invalid_argument("the strategy names '" + name + "', which is no operator");
  }
  return Status::ok();
}

}  // namespace

Result<Strategy> read_list_strategy(const Json& strategy, const OperatorGraph& graph,
                                    const Topology& topology) {
  Json own = Json::object();
  for (const Operator& op : graph.operators) {
    const auto config = strategy.find(op.name);
    if (config != strategy.end()) own[op.name] = *config;
  }
  return read_strategy(own, graph, topology);
}

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
  ListReader reader(topology, bytes_per_element, strategy, ops_or_null);
  EDDY_ASSIGN_OR_RETURN(const OperatorList list, reader.read_file(document["operators"]));
  EDDY_ASSIGN_OR_RETURN(ScenarioRegion root, make_scenarios(list, topology));
  return ScenarioFile{std::move(topology), std::move(root), reader.take_estimated()};
}

}  // namespace eddy
