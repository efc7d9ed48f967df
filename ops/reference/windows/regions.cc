// MaxRoiPool, NonMaxSuppression and RoiAlign: boxes of images.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/windows/regions.h"

namespace eddy {
namespace {

struct SuppressionState : KernelState {
  bool is_centred = false;
};

struct Box {
  float low[2], high[2];

  // [y1, x1, y2, x2] by any two opposite corners, or [x, y, width, height] around a middle.
  static Box of(const float* from, bool is_centred) {
    Box box;
    for (size_t axis : {0, 1}) {
      const float a = is_centred ? from[1 - axis] - from[3 - axis] / 2 : from[axis];
      const float b = is_centred ? from[1 - axis] + from[3 - axis] / 2 : from[axis + 2];
      box.low[axis] = std::min(a, b);
      box.high[axis] = std::max(a, b);
    }
    return box;
  }
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
  // The part of their union that both cover.
  float overlap(const Box& other) const {
    float shared = 1;
    for (size_t axis : {0, 1}) {
      shared *= std::max(
          0.0f, std::min(high[axis], other.high[axis]) - std::max(low[axis], other.low[axis]));
    }
    const float all = area() + other.area() - shared;
    return shared <= 0 || all <= 0 ? 0 : shared / all;
  }
};

template <typename T>
T scalar_or(const ValueContext& context, size_t i, T fallback) {
  return context.has_input(i) ? context.tensor(i).as<T>()[0] : fallback;
}

// The boxes of one class that stay, best first; ties in their order.
std::vector<int64_t> select(const std::vector<Box>& boxes, const float* scores, float least_score,
                            float most_overlap, int64_t most) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i) {
    if (scores[i] > least_score) order.push_back(i);
  }
  // The best on top; only as many are put in order as are looked at.
  const auto is_worse = [&](int64_t a, int64_t b) {
    return scores[a] < scores[b] || (scores[a] == scores[b] && a > b);
  };
  std::make_heap(order.begin(), order.end(), is_worse);
  std::vector<int64_t> kept;
  for (; !order.empty() && static_cast<int64_t>(kept.size()) < most; order.pop_back()) {
    const int64_t i = order.front();
    std::pop_heap(order.begin(), order.end(), is_worse);
    const bool stays = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
      return boxes[static_cast<size_t>(i)].overlap(boxes[static_cast<size_t>(other)]) >
             most_overlap;
    });
    if (stays) kept.push_back(i);
  }
  return kept;
}

Status run_suppression(ValueContext& context) {
  const auto& state = static_cast<const SuppressionState&>(*context.state());
  const TensorView boxes = context.tensor(0), scores = context.tensor(1);
  const auto most = scalar_or<int64_t>(context, 2, 0);
  const float most_overlap = scalar_or<float>(context, 3, 0);
  const float least_score = scalar_or<float>(context, 4, -HUGE_VALF);
  if (!(most_overlap >= 0 && most_overlap <= 1)) {
    return run_failed("iou_threshold must lie in 0 to 1, not " + std::to_string(most_overlap));
  }
  const int64_t count = boxes.dims[1], classes = scores.dims[1];
  std::vector<int64_t> selected;
  std::vector<Box> of_image(static_cast<size_t>(count));
  for (int64_t b = 0; b < boxes.dims[0]; ++b) {
    for (int64_t i = 0; i < count; ++i) {
      of_image[static_cast<size_t>(i)] =
          Box::of(boxes.as<float>() + (b * count + i) * 4, state.is_centred);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const float* of_class = scores.as<float>() + (b * classes + c) * count;
      for (const int64_t i : select(of_image, of_class, least_score, most_overlap, most)) {
        selected.insert(selected.end(), {b, c, i});
      }
    }
  }
  const auto rows = static_cast<int64_t>(selected.size() / 3);
  EDDY_ASSIGN_OR_RETURN(const TensorView out, context.allocate(0, ElementType::kInt64, {rows, 3}));
  std::copy(selected.begin(), selected.end(), out.mutable_as<int64_t>());
  return Status::ok();
}

Result<BoundKernel> bind_suppression(const KernelInit& init) {
  auto state = std::make_unique<SuppressionState>();
  state->is_centred = init.attributes.get_int("center_point_box", 0) != 0;
  return BoundKernel{.run_value = run_suppression, .state = std::move(state)};
}

struct AlignState : KernelState {
  AlignRule rule;
};

// The larger one, where NaN is larger than everything.
double larger(double a, double b) { return a > b || a != a ? a : b; }

// What lies between the four elements around a place, one by one: an element times its weight,
// nothing where it has none.
template <typename Use>
void around(const TensorView& x, int64_t plane, const AxisPlace& row, const AxisPlace& column,
            Use use) {
  for (const int64_t down : {0, 1}) {
    for (const int64_t right : {0, 1}) {
      const double weight = (down != 0 ? row.beyond : 1 - row.beyond) *
                            (right != 0 ? column.beyond : 1 - column.beyond);
      const int64_t i = down != 0 ? row.second : row.first;
      const int64_t j = right != 0 ? column.second : column.first;
      use(weight == 0 ? 0 : weight * load_number(x, plane + i * x.dims[3] + j).to_double());
    }
  }
}

// A sample outside is 0. The greatest is that of the parts of all samples, not of their sums.
double align_bin(const AlignRule& rule, const TensorView& x, int64_t plane,
                 const AlignRegion& region, int64_t bin_y, int64_t bin_x) {
  const AlignAxis &rows = region.rows, &columns = region.columns;
  double sum = 0, greatest = -HUGE_VAL;
  for (int64_t i = 0; i < rows.samples; ++i) {
    const AxisPlace row = AxisPlace::of(rows.place(bin_y, i), x.dims[2]);
    for (int64_t j = 0; j < columns.samples; ++j) {
      const AxisPlace column = AxisPlace::of(columns.place(bin_x, j), x.dims[3]);
      if (!row.is_inside || !column.is_inside) {
        greatest = larger(greatest, 0);
        continue;
      }
      around(x, plane, row, column, [&](double part) {
        sum += part;
        greatest = larger(greatest, part);
      });
    }
  }
  const int64_t count = rows.samples * columns.samples;
  if (count == 0) return 0;
  return rule.takes_max ? greatest : sum / static_cast<double>(count);
}

