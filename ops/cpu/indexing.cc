// GatherElements, GatherND, ScatterElements, ScatterND and TopK: rows at a time.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/strided_copy.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/combine.h"
#include "ops/reference/parts/storage.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

struct IndexState : KernelState {
  int64_t axis = 0;
  int64_t batch = 0;
  Reduction reduction = Reduction::kNone;
  bool is_zero = false;  // the data, a constant: every byte of them
  bool largest = true;
};

const IndexState& state_of(const KernelArgs& args) {
  return static_cast<const IndexState&>(*args.state);
}

int front_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// Whether it is a constant of numbers whose bytes are all 0.
bool is_all_zero(const TensorView& constant) {
  if (constant.is_omitted() || constant.element == ElementType::kString) return false;
  const auto* const bytes = static_cast<const std::byte*>(constant.data);
  return std::all_of(bytes, bytes + constant.size_bytes(),
                     [](std::byte b) { return b == std::byte{}; });
}

// ---- by element: GatherElements and ScatterElements ----

// Calls visit(data offset, index offset) for each element of `indices`; a row of the last axis at a
// time, in which only the indexed axis needs a look-up. False after args.fail().
template <typename Index, typename Visit>
bool for_each_indexed(const KernelArgs& args, int axis, const Visit& visit) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  const int last = data.rank - 1;
  EDDY_DCHECK(indices.rank == data.rank && axis >= 0 && axis < data.rank)
      << "axis " << axis << " of ranks " << data.rank << " and " << indices.rank;
  int64_t strides[kMaxRank];
  int64_t stride = 1;
  for (int d = last; d >= 0; stride *= data.dims[d--]) strides[d] = stride;
  const int64_t size = data.dims[axis], axis_stride = strides[axis];
  const int64_t step = axis == last ? 0 : 1;  // of the data along a row, beside the look-up
  const int64_t row = indices.dims[last], count = indices.count();
  const Index* index = indices.as<Index>();
  int64_t at[kMaxRank] = {};
  for (int64_t start = 0; start < count; start += row) {
    int64_t base = 0;
    for (int d = 0; d < last; ++d) base += d == axis ? 0 : at[d] * strides[d];
    for (int64_t j = 0; j < row; ++j) {
      int64_t place = index[start + j];
      if (place < 0) place += size;
      if (place < 0 || place >= size) [[unlikely]] {
        return args.fail(index_out_of_range(index[start + j], axis, size));
      }
      visit(base + j * step + place * axis_stride, start + j);
    }
    for (int d = last - 1; d >= 0 && ++at[d] == indices.dims[d]; --d) at[d] = 0;
  }
  return true;
}

template <typename Visit>
bool for_each_indexed(const KernelArgs& args, const Visit& visit) {
  const int axis = front_axis(state_of(args).axis, args.inputs[0].rank);
  return args.inputs[1].element == ElementType::kInt32
             ? for_each_indexed<int32_t>(args, axis, visit)
             : for_each_indexed<int64_t>(args, axis, visit);
}

template <typename T>
struct GatherElements {
  static bool run(const KernelArgs& args) {
    const T* in = args.inputs[0].as<T>();
    T* out = args.outputs[0].mutable_as<T>();
    return for_each_indexed(args, [=](int64_t from, int64_t to) { out[to] = in[from]; });
  }
};

template <typename T>
T* start_from_data(const KernelArgs& args) {
  const T* data = args.inputs[0].as<T>();
  T* out = args.outputs[0].mutable_as<T>();
  if (data != out) copy_run(data, out, args.inputs[0].count());
  return out;
}

// The reduction of gradients, on lines: data are copied as far as a block of updates reaches, so
// that both are in the nearest cache when indices rise. False after args.fail().
template <typename T, typename Index>
bool add_on_line(const KernelArgs& args) {
  constexpr int64_t kBlock = 256;
  const int64_t size = args.inputs[0].count(), count = args.inputs[1].count();
  const auto* const data = args.inputs[0].as<T>();
  const auto* const index = args.inputs[1].as<Index>();
  const auto* const updates = args.inputs[2].as<T>();
  auto* const out = args.outputs[0].mutable_as<T>();
  const bool is_zero = state_of(args).is_zero;
  int64_t copied = data == out ? size : 0;
  const auto copy_to = [&](int64_t end) {
    if (end <= copied) return;
    if (is_zero) {
      std::fill_n(out + copied, end - copied, T{});
    } else {
      copy_run(data + copied, out + copied, end - copied);
    }
    copied = end;
  };
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(first + kBlock, count);
    int64_t least = index[first], most = least;
    for (int64_t i = first; i < end; ++i) {
      __builtin_prefetch(index + i + kBlock);
      __builtin_prefetch(updates + i + kBlock);
      least = std::min<int64_t>(least, index[i]);
      most = std::max<int64_t>(most, index[i]);
    }
    if (least < -size || most >= size) [[unlikely]] {
      const auto is_out = [size](int64_t i) { return i < -size || i >= size; };
      return args.fail(
          index_out_of_range(*std::find_if(index + first, index + end, is_out), 0, size));
    }
    copy_to(least < 0 ? size : most + 1);
    for (int64_t i = first; i < end; ++i) {
      const int64_t place = index[i] < 0 ? index[i] + size : index[i];
      out[place] = combine<T>(Reduction::kAdd, out[place], updates[i]);
    }
  }
  copy_to(size);
  return true;
}

