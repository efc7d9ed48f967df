// Col2Im: each element of each column is added where it was cut from.
#include <algorithm>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/parts/window_walk.h"
#include "ops/schema/windows/columns.h"

namespace eddy {
namespace {

struct ColumnsState : KernelState {
  Attributes attributes;
};

Status read_columns(const KernelArgs& args, Columns& columns) {
  IntList image, block;
  EDDY_RETURN_IF_ERROR(read_ints(args.inputs[1], "image_shape", image));
  EDDY_RETURN_IF_ERROR(read_ints(args.inputs[2], "block_shape", block));
  const auto& state = static_cast<const ColumnsState&>(*args.state);
  return resolve_columns(state.attributes, image, block, Dims(args.inputs[0].shape()), columns);
}

// Where a tap of a window lies in the image; -1 in the padding.
int64_t image_place(const Columns& c, const Position& window, const Position& tap) {
  int64_t place = 0;
  for (int i = 0; i < c.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const WindowAxis& axis = c.axes[at];
    const int64_t on_axis = window[i] * axis.stride + tap[i] * axis.dilation - axis.pad_begin;
    if (on_axis < 0 || on_axis >= c.image[at]) return -1;
    place = place * c.image[at] + on_axis;
  }
  return place;
}

template <typename T>
struct Col2Im {
  static bool run(const KernelArgs& args) {
    Columns c;
    Status status = read_columns(args, c);
    if (!status.is_ok()) return args.fail(std::move(status));
    const TensorView& x = args.inputs[0];
    SpatialDims block{};
    for (size_t i = 0; i < block.size(); ++i) block[i] = c.axes[i].kernel;
    const int64_t planes = x.dims[0] * (x.dims[1] / c.block_size);
    if (planes == 0 || c.image_size == 0) return true;
    std::vector<Accumulator<T>> image(static_cast<size_t>(c.image_size));
    for (int64_t plane = 0; plane < planes; ++plane) {
      std::fill(image.begin(), image.end(), Accumulator<T>{});
      const T* from = x.as<T>() + plane * c.block_size * c.num_windows;
      for (Position tap(block, c.rank); !tap.done(); tap.next()) {
        for (Position window(c.windows, c.rank); !window.done(); window.next()) {
          const int64_t place = image_place(c, window, tap);
          if (place < 0) continue;
          image[static_cast<size_t>(place)] +=
              accumulate_from(from[tap.index() * c.num_windows + window.index()]);
        }
      }
      T* to = args.outputs[0].mutable_as<T>() + plane * c.image_size;
      for (int64_t i = 0; i < c.image_size; ++i) {
        to[i] = round_from<T>(image[static_cast<size_t>(i)]);
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_columns(const KernelInit& init) {
  auto state = std::make_unique<ColumnsState>();
  state->attributes = init.attributes;
  return bind_typed<Col2Im, float, double, Float16, Bfloat16, int8_t, int16_t, int32_t, int64_t,
                    uint8_t, uint16_t, uint32_t, uint64_t>(init, 0, std::move(state));
}

}  // namespace

void add_columns_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "Col2Im", .since_version = 18, .bind = bind_columns, .provider = "reference"});
}

}  // namespace eddy
