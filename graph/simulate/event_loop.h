// EventLoop: Algorithm 1 of FlexFlow (timeline.h), over any `Tasks` that defines what a task is and
// what taking it releases. The only place that decides which task is next.
//
// Ready tasks stand in a calendar (ready_calendar.h). A bucket is sorted by (ready, rank, slot)
// when its time has come; should more come into it while it is emptied, its rest goes through a
// heap. Entries are looked at up to 128 buckets before they are taken, since misses of the cache
// are most of what a task costs.
//
// `Tasks` puts what it releases into its `buckets` and has these members:
//   next_of(entry), entry_key(entry)   the list's next; (ready, rank, entry), groups before others
//   is_group(entry)                    whether it stands for several tasks, ready together
//   for_each_key(entry, visit)         visit((ready, rank, slot)) of each of its tasks
//   take_entry<b>(entry, queue)        takes all of them, or puts those that must wait for others
//   take_key<b>(key)                   takes one; these two are false when the simulation ends here
//   take_of_little<b>(key)             the same, while what is released goes into the heap
//   look_ahead(entry), look(entry)     prefetches what taking it will need
//   next_verdict(instant)              with b: below 0 when the simulation ends there, else when
//                                      that can next be so
// where b is whether the simulation has a bound.
//
// Contract: nothing is released earlier than what releases it. Threads: none; one EventLoop is the
// memory that simulations reuse. Cost: O(1) a task where buckets hold few, else that of a heap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/simulate/ready_calendar.h"
#include "graph/simulate/ready_queue.h"

namespace eddy {

class EventLoop {
 public:
  static constexpr uint32_t kLittle = 64;  // above, a heap costs more than the calendar

  // Empty, before a simulation.
  ReadyQueue& clear_queue() {
    queue_.clear();
    return queue_;
  }
  // Empty buckets (ready_calendar.h) for run().
  ReadyCalendar::Buckets open(uint32_t num_tasks, uint32_t num_slots, double horizon) {
    return calendar_.open(num_tasks, num_slots, horizon);
  }

  // False: `tasks` ended it.
  template <bool kIsBounded, typename Tasks>
  bool run(Tasks& tasks);
  // The same by the heap alone, into which `tasks` puts, until it is empty or holds more than
  // `most`.
  template <bool kIsBounded, typename Tasks>
  bool run_little(Tasks& tasks, uint32_t most);

 private:
  static constexpr uint32_t kNone = ReadyCalendar::kNone;

  template <typename Tasks>
  bool is_emptied(const Tasks& tasks, uint32_t bucket) const {
    return tasks.buckets.heads[bucket] == kNone && queue_.is_empty();
  }
  template <typename Tasks, typename Visit>
  void for_each_known(const Tasks& tasks, uint32_t word, const Visit& visit) const;
  template <bool kIsBounded, typename Tasks>
  bool take_bucket(Tasks& tasks, uint32_t bucket);
  template <bool kIsBounded, typename Tasks>
  bool take_single(Tasks& tasks, uint32_t bucket, const ReadyKey* first, const ReadyKey* last);
  template <bool kIsBounded, typename Tasks>
  bool take_together(Tasks& tasks, uint32_t bucket, const ReadyKey* first, const ReadyKey* last);
  template <bool kIsBounded, typename Tasks>
  bool take_by_queue(Tasks& tasks, uint32_t bucket);

