// NonMaxSuppression: a score and its box's number are one integer, so that the best boxes are found
// and put in order without looking at the scores again; the boxes that stay lie side by side, and
// four of them are held against the next one at once.
#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "ops/cpu/families.h"

namespace eddy {
namespace {

struct SuppressionState : KernelState {
  bool is_centred = false;
};

struct Box {
  float top, left, bottom, right, area;
};

// [y1, x1, y2, x2] by any two opposite corners, or [x, y, width, height] around a middle.
Box box_of(const float* from, bool is_centred) {
  float low[2], high[2];
  for (size_t axis : {0, 1}) {
    const float a = is_centred ? from[1 - axis] - from[3 - axis] / 2 : from[axis];
    const float b = is_centred ? from[1 - axis] + from[3 - axis] / 2 : from[axis + 2];
    low[axis] = std::min(a, b);
    high[axis] = std::max(a, b);
  }
  return {low[0], low[1], high[0], high[1], (high[0] - low[0]) * (high[1] - low[1])};
}

// The boxes that stay, four to a group; those that are missing in the last one lie nowhere.
class Kept {
 public:
  // For so many, at most.
  void clear(int64_t most) {
    groups_.clear();
    groups_.reserve(static_cast<size_t>(std::clamp<int64_t>(most, 0, 1024) + 3) / 4);
    count_ = 0;
  }
  int64_t count() const { return count_; }
  void add(const Box& box) {
    const auto place = static_cast<size_t>(count_++ % 4);
    if (place == 0) groups_.emplace_back();
    Group& group = groups_.back();
    group.top[place] = box.top;
    group.left[place] = box.left;
    group.bottom[place] = box.bottom;
    group.right[place] = box.right;
    group.area[place] = box.area;
  }
  // Whether one of them covers more than `most` of the union with `box`.
  bool overlap(const Box& box, float most) const {
    const __m128 top = _mm_set1_ps(box.top), left = _mm_set1_ps(box.left);
    const __m128 bottom = _mm_set1_ps(box.bottom), right = _mm_set1_ps(box.right);
    const __m128 area = _mm_set1_ps(box.area), limit = _mm_set1_ps(most);
    const __m128 zero = _mm_setzero_ps();
    for (const Group& g : groups_) {
      // A NaN makes a side of zero, as std::max(0, NaN) does: the second operand wins.
      const __m128 height = _mm_max_ps(_mm_sub_ps(_mm_min_ps(_mm_load_ps(g.bottom), bottom),
                                                  _mm_max_ps(_mm_load_ps(g.top), top)),
                                       zero);
      const __m128 width = _mm_max_ps(_mm_sub_ps(_mm_min_ps(_mm_load_ps(g.right), right),
                                                 _mm_max_ps(_mm_load_ps(g.left), left)),
                                      zero);
      const __m128 shared = _mm_mul_ps(height, width);
      const __m128 all = _mm_sub_ps(_mm_add_ps(area, _mm_load_ps(g.area)), shared);
      const __m128 meets = _mm_and_ps(_mm_cmpgt_ps(shared, zero), _mm_cmpgt_ps(all, zero));
      if (_mm_movemask_ps(meets) == 0) continue;  // as most do not: a division takes long
      const __m128 covers = _mm_cmpgt_ps(_mm_div_ps(shared, all), limit);
      if (_mm_movemask_ps(_mm_and_ps(meets, covers)) != 0) return true;
    }
    return false;
  }

 private:
  struct alignas(16) Group {
    float top[4] = {}, left[4] = {}, bottom[4] = {}, right[4] = {}, area[4] = {};
  };
  std::vector<Group> groups_;
  int64_t count_ = 0;
};

// Larger for a better box: by score, then by place.
uint64_t key_of(float score, uint32_t i) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // one zero
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (~i & 0xffffffffu);
}
uint32_t place_of(uint64_t key) { return ~static_cast<uint32_t>(key); }

struct Limits {
  float least_score, most_overlap;
  int64_t most;
};

// Appends (image, class, box) of one class, best first. Only as many are put in order as are looked
// at: some best ones of those that are left, again and again.
class Selector {
 public:
  void run(const std::vector<Box>& boxes, const float* scores, const Limits& limits, int64_t image,
           int64_t of_class, std::vector<int64_t>& selected) {
    keys_.resize(boxes.size());
    size_t count = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      keys_[count] = key_of(scores[i], static_cast<uint32_t>(i));
      count += scores[i] > limits.least_score;
    }
    kept_.clear(std::min(limits.most, static_cast<int64_t>(count)));
    const auto at_once = static_cast<size_t>(std::clamp<int64_t>(limits.most, 16, 1024)) * 2;
    for (size_t begin = 0; begin < count && kept_.count() < limits.most;) {
      const size_t end = begin + std::min(at_once, count - begin);
      const auto first = keys_.begin() + static_cast<ptrdiff_t>(begin);
      const auto middle = keys_.begin() + static_cast<ptrdiff_t>(end);
      const auto last = keys_.begin() + static_cast<ptrdiff_t>(count);
      if (end < count) std::nth_element(first, middle, last, std::greater<>());
      std::sort(first, middle, std::greater<>());
      for (; begin < end && kept_.count() < limits.most; ++begin) {
        const uint32_t i = place_of(keys_[begin]);
        if (kept_.overlap(boxes[i], limits.most_overlap)) continue;
        kept_.add(boxes[i]);
        selected.insert(selected.end(), {image, of_class, static_cast<int64_t>(i)});
      }
    }
  }

 private:
  std::vector<uint64_t> keys_;
  Kept kept_;
};

template <typename T>
T scalar_or(const ValueContext& context, size_t i, T fallback) {
  return context.has_input(i) ? context.tensor(i).as<T>()[0] : fallback;
}

Status run_suppression(ValueContext& context) {
  const auto& state = static_cast<const SuppressionState&>(*context.state());
  const TensorView boxes = context.tensor(0), scores = context.tensor(1);
  const Limits limits = {scalar_or<float>(context, 4, -HUGE_VALF), scalar_or<float>(context, 3, 0),
                         scalar_or<int64_t>(context, 2, 0)};
  if (!(limits.most_overlap >= 0 && limits.most_overlap <= 1)) {
    return run_failed("iou_threshold must lie in 0 to 1, not " +
                      std::to_string(limits.most_overlap));
  }
  const int64_t count = boxes.dims[1], classes = scores.dims[1];
  if (count > int64_t{UINT32_MAX}) return resource_exhausted("more than 4294967295 boxes");
  std::vector<int64_t> selected;
  std::vector<Box> of_image(static_cast<size_t>(count));
  Selector selector;
  for (int64_t b = 0; b < boxes.dims[0]; ++b) {
    for (int64_t i = 0; i < count; ++i) {
      of_image[static_cast<size_t>(i)] =
          box_of(boxes.as<float>() + (b * count + i) * 4, state.is_centred);
    }
    for (int64_t c = 0; c < classes; ++c) {
      selector.run(of_image, scores.as<float>() + (b * classes + c) * count, limits, b, c,
                   selected);
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
  BoundKernel kernel;
  kernel.run_value = run_suppression;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_suppression_cpu(KernelRegistry& registry) {
  registry.add({.op = "NonMaxSuppression", .since_version = 10, .bind = bind_suppression});
}

}  // namespace eddy
