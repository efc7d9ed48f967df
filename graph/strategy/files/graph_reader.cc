#include "graph/strategy/files/graph_reader.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/base/check.h"
#include "graph/ir/builder.h"
#include "graph/strategy/files/cost_reader.h"
#include "graph/strategy/files/entry_order.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr char kDomain[] = "simulated";
constexpr char kOperator[] = "operator";

ValueType any_type() { return TensorType(ElementType::kFloat); }

// Any inputs; the shape is given. What is wrong with it, the operator's type says (regions.h).
OpTable simulated_ops() {
  OpDef def{.name = kOperator, .domain = kDomain};
  def.inputs = {{"inputs", kAllTypes, InputFlag::kVariadic | InputFlag::kOptional}};
  def.attributes = {{"shape", AttributeKind::kInts, true}};
  def.infer = [](InferContext& context) {
    const Dims shape(context.attributes().get_ints("shape"));
    const bool has_shape = shape.is_static() && shape.count();
    context.set_output(0, has_shape ? tensor_type(ElementType::kFloat, shape) : any_type());
    return Status::ok();
  };
  OpTable ops;
  EDDY_CHECK(ops.add(std::move(def)).is_ok());
  return ops;
}

bool is_loop(const Json& entry) { return entry.value("type", Json()) == "while"; }
bool is_control(const Json& entry) {
  return entry.is_object() && (is_loop(entry) || entry.value("type", Json()) == "case");
}

// Before and body, or the branches.
Result<std::vector<const Json*>> lists_of(const Json& control, const JsonFields& fields) {
  std::vector<const Json*> lists;
  if (!is_loop(control)) {
    EDDY_ASSIGN_OR_RETURN(const Json* branches, fields.list("branches", true));
    if (branches->empty()) return fields.fail("a case needs at least one branch");
    for (const Json& branch : *branches) lists.push_back(&branch);
    return lists;
  }
  for (const char* const key : {"before", "body"}) {
    EDDY_ASSIGN_OR_RETURN(lists.emplace_back(), fields.list(key, false));
  }
  return lists;
}

// visit(name) for all that an entry names, and entries in it; what is no name is left out, and a
// loop that carries itself (next_of).
template <typename Visit>
void for_each_mention(const Json& entry, const Visit& visit) {
  const auto name = [&](const Json& value) {
    const auto text = JsonFields::name_of(value, "");
    if (text.is_ok()) visit(*text);
  };
  const auto each = [&](const char* key, const auto& of_entry) {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    if (found == entry.end() || !found->is_array()) return;
    for (const Json& inner : *found) of_entry(inner);
  };
  const auto inside = [&](const Json& inner) { for_each_mention(inner, visit); };
  each("inputs", name);
  if (!is_control(entry)) return;
  each("carried", [&](const Json& value) {
    for (const char* const key : {"initial", "next"}) {
      if (value.contains(key) && value[key] != entry["name"]) name(value[key]);
    }
  });
  each("before", inside);
  each("body", inside);
  each("branches", [&](const Json& branch) { std::ranges::for_each(branch, inside); });
}

// What a name stands for while the list that it is visible in is read.
struct Symbol {
  const Json* list = nullptr;
  uint32_t place = 0;
  Value value = {};
  bool is_visible = false;
};

// Builds the graph.
class ListReader {
 public:
  ListReader(const OpTable& ops, const Topology* topology_or_null)
      : topology_or_null_(topology_or_null),
        builder_(ops),
        any_(builder_.scalar(0.0f)),
        selector_(builder_.scalar<int64_t>(0)),
        predicate_(builder_.scalar(true)) {}

  Result<Graph> read(const Json& root) {
    EDDY_RETURN_IF_ERROR(declare(root, "the file", "operator", 0));
    build(root);
    if (!status_.is_ok()) return status_;
    return builder_.finish();
  }
  const std::vector<FileNodes>& lists() const { return lists_; }

 private:
  Status declare(const Json& list, const std::string& where, const std::string& kind, int depth);
  void show(const Json& list, bool is_visible);
  void bind(const Json& list, ValueSpan values);
  Value find_or_none(const std::string& name, const std::string& but_not = {}) const;
  Value value_of(const Json& entry) const { return symbols_.at(entry["name"]).value; }
  static Value first(const std::vector<Value>& values) {
    return values.empty() ? Value() : values[0];
  }
  static JsonFields fields_of(const Json& carried, const std::string& loop) {
    return {carried, fmt::format("'{}': carried '{}'", loop, carried["name"].get<std::string>())};
  }
  // The first failure stays, and nothing is read after it.
  bool keep(Status status);
  void build(const Json& list);
  Result<std::vector<uint32_t>> order_of(const Json& list) const;
  Status add_operator(const Json& entry, FileNode& node);
  Status add_control(const Json& entry, FileNode& node);
  Value add_branches(const std::string& name, const std::vector<const Json*>& branches);
  Result<Value> add_loop(const std::string& name, const Json& carried,
                         const std::vector<const Json*>& lists);
  Value next_of(const Json& value, const std::string& loop);