  ReadyCalendar calendar_;
  ReadyQueue queue_;
  std::vector<ReadyKey> entries_;  // of a bucket with several
  std::vector<uint64_t> open_;     // (rank, slot) of what is ready together
};

// For a bound on makespans: what is left to do on a device comes after all that it has done, and
// after the instant. Below 0 where that is too much; else the next instant at which it can be.
// A device has `end`, of what it has done, and `bound`: that, and what it still has to do.
template <typename Device>
double next_verdict(std::span<const Device> devices, double instant, double limit) {
  double next = std::numeric_limits<double>::infinity();
  for (const Device& device : devices) {
    const auto end = static_cast<double>(device.end);
    if (device.bound + std::max(instant - end, 0.0) > limit) return -1;
    next = std::min(next, limit - (device.bound - end));
  }
  return next;
}

// The entries of 64 buckets, as far as they are known.
template <typename Tasks, typename Visit>
void EventLoop::for_each_known(const Tasks& tasks, uint32_t word, const Visit& visit) const {
  for (uint64_t bits = tasks.buckets.is_used[word]; bits != 0; bits &= bits - 1) {
    const uint32_t bucket = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    uint32_t entry = tasks.buckets.heads[bucket];
    for (; entry != kNone; entry = tasks.next_of(entry)) visit(entry);
  }
}

// Tasks that are ready at the same time, without groups.
template <bool kIsBounded, typename Tasks>
bool EventLoop::take_single(Tasks& tasks, uint32_t bucket, const ReadyKey* first,
                            const ReadyKey* last) {
  for (; first != last; ++first) {
    if (!tasks.template take_key<kIsBounded>(*first)) return false;
    if (tasks.buckets.heads[bucket] == kNone) [[likely]]
      continue;
    while (++first != last) queue_.put(*first);
    return true;
  }
  return true;
}

// Entries of a bucket that are ready at the same time, task by task.
template <bool kIsBounded, typename Tasks>
bool EventLoop::take_together(Tasks& tasks, uint32_t bucket, const ReadyKey* first,
                              const ReadyKey* last) {
  // Groups are first.
  EDDY_DCHECK(first != last && *first >> 64 == *(last - 1) >> 64) << "tasks of several instants";
  if (!tasks.is_group(slot_of(*first))) return take_single<kIsBounded>(tasks, bucket, first, last);
  const ReadyKey ready = *first >> 64 << 64;
  open_.clear();
  for (; first != last; ++first) {
    tasks.for_each_key(slot_of(*first),
                       [this](ReadyKey key) { open_.push_back(static_cast<uint64_t>(key)); });
  }
  if (!std::is_sorted(open_.begin(), open_.end())) std::sort(open_.begin(), open_.end());
  for (size_t i = 0; i < open_.size(); ++i) {
    if (!tasks.template take_key<kIsBounded>(ready | open_[i])) return false;
    if (tasks.buckets.heads[bucket] == kNone) [[likely]]
      continue;
    while (++i < open_.size()) queue_.put(ready | open_[i]);
  }
  return true;
}

template <bool kIsBounded, typename Tasks>
bool EventLoop::take_bucket(Tasks& tasks, uint32_t bucket) {
  const uint32_t head = std::exchange(tasks.buckets.heads[bucket], kNone);
  EDDY_DCHECK(head != kNone) << "bucket " << bucket << " is empty";
  if (tasks.next_of(head) == kNone) {
    if (!tasks.template take_entry<kIsBounded>(head, queue_)) return false;
    return is_emptied(tasks, bucket) || take_by_queue<kIsBounded>(tasks, bucket);
  }
  entries_.clear();
  for (uint32_t entry = head; entry != kNone; entry = tasks.next_of(entry)) {
    entries_.push_back(tasks.entry_key(entry));
  }
  // Mostly they came in order, the last of them is the first of the list.
  std::reverse(entries_.begin(), entries_.end());
  if (!std::is_sorted(entries_.begin(), entries_.end())) {
    std::sort(entries_.begin(), entries_.end());
  }
  const ReadyKey* const end = entries_.data() + entries_.size();
  for (const ReadyKey* first = entries_.data(); first != end;) {
    const ReadyKey* last = first + 1;
    while (last != end && *last >> 64 == *first >> 64) ++last;
    if (last == first + 1) {
      if (!tasks.template take_entry<kIsBounded>(slot_of(*first), queue_)) return false;
    } else if (!take_together<kIsBounded>(tasks, bucket, first, last)) {
      return false;
    }
    first = last;
    if (is_emptied(tasks, bucket)) [[likely]]
      continue;
    for (; first != end; ++first) {
      tasks.for_each_key(slot_of(*first), [this](ReadyKey key) { queue_.put(key); });
    }
    return take_by_queue<kIsBounded>(tasks, bucket);
  }
  return true;
}

template <bool kIsBounded, typename Tasks>
bool EventLoop::run_little(Tasks& tasks, uint32_t most) {
  Tasks own = tasks;  // in registers
  bool goes_on = true;
  while (goes_on && queue_.size() - 1 < most) {
    goes_on = own.template take_of_little<kIsBounded>(queue_.take());
  }
  tasks = own;
  return goes_on;
}

// What is in the queue and what comes into the bucket.
template <bool kIsBounded, typename Tasks>
bool EventLoop::take_by_queue(Tasks& tasks, uint32_t bucket) {
  for (;;) {
    uint32_t entry = std::exchange(tasks.buckets.heads[bucket], kNone);
    for (; entry != kNone; entry = tasks.next_of(entry)) {
      tasks.for_each_key(entry, [this](ReadyKey key) { queue_.put(key); });
    }
    if (queue_.is_empty()) return true;
    if (!tasks.template take_key<kIsBounded>(queue_.take())) return false;
  }
}

template <bool kIsBounded, typename Tasks>
bool EventLoop::run(Tasks& tasks) {
  constexpr uint32_t kLooks = 256;
  const ReadyCalendar::Buckets& buckets = tasks.buckets;
  const auto behind = static_cast<uint32_t>(buckets.behind);
  uint32_t next_look = 0;
  for (uint32_t word = 0; word <= behind / 64; ++word) {
    if (word + 1 <= behind / 64) {
      for_each_known(tasks, word + 1, [&](uint32_t entry) { tasks.look_ahead(entry); });
    }
    for_each_known(tasks, word, [&](uint32_t entry) { tasks.look(entry); });
    uint64_t bits;
    while ((bits = buckets.is_used[word]) != 0) {
      const uint32_t bucket = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      if (bucket == behind) return take_by_queue<kIsBounded>(tasks, behind);
      if (kIsBounded && bucket >= next_look) {
        const double next = tasks.next_verdict(bucket / buckets.buckets_per_time);
        if (next < 0) return false;
        next_look = std::max(buckets.bucket_of(next), bucket + behind / kLooks);
      }
      buckets.is_used[word] = bits & (bits - 1);
      // What came late into it may have been taken with the others.
      if (buckets.heads[bucket] == kNone) continue;
      if (!take_bucket<kIsBounded>(tasks, bucket)) return false;
    }
  }
  return true;
}

}  // namespace eddy
