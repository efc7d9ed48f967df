#include "graph/strategy/tasks/block_timeline.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

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
  commit(graph);
  return true;
}

void BlockTimeline::commit(const BlockGraph& graph) {
  EDDY_DCHECK(is_simulated_) << "commit() follows a simulate() that is done";
  EDDY_CHECK(new_.tasks.size() == graph.num_slots() &&
             new_.transfer_starts.size() == graph.num_transfers())
      << "the timeline is of another graph";
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
    for (const BlockGraph::Incoming& in : graph.ins(block)) {
      if (in.slot < first_new) instant = std::min(instant, old_.tasks[in.slot].ready);
    }
  };
  for (const BlockGraph::Block& block : graph.original_blocks()) bound_by(block);
  for (const uint32_t index : graph.changed_blocks()) {
    instant = std::min(instant, first_ready_[index]);
  }
  // By new slot, then by shard.
  const uint32_t num_new = graph.num_slots() - first_new;
  earliest_.assign(num_new + graph.num_shards(), kNever);
  for (size_t place = 0; place < graph.changed_blocks().size(); ++place) {
    const uint32_t index = graph.changed_blocks()[place];
    EDDY_DCHECK(graph.blocks()[index].first >= first_new) << "block " << index << " is not new";
    const BlockGraph::Block& block = graph.blocks()[index];
    bound_by(block);
    graph.for_each_source(place, [&](uint32_t slot, const BlockRow& before, const BlockRow& row) {
      const double end = old_.tasks[slot].start + graph.tasks()[slot].exe_time;
      if (before.num_transfers + row.num_transfers != 0) instant = std::min(instant, end);
      for (const uint32_t to : row.local_deps(graph.local_deps().data())) {
        if (to < first_new) continue;
        double& earliest = earliest_[to < BlockTasks::kShard ? to - first_new
                                                             : num_new + (to - BlockTasks::kShard)];
        earliest = earliest == kNever ? end : std::max(earliest, end);
      }
    });
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (graph.num_predecessors()[slot] == 0) instant = 0;
    }
    for (uint32_t i = block.first_shard; i < block.first_shard + block.num_shards; ++i) {
      for (const uint32_t hop : {graph.shards()[i].out, graph.shards()[i].in}) {
        EDDY_DCHECK(hop >= first_new && hop < graph.num_slots()) << "hop " << hop << " is old";
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
  const uint32_t* const num_predecessors = graph.num_predecessors().data();
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    new_.tasks[slot].ready = 0;
    new_.tasks[slot].num_predecessors = num_predecessors[slot];
  }
  shards_.resize(graph.num_shards());
  for (uint32_t i = 0; i < graph.num_shards(); ++i) {
    shards_[i] = {0, graph.shards()[i].num_parts};
  }
  devices_.clear();
  for (const double load : graph.loads()) devices_.push_back({0, load});
  loop_.clear_queue();
  buckets_ = loop_.open(graph.num_tasks(), num_slots, horizon);
}

// What was ready before the instant stays as it was.
void BlockTimeline::keep_prefix(const BlockGraph& graph, double instant) {
  const uint32_t first_new = graph.first_new_slot();
  const BlockTasks tasks = make_tasks(graph, 0);
  const auto is_kept = [&](uint32_t slot) {
    return slot < first_new && old_.tasks[slot].ready < instant;
  };
  const auto keep = [&](uint32_t device, double exe_time, double end) {
    devices_[device].end = std::max(devices_[device].end, end);
    devices_[device].bound -= exe_time;
  };
  const auto keep_task = [&](uint32_t slot) {
    const BlockTask& task = tasks.tasks[slot];
    const double end = old_.tasks[slot].start + task.exe_time;
    keep(task.device, task.exe_time, end);
    const auto release = [&](uint32_t to, double ready) {
      if (!is_kept(to)) tasks.release(to, ready);
    };
    const bool has_followers = tasks.release_all(task, end, release);
    if (has_followers && end >= instant) return tasks.put_followers(slot, end);
    if (!has_followers) return;
    tasks.for_each_row(task, [&](const BlockRow& row) {
      for (uint32_t i = row.first_transfer; i < row.first_transfer + row.num_transfers; ++i) {
        const BlockTransfer& transfer = tasks.transfers[i];
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
  for (BlockTasks::Device& device : devices_) device.bound += device.end;
}

// Only parts can wait for nothing.
void BlockTimeline::find_roots(const BlockGraph& graph) {
  const BlockTasks tasks = make_tasks(graph, 0);
  for (const BlockGraph::Block& block : graph.blocks()) {
    for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
      if (graph.num_predecessors()[slot] == 0) tasks.put_task(slot, 0);
    }
  }
}

SimulationEnd BlockTimeline::simulate(const BlockGraph& graph, double threshold) {
  EDDY_DCHECK(!is_simulated_) << "simulate() twice without commit() or rollback()";
  EDDY_CHECK(old_.tasks.size() >= graph.first_new_slot() &&
             first_ready_.size() == graph.blocks().size())
      << "the graph was made anew after its timeline";
  const bool is_bounded = threshold != std::numeric_limits<double>::max();
  const double instant = first_instant(graph);
  prepare(graph, is_bounded ? threshold : 1.25 * std::max(old_.makespan, busiest(graph)));
  keep_prefix(graph, instant);
  if (instant == 0) find_roots(graph);
  if (!is_bounded) return run<false>(graph, threshold);
  if (make_tasks(graph, limit_of(threshold)).next_verdict(instant) < 0)
    return SimulationEnd::kExceeds;
  return run<true>(graph, threshold);
}

BlockTasks BlockTimeline::make_tasks(const BlockGraph& graph, double limit) {
  return {graph.tasks().data(),
          graph.transfers().data(),
          graph.rows().data(),
          graph.local_deps().data(),
          graph.lists().data(),
          graph.row_bases().data(),
          graph.shards().data(),
          new_.tasks.data(),
          new_.transfer_starts.data(),
          shards_.data(),
          devices_.data(),
          static_cast<uint32_t>(devices_.size()),
          buckets_,
          limit};
}

template <bool kIsBounded>
SimulationEnd BlockTimeline::run(const BlockGraph& graph, double threshold) {
  BlockTasks tasks = make_tasks(graph, limit_of(threshold));
  if (!loop_.run<kIsBounded>(tasks)) return SimulationEnd::kExceeds;
  finish();
  if (may_be_overflow(new_.makespan)) return SimulationEnd::kOverflow;
  if (new_.makespan > threshold) return SimulationEnd::kExceeds;
  is_simulated_ = true;
  return SimulationEnd::kDone;
}

void BlockTimeline::finish() {
  new_.makespan = 0;
  for (const auto& device : devices_) new_.makespan = std::max(new_.makespan, device.end);
}

}  // namespace eddy
