#include "graph/strategy/tasks/strategy_snapshot.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/simulate/full_simulation.h"

namespace eddy {
namespace {

class Snapshot {
 public:
  Snapshot(const BlockGraph& blocks, const BlockTimeline& times) : blocks_(blocks), times_(times) {
    for (const BlockGraph::Block& block : blocks.blocks()) {
      for (uint32_t i = 0; i < block.count; ++i) add_task(block.first + i);
    }
    EDDY_CHECK(items_.size() == blocks.num_tasks())
        << items_.size() << " of " << blocks.num_tasks() << " tasks were found";
    std::ranges::sort(items_, {}, [](const Item& item) { return item.spec.rank; });
  }

  StrategySnapshot take(bool has_labels);

 private:
  // A transfer's id is its number behind all slots.
  struct Item {
    uint32_t id;
    TaskSpec<double> spec;
    TaskTimes<double> times;
  };

  uint32_t id_of(uint32_t transfer) const { return blocks_.num_slots() + transfer; }
  void add(uint32_t id, const TaskSpec<double>& spec, double ready, double start) {
    items_.push_back({id, spec, {ready, start, start + spec.exe_time, kNoSlot}});
  }
  void add_task(uint32_t slot);
  void add_transfers(uint32_t slot, const BlockRow& row);
  void add_local_deps(uint32_t slot, const BlockRow& row);
  void set_order(const TaskGraph<double>& graph, Timeline<double>& timeline) const;

  const BlockGraph& blocks_;
  const BlockTimeline& times_;
  std::vector<Item> items_;
  std::vector<Edge> edges_;  // of ids
};

void Snapshot::add_task(uint32_t slot) {
  const BlockTask& task = blocks_.tasks()[slot];
  add(slot, {task.exe_time, task.device, task.rank}, times_.ready(slot), times_.start(slot));
  if (task.next != kNoSlot) edges_.push_back({slot, task.next});
  const RowList& list = blocks_.lists()[task.list];
  for (uint32_t place = list.first; place < list.last; ++place) {
    const BlockRow& row = blocks_.rows()[blocks_.row_bases()[place] + task.row];
    add_transfers(slot, row);
    add_local_deps(slot, row);
  }
}

void Snapshot::add_transfers(uint32_t slot, const BlockRow& row) {
  const double end = times_.start(slot) + blocks_.tasks()[slot].exe_time;
  for (uint32_t i = row.first_transfer; i < row.first_transfer + row.num_transfers; ++i) {
    const BlockTransfer& transfer = blocks_.transfers()[i];
    add(id_of(i), {transfer.exe_time, transfer.device, transfer.rank}, end,
        times_.transfer_start(i));
    edges_.push_back({slot, id_of(i)});
    edges_.push_back({id_of(i), transfer.to});
  }
}

void Snapshot::add_local_deps(uint32_t slot, const BlockRow& row) {
  for (const uint32_t to : row.local_deps(blocks_.local_deps().data())) {
    if (to < BlockGraph::kShard) {
      edges_.push_back({slot, to});
    } else {
      const RingShard& shard = blocks_.shards()[to - BlockGraph::kShard];
      edges_.push_back({slot, shard.out});
      edges_.push_back({slot, shard.in});
    }
  }
}

// The first task by ready time and rank leaves the queue first, if all that it waits for is
// before it in that order. Only hops that end when they begin can be behind; then the queue
// decides.
void Snapshot::set_order(const TaskGraph<double>& graph, Timeline<double>& timeline) const {
  const auto count = static_cast<uint32_t>(items_.size());
  timeline.tasks.resize(count);
  timeline.order.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    timeline.tasks[i] = items_[i].times;
    timeline.order[i] = i;
  }
  std::ranges::stable_sort(timeline.order, {}, [&](uint32_t i) { return items_[i].times.ready; });
  for (uint32_t at = 0; at < count; ++at) timeline.tasks[timeline.order[at]].position = at;
  const auto is_in_order = [&](const Edge& edge) {
    return timeline.tasks[edge.from].position < timeline.tasks[edge.to].position;
  };
  if (std::ranges::all_of(edges_, is_in_order)) return;
  Timeline<double> full;
  EDDY_CHECK(simulate_full(graph, full).is_done()) << "it has a timeline";
  timeline.order = std::move(full.order);
  for (uint32_t i = 0; i < count; ++i) timeline.tasks[i].position = full.tasks[i].position;
}

StrategySnapshot Snapshot::take(bool has_labels) {
  StrategySnapshot snapshot;
  std::vector<TaskSpec<double>> specs;
  std::vector<uint32_t> place(id_of(blocks_.num_transfers()));
  for (const Item& item : items_) {
    place[item.id] = static_cast<uint32_t>(specs.size());
    specs.push_back(item.spec);
    if (!has_labels) continue;
    snapshot.labels.push_back(item.id < blocks_.num_slots()
                                  ? blocks_.label(item.id)
                                  : blocks_.transfer_label(item.id - blocks_.num_slots()));
  }
  for (Edge& edge : edges_) edge = {place[edge.from], place[edge.to]};
  snapshot.graph.assign(specs, edges_);
  snapshot.graph.make_predecessors();
  set_order(snapshot.graph, snapshot.timeline);
  snapshot.timeline.makespan = times_.makespan();
  return snapshot;
}

}  // namespace

StrategySnapshot take_snapshot(const BlockGraph& blocks, const BlockTimeline& times,
                               bool has_labels) {
  return Snapshot(blocks, times).take(has_labels);
}

}  // namespace eddy
