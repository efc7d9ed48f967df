// MaxPool with indices, for float on one to three axes: tap by tap over a row of windows, which
// keeps of each window its largest element so far and where that lies; windows that reach into the
// padding go one by one. The choice is the reference's: the first of the largest, the last NaN.
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

// Windows of a plane that reach into no padding, in order: where they begin in it.
class InnerWindows {
 public:
  static constexpr int64_t kBlock =
      512;  // windows whose largest elements stay in the nearest cache

  // `memory`: for as many as scratch_bytes() says.
  InnerWindows(const Pool& pool, bool fits, void* memory)
      : largest_(static_cast<float*>(memory)),
        places_(reinterpret_cast<int32_t*>(largest_ + kBlock)),
        begins_(places_ + kBlock) {
    for (int i = 0; i < Pool::kRank; ++i) inner_[i] = fits ? pool.inner(i) : Pool::Inner();
    int32_t* next = begins_;
    for (int64_t d = inner_[0].begin; d < inner_[0].end; ++d) {
      for (int64_t h = inner_[1].begin; h < inner_[1].end; ++h) {
        for (int64_t w = inner_[2].begin; w < inner_[2].end; ++w) {
          *next++ = static_cast<int32_t>(
              place(pool, begin(pool, 0, d), begin(pool, 1, h), begin(pool, 2, w)));
        }
      }
    }
    count_ = next - begins_;
  }
  static size_t scratch_bytes(const Pool& pool, bool fits) {
    const int64_t windows = fits ? pool.output[0] * pool.output[1] * pool.output[2] : 0;
    return static_cast<size_t>(2 * kBlock + windows) * sizeof(int32_t);
  }
  static int64_t place(const Pool& pool, int64_t d, int64_t h, int64_t w) {
    return (d * pool.input[1] + h) * pool.input[2] + w;
  }

  int64_t count() const { return count_; }
  const Pool::Inner& axis(int i) const { return inner_[i]; }
  bool contains(int64_t d, int64_t h, int64_t w) const {
    return inner_[0].contains(d) && inner_[1].contains(h) && inner_[2].contains(w);
  }

  // The largest elements of windows [first, first + count) of the plane x, and where they lie.
  void find(const Pool& pool, const float* x, int64_t first, int64_t count) {
    EDDY_DCHECK(count <= kBlock && first + count <= count_) << first << " and " << count << " more";
    const cpu::MaxPlaceLoops& loops = cpu::loop_set().max_place;
    const auto& [depth, height, width] = pool.axes;
    bool is_first = true;
    for (int64_t d = 0; d < depth.kernel; ++d) {
      for (int64_t h = 0; h < height.kernel; ++h) {
        for (int64_t w = 0; w < width.kernel; ++w, is_first = false) {
          const int64_t tap =
              place(pool, d * depth.dilation, h * height.dilation, w * width.dilation);
          (is_first ? loops.start : loops.fold)({.x = x,
                                                 .begins = begins_ + first,
                                                 .tap = static_cast<int32_t>(tap),
                                                 .largest = largest_,
                                                 .places = places_,
                                                 .count = count});
        }
      }
    }
  }
  const float* largest() const { return largest_; }
  const int32_t* places() const { return places_; }

 private:
  static int64_t begin(const Pool& pool, int axis, int64_t window) {
    return window * pool.axes[axis].stride - pool.axes[axis].pad_begin;
  }

  float* const largest_;
  int32_t* const places_;
  int32_t* const begins_;
  Pool::Inner inner_[Pool::kRank];
  int64_t count_ = 0;
};

// A plane and its place in the whole input.
struct Plane {
  const float* x;
  int64_t first;
  float* y;
  int64_t* indices;
};

void find_one(const Pool& pool, const Plane& plane, int64_t d, int64_t h, int64_t w) {
  const Pool::Range depth = pool.range(0, d), height = pool.range(1, h), width = pool.range(2, w);
  float largest = -std::numeric_limits<float>::infinity();
  int64_t place = -1;
  for (int64_t i = depth.first; i < depth.end; i += depth.step) {
    for (int64_t j = height.first; j < height.end; j += height.step) {
      for (int64_t k = width.first; k < width.end; k += width.step) {
        const int64_t at = InnerWindows::place(pool, i, j, k);
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

void find_inner(const Pool& pool, InnerWindows& inner, const Plane& plane) {
  const auto& [depth, height, width] = std::tie(inner.axis(0), inner.axis(1), inner.axis(2));
  int64_t d = depth.begin, h = height.begin, w = width.begin;
  for (int64_t first = 0; first < inner.count(); first += InnerWindows::kBlock) {
    const int64_t count = std::min(InnerWindows::kBlock, inner.count() - first);
    inner.find(pool, plane.x, first, count);
    for (int64_t i = 0; i < count;) {
      const int64_t some = std::min(width.end - w, count - i);
      const int64_t window = (d * pool.output[1] + h) * pool.output[2] + w;
      std::copy_n(inner.largest() + i, some, plane.y + window);
      for (int64_t j = 0; j < some; ++j) {
        plane.indices[window + j] = plane.first + inner.places()[i + j];
      }
      i += some;
      w += some;
      if (w == width.end) w = width.begin, ++h;
      if (h == height.end) h = height.begin, ++d;
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
  const bool fits = grid.input_size <= std::numeric_limits<int32_t>::max();
  void* const memory = args.scratch->reserve(InnerWindows::scratch_bytes(pool, fits));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory for windows of a pool"));
  InnerWindows inner(pool, fits, memory);
  for (int64_t i = first; i < end; ++i) {
    const int64_t at = i * grid.output_size;
    const Plane plane = {.x = x.as<float>() + i * grid.input_size,
                         .first = i * grid.input_size,
                         .y = args.outputs[0].mutable_as<float>() + at,
                         .indices = args.outputs[1].mutable_as<int64_t>() + at};
    find_inner(pool, inner, plane);
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
