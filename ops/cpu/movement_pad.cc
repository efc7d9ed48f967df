// Pad: rows of the output are copied, mirrored or filled; trailing axes that are not padded join
// the elements of a row.
#include <array>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cpu/movement_parts.h"
#include "ops/cpu/strided_copy.h"
#include "ops/reference/parts/list_source.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/storage.h"

namespace eddy {
namespace {

struct PadState : KernelState {
  ListSource pads, axes;
  PadMode mode = PadMode::kConstant;
  std::array<uint64_t, 2> fill{};  // where no input gives it; an empty string for strings
};

constexpr int64_t kFill = -1;

// Which element of an axis a position shows, or kFill. Only constants surround an empty axis.
int64_t source_position(int64_t position, int64_t size, PadMode mode) {
  if (position >= 0 && position < size) return position;
  if (mode == PadMode::kConstant) return kFill;
  EDDY_DCHECK(size > 0) << "an empty axis shows nothing";
  if (mode == PadMode::kEdge || size == 1) return position < 0 ? 0 : size - 1;
  const int64_t period = mode == PadMode::kWrap ? size : 2 * (size - 1);
  int64_t phase = position % period;
  if (phase < 0) phase += period;
  return phase < size ? phase : period - phase;
}

// The padding with unpadded trailing axes folded into `unit` elements that move together.
struct Layout {
  int rank = 0;  // axes left, the last of which is a row
  int64_t unit = 1;
  int64_t in_size[kMaxRank];
  int64_t out_size[kMaxRank];
  int64_t before[kMaxRank];
};

Layout make_layout(const TensorView& in, const TensorView& out, const PadAmounts& amounts) {
  EDDY_DCHECK(in.rank == out.rank) << "ranks " << in.rank << " and " << out.rank;
  Layout layout;
  layout.rank = in.rank;
  while (layout.rank > 0) {
    const auto axis = static_cast<size_t>(layout.rank - 1);
    if (amounts.before[axis] != 0 || amounts.after[axis] != 0) break;
    layout.unit *= in.dims[axis];
    --layout.rank;
  }
  for (int d = 0; d < layout.rank; ++d) {
    layout.in_size[d] = in.dims[d];
    layout.out_size[d] = out.dims[d];
    layout.before[d] = amounts.before[static_cast<size_t>(d)];
  }
  return layout;
}

// One output row from one input row: left edge, the middle in one copy, right edge.
template <typename T>
void pad_row(const Layout& layout, PadMode mode, const T& fill, const T* in, T* out) {
  const int last = layout.rank - 1;
  const int64_t size = layout.in_size[last], before = layout.before[last], unit = layout.unit;
  const int64_t out_size = layout.out_size[last];
  const auto edge = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const int64_t from = source_position(i - before, size, mode);
      if (from == kFill) {
        std::fill_n(out + i * unit, unit, fill);
      } else {
        copy_run(in + from * unit, out + i * unit, unit);
      }
    }
  };
  const int64_t middle = std::clamp<int64_t>(before, 0, out_size);
  const int64_t middle_end = std::clamp<int64_t>(before + size, middle, out_size);
  edge(0, middle);
  if (middle_end > middle) {
    copy_run(in + (middle - before) * unit, out + middle * unit, (middle_end - middle) * unit);
  }
  edge(middle_end, out_size);
}

template <typename T>
void pad(const Layout& layout, PadMode mode, const T& fill, const T* in, T* out) {
  EDDY_DCHECK(layout.rank > 0) << "nothing is padded";
  const int outer = layout.rank - 1;
  int64_t strides[kMaxRank];  // of the input, in elements
  int64_t stride = layout.unit;
  for (int d = layout.rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= layout.in_size[d];
  }
  const int64_t row = layout.out_size[outer] * layout.unit;
  int64_t at[kMaxRank] = {};
  while (true) {
    int64_t offset = 0;
    for (int d = 0; d < outer && offset != kFill; ++d) {
      const int64_t from = source_position(at[d] - layout.before[d], layout.in_size[d], mode);
      offset = from == kFill ? kFill : offset + from * strides[d];
    }
    if (offset == kFill || layout.in_size[outer] == 0) {
      std::fill_n(out, row, fill);
    } else {
      pad_row(layout, mode, fill, in + offset, out);
    }
    out += row;
    int d = outer - 1;
    while (d >= 0 && ++at[d] == layout.out_size[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

bool read_amounts(const KernelArgs& args, PadAmounts& amounts) {
  const auto& state = static_cast<const PadState&>(*args.state);
  IntList buffers[2];
  const IntList* pads = state.pads.read_or_null(args, buffers[0]);
  const IntList* axes = state.axes.read_or_null(args, buffers[1]);
  if (pads == nullptr || axes == nullptr) return false;
  if (args.has_input(2) && args.inputs[2].count() != 1) {
    return args.fail(invalid_argument("constant_value must have one element"));
  }
  Status status = resolve_pads(*pads, *axes, state.axes.is_given(), args.inputs[0].rank, amounts);
  return status.is_ok() || args.fail(std::move(status));
}

template <typename T>
struct Pad {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const PadState&>(*args.state);
    PadAmounts amounts;
    if (!read_amounts(args, amounts)) return false;
    T fill{};
    if (args.has_input(2)) {
      fill = args.inputs[2].as<T>()[0];
    } else if constexpr (!std::is_same_v<T, std::string>) {
      std::memcpy(&fill, state.fill.data(), sizeof(T));
    }
    const Layout layout = make_layout(args.inputs[0], args.outputs[0], amounts);
    const T* in = args.inputs[0].as<T>();
    T* out = args.outputs[0].mutable_as<T>();
    if (layout.rank == 0) {
      copy_run(in, out, layout.unit);
    } else if (args.outputs[0].count() > 0) {
      pad(layout, state.mode, fill, in, out);
    }
    return true;
  }
};

Result<BoundKernel> bind_pad(const KernelInit& init) {
  auto state = std::make_unique<PadState>();
  EDDY_RETURN_IF_ERROR(parse_pad_mode(init.attributes.get_string("mode", "constant"),
                                      init.opset_version, state->mode));
  EDDY_ASSIGN_OR_RETURN(state->pads, ListSource::make(init, 1, "pads"));
  EDDY_ASSIGN_OR_RETURN(state->axes, ListSource::make(init, 3, "axes"));
  const ElementType element = init.inputs[0].tensor.element;
  if (init.attributes.has("value") && kNumberTypes.contains(element)) {
    store_number({state->fill.data(), nullptr, 0, element}, 0,
                 Number::of_double(init.attributes.get_float("value", 0)));
  }
  return bind_storage<Pad>(init, element, std::move(state));
}

}  // namespace

void add_movement_pad_cpu(KernelRegistry& registry) {
  registry.add({.op = "Pad", .bind = bind_pad});
}

}  // namespace eddy
