#include "graph/ir/expansion.h"

#include <algorithm>
#include <cmath>

#include "graph/base/check.h"

namespace eddy {

Expansion::Expansion(GraphBuilder& builder, const Node& call, size_t num_outputs)
    : builder_(builder), call_(call), outputs_(num_outputs) {
  EDDY_CHECK(call.op != nullptr && call.op->expand != nullptr) << call.name << " stands for itself";
}

int Expansion::rank_or_fail(Value value, std::string_view what) {
  if (!builder_.status().is_ok()) return -1;
  const TensorType of = type(value);
  if (of.is_ranked) return of.dims.rank();
  fail(unsupported("the rank of " + std::string(what) + " must be known to build " +
                   call_.op->name + ": declare its shape"));
  return -1;
}

Value Expansion::op(std::string_view name, std::span<const Value> inputs, Attributes attributes) {
  return ops(name, inputs, std::move(attributes), 1)[0];
}

std::vector<Value> Expansion::ops(std::string_view name, std::span<const Value> inputs,
                                  Attributes attributes, int num_outputs) {
  OpOptions options;
  options.name = call_.name + "/" + std::string(name);
  const bool is_foreign = !call_.op->domain.empty();
  options.opset_version = is_foreign ? kForeignInner : std::max(call_.opset_version, kOldestInner);
  options.num_outputs = num_outputs;
  options.device = call_.device;
  return builder_.ops(name, inputs, std::move(attributes), std::move(options));
}

std::vector<Value> Expansion::eddy_ops(std::string_view name, std::span<const Value> inputs,
                                       Attributes attributes, int num_outputs) {
  OpOptions options{.name = call_.name + "/" + std::string(name), .domain = "eddy"};
  options.opset_version = 1;
  options.num_outputs = num_outputs;
  options.device = call_.device;
  return builder_.ops(name, inputs, std::move(attributes), std::move(options));
}

Value Expansion::cast(Value value, ElementType element) {
  return op("Cast", {value}, {{"to", static_cast<int64_t>(element)}});
}

Value Expansion::number(ElementType element, double value) {
  switch (element) {
    case ElementType::kFloat:
      return builder_.scalar(static_cast<float>(value));
    case ElementType::kDouble:
      return builder_.scalar(value);
    case ElementType::kInt64:
      if (std::fabs(value) < 0x1p63) return builder_.scalar(static_cast<int64_t>(value));
      break;
    default:
      break;
  }
  return cast(builder_.scalar(value), element);
}

Value Expansion::sizes(Value x, int64_t begin, int64_t end) {
  return op("Shape", {x}, {{"start", begin}, {"end", end}});
}

void Expansion::set_output(size_t i, Value value) {
  if (wants(i)) outputs_[i] = value;
}

void Expansion::fail(Status status) { builder_.fail(std::move(status.prepend_path(call_.name))); }

std::vector<Value> Expansion::take_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    EDDY_CHECK(!outputs_[i].is_none()) << call_.op->name << " has no output " << i;
  }
  return std::move(outputs_);
}

}  // namespace eddy
