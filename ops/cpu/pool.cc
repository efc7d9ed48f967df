// MaxPool, AveragePool and LpPool for float on one to three axes, and global ones: the rows that a
// row of windows reads are first folded into one, whole vectors at a time; then each window folds
// its taps of that row. No loop over taps tests anything.
#include <algorithm>
#include <limits>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/pool_windows.h"
#include "ops/cpu/powers.h"
#include "ops/cpu/tile/tile.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/outputs.h"

namespace eddy {
namespace {

using cpu::Pool;
using PoolRange = Pool::Range;

struct PoolState : KernelState {
  Attributes attributes;
  bool counts_padding = false;
  int64_t p = 2;  // of LpPool
};

// A kind of pool: what rows, and windows of a row of them, are folded with. Rows of floats are
// folded by one of the loops for reductions, and windows into the output itself.
template <cpu::ReduceOp kOp>
struct FloatRows {
  using Row = float;
  void start_row(const float* from, float* row, int64_t count) const {
    loops.start_row(from, row, count);
  }
  void fold_row(const float* from, float* row, int64_t count) const {
    loops.fold_row(from, row, count);
  }
  const cpu::ReduceLoops& loops = cpu::loop_set().reduce[static_cast<size_t>(kOp)];
};

struct Max : FloatRows<cpu::ReduceOp::kMax> {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  // NaN wins, as in the reference.
  static float add(float best, float value) { return value <= best || best != best ? best : value; }
  explicit Max(const PoolState&) {}
};

struct Average : FloatRows<cpu::ReduceOp::kSum> {
  static constexpr float kStart = 0;
  static float add(float sum, float value) { return sum + value; }
  explicit Average(const PoolState&) {}
};

// Sums of powers.
struct Norm {
  using Row = double;
  static constexpr double kStart = 0;
  static double add(double sum, double value) { return sum + value; }
  explicit Norm(const PoolState& state) : powers(state.p) {}
  void start_row(const float* from, double* row, int64_t count) const {
    powers.raise(from, row, count);
  }
  void fold_row(const float* from, double* row, int64_t count) const {
    double raised[cpu::Powers::kChunk];
    for (int64_t i = 0; i < count; i += cpu::Powers::kChunk) {
      const int64_t some = std::min(cpu::Powers::kChunk, count - i);
      powers.raise(from + i, raised, some);
      powers.add(raised, row + i, some);
    }
  }
  const cpu::Powers powers;
};

// What a pool needs beside its planes, in the call's scratch memory.
template <typename Row>
struct PoolMemory {
  Row* row = nullptr;           // of the input
  Row* sums_or_null = nullptr;  // of a row of the output, where that holds another type
  float* divisors = nullptr;    // of an average: of the windows of a row

  static size_t size_bytes(const Pool& pool) { return 3 * bytes_each(pool); }
  PoolMemory(const Pool& pool, void* memory) {
    auto* const at = static_cast<std::byte*>(memory);
    row = reinterpret_cast<Row*>(at);
    divisors = reinterpret_cast<float*>(at + bytes_each(pool));
    if constexpr (!std::is_same_v<Row, float>) {
      sums_or_null = reinterpret_cast<Row*>(at + 2 * bytes_each(pool));
    }
  }

 private:
  static size_t bytes_each(const Pool& pool) {
    return static_cast<size_t>(std::max(pool.input[2], pool.output[2]) + 1) * sizeof(int64_t);
  }
};

// One plane at a time.
template <typename Kind>
class PlanePool {
 public:
  using Row = typename Kind::Row;

  PlanePool(const Pool& pool, const Kind& kind, const PoolMemory<Row>& memory, bool counts_padding)
      : pool_(pool), kind_(kind), memory_(memory), counts_padding_(counts_padding) {
    inner_begin_ = pool.inner(2).begin;
    inner_end_ = pool.inner(2).end;
  }

  void run(const float* x, float* y) {
    for (int64_t d = 0; d < pool_.output[0]; ++d) {
      const PoolRange depth = pool_.range(0, d);
      for (int64_t h = 0; h < pool_.output[1]; ++h, y += pool_.output[2]) {
        const PoolRange height = pool_.range(1, h);
        fold_rows(x, depth, height);
        fold_windows(y);
        if constexpr (std::is_same_v<Kind, Average>) divide(depth, height, y);
      }
    }
  }

 private:
  void fold_rows(const float* x, const PoolRange& depth, const PoolRange& height) {
    bool is_first = true;
    for (int64_t d = depth.first; d < depth.end; d += depth.step) {
      for (int64_t h = height.first; h < height.end; h += height.step, is_first = false) {
        const float* from = x + (d * pool_.input[1] + h) * pool_.input[2];
        if (is_first)
          kind_.start_row(from, memory_.row, pool_.input[2]);
        else
          kind_.fold_row(from, memory_.row, pool_.input[2]);
      }
    }
    if (is_first) std::fill(memory_.row, memory_.row + pool_.input[2], Kind::kStart);
  }

