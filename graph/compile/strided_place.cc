#include "graph/compile/strided_place.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Ints = std::vector<int64_t>;

bool is_known(const ValueInfo& info) {
  return info.type.is_static_tensor() && info.type.tensor.dims.count().value_or(0) > 0;
}

// Strides for other sizes of as many elements, where these lie evenly enough.
std::optional<Ints> strides_of(const Ints& dims, const Ints& strides, const Ints& to) {
  Ints from, steps;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    from.push_back(dims[i]);
    steps.push_back(strides[i]);
  }
  Ints made(to.size(), 1);
  size_t old_end = 0, new_end = 0;
  while (new_end < to.size()) {
    const size_t old_begin = old_end, new_begin = new_end;
    int64_t size = to[new_end++], old_size = 1;
    while (size != old_size) {  // axes that are one group on both sides
      if (size < old_size) {
        size *= to[new_end++];
      } else {
        old_size *= from[old_end++];
      }
    }
    for (size_t i = old_begin; i + 1 < old_end; ++i) {
      if (steps[i] != from[i + 1] * steps[i + 1]) return std::nullopt;
    }
    int64_t step = old_end > old_begin ? steps[old_end - 1] : 1;
    for (size_t i = new_end; i-- > new_begin;) {
      made[i] = step;
      step *= to[i];
    }
  }
  return made;
}

class PlaceFinder {
 public:
  PlaceFinder(const Graph& graph, const std::function<bool(NodeId)>& may_pass)
      : graph_(graph), may_pass_(may_pass) {}

