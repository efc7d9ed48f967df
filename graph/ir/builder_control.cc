#include "graph/base/check.h"
#include "graph/ir/builder.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

// The last word on count is the run's; here only what can't ever be one element is refused.
bool may_be_one_element(const ValueType& type) {
  if (!type.is_tensor()) return false;
  if (!type.tensor.is_ranked) return true;
  for (int64_t dim : type.tensor.dims.span()) {
    if (dim >= 0 && dim != 1) return false;
  }
  return true;
}

const ValueType kIterationType = tensor_type(ElementType::kInt64, {});

}  // namespace

bool GraphBuilder::open_while(const WhileOptions& options, Node& node) {
  node.kind = NodeKind::kWhile;
  node.name = unique_node_name(open_.back(), options.name, "while");
  node.num_scan_outputs = options.num_scan_outputs;
  node.inputs.push_back(options.trip_limit.id);
  if (!options.trip_limit.is_none()) {
    if (!is_usable(options.trip_limit, "trip limit of " + node.name)) return false;
    const ValueType& limit = type(options.trip_limit);
    if (limit.tensor.element != ElementType::kInt64 || !may_be_one_element(limit)) {
      fail(invalid_argument("the trip limit must be one int64, not " + to_string(limit))
               .prepend_path(node.name));
      return false;
    }
  }
  for (size_t k = 0; k < options.initial.size(); ++k) {
    const std::string what = "initial value " + std::to_string(k) + " of " + node.name;
    if (!is_usable(options.initial[k], what)) return false;
    node.inputs.push_back(options.initial[k].id);
  }
  return true;
}

struct GraphBuilder::Checkpoint {
  size_t num_regions;
  size_t num_nodes;
  size_t num_values;
  size_t num_constants;
  size_t num_blobs;
};

GraphBuilder::Checkpoint GraphBuilder::checkpoint() const {
  return {graph_.regions_.size(), graph_.nodes_.size(), graph_.values_.size(),
          graph_.constants_.size(), graph_.blobs_.size()};
}

void GraphBuilder::roll_back(NodeId control_node, const Checkpoint& to) {
  EDDY_CHECK(to.num_regions <= graph_.regions_.size() && to.num_values <= graph_.values_.size() &&
             control_node.index() < to.num_nodes && open_.back().index() < to.num_regions)
      << "a region is rolled back from inside";
  graph_.nodes_[control_node.index()].regions.clear();
  graph_.regions_.resize(to.num_regions);
  node_names_.resize(to.num_regions);
  graph_.nodes_.resize(to.num_nodes);
  graph_.values_.resize(to.num_values);
  graph_.constants_.resize(to.num_constants);
  graph_.blobs_.resize(to.num_blobs);
}

// Each failed attempt widens at least one type, so attempts end.
bool GraphBuilder::carried_types_hold(NodeId id, int round, WhileOptions& options) const {
  const LoopView loop(graph_, id);
  bool hold = true;
  options.carried_types.resize(loop.num_carried());
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueType& parameter = graph_.value(loop.carried()[k]).type;
    const auto joined = join(parameter, graph_.value(loop.next()[k]).type);
    if (!joined) continue;  // infer_while reports what cannot be joined
    options.carried_types[k] = loosened(*joined, round);
    hold &= *joined == parameter;
  }
  return hold;
}

std::vector<Value> GraphBuilder::while_loop(const WhileOptions& options, const WhileBefore& before,
                                            const WhileAfter& after) {
  const size_t num_outputs = options.initial.size() + options.num_scan_outputs;
  std::vector<Value> invalid(num_outputs);
  Node node;
  if (!is_ok() || !open_while(options, node)) return invalid;
  const NodeId id = add_node(std::move(node));
  WhileOptions attempt = options;
  const Checkpoint start = checkpoint();
  bool is_settled = false;
  for (int round = 0; !is_settled; ++round) {
    build_before(id, attempt, before);
    if (!is_ok()) return invalid;
    build_after(id, attempt, after);
    if (!is_ok()) return invalid;
    is_settled = !options.rebuild_on_widening || carried_types_hold(id, round, attempt);
    if (!is_settled) roll_back(id, start);
  }
  add_outputs(id, LoopView(graph_, id).num_forwarded() + options.num_scan_outputs, {});
  if (Status status = infer_while(id); !status.is_ok()) {
    fail_at(id, std::move(status));
    return invalid;
  }
  return output_values(id);
}

