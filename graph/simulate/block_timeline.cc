#include "graph/simulate/block_timeline.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace eddy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint32_t kMinBuckets = 64;
constexpr uint32_t kMaxBuckets = 1u << 20;

// Ends are exact, what is left to do is not.
double limit_of(double threshold) { return threshold * (1 + 2 * BlockGraph::kLoadRounding); }

// How long the busiest device works.
double busiest(const BlockGraph& graph) {
  const std::vector<double>& loads = graph.loads();
  return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
}

}  // namespace

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
  const uint32_t* const num_predecessors = graph.num_predecessors().data();
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    new_.tasks[slot] = {.ready = 0, .wait = {num_predecessors[slot], kNoSlot}};
  }
  work_left_ = graph.loads();
  device_end_.assign(work_left_.size(), 0);
  num_kept_ = num_done_ = 0;

  const uint32_t num_buckets =
      std::clamp(2 * std::bit_ceil(graph.num_tasks()), kMinBuckets, kMaxBuckets);
  buckets_.resize(num_buckets);
  is_used_.assign(num_buckets / 64, 0);
  // Without a horizon everything is behind it.
  buckets_per_time_ = horizon > 0 && horizon < kNever ? num_buckets / horizon : kNever;
  bucket_ = -1;
  open_.clear();
  place_ = 0;
  behind_.clear();
}

// What was ready before the instant stays as it was.
void BlockTimeline::keep_prefix(const BlockGraph& graph, double instant) {
  const auto is_before = [this](uint32_t slot, double time) {
    return old_.tasks[slot].ready < time;
  };
  const auto end = std::lower_bound(old_.order.begin(), old_.order.end(), instant, is_before);
  num_kept_ = num_done_ = static_cast<uint32_t>(end - old_.order.begin());
  const uint32_t first_new = graph.first_new_slot();
  const BlockTask* const tasks = graph.tasks().data();
  const uint32_t* const successors = graph.successors().data();
  for (uint32_t i = 0; i < num_kept_; ++i) {
    const uint32_t slot = old_.order[i];
    const BlockTask& task = tasks[slot];
    const double task_end = old_.tasks[slot].start + task.exe_time;
    double& device_end = device_end_[task.device];
    device_end = std::max(device_end, task_end);
    work_left_[task.device] -= task.exe_time;
    for (uint32_t k = 0; k < task.num_successors; ++k) {
      const uint32_t to = successors[task.first_successor + k];
      if (to < first_new && old_.tasks[to].ready < instant) continue;
      Task& next = new_.tasks[to];
      next.ready = std::max(next.ready, task_end);
      if (--next.wait.num_predecessors == 0) put(tasks, to);
    }
  }
}

