// RoiAlign and MaxRoiPool of floats: a region's places and weights once for all channels, axis by
// axis; then some channels at a time, rows first.
#include <algorithm>
#include <limits>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/sample/region.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/windows/regions.h"

namespace eddy {
namespace {

using cpu::RegionTaps;
using cpu::Tiles;

constexpr int64_t kTileWork = 16'384;  // elements of the output: each is made of many

// How a call is cut: regions, and channels of each. A call without channels has regions, too, which
// may be refused.
struct Parts {
  int64_t num_channels, channels_each, num_groups;

  explicit Parts(const KernelArgs& args)
      : num_channels(args.inputs[0].dims[1]),
        channels_each(std::clamp<int64_t>(num_channels, 1, 64)),
        num_groups(std::max<int64_t>((num_channels + channels_each - 1) / channels_each, 1)) {}
  int64_t region(int64_t unit) const { return unit / num_groups; }
  int64_t first(int64_t unit) const { return unit % num_groups * channels_each; }
  int64_t end(int64_t unit) const { return std::min(first(unit) + channels_each, num_channels); }
};

Tiles tiles_of(const KernelArgs& args) {
  const Parts parts(args);
  const TensorView& y = args.outputs[0];
  return Tiles::of(y.dims[0] * parts.num_groups, parts.channels_each * y.dims[2] * y.dims[3],
                   kTileWork);
}

// Arrays one behind the other, first counted and then placed.
class Layout {
 public:
  explicit Layout(void* memory_or_null = nullptr)
      : memory_(static_cast<std::byte*>(memory_or_null)) {}
  template <typename T>
  T* take(int64_t count) {
    void* at = memory_ == nullptr ? nullptr : memory_ + size_;
    size_ += (static_cast<size_t>(count) * sizeof(T) + 7) / 8 * 8;
    return static_cast<T*>(at);
  }
  size_t size_bytes() const { return size_; }

 private:
  std::byte* memory_;
  size_t size_ = 0;
};

// The taps of an axis: what its samples read, each element once for each bin, with the sum of its
// weights (means) or the least and the greatest of them.
class AxisTaps {
 public:
  AxisTaps(Layout& layout, const AlignAxis& axis, int64_t bins, int64_t size)
      : axis_(axis), bins_(bins), size_(size) {
    const int64_t most = bins * std::min(2 * axis.samples, size);
    begin_ = layout.take<int64_t>(bins + 1);
    place_ = layout.take<int64_t>(most);
    slot_ = layout.take<int64_t>(size);
    low_ = layout.take<float>(most);
    high_ = layout.take<float>(most);
    has_none_ = layout.take<bool>(bins);
    is_run_ = layout.take<bool>(bins);
  }

  void fill(bool takes_max) {
    std::fill_n(slot_, size_, int64_t{-1});
    for (int64_t b = 0; b < bins_; ++b) {
      begin_[b] = count_;
      has_none_[b] = axis_.samples == 0;
      is_run_[b] = true;
      for (int64_t i = 0; i < axis_.samples; ++i) {
        const AxisPlace place = size_ == 0 ? AxisPlace() : AxisPlace::of(axis_.place(b, i), size_);
        if (!place.is_inside) {
          has_none_[b] = true;
          continue;
        }
        add(b, place.first, static_cast<float>(1 - place.beyond), takes_max);
        add(b, place.second, static_cast<float>(place.beyond), takes_max);
      }
    }
    begin_[bins_] = count_;
    EDDY_DCHECK(count_ <= bins_ * std::min(2 * axis_.samples, size_)) << count_ << " taps";
  }

  // Elements that are read, from `first` to before `end`; no taps: none.
  int64_t first() const { return count_ == 0 ? 0 : first_; }
  int64_t end() const { return count_ == 0 ? 0 : end_; }
  // Counts places from `first` on.
  RegionTaps taps(int64_t first) const {
    for (int64_t k = 0; k < count_; ++k) place_[k] -= first;
    return {bins_, begin_, place_, low_, high_, has_none_, is_run_};
  }

 private:
  void add(int64_t bin, int64_t place, float weight, bool takes_max) {
    if (weight == 0) {
      has_none_[bin] = true;
      return;
    }
    if (slot_[place] >= begin_[bin]) {
      const int64_t k = slot_[place];
      high_[k] = takes_max ? std::max(high_[k], weight) : high_[k] + weight;
      low_[k] = std::min(low_[k], weight);
      return;
    }
    is_run_[bin] &= count_ == begin_[bin] || place_[count_ - 1] + 1 == place;
    first_ = std::min(first_, place);
    end_ = std::max(end_, place + 1);
    slot_[place] = count_;
    place_[count_] = place;
    low_[count_] = high_[count_] = weight;
    ++count_;
  }

