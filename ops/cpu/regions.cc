// RoiAlign and MaxRoiPool of floats: a region's places and weights once for all channels, axis by
// axis; then some channels at a time, rows first.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
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

int64_t most_taps(const AlignAxis& axis, int64_t bins, int64_t size) {
  return bins * std::min(2 * axis.samples, size);
}
int64_t most_taps(const PoolAxis& axis, int64_t bins, int64_t) {
  int64_t most = 0;
  for (int64_t b = 0; b < bins; ++b) most += std::max<int64_t>(axis.end(b) - axis.first(b), 0);
  return most;
}

// The taps of an axis: what its samples read, each element once for each bin, with the sum of its
// weights (means) or the least and the greatest of them.
class AxisTaps {
 public:
  AxisTaps(Layout& layout, int64_t bins, int64_t size, int64_t most)
      : bins_(bins), size_(size), most_(most) {
    begin_ = layout.take<int64_t>(bins + 1);
    place_ = layout.take<int64_t>(most);
    slot_ = layout.take<int64_t>(size);
    low_ = layout.take<float>(most);
    high_ = layout.take<float>(most);
    has_none_ = layout.take<bool>(bins);
    is_run_ = layout.take<bool>(bins);
  }

  void fill(const AlignAxis& axis, bool takes_max) {
    std::fill_n(slot_, size_, int64_t{-1});
    for (int64_t b = 0; b < bins_; ++b) {
      begin_bin(b);
      has_none_[b] = axis.samples == 0;
      for (int64_t i = 0; i < axis.samples; ++i) {
        const AxisPlace place = size_ == 0 ? AxisPlace() : AxisPlace::of(axis.place(b, i), size_);
        if (!place.is_inside) {
          has_none_[b] = true;
          continue;
        }
        add(b, place.first, static_cast<float>(1 - place.beyond), takes_max);
        add(b, place.second, static_cast<float>(place.beyond), takes_max);
      }
    }
    begin_[bins_] = count_;
  }

  // Each element whole.
  void fill(const PoolAxis& axis, bool) {
    for (int64_t b = 0; b < bins_; ++b) {
      begin_bin(b);
      for (int64_t place = axis.first(b); place < axis.end(b); ++place) append(b, place, 1);
      has_none_[b] = count_ == begin_[b];
    }
    begin_[bins_] = count_;
  }

  // Elements that are read, from `first` to before `end`; no taps: none.
  int64_t first() const { return count_ == 0 ? 0 : first_; }
  int64_t end() const { return count_ == 0 ? 0 : end_; }
  // Counts places from `first` on.
  RegionTaps taps(int64_t first) {
    for (int64_t k = 0; k < count_; ++k) place_[k] -= first;
    return {bins_, begin_, place_, low_, high_, has_none_, is_run_};
  }

 private:
  void begin_bin(int64_t bin) {
    begin_[bin] = count_;
    is_run_[bin] = true;
  }
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
    slot_[place] = count_;
    append(bin, place, weight);
  }
  void append(int64_t bin, int64_t place, float weight) {
    EDDY_DCHECK(count_ < most_) << "more than " << most_ << " taps";
    is_run_[bin] &= count_ == begin_[bin] || place_[count_ - 1] + 1 == place;
    first_ = std::min(first_, place);
    end_ = std::max(end_, place + 1);
    place_[count_] = place;
    low_[count_] = high_[count_] = weight;
    ++count_;
  }

  const int64_t bins_, size_, most_;
  int64_t count_ = 0, first_ = INT64_MAX, end_ = 0;
  int64_t *begin_, *place_, *slot_;  // slot: of each element its latest tap
  float *low_, *high_;
  bool *has_none_, *is_run_;
};

// What a call does with each bin of a region of its own.
struct BinRule {
  bool takes_max = false;
  float factor = 1;  // of means
};

// The columns that are read, and some more where the image has them, so that they are whole
// vectors.
void set_columns(AxisTaps& columns, int64_t width, cpu::RegionArgs& t) {
  constexpr int64_t kVector = 16;
  const int64_t count = columns.end() - columns.first();
  const int64_t wanted = (count + kVector - 1) / kVector * kVector;
  t.num_columns = wanted <= width ? wanted : count;
  t.first_column = std::min(columns.first(), width - t.num_columns);
  t.columns = columns.taps(t.first_column);
}

template <typename Region>
bool run_region(const KernelArgs& args, const Parts& parts, int64_t unit, const Region& region,
                const BinRule& rule) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t height = x.dims[2], width = x.dims[3];
  const int64_t num_rows = most_taps(region.rows, y.dims[2], height);
  const int64_t num_columns = most_taps(region.columns, y.dims[3], width);
  const auto lay_out = [&](Layout& layout) {
    AxisTaps rows(layout, y.dims[2], height, num_rows);
    AxisTaps columns(layout, y.dims[3], width, num_columns);
    return std::pair(rows, columns);
  };
  Layout counted;
  lay_out(counted);
  counted.take<float>(width);
  void* memory = args.scratch->reserve(counted.size_bytes());
  if (memory == nullptr) {
    return args.fail(resource_exhausted("no memory for the places of a region"));
  }
  Layout layout(memory);
  auto [rows, columns] = lay_out(layout);
  rows.fill(region.rows, rule.takes_max);
  columns.fill(region.columns, rule.takes_max);
  cpu::RegionArgs t;
  t.width = width;
  t.rows = rows.taps(0);
  set_columns(columns, width, t);
  t.line = layout.take<float>(width);
  t.factor = rule.factor;
  const cpu::RegionLoops& loops = cpu::region_loops(cpu::tile_kernels().isa);
  const auto run = rule.takes_max ? loops.most : loops.mean;
  const int64_t out_size = y.dims[2] * y.dims[3];
  for (int64_t c = parts.first(unit); c < parts.end(unit); ++c) {
    t.plane = x.as<float>() + (region.image * parts.num_channels + c) * height * width;
    t.out = y.mutable_as<float>() + (parts.region(unit) * parts.num_channels + c) * out_size;
    run(t);
  }
  return true;
}

struct AlignState : KernelState {
  AlignRule rule;
};

bool run_align(const KernelArgs& args, int64_t first, int64_t end) {
  const AlignRule& rule = static_cast<const AlignState&>(*args.state).rule;
  const Parts parts(args);
  for (int64_t unit = first; unit < end; ++unit) {
    Result<AlignRegion> region = AlignRegion::of(rule, args, parts.region(unit));
    if (!region.is_ok()) return args.fail(region.status());
    const int64_t samples = region->rows.samples * region->columns.samples;
    const BinRule bins = {rule.takes_max, 1 / static_cast<float>(std::max<int64_t>(samples, 1))};
    if (!run_region(args, parts, unit, *region, bins)) return false;
  }
  return true;
}

struct RoiPoolState : KernelState {
  float scale = 1;
};

bool run_max_roi_pool(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& state = static_cast<const RoiPoolState&>(*args.state);
  const Parts parts(args);
  for (int64_t unit = first; unit < end; ++unit) {
    Result<PoolRegion> region = PoolRegion::of(state.scale, args, parts.region(unit));
    if (!region.is_ok()) return args.fail(region.status());
    if (!run_region(args, parts, unit, *region, {.takes_max = true})) return false;
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
