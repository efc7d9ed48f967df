#include "runtime/batching/batch_values.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/fingerprint.h"
#include "runtime/execute/values/slot.h"

namespace eddy {
namespace {

constexpr size_t kAlignment = 64;

// Rows of a tensor: what lies before an axis, one entry's bytes behind it.
struct Rows {
  Rows(const Tensor& tensor, int axis) {
    for (int d = 0; d < axis; ++d) num_rows *= static_cast<size_t>(tensor.dims()[d]);
    entry_bytes = element_size_bytes(tensor.element_type());
    for (int d = axis + 1; d < tensor.dims().rank(); ++d) {
      entry_bytes *= static_cast<size_t>(tensor.dims()[d]);
    }
    row_bytes = entry_bytes * static_cast<size_t>(tensor.dims()[axis]);
  }
  size_t num_rows = 1;
  size_t entry_bytes = 0;
  size_t row_bytes = 0;
};

struct Made {
  Tensor tensor;
  std::byte* bytes;
};

Made make_tensor(ElementType element, const Dims& dims) {
  TensorView view{nullptr, dims.data(), dims.rank(), element};
  size_t space = view.size_bytes() + kAlignment - 1;
  const auto block = std::make_shared_for_overwrite<std::byte[]>(space);
  view.data = block.get();
  view.data = std::align(kAlignment, view.size_bytes(), view.data, space);
  auto* const bytes = static_cast<std::byte*>(view.data);
  return {Tensor::adopt(view, block), bytes};
}

// `count` bytes, of which there may be none, also at no address.
void copy_bytes(std::byte* to, const void* from, size_t count) {
  if (count > 0) std::memcpy(to, from, count);
}

bool are_equal(const Tensor& a, const Tensor& b) {
  const TensorView x = a.view(), y = b.view();
  if (x.data == y.data) return true;
  if (a.element_type() == ElementType::kString) {
    return std::equal(x.as<std::string>(), x.as<std::string>() + x.count(), y.as<std::string>());
  }
  return x.size_bytes() == 0 || std::memcmp(x.data, y.data, x.size_bytes()) == 0;
}

}  // namespace

// Of the declared type; whether sizes that share a symbol agree is seen by read_sizes().
bool BatchValues::fits(size_t input, const Tensor& tensor) const {
  const ValueType& type = inputs_[input].type;
  if (!type.is_tensor() || !tensor.is_tensor() || tensor.is_on_device()) return false;
  if (tensor.element_type() != type.tensor.element) return false;
  const TensorView view = tensor.view();
  const Result<size_t> bytes = tensor_size_bytes(view.element, view.shape());
  if (!bytes.is_ok() || (view.data == nullptr && *bytes > 0)) return false;
  if (!type.tensor.is_ranked) return true;
  if (tensor.dims().rank() != type.tensor.dims.rank()) return false;
  for (int axis = 0; axis < tensor.dims().rank(); ++axis) {
    const int64_t dim = type.tensor.dims[axis];
    if (dim >= 0 && dim != tensor.dims()[axis]) return false;
  }
  return true;
}

bool BatchValues::read_sizes(SortedInputs& sorted) const {
  std::map<int64_t, int64_t> sizes;  // by symbol
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& type = inputs_[i].type.tensor;
    for (int axis = 0; type.is_ranked && axis < type.dims.rank(); ++axis) {
      if (type.dims[axis] >= kUnknownDim) continue;
      const int64_t size = sorted.tensors[i].dims()[axis];
      if (sizes.emplace(type.dims[axis], size).first->second != size) return false;
    }
    if (axes_.inputs[i] != kNoSamples) {
      sorted.num_samples = sorted.tensors[i].dims()[axes_.inputs[i]];
    }
  }
  return sorted.num_samples > 0;
}

std::string BatchValues::key_of(const SortedInputs& sorted) const {
  Fingerprint key;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& tensor = sorted.tensors[i];
    key.add(static_cast<uint64_t>(tensor.dims().rank()));
    for (int axis = 0; axis < tensor.dims().rank(); ++axis) {
      if (axis != axes_.inputs[i]) key.add(static_cast<uint64_t>(tensor.dims()[axis]));
    }
    if (axes_.inputs[i] != kNoSamples || tensor.element_type() == ElementType::kString) continue;
    key.add_bytes(tensor.view().data, tensor.view().size_bytes());
  }
  return key.text();
}

