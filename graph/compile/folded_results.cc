#include "graph/compile/folded_results.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

// Bytes of strings do not determine their text.
bool is_text(const TensorView& view) { return view.element == ElementType::kString; }

class FoldedBytes : public Blob {
 public:
  explicit FoldedBytes(OwnedTensor tensor) : tensor_(std::move(tensor)) {}
  std::span<const std::byte> bytes() const override {
    return {tensor_.bytes.get(), tensor_.view().size_bytes()};
  }

 private:
  const OwnedTensor tensor_;
};

}  // namespace

FoldedResults::Key FoldedResults::key(const Node& node, std::span<const TensorView> inputs) {
  const auto large = std::ranges::find_if(inputs, ComparedInput::is_large);
  return {node.op, large == inputs.end() ? nullptr : large->data};
}

const std::vector<OwnedTensor>* FoldedResults::find_or_null(
    const Node& node, std::span<const TensorView> inputs) const {
  if (std::ranges::any_of(inputs, is_text)) return nullptr;
  const auto [first, last] = entries_.equal_range(key(node, inputs));
  for (auto entry = first; entry != last; ++entry) {
    const Entry& known = entry->second;
    EDDY_DCHECK(known.node->op == node.op && known.results.size() == known.node->outputs.size())
        << "results of " << known.node->name << " under the key of " << node.name;
    if (is_same_operation(*known.node, node) &&
        std::ranges::equal(inputs, known.inputs,
                           [](const TensorView& view, const ComparedInput& other) {
                             return ComparedInput(view) == other;
                           })) {
      return &known.results;
    }
  }
  return nullptr;
}

const std::vector<OwnedTensor>& FoldedResults::add(const Node& node,
                                                   std::span<const TensorView> inputs,
                                                   std::vector<OwnedTensor> results) {
  EDDY_CHECK(results.size() == node.outputs.size())
      << results.size() << " results for the " << node.outputs.size() << " outputs of "
      << node.name;
  Entry entry{&node, {}, std::move(results)};
  for (const TensorView& view : inputs) entry.inputs.emplace_back(view);
  return entries_.emplace(key(node, inputs), std::move(entry))->second.results;
}

void FoldedResults::give_to(GraphBuilder& builder) {
  for (auto& [key, entry] : entries_) {
    for (OwnedTensor& tensor : entry.results) {
      builder.adopt(std::make_unique<FoldedBytes>(std::move(tensor)));
    }
  }
  entries_.clear();
}

}  // namespace eddy
