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
  const std::vector<Value> invalid(options.initial.size() + options.num_scan_outputs);
  Node node;
  if (!is_ok() || !open_while(options, node)) return invalid;
  const NodeId id = add_node(std::move(node));
  WhileOptions attempt = options;
  const Checkpoint start = checkpoint();
  bool is_settled = false;
  for (int round = 0; !is_settled; ++round) {
    const std::vector<Value> carried = open_before(id, attempt);
    close_before(before(carried[0], std::span(carried).subspan(1)));
    if (!is_ok()) return invalid;
    const std::vector<Value> forwarded = open_after(id);
    close_after(id, after(forwarded[0], std::span(forwarded).subspan(1)));
    if (!is_ok()) return invalid;
    is_settled = !options.rebuild_on_widening || carried_types_hold(id, round, attempt);
    if (!is_settled) roll_back(id, start);
  }
  std::vector<Value> outputs = complete_while(id);
  return is_ok() ? outputs : invalid;
}

std::vector<Value> GraphBuilder::complete_while(NodeId id) {
  add_outputs(id, LoopView(graph_, id).num_forwarded() + graph_.node(id).num_scan_outputs, {});
  if (Status status = infer_while(id); !status.is_ok()) {
    fail_at(id, std::move(status));
    return {};
  }
  return output_values(id);
}

std::vector<Value> GraphBuilder::open_before(NodeId node, const WhileOptions& options) {
  open_region(node, "before");
  std::vector<Value> parameters = {add_parameter(kIterationType, "iteration")};
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
    parameters.push_back(add_parameter(initial, ""));
  }
  return parameters;
}

