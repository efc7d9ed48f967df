// Slice, Transpose, Expand, Tile, DepthToSpace, SpaceToDepth: each one strided copy.
#include <array>

#include "graph/base/check.h"
#include "ops/cpu/movement_parts.h"
#include "ops/cpu/strided_copy.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/list_source.h"
#include "ops/reference/parts/storage.h"

namespace eddy {
namespace {

using Strides = std::array<int64_t, kMaxRank>;

Strides strides_of(const TensorView& view) {
  Strides strides;
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= view.dims[d];
  }
  return strides;
}

template <typename T>
bool finish(const KernelArgs& args, const StridedCopy& copy, int64_t first) {
  copy.run(args.inputs[0].as<T>() + first, args.outputs[0].mutable_as<T>());
  return true;
}

// ---- Slice ----

struct SliceState : KernelState {
  std::array<ListSource, 4> lists;  // starts, ends, axes, steps
};

bool slice_ranges(const KernelArgs& args, SliceRanges& ranges) {
  const auto& state = static_cast<const SliceState&>(*args.state);
  IntList buffers[4];
  const IntList* lists[4];
  for (size_t i = 0; i < 4; ++i) {
    lists[i] = state.lists[i].read_or_null(args, buffers[i]);
    if (lists[i] == nullptr) return false;
  }
  Status status = resolve_slice(Dims(args.inputs[0].shape()), *lists[0], *lists[1], *lists[2],
                                *lists[3], ranges);
  return status.is_ok() || args.fail(std::move(status));
}

template <typename T>
struct Slice {
  static bool run(const KernelArgs& args) {
    SliceRanges ranges;
    if (!slice_ranges(args, ranges)) return false;
    const TensorView& in = args.inputs[0];
    const Strides strides = strides_of(in);
    StridedCopy copy;
    int64_t first = 0;
    for (size_t d = 0; d < static_cast<size_t>(in.rank); ++d) {
      EDDY_DCHECK(ranges[d].count == args.outputs[0].dims[d])
          << "axis " << d << " gets another size";
      first += ranges[d].start * strides[d];
      copy.add_axis(ranges[d].count, ranges[d].step * strides[d]);
    }
    return finish<T>(args, copy, first);
  }
};

Result<BoundKernel> bind_slice(const KernelInit& init) {
  auto state = std::make_unique<SliceState>();
  EDDY_ASSIGN_OR_RETURN(state->lists[0], ListSource::make(init, 1, "starts"));
  EDDY_ASSIGN_OR_RETURN(state->lists[1], ListSource::make(init, 2, "ends"));
  EDDY_ASSIGN_OR_RETURN(state->lists[2], ListSource::make(init, 3, "axes"));
  EDDY_ASSIGN_OR_RETURN(state->lists[3], ListSource::make(init, 4, "steps"));
  return bind_storage<Slice>(init, init.inputs[0].tensor.element, std::move(state));
}

// ---- Transpose ----

struct TransposeState : KernelState {
  IntList perm;  // empty: reversal
};

// The input's axis that becomes the output's axis d.
int64_t source_axis(const KernelArgs& args, int d) {
  const auto& state = static_cast<const TransposeState&>(*args.state);
  const int rank = args.inputs[0].rank;
  EDDY_DCHECK(state.perm.is_empty() || state.perm.size() == rank)
      << state.perm.size() << " axes of " << rank;
  return state.perm.is_empty() ? rank - 1 - d : state.perm[d];
}

template <typename T>
struct Transpose {
  static bool run(const KernelArgs& args) {
    const TensorView& in = args.inputs[0];
    const Strides strides = strides_of(in);
    StridedCopy copy;
    for (int d = 0; d < in.rank; ++d) {
      const int64_t axis = source_axis(args, d);
      copy.add_axis(in.dims[axis], strides[static_cast<size_t>(axis)]);
    }
    return finish<T>(args, copy, 0);
  }
};

// Tiles of the output's first axis that is longer than 1.
int first_long_axis(const TensorView& out) {
  int d = 0;
  while (d < out.rank - 1 && out.dims[d] == 1) ++d;
  return d;
}
cpu::Tiles tiles_of_transpose(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  if (out.rank == 0 || out.count() == 0) return {};
  const int64_t size = out.dims[first_long_axis(out)];
  return cpu::Tiles::of(size, out.count() / size);
}

bool transpose_some(const KernelArgs& args, int64_t first, int64_t end) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const int split = first_long_axis(out);
  EDDY_DCHECK(first >= 0 && end <= out.dims[split]) << "indices " << first << " to " << end;
  const Strides strides = strides_of(in);
  StridedCopy copy;
  for (int d = 0; d < in.rank; ++d) {
    const int64_t axis = source_axis(args, d);
    copy.add_axis(d == split ? end - first : in.dims[axis], strides[static_cast<size_t>(axis)]);
  }
  const int64_t step = strides[static_cast<size_t>(source_axis(args, split))];
  copy.run(in.as<uint32_t>() + first * step,
           out.mutable_as<uint32_t>() + out.count() / out.dims[split] * first);
  return true;
}