  void fold_windows(float* y) const {
    if constexpr (std::is_same_v<Kind, Norm>) {
      fold_into(memory_.sums_or_null);
      kind_.powers.root(memory_.sums_or_null, y, pool_.output[2]);
    } else {
      fold_into(y);
    }
  }

  void fold_into(Row* to) const {
    fold_inner(to);
    for (int64_t w = 0; w < inner_begin_; ++w) to[w] = fold_outer(w);
    for (int64_t w = inner_end_; w < pool_.output[2]; ++w) to[w] = fold_outer(w);
  }

  // Windows inside the row: no tap tests anything.
  void fold_inner(Row* to) const {
    if (inner_begin_ == inner_end_) return;
    const WindowAxis& axis = pool_.axes[2];
    if (axis.kernel == 3) return fold_three(to);
    std::fill(to + inner_begin_, to + inner_end_, Kind::kStart);
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const Row* from = memory_.row + tap * axis.dilation - axis.pad_begin;
      for (int64_t w = inner_begin_; w < inner_end_; ++w) {
        to[w] = Kind::add(to[w], from[w * axis.stride]);
      }
    }
  }

  // The commonest width and strides in one pass; in the order of fold_inner.
  void fold_three(Row* to) const {
    const int64_t stride = pool_.axes[2].stride;
    if (stride == 1) return fold_three_by([](int64_t w) { return w; }, to);
    if (stride == 2) return fold_three_by([](int64_t w) { return 2 * w; }, to);
    fold_three_by([stride](int64_t w) { return stride * w; }, to);
  }
  template <typename Place>
  void fold_three_by(const Place& place, Row* to) const {
    const WindowAxis& axis = pool_.axes[2];
    const Row* const first = memory_.row + place(inner_begin_) - axis.pad_begin;
    const Row* const second = first + axis.dilation;
    const Row* const third = second + axis.dilation;
    to += inner_begin_;
    for (int64_t i = 0; i < inner_end_ - inner_begin_; ++i) {
      const int64_t at = place(i);
      to[i] = Kind::add(Kind::add(Kind::add(Kind::kStart, first[at]), second[at]), third[at]);
    }
  }

  Row fold_outer(int64_t w) const {
    const PoolRange width = pool_.range(2, w);
    Row result = Kind::kStart;
    for (int64_t i = width.first; i < width.end; i += width.step) {
      result = Kind::add(result, memory_.row[i]);
    }
    return result;
  }

  // Sums become averages.
  void divide(const PoolRange& depth, const PoolRange& height, float* y) {
    const int64_t rows =
        counts_padding_ ? depth.padded * height.padded : depth.taps() * height.taps();
    if (rows != divided_rows_) set_divisors(rows);
    for (int64_t w = 0; w < pool_.output[2]; ++w) y[w] /= memory_.divisors[w];
  }
  void set_divisors(int64_t rows) {
    divided_rows_ = rows;
    for (int64_t w = 0; w < pool_.output[2]; ++w) {
      const PoolRange width = pool_.range(2, w);
      const int64_t count = rows * (counts_padding_ ? width.padded : width.taps());
      memory_.divisors[w] = static_cast<float>(std::max<int64_t>(count, 1));  // of no taps: 0 / 1
    }
  }

