// MaxPool with indices, for float on one to three axes: windows that reach into no padding by rows
// in vectors, the others one by one. The choice is the reference's: the first of the largest, the
// last NaN.
#include <cstdint>
#include <limits>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/pool_windows.h"
#include "ops/cpu/tiles.h"

namespace eddy {
namespace {

using cpu::Pool;

struct IndicesState : KernelState {
  Attributes attributes;
};

int64_t place_of(const Pool& pool, int64_t d, int64_t h, int64_t w) {
  return (d * pool.input[1] + h) * pool.input[2] + w;
}

// A plane and its place in the whole input.
struct Plane {
  const float* x;
  int64_t first;
  float* y;
  int64_t* indices;
};

// Windows of a plane that reach into no padding, and where their taps lie behind their first ones.
class InnerWindows {
 public:
  // `taps`: memory for count_taps() numbers.
  InnerWindows(const Pool& pool, int64_t* taps) : pool_(pool) {
    const int64_t num_taps = count_taps(pool);
    if (num_taps == 0) return;
    for (int i = 0; i < Pool::kRank; ++i) inner_[i] = pool.inner(i);
    const auto& [depth, height, width] = pool.axes;
    int64_t* next = taps;
    for (int64_t d = 0; d < depth.kernel; ++d) {
      for (int64_t h = 0; h < height.kernel; ++h) {
        for (int64_t w = 0; w < width.kernel; ++w) {
          *next++ = place_of(pool, d * depth.dilation, h * height.dilation, w * width.dilation);
        }
      }
    }
    EDDY_DCHECK(next == taps + num_taps) << num_taps << " taps";
    rows_.taps = taps;
    rows_.num_taps = num_taps;
    rows_.rows = inner_[1].count();
    rows_.x_row = height.stride * pool.input[2];
    rows_.y_row = pool.output[2];
    rows_.stride = width.stride;
    rows_.count = inner_[2].count();
  }
  // 0 where all windows reach into padding, or places need more than 32 bits.
  static int64_t count_taps(const Pool& pool) {
    int64_t count = 1;
    for (int i = 0; i < Pool::kRank; ++i) {
      if (pool.inner(i).count() == 0) return 0;
      count *= pool.axes[i].kernel;
    }
    const bool fits = place_of(pool, pool.input[0], 0, 0) <= std::numeric_limits<int32_t>::max();
    return fits ? count : 0;
  }

  const Pool::Inner& axis(int i) const { return inner_[i]; }

  // Of a plane. Rows in order: what lies behind each may be overwritten until the next is written.
  void find(const Plane& plane, const float* x_end) const {
    cpu::MaxPlaceCall call = rows_;
    call.x_end = x_end;
    const int64_t h = inner_[1].begin, w = inner_[2].begin;
    for (int64_t d = inner_[0].begin; d < inner_[0].end; ++d) {
      const int64_t begin = place_of(pool_, first(0, d), first(1, h), first(2, w));
      const int64_t window = (d * pool_.output[1] + h) * pool_.output[2] + w;
      call.x = plane.x + begin;
      call.first_place = plane.first + begin;
      call.y = plane.y + window;
      call.places = plane.indices + window;
      call.room = pool_.output[0] * pool_.output[1] * pool_.output[2] - window;
      cpu::loop_set().max_place(call);
    }
  }

 private:
  int64_t first(int axis, int64_t window) const {
    return window * pool_.axes[axis].stride - pool_.axes[axis].pad_begin;
  }

