#include "graph/strategy/block_timeline.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace eddy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint32_t kBucketsPerTask = 2;
constexpr uint32_t kMinBuckets = 64;
constexpr uint32_t kMaxBuckets = 1u << 20;
constexpr uint32_t kFollowers = BlockGraph::kMaxSlots;
constexpr uint32_t kLooks = 256;

// Ends are exact, what is left to do is not.
double limit_of(double threshold) { return threshold * (1 + 2 * BlockGraph::kLoadRounding); }

// How long the busiest device works.
double busiest(const BlockGraph& graph) {
  const std::vector<double>& loads = graph.loads();
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

}  // namespace

// What the loop needs, where stores through its pointers leave it in registers.
struct BlockTimeline::Loop {
  const BlockTask* const tasks;
  const uint32_t* const successors;
  Task* const state;
  double* const device_end;
  double* const work_left;
  uint32_t* const heads;
  uint32_t* const next;
  uint64_t* const is_used;
  const double buckets_per_time;
  const double behind;  // the bucket without an end
  const double limit;
  uint32_t* next_in_order;

  uint32_t bucket_of(double ready) const {
    const double place = ready * buckets_per_time;
    return static_cast<uint32_t>(static_cast<int32_t>(place < behind ? place : behind));
  }

  void put(uint32_t entry, uint32_t slot, double ready) const {
    const uint32_t bucket = bucket_of(ready);
    next[slot] = heads[bucket];
    heads[bucket] = entry;
    is_used[bucket / 64] |= uint64_t{1} << (bucket % 64);
  }
  void put_task(uint32_t slot, double ready) const {
    put(slot, slot, ready);
    __builtin_prefetch(tasks + slot);
  }
  void put_followers(uint32_t slot, double end) const { put(kFollowers | slot, slot, end); }
  uint32_t next_of(uint32_t entry) const { return next[entry & ~kFollowers]; }

  // The task of a slot has ended then.
  void release(uint32_t slot, double end) const {
    Task& next_task = state[slot];
    const double ready = std::max(next_task.ready, end);
    next_task.ready = ready;
    if (--next_task.num_predecessors == 0) put_task(slot, ready);
  }

  // False: the makespan is certainly above the limit.
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take(uint32_t slot) {
    const BlockTask& task = tasks[slot];
    Task& own = state[slot];
    double& device = device_end[task.device];
    const double start = std::max(own.ready, device);
    const double end = start + task.exe_time;
    own.start = start;
    device = end;
    *next_in_order++ = slot;
    if constexpr (kIsBounded) {
      double& left = work_left[task.device];
      left -= task.exe_time;
      if (end + left > limit) return false;
    }
    if (task.num_alone != 0) put_followers(slot, end);
    const uint32_t* successor = successors + task.first_successor + task.num_alone;
    const uint32_t* const last = successors + task.first_successor + task.num_successors;
    for (; successor != last; ++successor) release(*successor, end);
    return true;
  }

  // visit(slot) for the tasks of an entry, by rank, after it said when they are ready.
  template <typename Visit>
  void for_each_task(uint32_t entry, const Visit& visit) const {
    if (entry < kFollowers) return visit(entry);
    const BlockTask& task = tasks[entry & ~kFollowers];
    const double ready = state[entry & ~kFollowers].start + task.exe_time;
    for (uint32_t i = 0; i < task.num_alone; ++i) {
      const uint32_t slot = successors[task.first_successor + i];
      state[slot].ready = ready;
      visit(slot);
    }
  }

  ReadyKey key(uint32_t slot) const {
    return ready_key(time_key(state[slot].ready), tasks[slot].rank, slot);
  }
};

bool BlockTimeline::reset(const BlockGraph& graph) {
  is_simulated_ = false;
  old_ = {};
  prepare(graph, 2 * busiest(graph));
  find_roots(graph);
  if (run<false>(graph, std::numeric_limits<double>::max()) != SimulationEnd::kDone) return false;
  commit();
  return true;
}

void BlockTimeline::commit() {
  EDDY_DCHECK(is_simulated_) << "commit() follows a simulate() that is done";
  std::swap(old_, new_);
  is_simulated_ = false;
}

