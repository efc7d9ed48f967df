// Scan as while nodes: one iteration for each slice of the scanned inputs. Scan 8 puts another
// loop around it, one iteration for each element of the batch.
#include <algorithm>
#include <climits>

#include "graph/base/check.h"
#include "graph/io/importer.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

std::vector<int64_t> list_or_zeros(const OnnxAttribute* attribute, size_t size) {
  return attribute != nullptr ? attribute->ints : std::vector<int64_t>(size, 0);
}

}  // namespace

struct Importer::ScanPlan {
  const OnnxGraph* body = nullptr;
  bool is_batched = false;  // Scan 8
  size_t num_states = 0;
  size_t num_scanned = 0;
  size_t num_rows = 0;
  std::vector<int64_t> input_axes, input_directions;    // for each scanned input
  std::vector<int64_t> output_axes, output_directions;  // for each row
};

Value Importer::helper(const NodeContext& at, std::string_view op,
                       std::initializer_list<Value> inputs, Attributes attributes, int oldest) {
  OpOptions options;
  const int64_t version = at.scope.env->opsets.version_or_zero("");
  options.opset_version = static_cast<int>(std::clamp<int64_t>(version, oldest, INT_MAX));
  return builder_.op(op, inputs, std::move(attributes), std::move(options));
}

bool Importer::plan_scan(const NodeContext& at, ScanPlan* plan) {
  plan->body = body_or_null(at, "body");
  if (plan->body == nullptr) return false;
  plan->is_batched = at.key.version < 9;
  const size_t num_leading = plan->is_batched ? 1 : 0;  // Scan 8: sequence_lens
  const OnnxAttribute* scanned = at.find_or_null("num_scan_inputs");
  const size_t num_inputs = at.node.inputs.size();
  if (scanned == nullptr || scanned->i < 1 || num_inputs < num_leading ||
      static_cast<uint64_t>(scanned->i) > num_inputs - num_leading) {
    return fail_at(at, "num_scan_inputs must be between 1 and the number of inputs");
  }
  plan->num_scanned = static_cast<size_t>(scanned->i);
  plan->num_states = num_inputs - num_leading - plan->num_scanned;
  if (!check_counts(at, *plan->body, "body", num_inputs - num_leading, plan->num_states)) {
    return false;
  }
  plan->num_rows = plan->body->outputs.size() - plan->num_states;
  const char* directions = plan->is_batched ? "directions" : "scan_input_directions";
  plan->input_directions = list_or_zeros(at.find_or_null(directions), plan->num_scanned);
  plan->input_axes = list_or_zeros(at.find_or_null("scan_input_axes"), plan->num_scanned);
  plan->output_directions =
      list_or_zeros(at.find_or_null("scan_output_directions"), plan->num_rows);
  plan->output_axes = list_or_zeros(at.find_or_null("scan_output_axes"), plan->num_rows);
  return check_scan(at, *plan);
}

bool Importer::check_scan(const NodeContext& at, const ScanPlan& plan) {
  if (plan.input_axes.size() != plan.num_scanned ||
      plan.input_directions.size() != plan.num_scanned ||
      plan.output_axes.size() != plan.num_rows || plan.output_directions.size() != plan.num_rows) {
    return fail_at(at,
                   "axes and directions must be given for each scanned input and each "
                   "stacked output, or for none");
  }
  for (const auto* directions : {&plan.input_directions, &plan.output_directions}) {
    for (int64_t direction : *directions) {
      if (direction != 0 && direction != 1) {
        return fail_at(at, "direction " + std::to_string(direction) + " is neither 0 nor 1");
      }
    }
  }
  for (const auto* axes : {&plan.input_axes, &plan.output_axes}) {
    for (int64_t axis : *axes) {
      if (axis < -kMaxRank || axis >= kMaxRank) {
        return fail_at(at, "axis " + std::to_string(axis) + " is outside of any shape");
      }
    }
  }
  return true;
}

bool Importer::import_scan(const NodeContext& at) {
  ScanPlan plan;
  std::vector<Value> inputs;
  if (!plan_scan(at, &plan) || !inputs_of(at, &inputs)) return false;
  if (plan.is_batched) {
    if (!inputs[0].is_none()) {
      return fail_at(at, unsupported("sequence_lens of Scan 8 is not supported; use Scan 9 on "
                                     "sequences of one length"));
    }
    inputs.erase(inputs.begin());
  }
  if (std::any_of(inputs.begin(), inputs.end(), [](Value v) { return v.is_none(); })) {
    return fail_at(at, "no input but sequence_lens may be left out");
  }
  const std::span<const Value> all(inputs);
  const std::vector<Value> outputs =
      plan.is_batched
          ? scan_batches(at, plan, all)
          : scan_once(at, plan, all.first(plan.num_states), all.subspan(plan.num_states));
  if (!is_ok()) return false;
  name_outputs(at, outputs);
  return bind_outputs(at, outputs);
}

// The length of one axis as an int64 scalar. A constant where types are final: a loop's trip
// count known while planning is worth more than two nodes.
Value Importer::axis_length(const NodeContext& at, Value value, int64_t axis) {
  const TensorType& type = builder_.type(value).tensor;
  if (loop_depth_ == 0 && type.is_ranked) {
    const int64_t a = axis < 0 ? axis + type.dims.rank() : axis;
    if (a < 0 || a >= type.dims.rank()) {
      fail_at(at,
              "axis " + std::to_string(axis) + " does not exist in " + to_string(ValueType(type)));
      return {};
    }
    const int64_t length = type.dims[static_cast<int>(a)];
    if (length >= 0) return builder_.scalar(length);
  }
  return helper(at, "Gather", {helper(at, "Shape", {value}), builder_.scalar(axis)});
}