template <typename T>
struct ScatterElements {
  static bool run(const KernelArgs& args) {
    const Reduction reduction = state_of(args).reduction;
    if (reduction == Reduction::kAdd && args.inputs[0].rank == 1) {
      return args.inputs[1].element == ElementType::kInt32 ? add_on_line<T, int32_t>(args)
                                                           : add_on_line<T, int64_t>(args);
    }
    const T* updates = args.inputs[2].as<T>();
    T* out = start_from_data<T>(args);
    if (reduction == Reduction::kNone) {
      return for_each_indexed(args, [=](int64_t to, int64_t from) { out[to] = updates[from]; });
    }
    if (reduction == Reduction::kAdd) {  // known, it is no choice for each element
      return for_each_indexed(args, [=](int64_t to, int64_t from) {
        out[to] = combine<T>(Reduction::kAdd, out[to], updates[from]);
      });
    }
    return for_each_indexed(args, [=](int64_t to, int64_t from) {
      out[to] = combine<T>(reduction, out[to], updates[from]);
    });
  }
};

// ---- by slice: GatherND and ScatterND ----

// Calls visit(data offset, tuple number) for each index tuple. False after args.fail().
template <typename Visit>
bool for_each_tuple(const KernelArgs& args, int batch_axes, const Visit& visit) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  const int length = static_cast<int>(indices.dims[indices.rank - 1]);
  int64_t strides[kMaxRank];
  int64_t stride = 1;
  for (int d = data.rank - 1; d >= 0; stride *= data.dims[d--]) strides[d] = stride;
  EDDY_DCHECK(length > 0 && batch_axes + length <= data.rank)
      << "tuples of " << length << " behind " << batch_axes << " of " << data.rank << " axes";
  int64_t batches = 1, tuples = 1;
  for (int d = 0; d < batch_axes; ++d) batches *= indices.dims[d];
  for (int d = batch_axes; d < indices.rank - 1; ++d) tuples *= indices.dims[d];
  const int64_t batch_stride = batch_axes == 0 ? 0 : strides[batch_axes - 1];
  const int64_t* index = indices.as<int64_t>();
  for (int64_t t = 0; t < batches * tuples; ++t, index += length) {
    int64_t offset = t / tuples * batch_stride;
    for (int j = 0; j < length; ++j) {
      const int axis = batch_axes + j;
      const int64_t size = data.dims[axis];
      const int64_t place = index[j] < 0 ? index[j] + size : index[j];
      if (place < 0 || place >= size) [[unlikely]] {
        return args.fail(index_out_of_range(index[j], axis, size));
      }
      offset += place * strides[axis];
    }
    visit(offset, t);
  }
  return true;
}

int64_t slice_size(const KernelArgs& args, int batch_axes) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  int64_t size = 1;
  for (int64_t d = batch_axes + indices.dims[indices.rank - 1]; d < data.rank; ++d) {
    size *= data.dims[d];
  }
  return size;
}

template <typename T>
struct GatherNd {
  static bool run(const KernelArgs& args) {
    const int batch = static_cast<int>(state_of(args).batch);
    const int64_t size = slice_size(args, batch);
    const T* in = args.inputs[0].as<T>();
    T* out = args.outputs[0].mutable_as<T>();
    return for_each_tuple(args, batch, [=](int64_t from, int64_t tuple) {
      copy_run(in + from, out + tuple * size, size);
    });
  }
};

// to[i] = to[i] combined with from[i]; gradients of rows are added by vectors.
template <typename T>
void combine_run(Reduction reduction, const T* from, T* to, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    static const cpu::BinaryLoop add = cpu::loop_set()
                                           .binary[static_cast<size_t>(cpu::BinaryOp::kAdd)]
                                                  [static_cast<size_t>(cpu::LoopType::kFloat)]
                                           .both;
    if (reduction == Reduction::kAdd) return add(to, from, to, count);
  }
  for (int64_t i = 0; i < count; ++i) to[i] = combine<T>(reduction, to[i], from[i]);
}