// New tasks that wait for no other new one cannot be ready before what they wait for has ended,
// and the others not before these; what was removed, or waits for what is new or removed, was as
// before until it was ready.
double BlockTimeline::first_instant(const BlockGraph& graph) {
  const uint32_t first_new = graph.first_new_slot();
  const BlockTask* const tasks = graph.tasks().data();
  const uint32_t* const successors = graph.successors().data();
  double instant = kNever;
  for (const BlockGraph::Block& block : graph.original_blocks()) {
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      instant = std::min(instant, old_.tasks[slot].ready);
    }
    for (const uint32_t to : graph.ins(block)) instant = std::min(instant, old_.tasks[to].ready);
  }
  earliest_.assign(graph.num_slots() - first_new, 0);
  for (const uint32_t index : graph.changed_blocks()) {
    const BlockGraph::Block& block = graph.blocks()[index];
    for (const Edge& edge : graph.outs(block)) {
      if (edge.from >= first_new || edge.to < first_new) continue;
      const double end = old_.tasks[edge.from].start + tasks[edge.from].exe_time;
      double& earliest = earliest_[edge.to - first_new];
      earliest = std::max(earliest, end);
    }
  }
  for (const uint32_t index : graph.changed_blocks()) {
    const BlockGraph::Block& block = graph.blocks()[index];
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      const BlockTask& task = tasks[slot];
      for (uint32_t i = 0; i < task.num_successors; ++i) {
        const uint32_t to = successors[task.first_successor + i];
        if (to >= first_new) {
          earliest_[to - first_new] = kNever;
        } else {
          instant = std::min(instant, old_.tasks[to].ready);
        }
      }
    }
  }
  for (const uint32_t index : graph.changed_blocks()) {
    const BlockGraph::Block& block = graph.blocks()[index];
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      instant = std::min(instant, earliest_[slot - first_new]);
    }
  }
  return instant;
}

void BlockTimeline::prepare(const BlockGraph& graph, double horizon) {
  const uint32_t num_slots = graph.num_slots();
  new_.tasks.resize(num_slots);
  new_.order.resize(graph.num_tasks());
  next_.resize(num_slots);
  if (entries_.size() < num_slots) {
    entries_.resize(num_slots);
    open_.resize(num_slots);
  }
  const uint32_t* const num_predecessors = graph.num_predecessors().data();
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    new_.tasks[slot].ready = 0;
    new_.tasks[slot].num_predecessors = num_predecessors[slot];
  }
  work_left_ = graph.loads();
  device_end_.assign(work_left_.size(), 0);
  num_kept_ = num_done_ = 0;

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
  const auto is_before = [this](uint32_t slot, double time) {
    return old_.tasks[slot].ready < time;
  };
  const auto end = std::lower_bound(old_.order.begin(), old_.order.end(), instant, is_before);
  std::copy(old_.order.begin(), end, new_.order.begin());
  num_kept_ = num_done_ = static_cast<uint32_t>(end - old_.order.begin());
  const uint32_t first_new = graph.first_new_slot();
  const BlockTask* const tasks = graph.tasks().data();
  const uint32_t* const successors = graph.successors().data();
  const Loop loop = make_loop(graph, 0);
  for (uint32_t i = 0; i < num_kept_; ++i) {
    const uint32_t slot = new_.order[i];
    const BlockTask& task = tasks[slot];
    new_.tasks[slot] = old_.tasks[slot];
    const double task_end = old_.tasks[slot].start + task.exe_time;
    double& device_end = device_end_[task.device];
    device_end = std::max(device_end, task_end);
    work_left_[task.device] -= task.exe_time;
    // Those that wait for it alone were ready when it ended.
    if (task.num_alone != 0 && task_end >= instant) loop.put_followers(slot, task_end);
    for (uint32_t k = task.num_alone; k < task.num_successors; ++k) {
      const uint32_t to = successors[task.first_successor + k];
      if (to < first_new && old_.tasks[to].ready < instant) continue;
      loop.release(to, task_end);
    }
  }
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
bool BlockTimeline::exceeds_from_here(double instant, double limit) const {
  for (size_t d = 0; d < device_end_.size(); ++d) {
    if (std::max(device_end_[d], instant) + work_left_[d] > limit) return true;
  }
  return false;
}

SimulationEnd BlockTimeline::simulate(const BlockGraph& graph, double threshold) {
  EDDY_DCHECK(!is_simulated_) << "simulate() twice without commit() or rollback()";
  const bool is_bounded = threshold != std::numeric_limits<double>::max();
  const double instant = first_instant(graph);
  prepare(graph, is_bounded ? threshold : 1.25 * std::max(old_.makespan, busiest(graph)));
  keep_prefix(graph, instant);
  if (instant == 0) find_roots(graph);
  if (!is_bounded) return run<false>(graph, threshold);
  if (exceeds_from_here(instant, limit_of(threshold))) return SimulationEnd::kExceeds;
  return run<true>(graph, threshold);
}