std::optional<SortedInputs> BatchValues::sort(const NamedTensors& inputs) const {
  if (inputs.size() != inputs_.size()) return std::nullopt;
  SortedInputs sorted;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // Callers mostly keep the graph's order.
    const auto is_it = [&](const auto& given) { return given.first == inputs_[i].name; };
    const auto given = is_it(inputs[i]) ? inputs.begin() + static_cast<std::ptrdiff_t>(i)
                                        : std::ranges::find_if(inputs, is_it);
    if (given == inputs.end() || !fits(i, given->second)) return std::nullopt;
    sorted.tensors.push_back(given->second);
  }
  if (!read_sizes(sorted)) return std::nullopt;
  sorted.key = key_of(sorted);
  return sorted;
}

bool BatchValues::are_alike(const SortedInputs& a, const SortedInputs& b) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Dims &x = a.tensors[i].dims(), &y = b.tensors[i].dims();
    if (x.rank() != y.rank()) return false;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (axis != axes_.inputs[i] && x[axis] != y[axis]) return false;
    }
    if (axes_.inputs[i] == kNoSamples && !are_equal(a.tensors[i], b.tensors[i])) return false;
  }
  return true;
}

NamedTensors BatchValues::join(std::span<const SortedInputs* const> requests) const {
  EDDY_CHECK(!requests.empty()) << "a batch of nothing";
  int64_t all = 0;
  for (const SortedInputs* const request : requests) all += request->num_samples;
  NamedTensors joined;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& first = requests[0]->tensors[i];
    const int axis = axes_.inputs[i];
    if (axis == kNoSamples) {
      joined.emplace_back(inputs_[i].name, Tensor::copy_of(first.view()));
      continue;
    }
    Dims dims = first.dims();
    dims[axis] = all;
    Made whole = make_tensor(first.element_type(), dims);
    const Rows to(whole.tensor, axis);
    size_t offset = 0;
    for (const SortedInputs* const request : requests) {
      const Tensor& from = request->tensors[i];
      const size_t bytes = Rows(from, axis).row_bytes;
      const auto* const data = static_cast<const std::byte*>(from.view().data);
      for (size_t row = 0; row < to.num_rows; ++row) {
        copy_bytes(whole.bytes + row * to.row_bytes + offset, data + row * bytes, bytes);
      }
      offset += bytes;
    }
    EDDY_DCHECK(offset == to.row_bytes) << offset << " bytes joined to rows of " << to.row_bytes;
    joined.emplace_back(inputs_[i].name, std::move(whole.tensor));
  }
  return joined;
}

Result<NamedTensors> BatchValues::part(const NamedTensors& outputs, int64_t all, int64_t begin,
                                       int64_t count) const {
  EDDY_CHECK(outputs.size() == axes_.outputs.size())
      << outputs.size() << " outputs with " << axes_.outputs.size() << " axes";
  EDDY_DCHECK(begin >= 0 && count > 0 && begin + count <= all)
      << "samples " << begin << " to " << begin + count << " of " << all;
  NamedTensors parts;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto& [name, whole] = outputs[o];
    const int axis = axes_.outputs[o];
    if (axis == kNoSamples) {
      parts.emplace_back(name, whole);
      continue;
    }
    Dims dims = whole.dims();
    if (dims[axis] % all != 0) {
      return internal_error("output '" + name + "' of a batch of " + std::to_string(all) +
                            " samples is " + to_string(dims) + ", which is not so many on axis " +
                            std::to_string(axis));
    }
    const int64_t each = dims[axis] / all;
    dims[axis] = each * count;
    Made part = make_tensor(whole.element_type(), dims);
    const Rows from(whole, axis), to(part.tensor, axis);
    const auto* const data = static_cast<const std::byte*>(whole.view().data);
    const size_t offset = static_cast<size_t>(each * begin) * from.entry_bytes;
    for (size_t row = 0; row < to.num_rows; ++row) {
      copy_bytes(part.bytes + row * to.row_bytes, data + row * from.row_bytes + offset,
                 to.row_bytes);
    }
    parts.emplace_back(name, std::move(part.tensor));
  }
  return parts;
}

}  // namespace eddy
