#include "graph/strategy/scenario_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "graph/simulate/json_fields.h"
#include "graph/strategy/list_names.h"
#include "graph/strategy/make_scenarios.h"
#include "graph/strategy/operator_file.h"
#include "graph/strategy/part_cost.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// Depth is bounded before anything walks the lists.
Status check_depth(const Json& list, int depth) {
  if (depth > kMaxControlDepth) {
    return invalid_argument("loops and branches are nested more than " +
                            std::to_string(kMaxControlDepth) + " deep");
  }
  for (const Json& entry : list) {
    if (!is_loop_or_branch(entry)) continue;
    for (const Json* const inner : lists_inside(entry)) {
      EDDY_RETURN_IF_ERROR(check_depth(*inner, depth + 1));
    }
  }
  return Status::ok();
}

// By name.
using Shapes = std::map<std::string, const Json*>;

class ListReader {
 public:
  // The file's lists are no deeper than allowed.
  ListReader(const Json& root, const Topology& topology, int64_t bytes_per_element,
             const Json* strategy_or_null, const OpTable* ops_or_null)
      : root_(root),
        all_(root),
        topology_(topology),
        bytes_per_element_(bytes_per_element),
        strategy_or_null_(strategy_or_null),
        ops_or_null_(ops_or_null) {}

  Result<OperatorList> read_file();
  std::vector<std::string> take_estimated() { return std::move(estimated_); }

 private:
  // What operators of one list read of controls and lists around: `shapes` are those that stand
  // in for them among its operators.
  struct Outer {
    Shapes shapes;
    std::vector<std::pair<std::string, std::string>> whole;  // operator, what it reads
  };

  Result<OperatorList> read(const Json& list, const std::string& where);
  Status take_names(const Json& list, const std::string& where, const std::string& kind);
  Result<Json> plain_operator(const Json& entry, const Json& list, bool guesses,
                              Outer& outer) const;
  Result<OperatorList> read_plain(const Json& list, bool guesses) const;
  Status set_strategy(OperatorList& list);
  Status read_carried(const Json& loop, const Json& carried, ControlOperator& control);
  void set_carried_shape(const CarriedValue& value, const std::vector<const Json*>& own);
  Result<ControlOperator> read_control(const Json& entry);
  Status read_lists(const std::vector<const Json*>& lists, const std::string& where,
                    ControlOperator& control);
  Status read_decision(const JsonFields& fields, ScenarioEntry::Kind kind,
                       Decision& decision) const;
  static Status read_distribution(const JsonFields& fields, Decision& decision);
  Status check_strategy() const;

  const Json& root_;
  ListNames all_;  // of the whole file
  const Topology& topology_;
  const int64_t bytes_per_element_;
  const Json* strategy_or_null_;
  const OpTable* ops_or_null_;
  std::vector<std::string> estimated_;
  std::set<std::string> names_;  // of those read so far
};

Status ListReader::take_names(const Json& list, const std::string& where, const std::string& kind) {
  if (!list.is_array()) return invalid_argument(where + ": must be a list of " + kind + "s");
  for (const Json& entry : list) {
    if (!has_name(entry)) {
      return invalid_argument(
          fmt::format("{}: {} {} needs \"name\"", where, kind == "operator" ? "an" : "a", kind));
    }
    const std::string name = entry["name"];
    if (!names_.insert(name).second) {
      return invalid_argument(fmt::format(
          "{}: two operators, loops, branches or carried values are called '{}'; names are unique "
          "in the whole file",
          where, name));
    }
  }
  return Status::ok();
}