// The longest, so that reading the shorter ones beyond their end is an error of the run.
Value Importer::scan_length(const NodeContext& at, std::span<const Value> scanned,
                            std::span<const int64_t> axes) {
  EDDY_CHECK(!scanned.empty() && axes.size() == scanned.size())
      << axes.size() << " axes for " << scanned.size() << " inputs";
  Value longest = axis_length(at, scanned[0], axes[0]);
  for (size_t i = 1; is_ok() && i < scanned.size(); ++i) {
    const Value length = axis_length(at, scanned[i], axes[i]);
    if (!is_ok()) break;
    const Constant* known_longest = builder_.constant_or_null(longest);
    const Constant* known = builder_.constant_or_null(length);
    if (known_longest == nullptr || known == nullptr) {
      longest = helper(at, "Max", {longest, length});
      continue;
    }
    EDDY_DCHECK(known->element == ElementType::kInt64 && known->dims.rank() == 0)
        << "a length is one int64";
    const int64_t a = *known_longest->view().as<int64_t>();
    const int64_t b = *known->view().as<int64_t>();
    if (a != b) {
      fail_at(at, "scanned inputs have lengths " + std::to_string(a) + " and " + std::to_string(b) +
                      "; they must be equal");
    }
  }
  return longest;
}

std::vector<Value> Importer::scan_once(const NodeContext& at, const ScanPlan& plan,
                                       std::span<const Value> states,
                                       std::span<const Value> scanned) {
  EDDY_CHECK(states.size() == plan.num_states && scanned.size() == plan.num_scanned)
      << states.size() << " states and " << scanned.size() << " scanned inputs";
  WhileOptions options;
  options.name = node_name(at);
  options.initial.assign(states.begin(), states.end());
  options.num_scan_outputs = static_cast<uint32_t>(plan.num_rows);
  options.carried_types = wider_types(plan.body->inputs, states, false);
  options.trip_limit = scan_length(at, scanned, plan.input_axes);
  const bool reads_backwards =
      std::count(plan.input_directions.begin(), plan.input_directions.end(), 1) > 0;
  const Value last = reads_backwards && is_ok()
                         ? helper(at, "Sub", {options.trip_limit, builder_.scalar(int64_t{1})})
                         : Value{};
  std::vector<Value> outputs = while_loop(
      options,
      [&](Value, std::span<const Value> carried) {
        return WhileTest{always_true(), {carried.begin(), carried.end()}};
      },
      [&](Value iteration, std::span<const Value> carried) {
        std::vector<Value> values(carried.begin(), carried.end());
        const Value reversed = reads_backwards ? helper(at, "Sub", {last, iteration}) : Value{};
        for (size_t i = 0; i < scanned.size(); ++i) {
          const Value index = plan.input_directions[i] == 1 ? reversed : iteration;
          values.push_back(
              helper(at, "Gather", {scanned[i], index}, {{"axis", plan.input_axes[i]}}));
        }
        name_parameters(*plan.body, at.scope, values);
        return is_ok() ? import_body(*plan.body, at.scope, values) : std::vector<Value>();
      });
  EDDY_CHECK(!is_ok() || outputs.size() == plan.num_states + plan.num_rows)
      << outputs.size() << " outputs of a scan";
  for (size_t i = 0; is_ok() && i < plan.num_rows; ++i) {
    Value& stacked = outputs[plan.num_states + i];
    stacked = turn_output(at, stacked, plan.output_directions[i] == 1, plan.output_axes[i]);
  }
  return outputs;
}

Value Importer::turn_output(const NodeContext& at, Value stacked, bool is_reversed, int64_t axis) {
  if (is_reversed) {
    stacked = helper(at, "Slice",
                     {stacked, builder_.int64s({-1}), builder_.int64s({INT64_MIN}),
                      builder_.int64s({0}), builder_.int64s({-1})});
  }
  if (axis == 0 || !is_ok()) return stacked;
  const TensorType& type = builder_.type(stacked).tensor;
  if (!type.is_ranked) {
    fail_at(at, unsupported("scan_output_axes needs outputs of known rank"));
    return stacked;
  }
  const int64_t rank = type.dims.rank();
  const int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) {
    fail_at(at, "output axis " + std::to_string(axis) + " does not exist in " +
                    to_string(ValueType(type)));
    return stacked;
  }
  std::vector<int64_t> order;
  for (int64_t a = 1; a < rank; ++a) order.push_back(a);
  order.insert(order.begin() + place, 0);
  EDDY_DCHECK(order.size() == static_cast<size_t>(rank)) << "an order of " << order.size();
  return helper(at, "Transpose", {stacked}, {{"perm", order}});
}

std::vector<Value> Importer::scan_batches(const NodeContext& at, const ScanPlan& plan,
                                          std::span<const Value> inputs) {
  WhileOptions options;
  options.name = node_name(at);
  options.num_scan_outputs = static_cast<uint32_t>(plan.body->outputs.size());
  const std::vector<int64_t> axes(inputs.size(), 0);
  options.trip_limit = scan_length(at, inputs, axes);
  return while_loop(
      options,
      [&](Value, std::span<const Value>) {
        return WhileTest{always_true(), {}};
      },
      [&](Value batch, std::span<const Value>) {
        std::vector<Value> values;
        for (Value input : inputs) values.push_back(helper(at, "Gather", {input, batch}));
        if (!is_ok()) return std::vector<Value>();
        const std::span<const Value> all(values);
        return scan_once(at, plan, all.first(plan.num_states), all.subspan(plan.num_states));
      });
}

}  // namespace eddy
