#include "graph/compile/node_equality.h"

#include <algorithm>
#include <type_traits>

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

}  // namespace

bool is_same_operation(const Node& a, const Node& b) {
  return a.op == b.op && a.opset_version == b.opset_version &&
         a.outputs.size() == b.outputs.size() &&
         std::ranges::equal(a.attributes.entries(), b.attributes.entries(),
                            [](const auto& x, const auto& y) {
                              return x.name == y.name && same_values(x.value, y.value);
                            });
}

ComparedInput::ComparedInput(const TensorView& view)
    : constant_{view.element, Dims(view.shape()), is_large(view) ? view.data : nullptr} {
  if (is_large(view) || view.data == nullptr) return;
  const auto* bytes = view.as<std::byte>();
  small_.assign(bytes, bytes + view.size_bytes());
}

bool ComparedInput::operator==(const ComparedInput& other) const {
  return constant_.data == other.constant_.data && constant_.type() == other.constant_.type() &&
         small_ == other.small_;
}

}  // namespace eddy
