#include "graph/ir/op.h"

#include <algorithm>
#include <tuple>

#include "graph/base/check.h"
#include "graph/base/edit_distance.h"

namespace eddy {
namespace {

auto key(const OpDef& def) { return std::tie(def.domain, def.name, def.since_version); }

std::string_view kind_name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
      return "int";
    case AttributeKind::kFloat:
      return "float";
    case AttributeKind::kString:
      return "string";
    case AttributeKind::kInts:
      return "ints";
    case AttributeKind::kFloats:
      return "floats";
    case AttributeKind::kStrings:
      return "strings";
    case AttributeKind::kTensor:
      return "tensor";
    case AttributeKind::kType:
      return "type";
  }
  return "?";
}

std::string shown_domain(std::string_view domain) {
  return std::string(domain.empty() ? "ai.onnx" : domain);
}
std::string opset_text(int version) { return "opset " + std::to_string(version); }

static_assert(std::variant_size_v<AttributeValue> == static_cast<size_t>(AttributeKind::kType) + 1);
// The alternatives of AttributeValue stand in the order of AttributeKind.
bool has_kind(const AttributeValue& value, AttributeKind kind) {
  return value.index() == static_cast<size_t>(kind);
}

Status check_opset(const OpDef& def, const FormalAttribute& formal, int opset) {
  if (opset >= formal.since_version && opset <= formal.last_version) return Status::ok();
  const bool is_new = opset < formal.since_version;
  return invalid_argument(
      "attribute '" + formal.name + "' of " + def.name +
      (is_new ? " came with " + opset_text(formal.since_version)
              : " ended with " + opset_text(formal.last_version)) +
      ", but the node is of " + opset_text(opset) +
      (is_new ? ": raise the opset or leave the attribute out" : ": leave the attribute out"));
}

Status check_attributes(const OpDef& def, const Attributes& attributes, int opset,
                        std::span<const std::string_view> besides) {
  for (const auto& entry : attributes.entries()) {
    if (std::ranges::find(besides, entry.name) != besides.end()) continue;
    const auto formal = std::find_if(def.attributes.begin(), def.attributes.end(),
                                     [&](const auto& a) { return a.name == entry.name; });
    if (formal == def.attributes.end()) {
      if (def.takes_any_attribute) continue;
      return invalid_argument(def.name + " has no attribute '" + entry.name + "' in " +
                              opset_text(opset));
    }
    EDDY_RETURN_IF_ERROR(check_opset(def, *formal, opset));
    if (!has_kind(entry.value, formal->kind)) {
      return invalid_argument("attribute '" + entry.name + "' of " + def.name +
                              " must be of kind " + std::string(kind_name(formal->kind)));
    }
    const int64_t* const number = std::get_if<int64_t>(&entry.value);
    if (formal->is_flag && *number != 0 && *number != 1) {
      return invalid_argument("attribute '" + entry.name + "' of " + def.name +
                              " must be 0 or 1, not " + std::to_string(*number));
    }
  }
  for (const auto& formal : def.attributes) {
    if (formal.is_required && !attributes.has(formal.name)) {
      return invalid_argument(def.name + " needs attribute '" + formal.name + "'");
    }
  }
  return Status::ok();
}

// Other kernels are given views of tensors, and have no way to see a sequence or an optional. Of a
// function the operators that it stands for are asked.
bool takes_any_value(const OpDef& def) {
  return def.is_value_op || def.is_view || def.expand != nullptr;
}

Status check_input(const OpDef& def, const FormalInput& formal, const InferContext& context,
                   size_t i) {
  if (!context.has_input(i)) {
    if (has_flag(formal.flags, InputFlag::kOptional)) return Status::ok();
    return invalid_argument(def.name + " needs input " + std::to_string(i) + " ('" + formal.name +
                            "'), which is missing");
  }
  const bool is_host = has_flag(formal.flags, InputFlag::kHostValue);
  if (!context.input(i).is_tensor() && (is_host || !takes_any_value(def))) {
    return invalid_argument("input " + std::to_string(i) + " ('" + formal.name + "') of " +
                            def.name + " must be a tensor, not " + to_string(context.input(i)));
  }
  const ElementType element = context.input(i).tensor.element;
  const bool is_open = element == ElementType::kUndefined;
  if (is_open || formal.takes(element, context.opset_version())) return Status::ok();
  if (formal.later_types.contains(element)) {
    return invalid_argument("input " + std::to_string(i) + " ('" + formal.name + "') of " +
                            def.name + " can be " + std::string(element_type_name(element)) +
                            " from " + opset_text(formal.later_since) + " on, but the node is of " +
                            opset_text(context.opset_version()));
  }
  return invalid_argument("input " + std::to_string(i) + " ('" + formal.name + "') of " + def.name +
                          " can't be " + std::string(element_type_name(element)));
}