bool run_roi_align(const KernelArgs& args) {
  const AlignRule& rule = static_cast<const AlignState&>(*args.state).rule;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t size = x.dims[2] * x.dims[3], out_size = y.dims[2] * y.dims[3];
  for (int64_t r = 0; r < y.dims[0]; ++r) {
    Result<AlignRegion> region = AlignRegion::of(rule, args, r);
    if (!region.is_ok()) return args.fail(region.status());
    for (int64_t c = 0; c < x.dims[1]; ++c) {
      const int64_t plane = (region->image * x.dims[1] + c) * size;
      for (int64_t bin = 0; bin < out_size; ++bin) {
        const double value =
            size == 0 ? 0 : align_bin(rule, x, plane, *region, bin / y.dims[3], bin % y.dims[3]);
        store_number(y, (r * x.dims[1] + c) * out_size + bin, Number::of_double(value));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_roi_align(const KernelInit& init) {
  auto state = std::make_unique<AlignState>();
  state->rule = AlignRule::of(init);
  return BoundKernel{.run = run_roi_align, .state = std::move(state)};
}

struct RoiPoolState : KernelState {
  float scale = 1;
};

bool run_max_roi_pool(const KernelArgs& args) {
  const auto& state = static_cast<const RoiPoolState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t height = x.dims[2], width = x.dims[3], channels = x.dims[1];
  int64_t out = 0;
  for (int64_t r = 0; r < y.dims[0]; ++r) {
    Result<PoolRegion> region = PoolRegion::of(state.scale, args, r);
    if (!region.is_ok()) return args.fail(region.status());
    const PoolAxis &rows = region->rows, &columns = region->columns;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = (region->image * channels + c) * height * width;
      for (int64_t bin = 0; bin < y.dims[2] * y.dims[3]; ++bin) {
        const int64_t bin_y = bin / y.dims[3], bin_x = bin % y.dims[3];
        double most = 0;  // of a bin without elements
        bool is_first = true;
        for (int64_t i = rows.first(bin_y); i < rows.end(bin_y); ++i) {
          for (int64_t j = columns.first(bin_x); j < columns.end(bin_x); ++j) {
            const double value = load_number(x, plane + i * width + j).to_double();
            most = is_first ? value : larger(most, value);
            is_first = false;
          }
        }
        store_number(y, out++, Number::of_double(most));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_max_roi_pool(const KernelInit& init) {
  auto state = std::make_unique<RoiPoolState>();
  state->scale = init.attributes.get_float("spatial_scale", 1);
  return BoundKernel{.run = run_max_roi_pool, .state = std::move(state)};
}

}  // namespace

AlignRule AlignRule::of(const KernelInit& init) {
  const std::string_view pixels =
      init.attributes.get_string("coordinate_transformation_mode", "half_pixel");
  return {.takes_max = init.attributes.get_string("mode", "avg") == "max",
          .has_half_pixel = init.opset_version >= 16 && pixels == "half_pixel",
          .ratio = init.attributes.get_int("sampling_ratio", 0),
          .scale = init.attributes.get_float("spatial_scale", 1)};
}

Result<AlignRegion> AlignRegion::of(const AlignRule& rule, const KernelArgs& args, int64_t r) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t image = args.inputs[2].as<int64_t>()[r];
  if (image < 0 || image >= x.dims[0]) {
    return run_failed("batch_indices[" + std::to_string(r) + "] is " + std::to_string(image) +
                      ", out of range 0.." + std::to_string(x.dims[0] - 1));
  }
  const auto edge = [&](int64_t i) { return load_number(args.inputs[1], r * 4 + i).to_double(); };
  const AlignRegion region{
      image, {rule, edge(1), edge(3), y.dims[2]}, {rule, edge(0), edge(2), y.dims[3]}};
  if (region.rows.is_too_large || region.columns.is_too_large) {
    return run_failed("region " + std::to_string(r) + " is more than " +
                      std::to_string(AlignAxis::kMostSamples) +
                      " elements wide or high for each bin");
  }
  return region;
}

Result<PoolRegion> PoolRegion::of(float scale, const KernelArgs& args, int64_t r) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const auto corner = [&](int64_t i) {
    return static_cast<float>(load_number(args.inputs[1], r * 5 + i).to_double());
  };
  const float image = corner(0);
  if (!(image >= 0 && image < static_cast<float>(x.dims[0]))) {
    return run_failed("rois[" + std::to_string(r) + ", 0] is " + std::to_string(image) +
                      ", which is none of the " + std::to_string(x.dims[0]) + " images");
  }
  return PoolRegion{static_cast<int64_t>(image),
                    {scale, corner(2), corner(4), y.dims[2], x.dims[2]},
                    {scale, corner(1), corner(3), y.dims[3], x.dims[3]}};
}

void add_regions_reference(KernelRegistry& registry) {
  registry.add({.op = "MaxRoiPool", .bind = bind_max_roi_pool, .provider = "reference"});
  registry.add({.op = "NonMaxSuppression",
                .since_version = 10,
                .bind = bind_suppression,
                .provider = "reference"});
  registry.add(
      {.op = "RoiAlign", .since_version = 10, .bind = bind_roi_align, .provider = "reference"});
}

}  // namespace eddy
