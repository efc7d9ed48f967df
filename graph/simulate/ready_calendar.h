// ReadyCalendar: entries by the time at which they are ready, in buckets of equal width over the
// time up to a horizon, and one more for what is ready behind it (Brown 1988). A bucket is a list;
// the order within it is its reader's (event_loop.h).
//
// An entry is a number; its low bits, which `slot` returns, are the place of its link. With a
// bucket for each task and a horizon near the end, most buckets hold about one entry: cheaper than
// a heap.
//
// Contract: a slot stands in one list at most. Cost: open() 4 bytes a bucket; put() O(1). Threads:
// none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

class ReadyCalendar {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The buckets of one simulation as pointers, which stay in registers whatever is stored through
  // them.
  struct Buckets {
    uint32_t* heads;
    uint32_t* next;     // by slot
    uint64_t* is_used;  // bits, by bucket
    double buckets_per_time;
    double behind;  // the bucket without an end

    uint32_t bucket_of(double ready) const {
      EDDY_DCHECK(ready >= 0) << "ready at " << ready;
      const double place = ready * buckets_per_time;
      return static_cast<uint32_t>(static_cast<int32_t>(place < behind ? place : behind));
    }
    void put(uint32_t entry, uint32_t slot, double ready) const {
      const uint32_t bucket = bucket_of(ready);
      EDDY_DCHECK(entry != kNone) << "the end of a list is no entry";
      next[slot] = heads[bucket];
      heads[bucket] = entry;
      is_used[bucket / 64] |= uint64_t{1} << (bucket % 64);
    }
  };

  // Empty buckets for so many tasks in slots below `num_slots`.
  Buckets open(uint32_t num_tasks, uint32_t num_slots, double horizon) {
    EDDY_CHECK(num_tasks <= (1u << 31)) << num_tasks << " tasks have no power of two above";
    constexpr uint32_t kMinBuckets = 64;
    constexpr uint32_t kMaxBuckets = 1u << 20;
    const bool has_horizon = horizon > 0 && horizon < std::numeric_limits<double>::infinity();
    const uint32_t num_buckets =
        has_horizon ? std::clamp(std::bit_ceil(num_tasks), kMinBuckets, kMaxBuckets) : 0;
    if (next_.size() < num_slots) next_.resize(num_slots);
    heads_.assign(num_buckets + 1, kNone);
    is_used_.assign(heads_.size() / 64 + 1, 0);
    return {heads_.data(), next_.data(), is_used_.data(), has_horizon ? num_buckets / horizon : 0,
            static_cast<double>(num_buckets)};
  }

 private:
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> next_;
  std::vector<uint64_t> is_used_;
};

}  // namespace eddy
