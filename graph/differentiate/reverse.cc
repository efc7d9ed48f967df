#include "graph/differentiate/reverse.h"

#include <algorithm>
#include <ranges>

#include "graph/base/check.h"

namespace eddy {
namespace {

void append(std::vector<Value>& values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

}  // namespace

Reverse::Reverse(const Graph& source, const GradientTable& rules, const Activity& activity,
                 const KeptValues& kept, ForwardCopy& forward, GraphBuilder& builder, int opset)
    : source_(source),
      rules_(rules),
      activity_(activity),
      kept_(kept),
      forward_(forward),
      builder_(builder),
      opset_(opset) {}

void Reverse::run(ValueId loss, Value seed) {
  tapes_ = forward_.tapes();
  add(loss, seed);
  region(Graph::kRoot);
}

void Reverse::region(RegionId id) {
  for (const NodeId node : source_.region(id).nodes | std::views::reverse) {
    if (!builder_.status().is_ok()) return;
    if (!activity_.is_active(source_.node(node))) continue;
    switch (source_.node(node).kind) {
      case NodeKind::kExec:
        exec(node);
        break;
      case NodeKind::kWhile:
        loop(node);
        break;
      case NodeKind::kCaseOf:
        branch(node);
        break;
    }
  }
}

Value Reverse::op(std::string_view name, std::initializer_list<Value> inputs,
                  Attributes attributes) {
  return builder_.op(name, inputs, std::move(attributes),
                     {.name = "grad/" + std::string(name), .opset_version = opset_});
}

Value Reverse::value(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.origin == ValueOrigin::kConstant || info.region == Graph::kRoot) return forward_.of(id);
  const auto at = popped_.find({Kept::What::kValue, id.index()});
  EDDY_CHECK(at != popped_.end()) << "'" << info.name << "' was not kept";
  return at->second;
}

Value Reverse::shape(ValueId id) {
  const ValueInfo& info = source_.value(id);
  if (info.type.is_static_tensor()) return builder_.vector(info.type.tensor.dims.span());
  if (info.region == Graph::kRoot) return op("Shape", {forward_.of(id)});
  const auto at = popped_.find({Kept::What::kShape, id.index()});
  return at != popped_.end() ? at->second : op("Shape", {value(id)});
}

Value Reverse::trips(NodeId loop) {
  if (source_.node(loop).region == Graph::kRoot) return forward_.trips(loop);
  return popped_.at({Kept::What::kTrips, loop.index()});
}

void Reverse::add(ValueId id, Value gradient) {
  if (!activity_.is_active(id)) return;
  Value& sum = sums_[id];
  sum = sum.is_none() ? gradient : op("Add", {sum, gradient});
}

Value Reverse::take_sum(ValueId id) {
  const Value sum = sum_or_zeros(id);
  sums_.erase(id);
  return sum;
}

Value Reverse::zeros(ValueId id) {
  return make_zeros(builder_, source_.value(id).type.tensor.element, shape(id),
                    {.name = "grad/zeros", .opset_version = opset_});
}

Value Reverse::sum_or_zeros(ValueId id) {
  const auto at = sums_.find(id);
  return at != sums_.end() ? at->second : zeros(id);
}

std::vector<Value> Reverse::sums_or_zeros(const std::vector<ValueId>& ids) {
  std::vector<Value> sums;
  for (const ValueId id : ids) sums.push_back(sum_or_zeros(id));
  return sums;
}

void Reverse::exec(NodeId id) {
  const Node& node = source_.node(id);
  const GradientRule* rule =
      rules_.find_or_null(node.op->domain, node.op->name, node.opset_version);
  GradientContext::Call call{id, rule, activity_.wanted_inputs(node, *rule), {}, opset_};
  bool has_any = false;
  for (const ValueId output : node.outputs) {
    const auto at = sums_.find(output);
    call.gradients.push_back(at == sums_.end() ? Value{} : at->second);
    has_any |= at != sums_.end();
    sums_.erase(output);
  }
  if (!has_any || std::ranges::count(call.wants, true) == 0) return;
  GradientContext context(source_, builder_, *this, std::move(call));
  rule->build(context);
}

// Sequences of tensors of any rank give tensors of any; their rank is that of the source's value.
Value Reverse::with_rank(Value value, ValueId of) {
  const TensorType& type = source_.value(of).type.tensor;
  if (!type.is_ranked || builder_.type(value).tensor.is_ranked) return value;
  std::vector<int64_t> dims;  // 0: as it is
  for (const int64_t dim : type.dims) dims.push_back(std::max<int64_t>(dim, 0));
  const bool has_empty = std::ranges::count(type.dims.span(), 0) > 0;
  if (has_empty) return value;
  return op("Reshape", {value, builder_.vector(std::span<const int64_t>(dims))});
}

void Reverse::pop_kept(RegionId region) {
  for (const Kept& item : kept_.of(region) | std::views::reverse) {
    Value& tape = tapes_.at(kept_.element(item));
    const Value last = builder_.scalar(int64_t{-1});
    Value value = op("SequenceAt", {tape, last});
    tape = op("SequenceErase", {tape, last});
    if (item.what == Kept::What::kValue) value = with_rank(value, ValueId(item.index));
    if (item.what == Kept::What::kShape) value = op("Reshape", {value, builder_.int64s({-1})});
    if (item.what == Kept::What::kTrips) {
      value = op("Reshape", {value, builder_.vector(std::span<const int64_t>())});
    }
    popped_[item] = value;
  }
}

void Reverse::add_rows(const LoopView& loop, const std::vector<Value>& stacked, Value trips,
                       Value iteration) {
  const bool has_any = std::ranges::any_of(stacked, [](Value v) { return !v.is_none(); });
  if (!has_any) return;
  const Value last = op("Sub", {trips, builder_.scalar(int64_t{1})});
  const Value place = op("Sub", {last, iteration});
  for (size_t s = 0; s < stacked.size(); ++s) {
    if (stacked[s].is_none()) continue;
    add(loop.rows()[s], op("Gather", {stacked[s], place}, {{"axis", int64_t{0}}}));
  }
}

// The values that the two reversed regions hand to each other.
struct Reverse::LoopParts {
  std::vector<ValueId> forwarded, received, outputs;  // active ones, place by place
  std::vector<ValueId> carried, next, initial;        // active ones, place by place
  std::vector<ValueId> captures;
  std::set<ElementType> tapes;
  std::vector<Value> stacked;  // adjoints of stacked rows; none: nothing came back

