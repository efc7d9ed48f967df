#include "graph/schedule/memory/layout_in_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr size_t kCandidates = 16;
constexpr size_t kMaxSizes = 4;  // that are asked for one block

class InOrder {
 public:
  InOrder(std::span<const OrderedBlock> blocks, const Lifetimes& lifetimes)
      : blocks_(blocks), lifetimes_(lifetimes) {}

  Layout run() {
    layout_.offsets_bytes.resize(blocks_.size());
    std::vector<uint32_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto home = [&](uint32_t b) { return blocks_[b].life->home.index(); };
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
      return home(a) != home(b) ? home(a) < home(b) : blocks_[a].start < blocks_[b].start;
    });
    for (size_t i = 0; i < order.size(); ++i) {
      // Blocks of two homes are not compared.
      if (i > 0 && home(order[i - 1]) != home(order[i])) forget();
      place(order[i]);
    }
    return std::move(layout_);
  }

 private:
  // What stood at an offset last, and how much room is there.
  struct Place {
    uint64_t offset_bytes;
    uint64_t room_bytes;
    const Lifetime* life;
    uint32_t end;
    bool operator>(const Place& other) const { return end > other.end; }
  };

  void forget() {
    used_ = {};
    left_.clear();
  }

  void place(uint32_t b) {
    const OrderedBlock& block = blocks_[b];
    EDDY_DCHECK(block.size_bytes > 0) << "block " << b << " has no bytes";
    EDDY_DCHECK(block.start <= block.end) << "block " << b << " ends too early";
    for (; !used_.empty() && used_.top().end < block.start; used_.pop()) {
      left_[used_.top().room_bytes].push_back(used_.top());
    }
    Place place = {layout_.peak_bytes, block.size_bytes, block.life, block.end};
    if (!take(block, place)) layout_.peak_bytes += block.size_bytes;
    EDDY_DCHECK(place.room_bytes >= block.size_bytes) << "block " << b << " has too little room";
    layout_.offsets_bytes[b] = place.offset_bytes;
    const bool may_be_left = !block.life->lasts_to_end && !block.life->writes.empty();
    if (may_be_left) used_.push(place);
  }

  // Gives `place` the offset and room of one that is left.
  bool take(const OrderedBlock& block, Place& place) {
    if (block.life->writes.empty()) return false;
    size_t sizes = 0;
    for (auto at = left_.lower_bound(block.size_bytes);
         at != left_.end() && at->first <= 2 * block.size_bytes && sizes < kMaxSizes;
         ++at, ++sizes) {
      std::vector<Place>& places = at->second;
      const size_t last = places.size();
      for (size_t i = last; i > 0 && last - i < kCandidates; --i) {
        if (!lifetimes_.ends_before(*places[i - 1].life, *block.life)) continue;
        place.offset_bytes = places[i - 1].offset_bytes;
        place.room_bytes = places[i - 1].room_bytes;
        places.erase(places.begin() + static_cast<ptrdiff_t>(i - 1));
        return true;
      }
    }
    return false;
  }

  const std::span<const OrderedBlock> blocks_;
  const Lifetimes& lifetimes_;
  Layout layout_;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> used_;  // the first end first
  std::map<uint64_t, std::vector<Place>> left_;                          // by room
};

}  // namespace

Layout lay_out_in_order(std::span<const OrderedBlock> blocks, const Lifetimes& lifetimes) {
  return InOrder(blocks, lifetimes).run();
}

}  // namespace eddy