// With stand-ins for those of its inputs that have a shape and are loops, branches or around.
Result<Json> ListReader::plain_operator(const Json& entry, const Json& list, bool guesses,
                                        Outer& outer) const {
  Json plain = entry;
  const std::string own_name = entry["name"];
  const JsonFields fields(entry, "operator '" + own_name + "'");
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  plain["inputs"] = Json::array();
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    const ListNames::Name* const known = all_.find_or_null(name);
    const bool is_here = known != nullptr && known->list == &list;
    if (known != nullptr && !is_here && !known->is_visible) {
      return fields.fail("'" + name +
                         "' is inside a loop or branch that this one is not in; only "
                         "operators of the same list and of lists around it can be inputs");
    }
    if (known == nullptr || (is_here && known->is_plain)) {
      plain["inputs"].push_back(name);
    } else if (known->shape_or_null == nullptr || (!known->is_plain && !guesses)) {
      outer.whole.emplace_back(own_name, name);
    } else {
      outer.shapes[name] = known->shape_or_null;
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
Result<OperatorList> ListReader::read_plain(const Json& list, bool guesses) const {
  Outer outer;
  Json operators = Json::array();
  for (const Json& entry : list) {
    if (is_loop_or_branch(entry)) continue;
    EDDY_ASSIGN_OR_RETURN(Json plain, plain_operator(entry, list, guesses, outer));
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
    if (pair[0].is_number_unsigned() && pair[0].get<uint64_t>() > INT64_MAX) {
      return fields.fail("\"distribution\": " + pair[0].dump() + " is above 2^63 - 1");
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
    const Json* const value = fields.find_or_null(key);
    given += value != nullptr;
    if (value != nullptr && value->is_array() && value->empty()) {
      return fields.fail(fmt::format("\"{}\" is empty; say what happens at least once", key));
    }
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
    if (topology_.node(decision.device).is_switch) {
      return cost.fail("'" + device + "' is a switch; decisions take a device that computes");
    }
  }
  return Status::ok();
}

// Where it is one of the loop's lists or of lists around. Its own carried values have none yet.
void ListReader::set_carried_shape(const CarriedValue& value, const std::vector<const Json*>& own) {
  const Json* shape = nullptr;
  for (const std::string& maker : {value.initial, value.next}) {
    const ListNames::Name* const known = all_.find_or_null(maker);
    if (known == nullptr || known->shape_or_null == nullptr) continue;
    const bool is_inside = std::ranges::find(own, known->list) != own.end();
    if (is_inside || known->is_visible) shape = known->shape_or_null;
  }
  all_.set_shape(value.name, shape);
}

Status ListReader::read_carried(const Json& loop, const Json& carried, ControlOperator& control) {
  const std::string where = "'" + control.name + "'";
  EDDY_RETURN_IF_ERROR(take_names(carried, where, "carried value"));
  std::vector<const Json*> own = lists_inside(loop);
  own.push_back(&carried);
  for (const Json& entry : carried) {
    CarriedValue value;
    value.name = entry["name"];
    const JsonFields of_value(entry, where + ": carried '" + value.name + "'");
    EDDY_ASSIGN_OR_RETURN(value.next, of_value.text("next"));
    if (value.next == control.name) {
      return of_value.fail("its \"next\" is the loop itself; name who makes the value in it");
    }
    const ListNames::Name* const next = all_.find_or_null(value.next);
    if (next == nullptr || (!next->is_visible && std::ranges::find(own, next->list) == own.end())) {
      return of_value.fail("no operator of the loop or of lists around is called '" + value.next +
                           "', its \"next\"");
    }
    if (of_value.find_or_null("initial") != nullptr) {
      EDDY_ASSIGN_OR_RETURN(value.initial, of_value.text("initial"));
      const ListNames::Name* const initial = all_.find_or_null(value.initial);
      if (initial == nullptr || !initial->is_visible || value.initial == control.name) {
        return of_value.fail("no operator outside the loop is called '" + value.initial +
                             "', its \"initial\"");
      }
    }
    control.carried.push_back(std::move(value));
  }
  own.pop_back();
  for (const CarriedValue& value : control.carried) set_carried_shape(value, own);
  return Status::ok();
}

// The body reads what `before` made.
Status ListReader::read_lists(const std::vector<const Json*>& lists, const std::string& where,
                              ControlOperator& control) {
  const bool is_loop = control.kind == ScenarioEntry::Kind::kLoop;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (is_loop && i == 1) all_.show(*lists[0]);
    EDDY_ASSIGN_OR_RETURN(control.lists.emplace_back(), read(*lists[i], where));
    if (is_loop && i == 1) all_.hide(*lists[0]);
  }
  return Status::ok();
}

Result<ControlOperator> ListReader::read_control(const Json& entry) {
  ControlOperator control;
  control.name = entry["name"];
  const JsonFields fields(entry, "'" + control.name + "'");
  const bool is_loop = entry["type"] == "while";
  control.kind = is_loop ? ScenarioEntry::Kind::kLoop : ScenarioEntry::Kind::kCase;
  EDDY_RETURN_IF_ERROR(read_decision(fields, control.kind, control.decision));
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    const ListNames::Name* const known = all_.find_or_null(name);
    if (known == nullptr || !known->is_visible) {
      return fields.fail("no operator of its list or of lists around is called '" + name +
                         "', its input");
    }
    control.inputs.push_back(name);
  }
  if (!is_loop) {
    EDDY_ASSIGN_OR_RETURN(const Json* branches, fields.list("branches", true));
    std::vector<const Json*> lists;
    for (const Json& branch : *branches) lists.push_back(&branch);
    EDDY_RETURN_IF_ERROR(read_lists(lists, fields.where(), control));
    return control;
  }
  EDDY_ASSIGN_OR_RETURN(const Json* before, fields.list("before", false));
  EDDY_ASSIGN_OR_RETURN(const Json* body, fields.list("body", false));
  EDDY_ASSIGN_OR_RETURN(const Json* carried, fields.list("carried", false));
  EDDY_RETURN_IF_ERROR(read_carried(entry, *carried, control));
  all_.show(*carried);
  EDDY_RETURN_IF_ERROR(read_lists({before, body}, fields.where(), control));
  all_.hide(*carried);
  return control;
}

Result<OperatorList> ListReader::read(const Json& list, const std::string& where) {
  EDDY_RETURN_IF_ERROR(take_names(list, where, "operator"));
  auto made = read_plain(list, true);
  if (!made.is_ok()) made = read_plain(list, false);
  if (!made.is_ok()) return made;
  EDDY_RETURN_IF_ERROR(set_strategy(*made));
  all_.show(list);
  for (const Json& entry : list) {
    if (!is_loop_or_branch(entry)) continue;
    EDDY_ASSIGN_OR_RETURN(ControlOperator control, read_control(entry));
    made->controls.push_back(std::move(control));
  }
  all_.hide(list);
  return made;
}

Result<OperatorList> ListReader::read_file() {
  EDDY_ASSIGN_OR_RETURN(OperatorList root, read(root_, "the file"));
  EDDY_RETURN_IF_ERROR(check_strategy());
  return root;
}

Status ListReader::check_strategy() const {
  if (strategy_or_null_ == nullptr) return Status::ok();
  for (const auto& [name, _] : strategy_or_null_->items()) {
    const ListNames::Name* const known = all_.find_or_null(name);
    if (known != nullptr && known->is_plain) continue;
    return invalid_argument("the strategy names '" + name + "', which is no operator" +
                            (known == nullptr ? "" : "; name those inside a loop or branch"));
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
         std::any_of(operators->begin(), operators->end(), is_loop_or_branch);
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
  const Json& operators = document["operators"];
  EDDY_RETURN_IF_ERROR(check_depth(operators, 0));
  ListReader reader(operators, topology, bytes_per_element, strategy, ops_or_null);
  EDDY_ASSIGN_OR_RETURN(const OperatorList list, reader.read_file());
  EDDY_ASSIGN_OR_RETURN(ScenarioRegion root, make_scenarios(list, topology));
  return ScenarioFile{std::move(topology), std::move(root), reader.take_estimated()};
}

}  // namespace eddy
