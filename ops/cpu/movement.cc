#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/movement_parts.h"
#include "ops/cpu/strided_copy.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

struct AxisState : KernelState {
  int64_t axis = 0;
};

int axis_of(const KernelArgs& args) {
  const int64_t axis = static_cast<const AxisState&>(*args.state).axis;
  const int rank = args.inputs[0].rank;
  EDDY_DCHECK(axis >= -rank && axis < rank) << "axis " << axis << " of " << rank;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Rows of `size` elements, `in_step` and `out_step` apart.
template <typename T>
void copy_rows(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t size, int64_t rows) {
  if (size == 1) {
    for (int64_t r = 0; r < rows; ++r) out[r * out_step] = in[r * in_step];
    return;
  }
  for (int64_t r = 0; r < rows; ++r) copy_run(in + r * in_step, out + r * out_step, size);
}

// Where parts lie side by side in the rows of the whole: Concat's inputs, Split's outputs.
struct PartedRows {
  int64_t rows, row, inner;

  PartedRows(const TensorView& whole, int axis) {
    const AxisSplit split = split_at_axis(whole.shape(), axis);
    rows = split.outer;
    row = split.count * split.inner;
    inner = split.inner;
  }
  // A row a unit, or an element where there is one row.
  int64_t num_units() const { return rows > 1 ? rows : rows * row; }
  cpu::Tiles tiles() const { return cpu::Tiles::of(num_units(), rows > 1 ? row : 1); }
  // What units `first` to `end` have of a part that begins at `begin` in a row. Calls
  // copy(first element in the part, first in the whole, elements in a run, runs).
  template <typename Copy>
  void for_part(int64_t begin, int64_t part, int64_t first, int64_t end, const Copy& copy) const {
    if (rows > 1) return copy(first * part, first * row + begin, part, end - first);
    const int64_t from = std::max(first, begin), to = std::min(end, begin + part);
    if (from < to) copy(from - begin, from, to - from, 1);
  }
};

template <typename T>
struct Concat {
  static PartedRows parted(const KernelArgs& args) { return {args.outputs[0], axis_of(args)}; }
  // What has grown in place is not copied, and the rest is one tile: this is about time alone, as a
  // copy has the same bits anyhow.
  static cpu::Tiles tiles(const KernelArgs& args) {
    const PartedRows rows = parted(args);
    const bool has_grown = args.inputs[0].data == args.outputs[0].data;
    return has_grown ? cpu::Tiles{rows.num_units(), std::max<int64_t>(rows.num_units(), 1)}
                     : rows.tiles();
  }
  static bool run_units(const KernelArgs& args, int64_t first, int64_t end) {
    return copy(args, parted(args), first, end);
  }
  static bool run(const KernelArgs& args) {
    const PartedRows rows = parted(args);
    return copy(args, rows, 0, rows.num_units());
  }

  static bool copy(const KernelArgs& args, const PartedRows& rows, int64_t first, int64_t end) {
    T* out = args.outputs[0].mutable_as<T>();
    int64_t begin = 0;
    // Where nothing is, no address is reckoned either.
    for (uint32_t i = 0; first < end && i < args.num_inputs; ++i) {
      const TensorView& in = args.inputs[i];
      const int64_t part = in.dims[axis_of(args)] * rows.inner;
      // An input grown in place is there already; that needs all its elements in one row.
      if (i > 0 || in.data != args.outputs[0].data || rows.rows > 1) {
        rows.for_part(begin, part, first, end,
                      [&](int64_t from, int64_t to, int64_t size, int64_t count) {
                        copy_rows(in.as<T>() + from, part, out + to, rows.row, size, count);
                      });
      }
      begin += part;
    }
    EDDY_DCHECK(first >= end || begin == rows.row) << "parts of " << begin << " of " << rows.row;
    return true;
  }
};

template <typename T>
struct Split {
  static PartedRows parted(const KernelArgs& args) { return {args.inputs[0], axis_of(args)}; }
  static cpu::Tiles tiles(const KernelArgs& args) { return parted(args).tiles(); }
  static bool run_units(const KernelArgs& args, int64_t first, int64_t end) {
    return copy(args, parted(args), first, end);
  }
  static bool run(const KernelArgs& args) {
    const PartedRows rows = parted(args);
    return copy(args, rows, 0, rows.num_units());
  }

  static bool copy(const KernelArgs& args, const PartedRows& rows, int64_t first, int64_t end) {
    const T* in = args.inputs[0].as<T>();
    int64_t begin = 0;
    for (uint32_t i = 0; first < end && i < args.num_outputs; ++i) {
      const TensorView& out = args.outputs[i];
      const int64_t part = out.dims[axis_of(args)] * rows.inner;
      rows.for_part(begin, part, first, end,
                    [&](int64_t to, int64_t from, int64_t size, int64_t count) {
                      copy_rows(in + from, rows.row, out.mutable_as<T>() + to, part, size, count);
                    });
      begin += part;
    }
    EDDY_DCHECK(first >= end || begin == rows.row) << "parts of " << begin << " of " << rows.row;
    return true;
  }
};

// Of the slices that stand one behind another in the output. `Index` is int32_t or int64_t.
template <typename T, typename Index>
bool gather(const KernelArgs& args, const AxisSplit& data, int64_t first, int64_t end) {
  const Index* indices = args.inputs[1].as<Index>();
  const int64_t count = args.inputs[1].count();
  T* out = args.outputs[0].mutable_as<T>() + first * data.inner;
  for (int64_t slice = first; slice < end;) {
    const T* in = args.inputs[0].as<T>() + slice / count * data.count * data.inner;
    const int64_t begin = slice % count, most = std::min(count, begin + end - slice);
    for (int64_t j = begin; j < most; ++j, out += data.inner) {
      int64_t index = indices[j];
      if (index < 0) index += data.count;
      if (index < 0 || index >= data.count) [[unlikely]] {
        return args.fail(index_out_of_range(indices[j], axis_of(args), data.count));
      }
      copy_run(in + index * data.inner, out, data.inner);
    }
    slice += most - begin;
  }
  return true;
}

template <typename T>
struct Gather {
  static AxisSplit data_of(const KernelArgs& args) {
    return split_at_axis(args.inputs[0].shape(), axis_of(args));
  }
  static cpu::Tiles tiles(const KernelArgs& args) {
    const AxisSplit data = data_of(args);
    return cpu::Tiles::of(data.outer * args.inputs[1].count(), data.inner);
  }
  static bool run_units(const KernelArgs& args, int64_t first, int64_t end) {
    return copy(args, data_of(args), first, end);
  }
  static bool run(const KernelArgs& args) {
    const AxisSplit data = data_of(args);
    return copy(args, data, 0, data.outer * args.inputs[1].count());
  }

  static bool copy(const KernelArgs& args, const AxisSplit& data, int64_t first, int64_t end) {
    return args.inputs[1].element == ElementType::kInt32
               ? gather<T, int32_t>(args, data, first, end)
               : gather<T, int64_t>(args, data, first, end);
  }
};

// `whole`: the tensor that has all the elements, whose words fall into tiles where it is large.
template <template <typename> class Kernel, int fallback>
Result<BoundKernel> bind_axis(const KernelInit& init, const ValueType& whole) {
  auto state = std::make_unique<AxisState>();
  state->axis = init.attributes.get_int("axis", fallback);
  const ElementType element = init.inputs[0].tensor.element;
  EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, bind_storage<Kernel>(init, element, std::move(state)));
  const bool is_of_words = element != ElementType::kString && element_size_bytes(element) == 4;
  if (is_of_words && cpu::fills_tiles(whole)) {
    const KernelFunction run = kernel.run;  // the same bytes in less time
    cpu::set_tiles<Kernel<uint32_t>::tiles, Kernel<uint32_t>::run_units>(kernel);
    kernel.run = run;
  }
  return kernel;
}

}  // namespace

void add_movement_cpu(KernelRegistry& registry) {
  const auto add = [&registry](std::string_view name, auto bind) {
    registry.add({.op = name, .bind = bind, .has_tiles = true});
  };
  add("Concat", [](const KernelInit& i) { return bind_axis<Concat, 1>(i, i.outputs[0]); });
  add("Split", [](const KernelInit& i) { return bind_axis<Split, 0>(i, i.inputs[0]); });
  add("Gather", [](const KernelInit& i) { return bind_axis<Gather, 0>(i, i.outputs[0]); });
  add_movement_strided_cpu(registry);
  add_movement_pad_cpu(registry);
  add_movement_fill_cpu(registry);
}

}  // namespace eddy