  const Topology* topology_or_null_;
  GraphBuilder builder_;
  const Value any_;  // there from the start
  const Value selector_;
  const Value predicate_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::vector<FileNodes> lists_;
  Status status_;
};

Status ListReader::declare(const Json& list, const std::string& where, const std::string& kind,
                           int depth) {
  if (depth > kMaxControlDepth) {
    return invalid_argument(
        fmt::format("loops and branches are nested more than {} deep", kMaxControlDepth));
  }
  if (!list.is_array()) return invalid_argument(where + ": must be a list of " + kind + "s");
  for (uint32_t place = 0; place < list.size(); ++place) {
    const Json& entry = list[place];
    const auto name = entry.is_object() ? entry.find("name") : entry.end();
    if (name == entry.end() || !name->is_string() || *name == "") {
      return invalid_argument(fmt::format("{}: {} {} needs \"name\"", where, kind, place));
    }
    if (!symbols_.emplace(*name, Symbol{&list, place}).second) {
      return invalid_argument(fmt::format(
          "{}: two operators, loops, branches or carried values are called '{}'; names are unique "
          "in the whole file",
          where, name->get<std::string>()));
    }
    if (kind != "operator" || !is_control(entry)) continue;
    const JsonFields fields(entry, "'" + name->get<std::string>() + "'");
    if (topology_or_null_ == nullptr) return fields.fail("loops and branches have no place here");
    EDDY_ASSIGN_OR_RETURN(const std::vector<const Json*> inner, lists_of(entry, fields));
    for (const Json* const of_entry : inner) {
      EDDY_RETURN_IF_ERROR(declare(*of_entry, fields.where(), kind, depth + 1));
    }
    EDDY_ASSIGN_OR_RETURN(const Json* carried, fields.list("carried", false));
    if (!is_loop(entry)) continue;
    EDDY_RETURN_IF_ERROR(declare(*carried, fields.where(), "carried value", depth));
  }
  return Status::ok();
}

void ListReader::show(const Json& list, bool is_visible) {
  for (const Json& entry : list) symbols_.at(entry["name"]).is_visible = is_visible;
}

void ListReader::bind(const Json& list, ValueSpan values) {
  EDDY_CHECK(values.size() >= list.size())
      << values.size() << " values, " << list.size() << " names";
  for (size_t i = 0; i < list.size(); ++i) symbols_.at(list[i]["name"]).value = values[i];
  show(list, true);
}

Value ListReader::find_or_none(const std::string& name, const std::string& but_not) const {
  const auto found = symbols_.find(name);
  const bool is_found = found != symbols_.end() && found->second.is_visible && name != but_not;
  return is_found ? found->second.value : Value();
}

bool ListReader::keep(Status status) {
  if (status_.is_ok()) status_ = std::move(status);
  return status_.is_ok();
}

Result<std::vector<uint32_t>> ListReader::order_of(const Json& list) const {
  EntryEdges edges(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    for_each_mention(list[i], [&](const std::string& name) {
      const auto found = symbols_.find(name);
      if (found == symbols_.end() || found->second.list != &list) return;
      edges[i].push_back(found->second.place);
    });
  }
  return entry_order(edges, [&](uint32_t i) { return list[i]["name"].get<std::string>(); });
}

// Its names stay visible.
void ListReader::build(const Json& list) {
  if (!status_.is_ok()) return;
  auto order = order_of(list);
  if (!keep(order.status())) return;
  EDDY_CHECK(order->size() == list.size()) << "an entry of the list has no place";
  show(list, true);
  FileNodes nodes(list.size());
  for (const uint32_t place : *order) {
    const Json& entry = list[place];
    FileNode& node = nodes[place];
    if (!keep(is_control(entry) ? add_control(entry, node) : add_operator(entry, node))) return;
    symbols_.at(entry["name"]).value = {node.value};
  }
  if (!nodes.empty()) lists_.push_back(std::move(nodes));
}

Status ListReader::add_operator(const Json& entry, FileNode& node) {
  EDDY_ASSIGN_OR_RETURN(node.op_or_none, read_operator(entry));
  const Operator& op = node.op_or_none->op;
  std::vector<Value> inputs;
  for (const std::string& name : node.op_or_none->inputs) {
    inputs.push_back(find_or_none(name));
    if (!inputs.back().is_none()) continue;
    return invalid_argument(
        symbols_.contains(name)
            ? fmt::format("operator '{}': '{}' is inside a loop or branch that this one is not in; "
                          "only operators of the same list and of lists around it can be inputs",
                          op.name, name)
            : fmt::format("operator '{}': no operator is called '{}', its input", op.name, name));
  }
  const std::vector<int64_t> shape(op.shape.begin(), op.shape.end());
  node.value =
      builder_.op(kOperator, inputs, {{"shape", shape}}, {.name = op.name, .domain = kDomain}).id;
  return builder_.status();
}

