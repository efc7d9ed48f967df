// MaxRoiPool, NonMaxSuppression and RoiAlign: boxes of images.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"

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
  bool takes_max = false, has_half_pixel = true;
  int64_t ratio = 0;
  double scale = 1;
};

// Between the four elements around (y, x); 0 more than one element outside. Given to `use` one by
// one: element, weight.
template <typename Use>
void around(int64_t height, int64_t width, double y, double x, Use use) {
  const double h = static_cast<double>(height), w = static_cast<double>(width);
  if (!(y >= -1 && y <= h && x >= -1 && x <= w)) return;
  y = std::clamp(y, 0.0, h - 1);
  x = std::clamp(x, 0.0, w - 1);
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const double down = y - static_cast<double>(top), right = x - static_cast<double>(left);
  const int64_t bottom = std::min(top + 1, height - 1), far = std::min(left + 1, width - 1);
  use(top * width + left, (1 - down) * (1 - right));
  use(top * width + far, (1 - down) * right);
  use(bottom * width + left, down * (1 - right));
  use(bottom * width + far, down * right);
}

// One axis of a region: where it starts, the size of a bin, and the samples in each.
struct RegionAxis {
  static constexpr double kMostSamples = 1 << 12;
  double start, bin;
  int64_t samples;
  bool is_too_large;

  RegionAxis(const AlignState& state, double low, double high, int64_t bins) {
    const double shift = state.has_half_pixel ? 0.5 : 0;
    start = low * state.scale - shift;
    double size = high * state.scale - shift - start;
    if (!state.has_half_pixel) size = std::max(size, 1.0);
    bin = size / static_cast<double>(bins);
    const double wanted = state.ratio > 0 ? static_cast<double>(state.ratio) : std::ceil(bin);
    is_too_large = !(wanted <= kMostSamples);
    samples = wanted >= 1 && !is_too_large ? static_cast<int64_t>(wanted) : 0;
  }
  double place(int64_t of_bin, int64_t sample) const {
    return start + static_cast<double>(of_bin) * bin +
           (static_cast<double>(sample) + 0.5) * bin / static_cast<double>(samples);
  }
};

double align_bin(const AlignState& state, const TensorView& x, int64_t plane,
                 const RegionAxis& rows, const RegionAxis& columns, int64_t bin_y, int64_t bin_x) {
  double sum = 0, greatest = -HUGE_VAL;
  for (int64_t i = 0; i < rows.samples; ++i) {
    for (int64_t j = 0; j < columns.samples; ++j) {
      double sample = 0, most = 0;
      bool is_first = true;
      around(x.dims[2], x.dims[3], rows.place(bin_y, i), columns.place(bin_x, j),
             [&](int64_t at, double weight) {
               const double part = weight * load_number(x, plane + at).to_double();
               sample += part;
               most = is_first ? part : std::max(most, part);
               is_first = false;
             });
      sum += sample;
      greatest = std::max(greatest, most);
    }
  }
  const double count = static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
  if (!state.takes_max) return sum / count;
  return rows.samples * columns.samples == 0 ? 0 : greatest;
}

