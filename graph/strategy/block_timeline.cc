#include "graph/strategy/block_timeline.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "graph/strategy/block_loop.h"

namespace eddy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint32_t kBucketsPerTask = 1;
constexpr uint32_t kMinBuckets = 64;
constexpr uint32_t kMaxBuckets = 1u << 20;
constexpr uint32_t kLooks = 256;

// Ends are exact, what is left to do is not.
double limit_of(double threshold) { return threshold * (1 + 2 * BlockGraph::kLoadRounding); }

// How long the busiest device works.
double busiest(const BlockGraph& graph) {
  const std::vector<double>& loads = graph.loads();
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

double time_of(ReadyKey key) { return std::bit_cast<double>(static_cast<uint64_t>(key >> 64)); }

}  // namespace

bool BlockTimeline::reset(const BlockGraph& graph) {
  is_simulated_ = false;
  old_ = {};
  prepare(graph, 2 * busiest(graph));
  find_roots(graph);
  if (run<false>(graph, std::numeric_limits<double>::max()) != SimulationEnd::kDone) return false;
  commit(graph);
  return true;
}

void BlockTimeline::commit(const BlockGraph& graph) {
  EDDY_DCHECK(is_simulated_) << "commit() follows a simulate() that is done";
  std::swap(old_, new_);
  is_simulated_ = false;
  first_ready_.clear();
  for (const BlockGraph::Block& block : graph.blocks()) {
    double first = kNever;
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      first = std::min(first, old_.tasks[slot].ready);
    }
    first_ready_.push_back(first);
  }
}

// New tasks wait for others, new or not: what is not new has ended when it did. What was removed,
// or waits for what is new or removed, was as before until it was ready.
double BlockTimeline::first_instant(const BlockGraph& graph) {
  const uint32_t first_new = graph.first_new_slot();
  double instant = kNever;
  const auto bound_by = [&](const BlockGraph::Block& block) {
    for (const BlockGraph::In& in : graph.ins(block)) {
      if (in.slot < first_new) instant = std::min(instant, old_.tasks[in.slot].ready);
    }
  };
  for (const BlockGraph::Block& block : graph.original_blocks()) bound_by(block);
  for (const uint32_t index : graph.changed_blocks()) {
    instant = std::min(instant, first_ready_[index]);
  }
  // By new slot, then by holder.
  const uint32_t num_new = graph.num_slots() - first_new;
  earliest_.assign(num_new + graph.num_holders(), kNever);
  for (size_t place = 0; place < graph.changed_blocks().size(); ++place) {
    const uint32_t index = graph.changed_blocks()[place];
    const BlockGraph::Block& block = graph.blocks()[index];
    bound_by(block);
    graph.for_each_source(place, [&](uint32_t slot, const BlockRow& before, const BlockRow& row) {
      const double end = old_.tasks[slot].start + graph.tasks()[slot].exe_time;
      if (before.num_transfers + row.num_transfers != 0) instant = std::min(instant, end);
      for (const uint32_t to : row.ties(graph.ties().data())) {
        if (to < first_new) continue;
        double& earliest =
            earliest_[to < Loop::kHolder ? to - first_new : num_new + (to - Loop::kHolder)];
        earliest = earliest == kNever ? end : std::max(earliest, end);
      }
    });
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (graph.num_predecessors()[slot] == 0) instant = 0;
    }
    for (uint32_t i = block.first_holder; i < block.first_holder + block.num_holders; ++i) {
      for (const uint32_t hop : {graph.holders()[i].out, graph.holders()[i].in}) {
        double& earliest = earliest_[hop - first_new];
        const double end = earliest_[num_new + i];
        if (end != kNever) earliest = earliest == kNever ? end : std::max(earliest, end);
      }
    }
  }
  for (uint32_t i = 0; i < num_new; ++i) instant = std::min(instant, earliest_[i]);
  return instant;
}