template <typename T>
struct ScatterNd {
  static bool run(const KernelArgs& args) {
    const Reduction reduction = state_of(args).reduction;
    const int64_t size = slice_size(args, 0);
    const T* updates = args.inputs[2].as<T>();
    T* out = start_from_data<T>(args);
    return for_each_tuple(args, 0, [=](int64_t to, int64_t tuple) {
      const T* from = updates + tuple * size;
      if (reduction == Reduction::kNone) {
        copy_run(from, out + to, size);
      } else {
        combine_run(reduction, from, out + to, size);
      }
    });
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_moved(const KernelInit& init) {
  auto state = std::make_unique<IndexState>();
  state->axis = init.attributes.get_int("axis", 0);
  state->batch = init.attributes.get_int("batch_dims", 0);
  state->reduction = reduction_of(init.attributes.get_string("reduction", "none"));
  state->is_zero = is_all_zero(init.constants[0]);
  if (state->reduction == Reduction::kNone) {
    return bind_storage<Kernel>(init, init.inputs[0].tensor.element, std::move(state));
  }
  return bind_typed<Kernel, float, double, int32_t, int64_t>(init, 0, std::move(state));
}

// ---- TopK ----

// NaN is greater than every number, as in the reference.
template <typename T>
bool is_greater(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a > b || (std::isnan(a) && !std::isnan(b));
  return a > b;
}

// Which elements of a line come first, and where they are: ties go to the first.
template <typename T, bool largest>
struct LineOrder {
  const T* from;
  int64_t step;

  bool operator()(int64_t a, int64_t b) const {
    const T x = largest ? from[a * step] : from[b * step];
    const T y = largest ? from[b * step] : from[a * step];
    if (is_greater(x, y)) return true;
    return !is_greater(y, x) && a < b;
  }

  // False when none of `count` elements from `begin` comes before the earlier element `last`: the
  // best of a contiguous block of floats, NaN if there is one, is found whole vectors at a time.
  bool may_hold(int64_t begin, int64_t count, int64_t last) const {
    if constexpr (!std::is_same_v<T, float>) return true;
    if (step != 1) return true;
    constexpr auto kFold = largest ? cpu::ReduceOp::kMax : cpu::ReduceOp::kMin;
    const T best = cpu::loop_set().reduce[static_cast<size_t>(kFold)].fold(
        reinterpret_cast<const float*>(from) + begin, count);
    return largest ? !(best <= from[last]) : !(best >= from[last]);
  }
};

// The first k, kept sorted while the line is scanned in blocks, most of which hold none.
template <typename T, bool largest>
void select_few(const LineOrder<T, largest>& comes_first, int64_t size, int64_t k, int64_t* order) {
  constexpr int64_t kBlock = 128;
  int64_t found = 0;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, size);
    if (found == k && !comes_first.may_hold(begin, end - begin, order[k - 1])) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (found == k && !comes_first(i, order[k - 1])) continue;
      int64_t at = found < k ? found++ : k - 1;
      for (; at > 0 && comes_first(i, order[at - 1]); --at) order[at] = order[at - 1];
      order[at] = i;
    }
  }
  EDDY_DCHECK(found == k) << found << " of " << k << " are found";
}

template <typename T, bool largest>
void select_line(const T* from, int64_t step, int64_t size, int64_t k, int64_t* order) {
  constexpr int64_t kFew = 16;
  const LineOrder<T, largest> comes_first{from, step};
  if (k <= kFew) return select_few(comes_first, size, k, order);
  std::iota(order, order + size, int64_t{0});
  std::partial_sort(order, order + k, order + size, comes_first);
}

template <typename T>
struct TopK {
  static bool run(const KernelArgs& args) {
    const IndexState& state = state_of(args);
    const TensorView& in = args.inputs[0];
    const int axis = front_axis(state.axis, in.rank);
    const auto [outer, size, inner] = split_at_axis(in.shape(), axis);
    const int64_t k = args.outputs[0].dims[axis];
    EDDY_DCHECK(k >= 0 && k <= size) << k << " of " << size << " elements";
    if (k == 0) return true;
    auto* order = static_cast<int64_t*>(
        args.scratch->reserve(static_cast<size_t>(size) * sizeof(int64_t) + 1));
    if (order == nullptr) return args.fail(resource_exhausted("out of scratch memory"));
    const bool has_indices = args.num_outputs > 1 && !args.outputs[1].is_omitted();
    T* values = args.outputs[0].mutable_as<T>();
    int64_t* indices = has_indices ? args.outputs[1].mutable_as<int64_t>() : nullptr;
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t o = line / inner, i = line % inner;
      const T* from = in.as<T>() + o * size * inner + i;
      (state.largest ? select_line<T, true> : select_line<T, false>)(from, inner, size, k, order);
      for (int64_t j = 0; j < k; ++j) {
        const int64_t to = (o * k + j) * inner + i;
        values[to] = from[order[j] * inner];
        if (has_indices) indices[to] = order[j];
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_top_k(const KernelInit& init) {
  auto state = std::make_unique<IndexState>();
  state->axis = init.attributes.get_int("axis", -1);
  state->largest = init.attributes.get_int("largest", 1) != 0;
  return bind_typed<TopK, float, double, int32_t, int64_t>(init, 0, std::move(state));
}

}  // namespace

void add_indexing_cpu(KernelRegistry& registry) {
  registry.add({.op = "GatherElements", .bind = bind_moved<GatherElements>});
  registry.add({.op = "GatherND", .bind = bind_moved<GatherNd>});
  registry.add({.op = "Scatter", .bind = bind_moved<ScatterElements>});
  registry.add({.op = "ScatterElements", .bind = bind_moved<ScatterElements>});
  registry.add({.op = "ScatterND", .bind = bind_moved<ScatterNd>});
  registry.add({.op = "TopK", .bind = bind_top_k});
  add_non_zero_cpu(registry);
}

}  // namespace eddy