Result<BoundKernel> bind_transpose(const KernelInit& init) {
  auto state = std::make_unique<TransposeState>();
  EDDY_RETURN_IF_ERROR(read_ints(init.attributes.get_ints("perm"), "perm", state->perm));
  const ElementType element = init.inputs[0].tensor.element;
  EDDY_ASSIGN_OR_RETURN(BoundKernel kernel,
                        bind_storage<Transpose>(init, element, std::move(state)));
  const bool is_of_words = element != ElementType::kString && element_size_bytes(element) == 4;
  if (is_of_words && cpu::fills_tiles(init.inputs[0])) {
    const KernelFunction whole = kernel.run;  // the same bytes in less time
    cpu::set_tiles<tiles_of_transpose, transpose_some>(kernel);
    kernel.run = whole;
  }
  return kernel;
}

// ---- Expand and Tile ----

template <typename T>
struct Expand {
  static bool run(const KernelArgs& args) {
    const TensorView& in = args.inputs[0];
    const TensorView& out = args.outputs[0];
    const Strides strides = strides_of(in);
    const int shift = out.rank - in.rank;
    EDDY_DCHECK(shift >= 0) << "a rank of " << in.rank << " is expanded to " << out.rank;
    StridedCopy copy;
    for (int d = 0; d < out.rank; ++d) {
      const bool repeats = d < shift || in.dims[d - shift] != out.dims[d];
      copy.add_axis(out.dims[d], repeats ? 0 : strides[static_cast<size_t>(d - shift)]);
    }
    return finish<T>(args, copy, 0);
  }
};

template <typename T>
struct Tile {
  static bool run(const KernelArgs& args) {
    const TensorView& in = args.inputs[0];
    const Strides strides = strides_of(in);
    StridedCopy copy;
    for (int d = 0; d < in.rank; ++d) {
      const int64_t size = in.dims[d];
      copy.add_axis(size == 0 ? 0 : args.outputs[0].dims[d] / size, 0);
      copy.add_axis(size, strides[static_cast<size_t>(d)]);
    }
    return finish<T>(args, copy, 0);
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_plain(const KernelInit& init) {
  return bind_storage<Kernel>(init, init.inputs[0].tensor.element);
}

// ---- DepthToSpace and SpaceToDepth: a permutation of six axes ----

struct BlockState : KernelState {
  int64_t block = 1;
  bool depth_is_outer = false;  // CRD
};

template <typename T>
struct DepthToSpace {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const BlockState&>(*args.state);
    const TensorView& in = args.inputs[0];
    EDDY_DCHECK(in.rank == 4 && in.dims[1] == args.outputs[0].dims[1] * state.block * state.block)
        << "blocks of " << state.block << " do not take up the depth";
    const int64_t b = state.block, depth = args.outputs[0].dims[1];
    const int64_t plane = in.dims[2] * in.dims[3];
    const int64_t depth_stride = state.depth_is_outer ? b * b * plane : plane;
    const int64_t place_stride = state.depth_is_outer ? plane : depth * plane;
    StridedCopy copy;
    copy.add_axis(in.dims[0], in.dims[1] * plane);
    copy.add_axis(depth, depth_stride);
    copy.add_axis(in.dims[2], in.dims[3]);
    copy.add_axis(b, b * place_stride);
    copy.add_axis(in.dims[3], 1);
    copy.add_axis(b, place_stride);
    return finish<T>(args, copy, 0);
  }
};

template <typename T>
struct SpaceToDepth {
  static bool run(const KernelArgs& args) {
    const int64_t b = static_cast<const BlockState&>(*args.state).block;
    const TensorView& in = args.inputs[0];
    EDDY_DCHECK(in.rank == 4 && b > 0 && in.dims[2] % b == 0 && in.dims[3] % b == 0)
        << "a plane does not fall into blocks of " << b;
    const int64_t row = in.dims[3], plane = in.dims[2] * row;
    StridedCopy copy;
    copy.add_axis(in.dims[0], in.dims[1] * plane);
    copy.add_axis(b, row);
    copy.add_axis(b, 1);
    copy.add_axis(in.dims[1], plane);
    copy.add_axis(in.dims[2] / b, b * row);
    copy.add_axis(row / b, b);
    return finish<T>(args, copy, 0);
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_block(const KernelInit& init) {
  auto state = std::make_unique<BlockState>();
  state->block = init.attributes.get_int("blocksize", 1);
  state->depth_is_outer = init.attributes.get_string("mode", "DCR") == "CRD";
  return bind_storage<Kernel>(init, init.inputs[0].tensor.element, std::move(state));
}

}  // namespace

void add_movement_strided_cpu(KernelRegistry& registry) {
  registry.add({.op = "Slice", .bind = bind_slice});
  registry.add({.op = "Transpose", .bind = bind_transpose, .has_tiles = true});
  registry.add({.op = "Expand", .bind = bind_plain<Expand>});
  registry.add({.op = "Tile", .bind = bind_plain<Tile>});
  registry.add({.op = "DepthToSpace", .bind = bind_block<DepthToSpace>});
  registry.add({.op = "SpaceToDepth", .bind = bind_block<SpaceToDepth>});
}

}  // namespace eddy