void BlockTimeline::prepare(const BlockGraph& graph, double horizon) {
  const uint32_t num_slots = graph.num_slots();
  new_.tasks.resize(num_slots);
  new_.transfer_starts.resize(graph.num_transfers());
  if (next_.size() < num_slots) next_.resize(num_slots);
  const uint32_t* const num_predecessors = graph.num_predecessors().data();
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    new_.tasks[slot].ready = 0;
    new_.tasks[slot].num_predecessors = num_predecessors[slot];
  }
  holders_.resize(graph.num_holders());
  for (uint32_t i = 0; i < graph.num_holders(); ++i) {
    holders_[i] = {0, graph.holders()[i].num_parts};
  }
  devices_.clear();
  for (const double load : graph.loads()) devices_.push_back({0, load});

  // Without a horizon everything is behind it.
  const bool has_horizon = horizon > 0 && horizon < kNever;
  num_buckets_ = has_horizon ? std::clamp(kBucketsPerTask * std::bit_ceil(graph.num_tasks()),
                                          kMinBuckets, kMaxBuckets)
                             : 0;
  buckets_per_time_ = has_horizon ? num_buckets_ / horizon : 0;
  heads_.assign(num_buckets_ + 1, kNoSlot);
  is_used_.assign(heads_.size() / 64 + 1, 0);
  queue_.clear();
}

// What was ready before the instant stays as it was.
void BlockTimeline::keep_prefix(const BlockGraph& graph, double instant) {
  const uint32_t first_new = graph.first_new_slot();
  const Loop loop = make_loop(graph, 0);
  const auto is_kept = [&](uint32_t slot) {
    return slot < first_new && old_.tasks[slot].ready < instant;
  };
  const auto keep = [&](uint32_t device, double exe_time, double end) {
    devices_[device].end = std::max(devices_[device].end, end);
    devices_[device].bound -= exe_time;
  };
  const auto keep_task = [&](uint32_t slot) {
    const BlockTask& task = loop.tasks[slot];
    const double end = old_.tasks[slot].start + task.exe_time;
    keep(task.device, task.exe_time, end);
    const auto release = [&](uint32_t to, double ready) {
      if (!is_kept(to)) loop.release(to, ready);
    };
    const bool has_followers = loop.release_all(task, end, release);
    if (has_followers && end >= instant) return loop.put_followers(slot, end);
    if (!has_followers) return;
    loop.for_each_row(task, [&](const BlockRow& row) {
      for (uint32_t i = row.first_transfer; i < row.first_transfer + row.num_transfers; ++i) {
        const BlockTransfer& transfer = loop.transfers[i];
        new_.transfer_starts[i] = old_.transfer_starts[i];
        const double transfer_end = old_.transfer_starts[i] + transfer.exe_time;
        keep(transfer.device, transfer.exe_time, transfer_end);
        release(transfer.to, transfer_end);
      }
    });
  };
  for (size_t index = 0; index < graph.blocks().size(); ++index) {
    if (first_ready_[index] >= instant) continue;
    const BlockGraph::Block& block = graph.blocks()[index];
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (is_kept(slot)) {
        new_.tasks[slot] = old_.tasks[slot];
        keep_task(slot);
      }
    }
  }
  for (Device& device : devices_) device.bound += device.end;
}

// Only parts can wait for nothing.
void BlockTimeline::find_roots(const BlockGraph& graph) {
  const Loop loop = make_loop(graph, 0);
  for (const BlockGraph::Block& block : graph.blocks()) {
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (graph.num_predecessors()[slot] == 0) loop.put_task(slot, 0);
    }
  }
}

// The work that is left on a device comes after all that it has done, and after the instant.
// Below 0 where that is too much; else the next instant at which it can be.
double BlockTimeline::next_verdict(double instant, double limit) const {
  double next = kNever;
  for (const Device& device : devices_) {
    if (device.bound + std::max(instant - device.end, 0.0) > limit) return -1;
    next = std::min(next, limit - (device.bound - device.end));
  }
  return next;
}

SimulationEnd BlockTimeline::simulate(const BlockGraph& graph, double threshold) {
  EDDY_DCHECK(!is_simulated_) << "simulate() twice without commit() or rollback()";
  const bool is_bounded = threshold != std::numeric_limits<double>::max();
  const double instant = first_instant(graph);
  prepare(graph, is_bounded ? threshold : 1.25 * std::max(old_.makespan, busiest(graph)));
  keep_prefix(graph, instant);
  if (instant == 0) find_roots(graph);
  if (!is_bounded) return run<false>(graph, threshold);
  if (next_verdict(instant, limit_of(threshold)) < 0) return SimulationEnd::kExceeds;
  return run<true>(graph, threshold);
}