bool run_roi_align(const KernelArgs& args) {
  const auto& state = static_cast<const AlignState&>(*args.state);
  const TensorView &x = args.inputs[0], &rois = args.inputs[1], &y = args.outputs[0];
  const int64_t size = x.dims[2] * x.dims[3], out_size = y.dims[2] * y.dims[3];
  for (int64_t r = 0; r < y.dims[0]; ++r) {
    const int64_t image = args.inputs[2].as<int64_t>()[r];
    if (image < 0 || image >= x.dims[0]) {
      return args.fail(run_failed("batch_indices[" + std::to_string(r) + "] is " +
                                  std::to_string(image) + ", out of range 0.." +
                                  std::to_string(x.dims[0] - 1)));
    }
    const auto edge = [&](int64_t i) { return load_number(rois, r * 4 + i).to_double(); };
    const RegionAxis rows(state, edge(1), edge(3), y.dims[2]);
    const RegionAxis columns(state, edge(0), edge(2), y.dims[3]);
    if (rows.is_too_large || columns.is_too_large) {
      return args.fail(run_failed("region " + std::to_string(r) +
                                  " is more than 4096 elements wide or high for each bin"));
    }
    for (int64_t c = 0; c < x.dims[1]; ++c) {
      const int64_t plane = (image * x.dims[1] + c) * size;
      for (int64_t bin = 0; bin < out_size; ++bin) {
        const double value =
            size == 0 ? 0
                      : align_bin(state, x, plane, rows, columns, bin / y.dims[3], bin % y.dims[3]);
        store_number(y, (r * x.dims[1] + c) * out_size + bin, Number::of_double(value));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_roi_align(const KernelInit& init) {
  auto state = std::make_unique<AlignState>();
  state->takes_max = init.attributes.get_string("mode", "avg") == "max";
  const std::string_view pixels =
      init.attributes.get_string("coordinate_transformation_mode", "half_pixel");
  state->has_half_pixel = init.opset_version >= 16 && pixels == "half_pixel";
  state->ratio = init.attributes.get_int("sampling_ratio", 0);
  state->scale = init.attributes.get_float("spatial_scale", 1);
  return BoundKernel{.run = run_roi_align, .state = std::move(state)};
}

struct RoiPoolState : KernelState {
  double scale = 1;
};

// One axis of a region of whole elements: the bins divide it, and share the elements between them.
struct PoolAxis {
  double start, bin;
  int64_t size;  // of the image

  PoolAxis(double scale, double low, double high, int64_t bins, int64_t image_size)
      : start(std::round(low * scale)),
        bin(std::max(std::round(high * scale) - start + 1, 1.0) / static_cast<double>(bins)),
        size(image_size) {}
  // Elements of the image, from `first` to before `end`.
  int64_t first(int64_t of_bin) const {
    return place(std::floor(static_cast<double>(of_bin) * bin));
  }
  int64_t end(int64_t of_bin) const {
    return place(std::ceil(static_cast<double>(of_bin + 1) * bin));
  }

 private:
  // NaN is nowhere: a bin of no element.
  int64_t place(double offset) const {
    const double at = std::min(std::max(start + offset, 0.0), static_cast<double>(size));
    return static_cast<int64_t>(at);
  }
};

bool run_max_roi_pool(const KernelArgs& args) {
  const auto& state = static_cast<const RoiPoolState&>(*args.state);
  const TensorView &x = args.inputs[0], &rois = args.inputs[1], &y = args.outputs[0];
  const int64_t height = x.dims[2], width = x.dims[3], channels = x.dims[1];
  int64_t out = 0;
  for (int64_t r = 0; r < y.dims[0]; ++r) {
    const auto corner = [&](int64_t i) { return load_number(rois, r * 5 + i).to_double(); };
    const double image = corner(0);
    if (!(image >= 0 && image < static_cast<double>(x.dims[0]))) {
      return args.fail(run_failed("rois[" + std::to_string(r) + ", 0] is " + std::to_string(image) +
                                  ", which is none of the " + std::to_string(x.dims[0]) +
                                  " images"));
    }
    const PoolAxis columns(state.scale, corner(1), corner(3), y.dims[3], width);
    const PoolAxis rows(state.scale, corner(2), corner(4), y.dims[2], height);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = (static_cast<int64_t>(image) * channels + c) * height * width;
      for (int64_t bin = 0; bin < y.dims[2] * y.dims[3]; ++bin) {
        const int64_t bin_y = bin / y.dims[3], bin_x = bin % y.dims[3];
        double most = 0;  // of a bin without elements
        bool is_first = true;
        for (int64_t i = rows.first(bin_y); i < rows.end(bin_y); ++i) {
          for (int64_t j = columns.first(bin_x); j < columns.end(bin_x); ++j) {
            const double value = load_number(x, plane + i * width + j).to_double();
            most = is_first ? value : std::max(most, value);
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
