#include "graph/ir/checked_call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory_resource>

namespace eddy {
namespace {

constexpr const char* kName = "checked";
constexpr const char* kDomain = "checked_domain";
constexpr const char* kOpset = "checked_opset";
constexpr const char* kOutputs = "checked_outputs";
constexpr std::string_view kOwnAttributes[] = {kName, kDomain, kOpset, kOutputs};
constexpr size_t kFirstInput = 1 + kCheckedHostValues;
constexpr int64_t kMostOutputs = 1 << 16;

// The call that a CheckedCall asks about. Lists that last for one question: the usual ones on the
// stack.
class Call {
 public:
  Call(const OpTable& ops, const InferContext& context) : ops_(ops), context_(context) {}

  Status read() {
    const Attributes& attributes = context_.attributes();
    const std::string_view name = attributes.get_string(kName, "");
    const std::string_view domain = attributes.get_string(kDomain, "");
    const int64_t opset = attributes.get_int(kOpset, 0);
    const int64_t num_outputs = attributes.get_int(kOutputs, 0);
    if (opset >= 1 && opset <= INT_MAX) {
      def_ = ops_.find_or_null(domain, name, static_cast<int>(opset));
    }
    if (def_ == nullptr || def_->expand == nullptr) {
      return invalid_argument("CheckedCall checks '" + std::string(domain) + "." +
                              std::string(name) + "' of opset " + std::to_string(opset) +
                              ", which is no function of other operators");
    }
    if (num_outputs < def_->min_outputs ||
        num_outputs > std::min<int64_t>(def_->max_outputs, kMostOutputs)) {
      return invalid_argument("CheckedCall checks " + def_->name + " with " +
                              std::to_string(num_outputs) + " outputs, which it can't have");
    }
    outputs_.resize(static_cast<size_t>(num_outputs));
    opset_ = static_cast<int>(opset);
    size_t next_value = 1;
    for (size_t i = kFirstInput; i < context_.num_inputs(); ++i) {
      types_.push_back(context_.has_input(i) ? &context_.input(i) : nullptr);
      values_.push_back(context_.value_or_null(i));
      const bool is_host = has_flag(def_->input_flags(i - kFirstInput), InputFlag::kHostValue);
      if (!is_host || types_.back() == nullptr || next_value > kCheckedHostValues) continue;
      const TensorView* const value = context_.value_or_null(next_value++);
      if (value != nullptr) values_.back() = value;
    }
    return Status::ok();
  }

  const OpDef& def() const { return *def_; }
  InferContext context() {
    return InferContext(context_.attributes(), types_, values_, outputs_, opset_);
  }

 private:
  const OpTable& ops_;
  const InferContext& context_;
  const OpDef* def_ = nullptr;
  int opset_ = 0;
  std::array<std::byte, 2048> block_;
  std::pmr::monotonic_buffer_resource memory_{block_.data(), block_.size()};
  std::pmr::vector<const ValueType*> types_{&memory_};
  std::pmr::vector<const TensorView*> values_{&memory_};
  std::pmr::vector<ValueType> outputs_{&memory_};
};

bool is_prime(int64_t number) {
  for (int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// Sizes for what is not known: one for each symbol, a new one for each other dimension.
class TrialSizes {
 public:
  // Primes from `first` on, by `step`; step 0: always `first`.
  TrialSizes(int64_t first, int64_t step) : next_(first), step_(step) {}

  int64_t size_of(int64_t dim) {
    if (dim >= 0) return dim;
    if (step_ == 0) return next_;
    if (dim == kUnknownDim) return draw();
    const auto [place, is_new] = symbols_.try_emplace(dim, 0);
    if (is_new) place->second = draw();
    return place->second;
  }

 private:
  int64_t draw() {
    while (!is_prime(next_)) next_ += step_;
    const int64_t drawn = next_;
    next_ += step_;
    return drawn;
  }

  int64_t next_, step_;
  std::map<int64_t, int64_t> symbols_;
};

bool accepts(const OpDef& def, const InferContext& known, TrialSizes sizes) {
  std::vector<ValueType> types(known.num_inputs()), outputs(known.num_outputs());
  std::vector<const ValueType*> inputs(known.num_inputs(), nullptr);
  std::vector<const TensorView*> values(known.num_inputs(), nullptr);
  for (size_t i = 0; i < known.num_inputs(); ++i) {
    if (!known.has_input(i)) continue;
    types[i] = known.input(i);
    for (int axis = 0; axis < types[i].tensor.dims.rank(); ++axis) {
      types[i].tensor.dims[axis] = sizes.size_of(types[i].tensor.dims[axis]);
    }
    inputs[i] = &types[i];
    values[i] = known.value_or_null(i);
  }
  InferContext context(known.attributes(), inputs, values, outputs, known.opset_version());
  return def.infer(context).is_ok();
}

}  // namespace

bool is_checked_call(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->domain == "eddy" && node.op->name == kCheckedCall;
}

Node make_checked_call(const OpDef& checked_call, const Node& call, size_t num_outputs,
                       size_t passed) {
  Node node;
  node.op = &checked_call;
  node.name = call.name;
  node.opset_version = checked_call.since_version;
  node.attributes = call.attributes;
  node.attributes.set(kName, call.op->name);
  node.attributes.set(kDomain, call.op->domain);
  node.attributes.set(kOpset, static_cast<int64_t>(call.opset_version));
  node.attributes.set(kOutputs, static_cast<int64_t>(num_outputs));
  node.device = call.device;
  node.inputs.resize(kFirstInput);
  node.inputs[0] = call.inputs[passed];
  size_t next_value = 1;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    node.inputs.push_back(call.inputs[i]);
    const bool is_host = has_flag(call.op->input_flags(i), InputFlag::kHostValue);
    if (is_host && !call.inputs[i].is_none() && next_value <= kCheckedHostValues) {
      node.inputs[next_value++] = call.inputs[i];
    }
  }
  return node;
}

Status infer_checked_call(const OpTable& ops, InferContext& context) {
  Call call(ops, context);
  EDDY_RETURN_IF_ERROR(call.read());
  InferContext asked = call.context();
  EDDY_RETURN_IF_ERROR(infer_types(call.def(), asked, kOwnAttributes));
  context.set_output(0, context.input(0));
  return Status::ok();
}

bool holds_for_all_sizes(const OpDef& def, const InferContext& known) {
  bool is_open = false;
  for (size_t i = 0; i < known.num_inputs(); ++i) {
    if (!known.has_input(i)) continue;
    const ValueType& type = known.input(i);
    const bool is_host = has_flag(def.input_flags(i), InputFlag::kHostValue);
    if (!type.is_tensor() || !type.tensor.is_ranked) return false;
    if (is_host && known.value_or_null(i) == nullptr) return false;
    is_open |= !type.tensor.is_static();
  }
  if (!is_open) return true;
  // Ascending and descending, as a rule may order sizes; and few, as it may ask for some.
  constexpr int64_t kLow = 10007, kHigh = 29989;
  return accepts(def, known, {kLow, 2}) && accepts(def, known, {kHigh, -2}) &&
         accepts(def, known, {0, 0}) && accepts(def, known, {1, 0});
}

bool is_settled_check(const OpTable& ops, const InferContext& context) {
  Call call(ops, context);
  return call.read().is_ok() && holds_for_all_sizes(call.def(), call.context());
}

}  // namespace eddy