Status check_inputs(const OpDef& def, const InferContext& context) {
  const bool is_variadic =
      !def.inputs.empty() && has_flag(def.inputs.back().flags, InputFlag::kVariadic);
  if (!is_variadic && context.num_inputs() > def.inputs.size()) {
    return invalid_argument(def.name + " takes at most " + std::to_string(def.inputs.size()) +
                            " inputs, but " + std::to_string(context.num_inputs()) + " were given");
  }
  const size_t count = std::max(context.num_inputs(), def.inputs.size());
  for (size_t i = 0; i < count; ++i) {
    const FormalInput& formal = def.inputs[std::min(i, def.inputs.size() - 1)];
    EDDY_RETURN_IF_ERROR(check_input(def, formal, context, i));
  }
  return Status::ok();
}

}  // namespace

Status OpTable::add(OpDef def) {
  EDDY_CHECK(def.min_outputs <= def.max_outputs) << def.name << " can have no number of outputs";
  for (size_t i = 0; i + 1 < def.inputs.size(); ++i) {
    EDDY_CHECK(!has_flag(def.inputs[i].flags, InputFlag::kVariadic))
        << "input " << i << " of " << def.name << " is variadic, but not the last";
  }
  const auto it = std::lower_bound(defs_.begin(), defs_.end(), def,
                                   [](const auto& a, const OpDef& b) { return key(*a) < key(b); });
  if (it != defs_.end() && key(**it) == key(def)) {
    return invalid_argument("operator '" + def.name + "' of domain '" + def.domain +
                            "' since version " + std::to_string(def.since_version) +
                            " is defined twice");
  }
  defs_.insert(it, std::make_unique<OpDef>(std::move(def)));
  return Status::ok();
}

const OpDef* OpTable::find_or_null(std::string_view domain, std::string_view name,
                                   int opset_version) const {
  const auto wanted = std::make_tuple(domain, name, opset_version);
  const auto it = std::upper_bound(
      defs_.begin(), defs_.end(), wanted, [](const auto& w, const std::unique_ptr<OpDef>& d) {
        return w < std::make_tuple(std::string_view(d->domain), std::string_view(d->name),
                                   d->since_version);
      });
  if (it == defs_.begin()) return nullptr;
  const OpDef& def = **std::prev(it);
  EDDY_DCHECK(def.domain != domain || def.name != name || def.since_version <= opset_version)
      << def.name << " since " << def.since_version << " found for " << opset_version;
  return def.domain == domain && def.name == name ? &def : nullptr;
}

bool OpTable::knows(std::string_view domain, std::string_view name) const {
  return find_or_null(domain, name, INT32_MAX) != nullptr;
}

std::string OpTable::advice(std::string_view domain, std::string_view name) const {
  if (knows(domain, name)) return ", known in newer opsets only";
  constexpr size_t kLongest = 64;  // operators have short names, files may have any
  if (name.size() > kLongest) return "";
  const auto lower = [](std::string_view text) {
    std::string made(text);
    for (char& c : made) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return made;
  };
  const std::string wanted = lower(name);
  const OpDef* nearest = nullptr;
  size_t least = std::max<size_t>(1, name.size() / 4) + 1;
  for (const auto& def : defs_) {
    if (def->name == name) return ", known in domain '" + shown_domain(def->domain) + "'";
    if (def->domain != domain) continue;
    const size_t distance = edit_distance(wanted, lower(def->name));
    if (distance >= least) continue;
    least = distance;
    nearest = def.get();
  }
  return nearest == nullptr ? "" : "; the nearest is '" + nearest->name + "'";
}

Status infer_types(const OpDef& def, InferContext& context,
                   std::span<const std::string_view> besides) {
  EDDY_RETURN_IF_ERROR(check_inputs(def, context));
  EDDY_RETURN_IF_ERROR(
      check_attributes(def, context.attributes(), context.opset_version(), besides));
  const int outputs = static_cast<int>(context.num_outputs());
  if (outputs < def.min_outputs || outputs > def.max_outputs) {
    return invalid_argument(
        def.name + " has " +
        (def.min_outputs == def.max_outputs ? std::string()
                                            : std::to_string(def.min_outputs) + " to ") +
        std::to_string(def.max_outputs) + (def.max_outputs == 1 ? " output" : " outputs") + " in " +
        opset_text(context.opset_version()) + ", not " + std::to_string(outputs));
  }
  EDDY_DCHECK(def.infer != nullptr) << def.name << " has no rule for its types";
  return def.infer(context);
}

}  // namespace eddy