Status ListReader::add_control(const Json& entry, FileNode& node) {
  node.control.name = entry["name"];
  const JsonFields fields(entry, "'" + node.control.name + "'");
  EDDY_ASSIGN_OR_RETURN(node.control.decision,
                        read_decision(fields, is_loop(entry), *topology_or_null_));
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(input, fields.where()));
    node.control.inputs.push_back(find_or_none(name).id);
    if (!node.control.inputs.back().is_none()) continue;
    return fields.fail("no operator of its list or of lists around is called '" + name +
                       "', its input");
  }
  EDDY_ASSIGN_OR_RETURN(const std::vector<const Json*> lists, lists_of(entry, fields));
  if (!is_loop(entry)) {
    node.value = add_branches(node.control.name, lists).id;
    return builder_.status();
  }
  EDDY_ASSIGN_OR_RETURN(const Json* carried, fields.list("carried", false));
  EDDY_ASSIGN_OR_RETURN(const Value made, add_loop(node.control.name, *carried, lists));
  node.value = made.id;
  return builder_.status();
}

// Each branch makes one value, which stands for it as a whole.
Value ListReader::add_branches(const std::string& name, const std::vector<const Json*>& branches) {
  std::vector<CaseBody> bodies;
  for (const Json* const branch : branches) {
    bodies.push_back([this, branch] {
      build(*branch);
      show(*branch, false);
      return std::vector<Value>{branch->empty() ? any_ : value_of(branch->back())};
    });
  }
  return first(
      builder_.case_of({.name = name, .selector = selector_, .default_region = 0}, bodies));
}

Result<Value> ListReader::add_loop(const std::string& name, const Json& carried,
                                   const std::vector<const Json*>& lists) {
  WhileOptions options{.name = name};
  for (const Json& value : carried) {
    const JsonFields fields = fields_of(value, name);
    options.carried_types.emplace_back(any_type());
    options.initial.push_back(any_);
    if (fields.find_or_null("initial") == nullptr) continue;
    EDDY_ASSIGN_OR_RETURN(const std::string initial, fields.text("initial"));
    options.initial.back() = find_or_none(initial, name);
    if (!options.initial.back().is_none()) continue;
    return fields.fail("no operator outside the loop is called '" + initial + "', its \"initial\"");
  }
  const Json& before = *lists[0];
  const Json& body = *lists[1];
  const auto test = [&](Value, ValueSpan values) {
    bind(carried, values);
    build(before);
    std::vector<Value> forwarded(values.begin(), values.end());
    for (const Json& entry : before) forwarded.push_back(value_of(entry));
    forwarded.push_back(any_);  // so that each loop has a result
    return WhileTest{predicate_, forwarded};
  };
  const auto turn = [&](Value, ValueSpan values) {
    bind(carried, values);
    bind(before, values.subspan(carried.size()));
    build(body);
    std::vector<Value> next;
    for (const Json& value : carried) next.push_back(next_of(value, name));
    for (const Json* const list : {&carried, &before, &body}) show(*list, false);
    return next;
  };
  return first(builder_.while_loop(options, test, turn));
}

Value ListReader::next_of(const Json& value, const std::string& loop) {
  const JsonFields fields = fields_of(value, loop);
  const auto name = fields.text("next");
  if (!keep(name.status())) return {};
  if (*name == loop) {
    keep(fields.fail("its \"next\" is the loop itself; name what makes the value in it"));
  }
  const Value next = find_or_none(*name);
  if (next.is_none()) {
    keep(fields.fail("no operator of the loop or of lists around is called '" + *name +
                     "', its \"next\""));
  }
  return next;
}

}  // namespace

bool has_control_flow(const Json& list) {
  return list.is_array() && std::ranges::any_of(list, is_control);
}

Result<FileGraph> read_graph(const Json& list, const Topology* topology_or_null,
                             const OpTable* ops_or_null) {
  OpTable ops = simulated_ops();
  ListReader reader(ops, topology_or_null);
  EDDY_ASSIGN_OR_RETURN(Graph graph, reader.read(list));
  EDDY_ASSIGN_OR_RETURN(GraphCosts costs, read_costs(graph, reader.lists(), ops_or_null));
  EDDY_CHECK(costs.regions.size() == graph.num_regions()) << "a region without costs";
  return FileGraph{std::move(ops), std::move(graph), std::move(costs)};
}

}  // namespace eddy