  const AlignAxis& axis_;
  const int64_t bins_, size_;
  int64_t count_ = 0, first_ = INT64_MAX, end_ = 0;
  int64_t *begin_, *place_, *slot_;  // slot: of each element its latest tap
  float *low_, *high_;
  bool *has_none_, *is_run_;
};

struct AlignState : KernelState {
  AlignRule rule;
};

bool fail_memory(const KernelArgs& args) {
  return args.fail(resource_exhausted("no memory for the places of a region"));
}

bool align_unit(const KernelArgs& args, const AlignRule& rule, const Parts& parts, int64_t unit) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t r = parts.region(unit), size = x.dims[2] * x.dims[3];
  const int64_t out_size = y.dims[2] * y.dims[3];
  Result<AlignRegion> region = AlignRegion::of(rule, args, r);
  if (!region.is_ok()) return args.fail(region.status());
  const auto lay_out = [&](Layout& layout) {
    AxisTaps rows(layout, region->rows, y.dims[2], x.dims[2]);
    AxisTaps columns(layout, region->columns, y.dims[3], x.dims[3]);
    return std::pair(rows, columns);
  };
  Layout counted;
  lay_out(counted);
  const int64_t width = x.dims[3];
  const size_t line_bytes = static_cast<size_t>(width) * sizeof(float);
  void* memory = args.scratch->reserve(counted.size_bytes() + line_bytes + 1);
  if (memory == nullptr) return fail_memory(args);
  Layout layout(memory);
  auto [rows, columns] = lay_out(layout);
  rows.fill(rule.takes_max);
  columns.fill(rule.takes_max);
  cpu::RegionArgs t;
  t.width = width;
  t.rows = rows.taps(0);
  t.columns = columns.taps(columns.first());
  t.first_column = columns.first();
  t.num_columns = columns.end() - columns.first();
  t.line = layout.take<float>(width);
  const int64_t samples = region->rows.samples * region->columns.samples;
  t.factor = static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(samples, 1)));
  const cpu::RegionLoops& loops = cpu::region_loops(cpu::tile_kernels().isa);
  const auto run = rule.takes_max ? loops.most : loops.mean;
  for (int64_t c = parts.first(unit); c < parts.end(unit); ++c) {
    t.plane = x.as<float>() + (region->image * parts.num_channels + c) * size;
    t.out = y.mutable_as<float>() + (r * parts.num_channels + c) * out_size;
    run(t);
  }
  return true;
}

bool run_align(const KernelArgs& args, int64_t first, int64_t end) {
  const AlignRule& rule = static_cast<const AlignState&>(*args.state).rule;
  const Parts parts(args);
  for (int64_t unit = first; unit < end; ++unit) {
    if (!align_unit(args, rule, parts, unit)) return false;
  }
  return true;
}

struct RoiPoolState : KernelState {
  double scale = 1;
};

// Elements that a bin has on an axis.
struct Range {
  int64_t first, end;
};

// The largest element of each bin of a plane; `line` has room for a row.
void pool_bins(const float* plane, const PoolRegion& region, int64_t bins_down,
               std::span<const Range> columns, float* line, float* out) {
  const cpu::ReduceLoops& loops = cpu::loop_set().reduce[static_cast<size_t>(cpu::ReduceOp::kMax)];
  const auto larger = [](float a, float b) { return a > b || a != a ? a : b; };
  const int64_t width = region.columns.size;
  int64_t first = width, end = 0;
  for (const Range& range : columns) {
    if (range.first >= range.end) continue;
    first = std::min(first, range.first);
    end = std::max(end, range.end);
  }
  for (int64_t i = 0; i < bins_down; ++i, out += columns.size()) {
    const Range rows{region.rows.first(i), region.rows.end(i)};
    for (int64_t row = rows.first; row < rows.end && first < end; ++row) {
      (row == rows.first ? loops.start_row : loops.fold_row)(plane + row * width + first, line,
                                                             end - first);
    }
    for (size_t j = 0; j < columns.size(); ++j) {
      const Range& range = columns[j];
      out[j] = 0;
      if (rows.first >= rows.end || range.first >= range.end) continue;
      float most = line[range.first - first];
      for (int64_t c = range.first + 1; c < range.end; ++c) most = larger(most, line[c - first]);
      out[j] = most;
    }
  }
}

bool run_max_roi_pool(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& state = static_cast<const RoiPoolState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Parts parts(args);
  const int64_t size = x.dims[2] * x.dims[3], bins = y.dims[3], out_size = y.dims[2] * bins;
  const size_t range_bytes = static_cast<size_t>(bins) * sizeof(Range);
  void* memory =
      args.scratch->reserve(range_bytes + static_cast<size_t>(x.dims[3]) * sizeof(float));
  if (memory == nullptr) return fail_memory(args);
  const std::span<Range> columns(static_cast<Range*>(memory), static_cast<size_t>(bins));
  auto* const line = reinterpret_cast<float*>(static_cast<std::byte*>(memory) + range_bytes);
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t r = parts.region(unit);
    Result<PoolRegion> region = PoolRegion::of(state.scale, args, r);
    if (!region.is_ok()) return args.fail(region.status());
    for (int64_t j = 0; j < bins; ++j) {
      columns[static_cast<size_t>(j)] = {region->columns.first(j), region->columns.end(j)};
    }
    for (int64_t c = parts.first(unit); c < parts.end(unit); ++c) {
      pool_bins(x.as<float>() + (region->image * parts.num_channels + c) * size, *region, y.dims[2],
                columns, line, y.mutable_as<float>() + (r * parts.num_channels + c) * out_size);
    }
  }
  return true;
}

template <cpu::UnitsFunction run>
Result<BoundKernel> bind_regions(const KernelInit& init, std::unique_ptr<KernelState> state) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return cpu::no_fast_kernel(init);
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of, run>;
  if (cpu::fills_tiles(init.outputs[0], kTileWork)) cpu::set_tiles<tiles_of, run>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

Result<BoundKernel> bind_roi_align(const KernelInit& init) {
  auto state = std::make_unique<AlignState>();
  state->rule = AlignRule::of(init);
  return bind_regions<run_align>(init, std::move(state));
}

Result<BoundKernel> bind_max_roi_pool(const KernelInit& init) {
  auto state = std::make_unique<RoiPoolState>();
  state->scale = init.attributes.get_float("spatial_scale", 1);
  return bind_regions<run_max_roi_pool>(init, std::move(state));
}

}  // namespace

void add_regions_cpu(KernelRegistry& registry) {
  registry.add({.op = "MaxRoiPool", .bind = bind_max_roi_pool, .has_tiles = true});
  registry.add({.op = "RoiAlign", .since_version = 10, .bind = bind_roi_align, .has_tiles = true});
}

}  // namespace eddy
