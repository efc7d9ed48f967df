#include "graph/schedule/memory/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int kRepairs = 24;
// Conflicts looked at, over all orders: a large problem gets fewer orders, at least one.
constexpr uint64_t kMaxSteps = 3'000'000;

class Placer {
 public:
  explicit Placer(const LayoutProblem& problem)
      : problem_(problem), is_placed_(problem.sizes_bytes.size()) {
    best_.peak_bytes = UINT64_MAX;
    weight_.resize(count());
    for (uint32_t b = 0; b < count(); ++b) {
      problem_.conflicts.for_each_in_row(b, [&](uint32_t other) { weight_[b] += size(other); });
    }
  }

  Layout run() {
    if (count() == 0) return {};
    const auto life = [this](uint32_t b) {
      EDDY_DCHECK(problem_.starts[b] <= problem_.ends[b]) << "block " << b << " ends too early";
      return uint64_t{problem_.ends[b]} - problem_.starts[b] + 1;
    };
    try_order([&](uint32_t a, uint32_t b) { return size(a) > size(b); });
    try_order([&](uint32_t a, uint32_t b) { return size(a) * life(a) > size(b) * life(b); });
    try_order([&](uint32_t a, uint32_t b) { return weight_[a] + size(a) > weight_[b] + size(b); });
    try_order([&](uint32_t a, uint32_t b) { return problem_.starts[a] < problem_.starts[b]; });
    try_order([&](uint32_t a, uint32_t b) { return life(a) > life(b); });
    try_order([&](uint32_t a, uint32_t b) { return problem_.ends[a] > problem_.ends[b]; });
    repair();
    return std::move(best_);
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(problem_.sizes_bytes.size()); }
  uint64_t size(uint32_t block) const { return problem_.sizes_bytes[block]; }
  bool is_done() const {
    return best_.peak_bytes <= problem_.lower_bound_bytes || steps_ > kMaxSteps;
  }

  // Ties: the longer life, then the lower number.
  void try_order(const std::function<bool(uint32_t, uint32_t)>& comes_first) {
    if (is_done()) return;
    std::vector<uint32_t> order(count());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), comes_first);
    place(order);
  }

  // What reached the top goes to the front of the best order.
  void repair() {
    std::vector<uint32_t> order = best_order_;
    int tries_left = kRepairs;
    while (tries_left > 0 && !is_done()) {
      const uint64_t before = best_.peak_bytes;
      const uint64_t line = last_.peak_bytes - std::min(last_.peak_bytes, slack());
      std::stable_partition(order.begin(), order.end(),
                            [&](uint32_t b) { return last_.offsets_bytes[b] + size(b) > line; });
      place(order);
      tries_left = best_.peak_bytes < before ? kRepairs : tries_left - 1;
    }
  }
  uint64_t slack() const {
    EDDY_DCHECK(last_.peak_bytes >= problem_.lower_bound_bytes) << "a peak below its bound";
    return (last_.peak_bytes - problem_.lower_bound_bytes) / 2;
  }

  void place(const std::vector<uint32_t>& order) {
    EDDY_DCHECK(order.size() == count()) << order.size() << " of " << count() << " blocks";
    last_.offsets_bytes.assign(count(), 0);
    last_.peak_bytes = 0;
    std::fill(is_placed_.begin(), is_placed_.end(), false);
    for (const uint32_t block : order) {
      last_.offsets_bytes[block] = best_fit(block);
      is_placed_[block] = true;
      last_.peak_bytes = std::max(last_.peak_bytes, last_.offsets_bytes[block] + size(block));
    }
    if (last_.peak_bytes >= best_.peak_bytes) return;
    best_ = last_;
    best_order_ = order;
  }

  uint64_t best_fit(uint32_t block) {
    taken_.clear();
    problem_.conflicts.for_each_in_row(block, [&](uint32_t other) {
      if (!is_placed_[other]) return;
      const uint64_t begin = last_.offsets_bytes[other];
      taken_.emplace_back(begin, begin + size(other));
    });
    steps_ += taken_.size() + 1;
    std::sort(taken_.begin(), taken_.end());
    uint64_t best_offset = UINT64_MAX;
    uint64_t best_gap = UINT64_MAX;
    uint64_t free_from = 0;
    for (const auto& [begin, end] : taken_) {
      if (begin > free_from && begin - free_from >= size(block) && begin - free_from < best_gap) {
        best_gap = begin - free_from;
        best_offset = free_from;
      }
      free_from = std::max(free_from, end);
    }
    return best_offset != UINT64_MAX ? best_offset : free_from;
  }

  const LayoutProblem& problem_;
  std::vector<uint64_t> weight_;  // of all that a block conflicts with
  std::vector<bool> is_placed_;
  std::vector<std::pair<uint64_t, uint64_t>> taken_;
  Layout last_;
  Layout best_;
  std::vector<uint32_t> best_order_;
  uint64_t steps_ = 0;
};

}  // namespace

Layout lay_out(const LayoutProblem& problem) {
  EDDY_CHECK(problem.starts.size() == problem.sizes_bytes.size() &&
             problem.ends.size() == problem.sizes_bytes.size() &&
             problem.conflicts.rows() == problem.sizes_bytes.size())
      << "each block has a size, a life and a row of conflicts";
  Layout layout = Placer(problem).run();
  EDDY_CHECK(layout.offsets_bytes.size() == problem.sizes_bytes.size()) << "a block has no place";
  return layout;
}

}  // namespace eddy