// Mostly the entries came in order, the last of them is the first of the list.
size_t BlockTimeline::sort_bucket(const Loop& loop, uint32_t first) {
  size_t num_entries = 0;
  for (uint32_t entry = first; entry != kNoSlot; entry = loop.next_of(entry)) {
    entries_[num_entries++] = entry;
  }
  size_t count = 0;
  ReadyKey last = 0;
  bool is_sorted = true;
  while (num_entries > 0) {
    loop.for_each_task(entries_[--num_entries], [&](uint32_t slot) {
      const ReadyKey key = loop.key(slot);
      is_sorted &= last < key;
      open_[count++] = last = key;
    });
  }
  if (!is_sorted) std::sort(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

template <bool kIsBounded>
bool BlockTimeline::take_bucket(Loop& loop, uint32_t bucket) {
  const uint32_t first = std::exchange(loop.heads[bucket], kNoSlot);
  if (loop.next_of(first) == kNoSlot) {
    return first < kFollowers ? loop.take<kIsBounded>(first)
                              : take_followers<kIsBounded>(loop, bucket, first & ~kFollowers);
  }
  const size_t count = sort_bucket(loop, first);
  for (size_t i = 0; i < count; ++i) {
    if (!loop.take<kIsBounded>(slot_of(open_[i]))) return false;
    if (loop.heads[bucket] == kNoSlot) [[likely]]
      continue;
    while (++i < count) queue_.put(open_[i]);
    return take_by_queue<kIsBounded>(loop, bucket);
  }
  return true;
}

// Those that wait for the task alone, where the bucket has no others.
template <bool kIsBounded>
bool BlockTimeline::take_followers(Loop& loop, uint32_t bucket, uint32_t slot) {
  const BlockTask& task = loop.tasks[slot];
  const double ready = loop.state[slot].start + task.exe_time;
  const uint32_t* follower = loop.successors + task.first_successor;
  const uint32_t* const last = follower + task.num_alone;
  while (follower != last) {
    loop.state[*follower].ready = ready;
    if (!loop.take<kIsBounded>(*follower++)) return false;
    if (loop.heads[bucket] == kNoSlot) [[likely]]
      continue;
    for (; follower != last; ++follower) {
      loop.state[*follower].ready = ready;
      queue_.put(loop.key(*follower));
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
      loop.for_each_task(entry, [&](uint32_t slot) { queue_.put(loop.key(slot)); });
    }
    if (queue_.is_empty()) return true;
    if (!loop.take<kIsBounded>(slot_of(queue_.take()))) return false;
  }
}

template <bool kIsBounded>
bool BlockTimeline::take_all(Loop& loop) {
  const uint32_t behind = static_cast<uint32_t>(loop.behind);
  uint32_t next_look = 0;
  for (uint32_t word = 0; word <= behind / 64; ++word) {
    uint64_t bits;
    while ((bits = loop.is_used[word]) != 0) {
      const uint32_t bucket = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      if (bucket == behind) return take_by_queue<kIsBounded>(loop, behind);
      if (kIsBounded && bucket >= next_look) {
        next_look = bucket + behind / kLooks;
        if (exceeds_from_here(bucket / loop.buckets_per_time, loop.limit)) return false;
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
          graph.successors().data(),
          new_.tasks.data(),
          device_end_.data(),
          work_left_.data(),
          heads_.data(),
          next_.data(),
          is_used_.data(),
          buckets_per_time_,
          static_cast<double>(num_buckets_),
          limit,
          new_.order.data() + num_kept_};
}

template <bool kIsBounded>
SimulationEnd BlockTimeline::run(const BlockGraph& graph, double threshold) {
  Loop loop = make_loop(graph, limit_of(threshold));
  const bool is_within = take_all<kIsBounded>(loop);
  num_done_ = static_cast<uint32_t>(loop.next_in_order - new_.order.data());
  if (!is_within) return SimulationEnd::kExceeds;
  EDDY_CHECK(num_done_ == graph.num_tasks()) << "tasks wait for each other in a circle";
  finish();
  if (may_be_overflow(new_.makespan)) return SimulationEnd::kOverflow;
  if (new_.makespan > threshold) return SimulationEnd::kExceeds;
  is_simulated_ = true;
  return SimulationEnd::kDone;
}

void BlockTimeline::finish() {
  new_.makespan =
      device_end_.empty() ? 0 : *std::max_element(device_end_.begin(), device_end_.end());
}

}  // namespace eddy
