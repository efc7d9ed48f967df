#include "graph/compile/equal_nodes.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

bool draws_random_numbers(const Node& node) {
  const std::string& op = node.op->name;
  return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial" || op == "Dropout";
}

std::vector<EqualNodes::Input> EqualNodes::inputs_of(const GraphBuilder& builder, const Node& node,
                                                     std::span<const Value> inputs) {
  const bool is_own = node.op->domain.empty() || node.op->domain == "eddy";
  if (!is_own || node.op->may_wait || draws_random_numbers(node)) return {};  // or has effects
  std::vector<Input> result;
  for (const Value input : inputs) {
    const Constant* constant = input.is_none() ? nullptr : builder.constant_or_null(input);
    if (constant == nullptr) {
      result.push_back({input.id, std::nullopt});
      continue;
    }
    if (constant->element == ElementType::kString) return {};
    result.push_back({ValueId(), ComparedInput(constant->view())});
  }
  return result;
}

EqualNodes::Key EqualNodes::key(const Node& node, std::span<const Input> inputs) {
  const auto first =
      std::ranges::find_if(inputs, [](const Input& input) { return !input.value.is_none(); });
  return {node.op, first == inputs.end() ? UINT32_MAX : first->value.index()};
}

const std::vector<Value>* EqualNodes::find_or_null(const GraphBuilder& builder, const Node& node,
                                                   std::span<const Value> inputs) const {
  const std::vector<Input> wanted = inputs_of(builder, node, inputs);
  if (wanted.empty()) return nullptr;
  const auto [first, last] = entries_.equal_range(key(node, wanted));
  for (auto entry = first; entry != last; ++entry) {
    const Entry& known = entry->second;
    if (known.node->device == node.device && is_same_operation(*known.node, node) &&
        known.inputs == wanted) {
      return &known.results;
    }
  }
  return nullptr;
}

void EqualNodes::add(const GraphBuilder& builder, const Node& node, std::span<const Value> inputs,
                     std::vector<Value> results) {
  std::vector<Input> compared = inputs_of(builder, node, inputs);
  if (compared.empty() || results.size() < node.outputs.size()) return;
  const Key place = key(node, compared);
  order_.push_back(entries_.emplace(place, Entry{&node, std::move(compared), std::move(results)}));
}

void EqualNodes::close() {
  EDDY_CHECK(!marks_.empty()) << "a region ends that never began";
  while (order_.size() > marks_.back()) {
    entries_.erase(order_.back());
    order_.pop_back();
  }
  marks_.pop_back();
}

}  // namespace eddy