bool BlockTimeline::is_emptied(const Loop& loop, uint32_t bucket) const {
  return loop.heads[bucket] == kNoSlot && queue_.is_empty();
}

template <bool kIsBounded>
bool BlockTimeline::take_entry(Loop& loop, uint32_t entry) {
  return entry < Loop::kFollowers ? loop.take<kIsBounded>(entry)
                                  : take_followers<kIsBounded>(loop, entry & ~Loop::kFollowers);
}

// The transfers that wait for the task, where nothing else is ready with them.
template <bool kIsBounded>
bool BlockTimeline::take_followers(Loop& loop, uint32_t slot) {
  const BlockTask& task = loop.tasks[slot];
  const double ready = loop.end_of(slot);
  const RowList& list = loop.lists[task.list];
  for (uint32_t place = list.first; place < list.last; ++place) {
    const BlockRow& row = loop.rows[loop.row_bases[place] + task.row];
    const BlockTransfer* transfer = loop.transfers + row.first_transfer;
    const BlockTransfer* const last = transfer + row.num_transfers;
    while (transfer != last) {
      if (!loop.take_run<kIsBounded>(transfer, last, ready)) return false;
      if (loop.devices[transfer[-1].device].end > ready) [[likely]]
        continue;
      // One without length may have released something that comes before the others.
      const uint32_t rank = transfer[-1].rank;
      loop.for_each_key(Loop::kFollowers | slot, [&](ReadyKey key) {
        if (static_cast<uint32_t>(key >> 32) > rank) queue_.put(key);
      });
      return true;
    }
  }
  return true;
}

// Tasks that are ready at the same time, without followers of others.
template <bool kIsBounded>
bool BlockTimeline::take_tasks(Loop& loop, uint32_t bucket, const ReadyKey* first,
                               const ReadyKey* last) {
  for (; first != last; ++first) {
    if (!loop.take<kIsBounded>(slot_of(*first))) return false;
    if (loop.heads[bucket] == kNoSlot) [[likely]]
      continue;
    while (++first != last) queue_.put(*first);
    return true;
  }
  return true;
}

// Entries of a bucket that are ready at the same time, task by task.
template <bool kIsBounded>
bool BlockTimeline::take_together(Loop& loop, uint32_t bucket, const ReadyKey* first,
                                  const ReadyKey* last) {
  // Those with followers are first.
  if (slot_of(*first) < Loop::kFollowers) return take_tasks<kIsBounded>(loop, bucket, first, last);
  const double ready = time_of(*first);
  open_.clear();
  for (; first != last; ++first) {
    loop.for_each_key(slot_of(*first),
                      [this](ReadyKey key) { open_.push_back(static_cast<uint64_t>(key)); });
  }
  if (!std::is_sorted(open_.begin(), open_.end())) std::sort(open_.begin(), open_.end());
  for (size_t i = 0; i < open_.size(); ++i) {
    const auto slot = static_cast<uint32_t>(open_[i]);
    if (!(slot < Loop::kTransfer
              ? loop.take<kIsBounded>(slot)
              : loop.take_transfer<kIsBounded>(slot & ~Loop::kTransfer, ready))) {
      return false;
    }
    if (loop.heads[bucket] == kNoSlot) [[likely]]
      continue;
    while (++i < open_.size()) {
      queue_.put(static_cast<ReadyKey>(time_key(ready)) << 64 | open_[i]);
    }
  }
  return true;
}