  LoopParts(const LoopView& loop, const Activity& activity) {
    for (size_t k = 0; k < loop.num_forwarded(); ++k) {
      if (!activity.is_active(loop.forwarded()[k])) continue;
      forwarded.push_back(loop.forwarded()[k]);
      received.push_back(loop.received()[k]);
      outputs.push_back(loop.outputs()[k]);
    }
    for (size_t k = 0; k < loop.num_carried(); ++k) {
      if (!activity.is_active(loop.carried()[k])) continue;
      carried.push_back(loop.carried()[k]);
      next.push_back(loop.next()[k]);
      initial.push_back(loop.initial()[k]);
    }
  }
};

void Reverse::loop(NodeId id) {
  const LoopView loop(source_, id);
  LoopParts parts(loop, activity_);
  parts.captures = active_captures(source_, activity_, id);
  parts.tapes = kept_.tapes(loop.node());
  for (const ValueId stacked : loop.stacked()) {
    const auto at = sums_.find(stacked);
    parts.stacked.push_back(at == sums_.end() ? Value{} : at->second);
    sums_.erase(stacked);
  }
  WhileOptions options;
  options.name = loop.node().name + "/grad";
  options.trip_limit = trips(id);
  options.rebuild_on_widening = true;
  for (const ValueId output : parts.outputs) {
    options.initial.push_back(take_sum(output));
    options.carried_types.push_back(forward_.type_of(output));
  }
  for (const ValueId capture : parts.captures) {
    options.initial.push_back(sum_or_zeros(capture));
    options.carried_types.push_back(forward_.type_of(capture));
  }
  append(options.initial, in_order(tapes_, parts.tapes));
  for (const ElementType type : parts.tapes) options.carried_types.push_back(tape_type(type));
  Sums outer_sums = std::move(sums_);
  Tapes outer_tapes = tapes_;

  // Opens a reversed region: adjoints of `handed` are its first parameters, then sums and tapes.
  const auto open = [&](ValueSpan given, const std::vector<ValueId>& handed, RegionId region) {
    sums_.clear();
    const size_t num_captures = parts.captures.size();
    for (size_t k = 0; k < num_captures; ++k) {
      sums_[parts.captures[k]] = given[handed.size() + k];
    }
    tapes_ = tapes_of(parts.tapes, given.subspan(handed.size() + num_captures));
    pop_kept(region);
    for (size_t k = 0; k < handed.size(); ++k) add(handed[k], given[k]);
  };
  const auto close = [&](const std::vector<ValueId>& handed) {
    std::vector<Value> results = sums_or_zeros(handed);
    append(results, sums_or_zeros(parts.captures));
    append(results, in_order(tapes_, parts.tapes));
    return results;
  };
  const auto made = builder_.while_loop(
      options,
      [&](Value, ValueSpan given) {
        open(given, parts.forwarded, loop.before_id());
        region(loop.before_id());
        return WhileTest{builder_.scalar(true), close(parts.carried)};
      },
      [&](Value iteration, ValueSpan given) {
        open(given, parts.next, loop.after_id());
        add_rows(loop, parts.stacked, options.trip_limit, iteration);
        region(loop.after_id());
        return close(parts.received);
      });
  sums_ = std::move(outer_sums);
  tapes_ = std::move(outer_tapes);
  if (!builder_.status().is_ok()) return;
  const size_t num_carried = parts.carried.size();
  for (size_t k = 0; k < parts.captures.size(); ++k) {
    sums_[parts.captures[k]] = made[num_carried + k];
  }
  const ValueSpan tail = ValueSpan(made).subspan(num_carried + parts.captures.size());
  for (const auto& [type, tape] : tapes_of(parts.tapes, tail)) tapes_[type] = tape;
  for (size_t k = 0; k < num_carried; ++k) add(parts.initial[k], made[k]);
}

std::vector<Value> Reverse::reverse_branch(RegionId id, LoopView::Values outputs,
                                           const std::vector<Value>& adjoints,
                                           const std::vector<ValueId>& captures,
                                           const std::vector<Value>& sums, const Tapes& tapes) {
  sums_.clear();
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = sums[k];
  tapes_ = tapes;
  if (!id.is_none()) pop_kept(id);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!adjoints[o].is_none()) add(outputs[o], adjoints[o]);
  }
  if (!id.is_none()) region(id);
  return sums_or_zeros(captures);
}