void GraphBuilder::build_before(NodeId node, const WhileOptions& options,
                                const WhileBefore& before) {
  open_region(node, "before");
  const Value iteration = add_parameter(kIterationType, "iteration");
  std::vector<Value> carried;
  for (size_t k = 0; k < options.initial.size(); ++k) {
    ValueType initial = type(options.initial[k]);
    if (k < options.carried_types.size() && options.carried_types[k]) {
      const auto joined = join(initial, *options.carried_types[k]);
      if (!joined) {
        fail(invalid_argument("initial value " + std::to_string(k) + " is " + to_string(initial) +
                              ", but the body declares " + to_string(*options.carried_types[k])));
      } else {
        initial = *joined;
      }
    }
    carried.push_back(add_parameter(initial, ""));
  }
  const WhileTest test = before(iteration, carried);
  if (is_ok() && !test.predicate.is_none()) {
    const ValueType& predicate = type(test.predicate);
    if (predicate.tensor.element != ElementType::kBool || !may_be_one_element(predicate)) {
      fail(invalid_argument("the predicate must be one bool, not " + to_string(predicate)));
    }
  }
  std::vector<Value> results = {test.predicate};
  results.insert(results.end(), test.forwarded.begin(), test.forwarded.end());
  close_region(results);
}

void GraphBuilder::build_after(NodeId node, const WhileOptions& options, const WhileAfter& after) {
  open_region(node, "after");
  const Value iteration = add_parameter(kIterationType, "iteration");
  std::vector<Value> forwarded;
  for (const ValueId value : LoopView(graph_, node).forwarded()) {
    forwarded.push_back(add_parameter(graph_.value(value).type, ""));
  }
  const std::vector<Value> results = after(iteration, forwarded);
  const size_t expected = options.initial.size() + options.num_scan_outputs;
  if (is_ok() && results.size() != expected) {
    fail(invalid_argument("the loop's body gives " + std::to_string(results.size()) +
                          " results, but the loop carries " +
                          std::to_string(options.initial.size()) + " values and stacks " +
                          std::to_string(options.num_scan_outputs) + " rows"));
  }
  close_region(results);
}

bool GraphBuilder::build_case(NodeId node, const CaseBody& body, std::string name,
                              size_t& num_results) {
  open_region(node, std::move(name));
  const std::vector<Value> results = body();
  const bool is_first = graph_.node(node).regions.size() == 1;
  if (is_first) num_results = results.size();
  if (is_ok() && results.size() != num_results) {
    fail(invalid_argument("this branch gives " + std::to_string(results.size()) +
                          " results, but the first one gives " + std::to_string(num_results)));
  }
  close_region(results);
  return is_ok();
}

std::vector<Value> GraphBuilder::case_of(const CaseOptions& options,
                                         std::span<const CaseBody> regions) {
  const auto invalid = [&] {
    // Callers index the results, so their number must be right even after an error.
    return std::vector<Value>(regions.empty() ? 0 : regions[0]().size());
  };
  if (!is_ok() || !is_usable(options.selector, "the selector")) return invalid();
  Node node;
  node.kind = NodeKind::kCaseOf;
  node.name = unique_node_name(open_.back(), options.name, "case");
  node.default_region = options.default_region;
  node.inputs.push_back(options.selector.id);
  for (Value value : options.pass_through) {
    if (!is_usable(value, "a pass-through value of " + node.name)) return invalid();
    node.inputs.push_back(value.id);
  }
  const NodeId id = add_node(std::move(node));
  const bool is_bool = type(options.selector).tensor.element == ElementType::kBool;
  size_t num_results = 0;
  for (size_t r = 0; r < regions.size(); ++r) {
    std::string name = "case_" + std::to_string(r);
    if (is_bool && regions.size() == 2) name = r == 0 ? "else" : "then";
    if (!build_case(id, regions[r], std::move(name), num_results)) {
      return std::vector<Value>(num_results);
    }
  }
  add_outputs(id, num_results, {});
  if (Status status = infer_case(id); !status.is_ok()) {
    fail_at(id, std::move(status));
    return std::vector<Value>(num_results);
  }
  return output_values(id);
}

std::vector<Value> GraphBuilder::if_else(Value condition, const CaseBody& then_region,
                                         const CaseBody& else_region, std::string name) {
  if (is_ok() && is_usable(condition, "the condition") &&
      type(condition).tensor.element != ElementType::kBool) {
    fail(invalid_argument("the condition must be one bool, not " + to_string(type(condition))));
  }
  const CaseBody regions[] = {else_region, then_region};
  return case_of({.name = std::move(name), .selector = condition}, regions);
}

}  // namespace eddy