  const Pool& pool_;
  cpu::MaxPlaceCall rows_;  // of one depth
  Pool::Inner inner_[Pool::kRank];
};

void find_one(const Pool& pool, const Plane& plane, int64_t d, int64_t h, int64_t w) {
  const Pool::Range depth = pool.range(0, d), height = pool.range(1, h), width = pool.range(2, w);
  float largest = -std::numeric_limits<float>::infinity();
  int64_t place = -1;
  for (int64_t i = depth.first; i < depth.end; i += depth.step) {
    for (int64_t j = height.first; j < height.end; j += height.step) {
      for (int64_t k = width.first; k < width.end; k += width.step) {
        const int64_t at = place_of(pool, i, j, k);
        const float value = plane.x[at];
        if (place >= 0 && value <= largest) continue;
        if (place >= 0 && largest != largest && value == value) continue;
        largest = value;
        place = at;
      }
    }
  }
  const int64_t window = (d * pool.output[1] + h) * pool.output[2] + w;
  plane.y[window] = largest;
  plane.indices[window] = place < 0 ? -1 : plane.first + place;
}

void find_outer(const Pool& pool, const InnerWindows& inner, const Plane& plane) {
  for (int64_t d = 0; d < pool.output[0]; ++d) {
    for (int64_t h = 0; h < pool.output[1]; ++h) {
      const bool has_inner = inner.axis(0).contains(d) && inner.axis(1).contains(h);
      for (int64_t w = 0; w < pool.output[2]; ++w) {
        if (has_inner && w == inner.axis(2).begin) w = inner.axis(2).end;
        if (w < pool.output[2]) find_one(pool, plane, d, h, w);
      }
    }
  }
}

cpu::Tiles tiles_of(const KernelArgs& args) {
  return cpu::Tiles::of(cpu::num_planes(args.inputs[0]), cpu::plane_size(args.inputs[0]));
}

bool run_planes(const KernelArgs& args, int64_t first, int64_t end) {
  const TensorView& x = args.inputs[0];
  Windows windows;
  Grid grid;
  const auto& attributes = static_cast<const IndicesState&>(*args.state).attributes;
  Status status = parse_windows(attributes, x.rank - 2, nullptr, windows);
  if (status.is_ok()) status = make_grid(windows, x, args.outputs[0], grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  if (args.outputs[0].count() == 0) return true;
  const Pool pool(grid);
  const size_t bytes = static_cast<size_t>(InnerWindows::count_taps(pool)) * sizeof(int64_t);
  auto* const taps = static_cast<int64_t*>(args.scratch->reserve(bytes));
  if (taps == nullptr) return args.fail(resource_exhausted("no memory for windows of a pool"));
  const InnerWindows inner(pool, taps);
  for (int64_t i = first; i < end; ++i) {
    const int64_t at = i * grid.output_size;
    const Plane plane = {.x = x.as<float>() + i * grid.input_size,
                         .first = i * grid.input_size,
                         .y = args.outputs[0].mutable_as<float>() + at,
                         .indices = args.outputs[1].mutable_as<int64_t>() + at};
    inner.find(plane, x.as<float>() + x.count());
    find_outer(pool, inner, plane);
  }
  return true;
}
bool run_all_planes(const KernelArgs& args) {
  return run_planes(args, 0, cpu::num_planes(args.inputs[0]));
}

Result<BoundKernel> bind_indices(const KernelInit& init) {
  const size_t rank = init.attributes.get_ints("kernel_shape").size();
  const bool has_both = init.outputs.size() == 2 &&
                        init.outputs[0].tensor.element == ElementType::kFloat &&
                        init.outputs[1].tensor.element == ElementType::kInt64;
  if (init.inputs[0].tensor.element != ElementType::kFloat || rank > Pool::kRank || !has_both ||
      init.attributes.get_int("storage_order", 0) != 0) {
    return cpu::no_fast_kernel(init);
  }
  auto state = std::make_unique<IndicesState>();
  state->attributes = init.attributes;
  BoundKernel kernel;
  kernel.run = run_all_planes;
  if (cpu::fills_tiles(init.inputs[0])) cpu::set_tiles<tiles_of, run_planes>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_pool_indices_cpu(KernelRegistry& registry) {
  registry.add({.op = "MaxPool", .bind = bind_indices, .provider = "cpu", .has_tiles = true});
}

}  // namespace eddy