void Reverse::branch(NodeId id) {
  const CaseView choice(source_, id);
  const std::set<ElementType> types = kept_.tapes(choice.node());
  std::vector<ValueId> captures = active_captures(source_, activity_, id);
  for (const ValueId passed : choice.pass_through()) {
    if (activity_.is_active(passed) && std::ranges::count(captures, passed) == 0) {
      captures.push_back(passed);
    }
  }
  std::vector<Value> adjoints;
  for (const ValueId output : choice.outputs()) {
    const auto at = sums_.find(output);
    adjoints.push_back(at == sums_.end() ? Value{} : at->second);
    sums_.erase(output);
  }
  const std::vector<Value> sums = sums_or_zeros(captures);
  Sums outer_sums = std::move(sums_);
  const Tapes outer_tapes = tapes_;
  CaseOptions options;
  options.name = choice.node().name + "/grad";
  options.selector = value(choice.selector());
  options.default_region = choice.node().default_region;
  std::vector<CaseBody> bodies;
  const auto add_body = [&](RegionId region, CaseView::Values results) {
    bodies.push_back([&, region, results] {
      auto made = reverse_branch(region, results, adjoints, captures, sums, outer_tapes);
      append(made, in_order(tapes_, types));
      return made;
    });
  };
  for (size_t b = 0; b < choice.num_branches(); ++b) {
    add_body(choice.node().regions[b], choice.results(b));
  }
  if (choice.has_pass_through() && options.default_region < 0) {
    options.default_region = static_cast<int>(choice.num_branches());
    add_body(RegionId(), choice.pass_through());
  }
  const auto made = builder_.case_of(options, bodies);
  sums_ = std::move(outer_sums);
  tapes_ = outer_tapes;
  if (!builder_.status().is_ok()) return;
  for (size_t k = 0; k < captures.size(); ++k) sums_[captures[k]] = made[k];
  for (const auto& [type, tape] : tapes_of(types, ValueSpan(made).subspan(captures.size()))) {
    tapes_[type] = tape;
  }
}

}  // namespace eddy