template <bool kIsBounded>
bool BlockTimeline::take_bucket(Loop& loop, uint32_t bucket) {
  const uint32_t head = std::exchange(loop.heads[bucket], kNoSlot);
  if (loop.next_of(head) == kNoSlot) {
    if (!take_entry<kIsBounded>(loop, head)) return false;
    return is_emptied(loop, bucket) || take_by_queue<kIsBounded>(loop, bucket);
  }
  entries_.clear();
  for (uint32_t entry = head; entry != kNoSlot; entry = loop.next_of(entry)) {
    const BlockTask& task = loop.tasks[entry & ~Loop::kFollowers];
    const uint32_t rank = entry < Loop::kFollowers ? task.rank : 0;
    entries_.push_back(ready_key(time_key(loop.ready_of(entry)), rank, entry));
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
    // Followers are first among those that are ready together.
    if (last == first + 1) {
      if (!take_entry<kIsBounded>(loop, slot_of(*first))) return false;
    } else if (!take_together<kIsBounded>(loop, bucket, first, last)) {
      return false;
    }
    first = last;
    if (is_emptied(loop, bucket)) [[likely]]
      continue;
    for (; first != end; ++first) {
      loop.for_each_key(slot_of(*first), [this](ReadyKey key) { queue_.put(key); });
    }
    return take_by_queue<kIsBounded>(loop, bucket);
  }
  return true;
}

// What is in the queue and what comes into the bucket.
template <bool kIsBounded>
bool BlockTimeline::take_by_queue(Loop& loop, uint32_t bucket) {
  for (;;) {
    uint32_t entry = std::exchange(loop.heads[bucket], kNoSlot);
    for (; entry != kNoSlot; entry = loop.next_of(entry)) {
      loop.for_each_key(entry, [this](ReadyKey key) { queue_.put(key); });
    }
    if (queue_.is_empty()) return true;
    if (!loop.take_key<kIsBounded>(queue_.take())) return false;
  }
}

template <bool kIsBounded>
bool BlockTimeline::take_all(Loop& loop) {
  const uint32_t behind = static_cast<uint32_t>(loop.behind);
  uint32_t next_look = 0;
  for (uint32_t word = 0; word <= behind / 64; ++word) {
    if (word + 1 <= behind / 64) {
      loop.for_each_known(word + 1, [&](const BlockTask& task) { loop.prefetch_rows(task); });
    }
    loop.for_each_known(word, [&](const BlockTask& task) { loop.prefetch_ties(task); });
    uint64_t bits;
    while ((bits = loop.is_used[word]) != 0) {
      const uint32_t bucket = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      if (bucket == behind) return take_by_queue<kIsBounded>(loop, behind);
      if (kIsBounded && bucket >= next_look) {
        const double next = next_verdict(bucket / loop.buckets_per_time, loop.limit);
        if (next < 0) return false;
        next_look = std::max(loop.bucket_of(next), bucket + behind / kLooks);
      }
      loop.is_used[word] = bits & (bits - 1);
      // What came late into it may have been taken with the others.
      if (loop.heads[bucket] == kNoSlot) continue;
      if (!take_bucket<kIsBounded>(loop, bucket)) return false;
    }
  }
  return true;
}

BlockTimeline::Loop BlockTimeline::make_loop(const BlockGraph& graph, double limit) {
  return {graph.tasks().data(),
          graph.transfers().data(),
          graph.rows().data(),
          graph.ties().data(),
          graph.lists().data(),
          graph.row_bases().data(),
          graph.holders().data(),
          new_.tasks.data(),
          new_.transfer_starts.data(),
          holders_.data(),
          devices_.data(),
          heads_.data(),
          next_.data(),
          is_used_.data(),
          buckets_per_time_,
          static_cast<double>(num_buckets_),
          limit};
}

template <bool kIsBounded>
SimulationEnd BlockTimeline::run(const BlockGraph& graph, double threshold) {
  Loop loop = make_loop(graph, limit_of(threshold));
  if (!take_all<kIsBounded>(loop)) return SimulationEnd::kExceeds;
  finish();
  if (may_be_overflow(new_.makespan)) return SimulationEnd::kOverflow;
  if (new_.makespan > threshold) return SimulationEnd::kExceeds;
  is_simulated_ = true;
  return SimulationEnd::kDone;
}

void BlockTimeline::finish() {
  new_.makespan = 0;
  for (const Device& device : devices_) new_.makespan = std::max(new_.makespan, device.end);
}

}  // namespace eddy