  StridedPlace find(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kNodeOutput || !is_known(info)) return dense(value);
    const Node& node = graph_.node(info.producer);
    const bool is_passable = node.kind == NodeKind::kExec && !node.inputs.empty() &&
                             node.op->domain.empty() && is_known(graph_.value(node.inputs[0])) &&
                             may_pass_(info.producer);
    if (!is_passable) return dense(value);
    const ValueId scaled = scaled_by_constant(node);
    StridedPlace place = find(scaled.is_none() ? node.inputs[0] : scaled);
    place.passed.insert(place.passed.begin(), info.producer);
    if (!scaled.is_none()) {
      const double by = *number(node.inputs[scaled == node.inputs[0] ? 1 : 0]);
      place.factor = node.op->name == "Div" ? place.factor / by : place.factor * by;
      return place;
    }
    return move(node, value, place) ? place : dense(value);
  }

 private:
  Ints sizes(ValueId value) const {
    const std::span<const int64_t> dims = graph_.value(value).type.tensor.dims.span();
    return {dims.begin(), dims.end()};
  }

  StridedPlace dense(ValueId value) const {
    StridedPlace place{.root = value, .dims = {}, .strides = {}};
    if (!is_known(graph_.value(value))) return place;
    place.dims = sizes(value);
    place.strides.resize(place.dims.size());
    int64_t step = 1;
    for (size_t i = place.dims.size(); i-- > 0; step *= place.dims[i]) place.strides[i] = step;
    return place;
  }

  // From where input 0 of the node lies to where the result does. False: nowhere.
  bool move(const Node& node, ValueId result, StridedPlace& place) const {
    const std::string& op = node.op->name;
    if (node.op->is_view) return reshape(sizes(result), place);
    if (op == "Transpose") return transpose(node, place);
    if (op == "Split") return split(node, result, place);
    if (op == "Gather") return gather(node, place);
    return op == "Slice" && slice(node, result, place);
  }

  static bool reshape(const Ints& to, StridedPlace& place) {
    std::optional<Ints> strides = strides_of(place.dims, place.strides, to);
    if (!strides) return false;
    place.dims = to;
    place.strides = std::move(*strides);
    return true;
  }

  static bool transpose(const Node& node, StridedPlace& place) {
    const std::span<const int64_t> perm = node.attributes.get_ints("perm");
    Ints order(perm.begin(), perm.end());
    if (order.empty()) {
      order.resize(place.dims.size());
      std::iota(order.rbegin(), order.rend(), 0);
    }
    const Ints dims = place.dims, strides = place.strides;
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t from = order[i] < 0 ? order[i] + static_cast<int64_t>(dims.size()) : order[i];
      place.dims[i] = dims[static_cast<size_t>(from)];
      place.strides[i] = strides[static_cast<size_t>(from)];
    }
    return true;
  }

  static size_t axis_of(const Node& node, const StridedPlace& place) {
    const int64_t axis = node.attributes.get_int("axis", 0);
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(place.dims.size()) : axis);
  }

  bool split(const Node& node, ValueId result, StridedPlace& place) const {
    const size_t axis = axis_of(node, place);
    for (const ValueId part : node.outputs) {
      if (part == result) break;
      if (part.is_none() || !graph_.value(part).type.is_static_tensor()) return false;
      place.first += sizes(part)[axis] * place.strides[axis];
    }
    place.dims = sizes(result);
    return true;
  }

  bool gather(const Node& node, StridedPlace& place) const {
    const std::optional<Ints> index = integers(node.inputs[1]);
    if (!index || index->size() != 1) return false;
    const size_t axis = axis_of(node, place);
    const int64_t at = index->front() < 0 ? index->front() + place.dims[axis] : index->front();
    if (at < 0 || at >= place.dims[axis]) return false;
    place.first += at * place.strides[axis];
    const auto rank = static_cast<size_t>(graph_.value(node.inputs[1]).type.tensor.dims.rank());
    const auto replace = [&](Ints& ints, int64_t by) {
      const auto gone = ints.erase(ints.begin() + static_cast<ptrdiff_t>(axis));
      ints.insert(gone, rank, by);
    };
    const int64_t stride = place.strides[axis];
    replace(place.dims, 1);
    replace(place.strides, stride);
    return true;
  }

  bool slice(const Node& node, ValueId result, StridedPlace& place) const {
    if (node.opset_version < 10 || node.inputs.size() < 3) return false;
    const std::optional<Ints> starts = integers(node.inputs[1]);
    if (!starts) return false;
    Ints axes(starts->size()), steps(starts->size(), 1);
    std::iota(axes.begin(), axes.end(), 0);
    for (const auto& [input, list] : {std::pair{size_t{3}, &axes}, {size_t{4}, &steps}}) {
      if (node.inputs.size() <= input || node.inputs[input].is_none()) continue;
      const std::optional<Ints> given = integers(node.inputs[input]);
      if (!given || given->size() != starts->size()) return false;
      *list = *given;
    }
    for (size_t i = 0; i < starts->size(); ++i) {
      const auto rank = static_cast<int64_t>(place.dims.size());
      const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
      if (axis >= place.dims.size() || steps[i] < 1) return false;
      const int64_t size = place.dims[axis];
      const int64_t start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
      place.first += std::clamp<int64_t>(start, 0, size - 1) * place.strides[axis];
      // Steps beyond the axis leave one element, whose stride nobody goes.
      place.strides[axis] *= std::min(steps[i], size);
    }
    place.dims = sizes(result);
    return true;
  }

  // Of a Mul or Div of floats by one constant: the other operand, as large as the result.
  ValueId scaled_by_constant(const Node& node) const {
    const bool is_mul = node.op->name == "Mul", is_div = node.op->name == "Div";
    if ((!is_mul && !is_div) || node.inputs.size() != 2) return ValueId();
    for (const size_t i : {size_t{1}, size_t{0}}) {
      const ValueId other = node.inputs[1 - i];
      const std::optional<double> by = number(node.inputs[i]);
      const bool is_scaled = by && *by != 0 && (is_mul || i == 1);
      if (is_scaled && graph_.value(other).type == graph_.value(node.outputs[0]).type) return other;
    }
    return ValueId();
  }

  // One float that is a constant.
  std::optional<double> number(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kConstant) return std::nullopt;
    const TensorView view = graph_.constant(info.constant).view();
    if (view.element != ElementType::kFloat || view.count() != 1) return std::nullopt;
    return static_cast<double>(*view.as<float>());
  }

  // A list, or one integer, that is constant.
  std::optional<Ints> integers(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kConstant) return std::nullopt;
    const TensorView view = graph_.constant(info.constant).view();
    const auto count = static_cast<size_t>(view.count());
    if (view.element == ElementType::kInt64) {
      return Ints(view.as<int64_t>(), view.as<int64_t>() + count);
    }
    if (view.element != ElementType::kInt32) return std::nullopt;
    return Ints(view.as<int32_t>(), view.as<int32_t>() + count);
  }

  const Graph& graph_;
  const std::function<bool(NodeId)>& may_pass_;
};

}  // namespace

bool StridedPlace::is_dense() const {
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) {
    if (dims[i] != 1 && strides[i] != step) return false;
  }
  return first == 0;
}

StridedPlace find_place(const Graph& graph, ValueId value,
                        const std::function<bool(NodeId)>& may_pass) {
  return PlaceFinder(graph, may_pass).find(value);
}

}  // namespace eddy