// Only parts can wait for nothing.
void BlockTimeline::find_roots(const BlockGraph& graph) {
  const BlockTask* const tasks = graph.tasks().data();
  for (const BlockGraph::Block& block : graph.blocks()) {
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (graph.num_predecessors()[slot] == 0) put(tasks, slot);
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

void BlockTimeline::put(const BlockTask* tasks, uint32_t slot) {
  Task& task = new_.tasks[slot];
  const double place = task.ready * buckets_per_time_;
  if (!(place < static_cast<double>(buckets_.size()))) {
    behind_.put(ready_key(time_key(task.ready), tasks[slot].rank, slot));
    return;
  }
  const auto number = static_cast<int32_t>(place);
  if (number <= bucket_) {
    const ReadyKey key = ready_key(time_key(task.ready), tasks[slot].rank, slot);
    const auto rest = open_.begin() + static_cast<std::ptrdiff_t>(place_);
    open_.insert(std::upper_bound(rest, open_.end(), key), key);
    return;
  }
  Bucket& bucket = buckets_[static_cast<size_t>(number)];
  uint64_t& word = is_used_[static_cast<size_t>(number) / 64];
  const uint64_t bit = uint64_t{1} << (number % 64);
  task.wait.next = kNoSlot;
  __builtin_prefetch(tasks + slot);
  if ((word & bit) != 0) {
    new_.tasks[bucket.last].wait.next = slot;
  } else {
    bucket.first = slot;
    word |= bit;
  }
  bucket.last = slot;
}

// False where no bucket holds anything.
bool BlockTimeline::open_next_bucket(const BlockTask* tasks) {
  size_t w = static_cast<size_t>(std::max(bucket_, 0)) / 64;
  while (is_used_[w] == 0) {
    if (++w == is_used_.size()) return false;
  }
  bucket_ = static_cast<int32_t>(w * 64) + std::countr_zero(is_used_[w]);
  is_used_[w] &= is_used_[w] - 1;
  open_.clear();
  place_ = 0;
  bool is_ascending = true;
  bool is_descending = true;
  for (uint32_t slot = buckets_[static_cast<size_t>(bucket_)].first; slot != kNoSlot;
       slot = new_.tasks[slot].wait.next) {
    const ReadyKey key = ready_key(time_key(new_.tasks[slot].ready), tasks[slot].rank, slot);
    if (!open_.empty()) (open_.back() < key ? is_descending : is_ascending) = false;
    open_.push_back(key);
  }
  if (is_ascending) return true;
  if (is_descending) {
    std::reverse(open_.begin(), open_.end());
  } else {
    std::sort(open_.begin(), open_.end());
  }
  return true;
}

// False: the makespan is certainly above the limit.
template <bool kIsBounded>
bool BlockTimeline::take(const BlockGraph& graph, uint32_t slot, double limit) {
  const BlockTask* const tasks = graph.tasks().data();
  const BlockTask& task = tasks[slot];
  double& device_end = device_end_[task.device];
  Task& own = new_.tasks[slot];
  const double start = own.start = std::max(own.ready, device_end);
  const double end = device_end = start + task.exe_time;
  new_.order[num_done_++] = slot;
  if constexpr (kIsBounded) {
    double& left = work_left_[task.device];
    left -= task.exe_time;
    if (end + left > limit) return false;
  }
  const uint32_t* successor = graph.successors().data() + task.first_successor;
  for (const uint32_t* const last = successor + task.num_successors; successor != last;
       ++successor) {
    Task& next = new_.tasks[*successor];
    next.ready = std::max(next.ready, end);
    if (--next.wait.num_predecessors == 0) put(tasks, *successor);
  }
  return true;
}

template <bool kIsBounded>
SimulationEnd BlockTimeline::run(const BlockGraph& graph, double threshold) {
  const double limit = limit_of(threshold);
  const BlockTask* const tasks = graph.tasks().data();
  do {
    while (place_ < open_.size()) {
      const uint32_t slot = slot_of(open_[place_++]);
      if (!take<kIsBounded>(graph, slot, limit)) return SimulationEnd::kExceeds;
    }
  } while (open_next_bucket(tasks));
  while (!behind_.is_empty()) {
    if (!take<kIsBounded>(graph, slot_of(behind_.take()), limit)) return SimulationEnd::kExceeds;
  }
  EDDY_CHECK(num_done_ == graph.num_tasks()) << "tasks wait for each other in a circle";
  finish();
  if (is_overflow(new_.makespan)) return SimulationEnd::kOverflow;
  if (new_.makespan > threshold) return SimulationEnd::kExceeds;
  is_simulated_ = true;
  return SimulationEnd::kDone;
}

void BlockTimeline::finish() {
  for (uint32_t i = 0; i < num_kept_; ++i) {
    const uint32_t slot = new_.order[i] = old_.order[i];
    new_.tasks[slot] = old_.tasks[slot];
  }
  new_.makespan =
      device_end_.empty() ? 0 : *std::max_element(device_end_.begin(), device_end_.end());
}

}  // namespace eddy