void GraphBuilder::close_before(const WhileTest& test) {
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

std::vector<Value> GraphBuilder::open_after(NodeId node) {
  open_region(node, "after");
  std::vector<Value> parameters = {add_parameter(kIterationType, "iteration")};
  for (const ValueId value : LoopView(graph_, node).forwarded()) {
    parameters.push_back(add_parameter(graph_.value(value).type, ""));
  }
  return parameters;
}

void GraphBuilder::close_after(NodeId node, std::span<const Value> results) {
  const size_t num_carried = graph_.node(node).inputs.size() - 1;
  const size_t num_rows = graph_.node(node).num_scan_outputs;
  if (is_ok() && results.size() != num_carried + num_rows) {
    fail(invalid_argument("the loop's body gives " + std::to_string(results.size()) +
                          " results, but the loop carries " + std::to_string(num_carried) +
                          " values and stacks " + std::to_string(num_rows) + " rows"));
  }
  close_region(results);
}

bool GraphBuilder::open_case(const CaseOptions& options, Node& node) {
  if (!is_usable(options.selector, "the selector")) return false;
  node.kind = NodeKind::kCaseOf;
  node.name = unique_node_name(open_.back(), options.name, "case");
  node.default_region = options.default_region;
  node.inputs.push_back(options.selector.id);
  for (Value value : options.pass_through) {
    if (!is_usable(value, "a pass-through value of " + node.name)) return false;
    node.inputs.push_back(value.id);
  }
  return true;
}

void GraphBuilder::open_branch(NodeId id, size_t num_regions) {
  const Node& node = graph_.node(id);
  const size_t r = node.regions.size();
  const bool is_bool = graph_.value(node.inputs[0]).type.tensor.element == ElementType::kBool;
  std::string name = "case_" + std::to_string(r);
  if (is_bool && num_regions == 2) name = r == 0 ? "else" : "then";
  open_region(id, std::move(name));
}

void GraphBuilder::close_branch(NodeId id, std::span<const Value> results) {
  const std::vector<RegionId>& regions = graph_.node(id).regions;
  const bool is_first = regions.size() == 1;
  const size_t expected = is_first ? results.size() : graph_.region(regions[0]).results.size();
  if (is_ok() && results.size() != expected) {
    fail(invalid_argument("this branch gives " + std::to_string(results.size()) +
                          " results, but the first one gives " + std::to_string(expected)));
  }
  close_region(results);
}

std::vector<Value> GraphBuilder::complete_case(NodeId id) {
  const std::vector<RegionId>& regions = graph_.node(id).regions;
  add_outputs(id, regions.empty() ? 0 : graph_.region(regions[0]).results.size(), {});
  if (Status status = infer_case(id); !status.is_ok()) {
    fail_at(id, std::move(status));
    return {};
  }
  return output_values(id);
}

std::vector<Value> GraphBuilder::case_of(const CaseOptions& options,
                                         std::span<const CaseBody> regions) {
  Node node;
  if (!is_ok() || !open_case(options, node)) {
    // Callers index the results, so their number must be right even after an error.
    return std::vector<Value>(regions.empty() ? 0 : regions[0]().size());
  }
  const NodeId id = add_node(std::move(node));
  size_t num_results = 0;
  for (size_t r = 0; r < regions.size(); ++r) {
    open_branch(id, regions.size());
    const std::vector<Value> results = regions[r]();
    if (r == 0) num_results = results.size();
    close_branch(id, results);
    if (!is_ok()) return std::vector<Value>(num_results);
  }
  std::vector<Value> outputs = complete_case(id);
  return is_ok() ? outputs : std::vector<Value>(num_results);
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

bool GraphBuilder::is_at(Stage stage, const char* call) {
  if (!is_ok()) return false;
  if (!controls_.empty() && controls_.back().stage == stage) return true;
  const auto place = [&]() -> std::string {
    if (controls_.empty()) return "no loop or case is open";
    const std::string name = "'" + graph_.node(controls_.back().node).name + "'";
    switch (controls_.back().stage) {
      case Stage::kBefore:
        return name + " is in its part before the test";
      case Stage::kAfter:
        return name + " is in its part after the test";
      case Stage::kBetweenBranches:
        return name + " is between two branches";
      case Stage::kBranch:
        return name + " is inside a branch";
    }
    return name;
  };
  fail(invalid_argument(std::string(call) + " does not fit here: " + place()));
  return false;
}

std::vector<Value> GraphBuilder::begin_while(const WhileOptions& options) {
  Node node;
  if (!is_ok() || !open_while(options, node)) return {};
  const NodeId id = add_node(std::move(node));
  controls_.push_back({id, Stage::kBefore, 2});
  return open_before(id, options);
}

std::vector<Value> GraphBuilder::begin_after(const WhileTest& test) {
  if (!is_at(Stage::kBefore, "begin_after")) return {};
  close_before(test);
  if (!is_ok()) return {};
  controls_.back().stage = Stage::kAfter;
  return open_after(controls_.back().node);
}

std::vector<Value> GraphBuilder::end_while(std::span<const Value> next_and_rows) {
  if (!is_at(Stage::kAfter, "end_while")) return {};
  const NodeId id = controls_.back().node;
  controls_.pop_back();
  close_after(id, next_and_rows);
  return is_ok() ? complete_while(id) : std::vector<Value>();
}

void GraphBuilder::begin_case(const CaseOptions& options, size_t num_regions) {
  Node node;
  if (!is_ok() || !open_case(options, node)) return;
  controls_.push_back({add_node(std::move(node)), Stage::kBetweenBranches, num_regions});
}

void GraphBuilder::begin_branch() {
  if (!is_at(Stage::kBetweenBranches, "begin_branch")) return;
  OpenControl& control = controls_.back();
  if (graph_.node(control.node).regions.size() == control.num_regions) {
    return fail(invalid_argument("'" + graph_.node(control.node).name + "' was begun with " +
                                 std::to_string(control.num_regions) +
                                 " branches; this is one more"));
  }
  control.stage = Stage::kBranch;
  open_branch(control.node, control.num_regions);
}

void GraphBuilder::end_branch(std::span<const Value> results) {
  if (!is_at(Stage::kBranch, "end_branch")) return;
  controls_.back().stage = Stage::kBetweenBranches;
  close_branch(controls_.back().node, results);
}

std::vector<Value> GraphBuilder::end_case() {
  if (!is_at(Stage::kBetweenBranches, "end_case")) return {};
  const OpenControl control = controls_.back();
  const size_t num_regions = graph_.node(control.node).regions.size();
  if (num_regions != control.num_regions) {
    fail(invalid_argument("'" + graph_.node(control.node).name + "' was begun with " +
                          std::to_string(control.num_regions) + " branches, but has " +
                          std::to_string(num_regions)));
    return {};
  }
  controls_.pop_back();
  return complete_case(control.node);
}

}  // namespace eddy
