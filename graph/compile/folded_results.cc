#include "graph/compile/folded_results.h"

#include <algorithm>
#include <type_traits>

#include "graph/base/check.h"

namespace eddy {
namespace {

bool same_values(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        const T& other = std::get<T>(b);
        if constexpr (std::is_same_v<T, Constant>) {
          return value.data == other.data && value.type() == other.type();
        } else {
          return value == other;
        }
      },
      a);
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::ranges::equal(a.entries(), b.entries(), [](const auto& x, const auto& y) {
    return x.name == y.name && same_values(x.value, y.value);
  });
}

// Bytes of strings do not determine their text.
bool is_text(const TensorView& view) { return view.element == ElementType::kString; }

bool is_large(const TensorView& view) {
  return view.data != nullptr && view.size_bytes() >= FoldedResults::kMinBytes;
}

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

bool FoldedResults::Input::operator==(const Input& other) const {
  return constant.data == other.constant.data && constant.type() == other.constant.type() &&
         small == other.small;
}

FoldedResults::Input FoldedResults::input(const TensorView& view) {
  Input input{{view.element, Dims(view.shape()), is_large(view) ? view.data : nullptr}, {}};
  if (is_large(view) || view.data == nullptr) return input;
  const auto* bytes = view.as<std::byte>();
  input.small.assign(bytes, bytes + view.size_bytes());
  return input;
}

FoldedResults::Key FoldedResults::key(const Node& node, std::span<const TensorView> inputs) {
  const auto large = std::ranges::find_if(inputs, is_large);
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
    if (known.node->opset_version == node.opset_version &&
        known.node->outputs.size() == node.outputs.size() &&
        same_attributes(known.node->attributes, node.attributes) &&
        std::ranges::equal(inputs, known.inputs, [](const TensorView& view, const Input& other) {
          return input(view) == other;
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
  for (const TensorView& view : inputs) entry.inputs.push_back(input(view));
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