  const Pool& pool_;
  const Kind& kind_;
  const PoolMemory<Row>& memory_;
  const bool counts_padding_;
  int64_t inner_begin_, inner_end_;  // windows that reach into no padding
  int64_t divided_rows_ = -1;        // of the windows that the divisors are of
};

// Planes apart, by the elements that they read: each some times, row by row.
constexpr int64_t kTileElements = cpu::kTileElements / 4;
cpu::Tiles tiles_of(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  return cpu::Tiles::of(cpu::num_planes(x), cpu::plane_size(x), kTileElements);
}

// One window that is all of a plane.
template <typename Kind>
bool run_whole_planes(const KernelArgs& args, int64_t first, int64_t end);
template <>
bool run_whole_planes<Average>(const KernelArgs& args, int64_t first, int64_t end) {
  const TensorView& x = args.inputs[0];
  const int64_t size = cpu::plane_size(x);
  for (int64_t plane = first; plane < end; ++plane) {
    const float sum = cpu::tile_kernels().sum(x.as<float>() + plane * size, size);
    args.outputs[0].mutable_as<float>()[plane] = sum / static_cast<float>(size);
  }
  return true;
}

template <>
bool run_whole_planes<Max>(const KernelArgs& args, int64_t first, int64_t end) {
  const TensorView& x = args.inputs[0];
  const int64_t size = cpu::plane_size(x);
  const auto fold = cpu::loop_set().reduce[static_cast<size_t>(cpu::ReduceOp::kMax)].fold;
  for (int64_t plane = first; plane < end; ++plane) {
    args.outputs[0].mutable_as<float>()[plane] = fold(x.as<float>() + plane * size, size);
  }
  return true;
}

// Of chunks added up one element at a time, then all of a chunk.
template <>
bool run_whole_planes<Norm>(const KernelArgs& args, int64_t first, int64_t end) {
  constexpr int64_t kChunk = cpu::Powers::kChunk;
  const cpu::Powers powers(static_cast<const PoolState&>(*args.state).p);
  const TensorView& x = args.inputs[0];
  const int64_t size = cpu::plane_size(x);
  for (int64_t plane = first; plane < end; ++plane) {
    const float* const from = x.as<float>() + plane * size;
    double totals[kChunk] = {}, raised[kChunk];
    for (int64_t i = 0; i < size; i += kChunk) {
      const int64_t some = std::min(kChunk, size - i);
      powers.raise(from + i, raised, some);
      powers.add(raised, totals, some);
    }
    for (int64_t half = kChunk / 2; half > 0; half /= 2) powers.add(totals + half, totals, half);
    powers.root(totals, args.outputs[0].mutable_as<float>() + plane, 1);
  }
  return true;
}

template <typename Kind>
bool run_planes(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& state = static_cast<const PoolState&>(*args.state);
  const TensorView& x = args.inputs[0];
  EDDY_DCHECK(x.rank == args.outputs[0].rank && x.dims[0] == args.outputs[0].dims[0] &&
              x.dims[1] == args.outputs[0].dims[1])
      << "a pool changes the batch or its channels";
  Windows windows;
  Grid grid;
  Status status = parse_windows(state.attributes, x.rank - 2, nullptr, windows);
  if (status.is_ok()) status = make_grid(windows, x, args.outputs[0], grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  const Pool pool(grid);
  if (args.outputs[0].count() == 0) return true;
  if (pool.is_whole_plane()) return run_whole_planes<Kind>(args, first, end);
  using Memory = PoolMemory<typename Kind::Row>;
  void* const bytes = args.scratch->reserve(Memory::size_bytes(pool));
  if (bytes == nullptr) return args.fail(resource_exhausted("no memory for a row of a pool"));
  const Memory memory(pool, bytes);
  const Kind kind(state);
  PlanePool<Kind> planes(pool, kind, memory, state.counts_padding);
  float* y = args.outputs[0].mutable_as<float>();
  for (int64_t plane = first; plane < end; ++plane) {
    planes.run(x.as<float>() + plane * grid.input_size, y + plane * grid.output_size);
  }
  return true;
}
template <typename Kind>
bool run_pool(const KernelArgs& args) {
  return run_planes<Kind>(args, 0, cpu::num_planes(args.inputs[0]));
}

Status check_float(const KernelInit& init) {
  const TensorType& x = init.inputs[0].tensor;
  if (x.element == ElementType::kFloat) return Status::ok();
  return unsupported("the fast " + init.op.name + " handles float only");
}

template <typename Kind>
Result<BoundKernel> bind_pool(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_float(init));
  const size_t rank = init.attributes.get_ints("kernel_shape").size();
  if (rank > Pool::kRank) return unsupported("the fast pools have at most 3 spatial axes");
  if (init.outputs.size() > 1) return unsupported("this MaxPool finds no indices");
  auto state = std::make_unique<PoolState>();
  state->attributes = init.attributes;
  state->counts_padding = init.attributes.get_int("count_include_pad", 0) != 0;
  state->p = init.attributes.get_int("p", 2);
  BoundKernel kernel;
  kernel.run = run_pool<Kind>;
  if (cpu::fills_tiles(init.inputs[0], kTileElements)) {
    cpu::set_tiles<tiles_of, run_planes<Kind>>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

template <cpu::UnitsFunction run>
bool run_global_pool(const KernelArgs& args) {
  return run(args, 0, cpu::num_planes(args.inputs[0]));
}
template <cpu::UnitsFunction run>
Result<BoundKernel> bind_global_pool(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_float(init));
  BoundKernel kernel;
  kernel.run = run_global_pool<run>;
  if (cpu::fills_tiles(init.inputs[0])) cpu::set_tiles<tiles_of, run>(kernel);
  auto state = std::make_unique<PoolState>();
  state->p = init.attributes.get_int("p", 2);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_pool_cpu(KernelRegistry& registry) {
  registry.add({.op = "MaxPool", .bind = bind_pool<Max>, .provider = "cpu", .has_tiles = true});
  registry.add(
      {.op = "AveragePool", .bind = bind_pool<Average>, .provider = "cpu", .has_tiles = true});
  registry.add({.op = "LpPool", .bind = bind_pool<Norm>, .provider = "cpu", .has_tiles = true});
  registry.add({.op = "GlobalAveragePool",
                .bind = bind_global_pool<run_whole_planes<Average>>,
                .provider = "tile",
                .has_tiles = true});
  registry.add({.op = "GlobalLpPool",
                .bind = bind_global_pool<run_whole_planes<Norm>>,
                .provider = "cpu",
                .has_tiles = true});
  registry.add({.op = "GlobalMaxPool",
                .bind = bind_global_pool<run_whole_planes<Max>>,
                .provider = "cpu",
                .has_tiles = true});
}

}  // namespace eddy
