#include "graph/strategy/tasks/block_graph.h"

#include <algorithm>
#include <limits>

#include "graph/base/check.h"

namespace eddy {

struct BlockGraph::Sink {
  BlockGraph& graph;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel& label) {
    const uint32_t slot = graph.num_slots();
    const auto no_list = static_cast<uint32_t>(graph.lists_.size()) - 1;
    graph.tasks_.push_back({spec.exe_time, spec.device, spec.rank, no_list, 0, kNoSlot});
    graph.in_counts_.push_back(0);
    if (graph.keeps_labels_) graph.labels_.push_back(label);
    return slot;
  }
  void dep(uint32_t from, uint32_t to) {
    EDDY_DCHECK(from < graph.num_slots() && to < graph.num_slots() &&
                graph.tasks_[from].next == kNoSlot)
        << "slots " << from << " and " << to;
    graph.tasks_[from].next = to;
    ++graph.in_counts_[to];
  }
  void local_dep(uint32_t, uint32_t to, const TaskLabel& label) {
    direction(label).local_deps.push_back({row(label), to});
    ++graph.in_counts_[to];
  }
  void transfer(const TaskSpec<double>& spec, const TaskLabel& label, uint32_t, uint32_t to) {
    Direction& of = direction(label);
    of.transfers.push_back({spec.exe_time, spec.device, spec.rank, to, row(label)});
    if (graph.keeps_labels_) of.labels.push_back(label);
    ++graph.in_counts_[to];
  }
  void ring_hop(const WeightSlice& slice, size_t h, uint32_t hop, const std::vector<PartSlots>&) {
    if (h == 0) add_shards(slice);
    EDDY_DCHECK(h < slice.shards.size() && slice.shards.size() <= graph.shards_.size())
        << "hop " << h << " of " << slice.shards.size();
    RingShard* const first = &graph.shards_.back() + 1 - slice.shards.size();
    first[h].out = hop;
    first[(h + 1) % slice.shards.size()].in = hop;
    graph.in_counts_[hop] = 2;
  }

 private:
  static uint32_t row(const TaskLabel& label) {
    return label.is_backward ? label.to_part : label.part;
  }
  Direction& direction(const TaskLabel& label) {
    return label.is_backward ? graph.backward_ : graph.forward_;
  }
  void add_shards(const WeightSlice& slice) {
    for (const SliceShard& shard : slice.shards) {
      for (const PartOfOperator& part : shard.parts) {
        graph.ring_deps_.push_back({graph.ring_rows_[part.op] + part.part, graph.num_shards()});
      }
      graph.shards_.push_back({.num_parts = static_cast<uint32_t>(shard.parts.size())});
    }
  }
};

BlockGraph::BlockGraph(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph),
      emitter_(graph, topology),
      readers_(graph.operators.size()),
      loads_(topology.num_simulated()) {
  number_blocks();
  make_lists();
}

void BlockGraph::number_blocks() {
  for (uint32_t op = 0; op < graph_.operators.size(); ++op) {
    first_block_.push_back(static_cast<uint32_t>(names_.size()));
    const std::vector<OperatorInput>& inputs = graph_.operators[op].inputs;
    for (uint32_t input = 0; input < inputs.size(); ++input) {
      if (emitter_.is_distinct_input(op, input)) {
        readers_[inputs[input].producer].push_back(static_cast<uint32_t>(names_.size()));
      }
      names_.push_back({Kind::kInput, op, input});
    }
    names_.push_back({Kind::kParts, op});
  }
  first_block_.push_back(static_cast<uint32_t>(names_.size()));
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    names_.push_back({Kind::kRings, group});
  }
  blocks_.resize(names_.size());
  is_found_.resize(names_.size());
  is_changed_.resize(names_.size());
}

// Ranks of blocks ascend forward and descend backward.
void BlockGraph::make_lists() {
  places_.resize(names_.size());
  ring_places_.resize(graph_.operators.size(), kNoSlot);
  ring_rows_.resize(graph_.operators.size());
  const auto add_place = [this](uint32_t& place) {
    place = static_cast<uint32_t>(row_bases_.size());
    row_bases_.push_back(0);
  };
  const auto end_list = [this](uint32_t first) {
    lists_.push_back({.first = first, .last = static_cast<uint32_t>(row_bases_.size())});
  };
  for (uint32_t op = 0; op < graph_.operators.size(); ++op) {
    auto first = static_cast<uint32_t>(row_bases_.size());
    for (const uint32_t reader : readers_[op]) add_place(places_[reader].forward);
    end_list(first);
    first = static_cast<uint32_t>(row_bases_.size());
    for (auto input = static_cast<uint32_t>(graph_.operators[op].inputs.size()); input-- > 0;) {
      if (!emitter_.is_distinct_input(op, input)) continue;
      add_place(places_[input_block(op, input)].backward);
    }
    if (graph_.is_training && graph_.operators[op].weight_elements > 0) {
      add_place(ring_places_[op]);
    }
    end_list(first);
    first = static_cast<uint32_t>(row_bases_.size());
    add_place(places_[parts_block(op)].forward);
    end_list(first);
    first = static_cast<uint32_t>(row_bases_.size());
    add_place(places_[parts_block(op)].backward);
    end_list(first);
  }
  lists_.push_back({});
}

std::span<const uint32_t> BlockGraph::tiles(uint32_t op, const std::vector<uint32_t>& slots) const {
  const size_t num_parts = strategy_[op].devices.size();
  const std::span<const uint32_t> all(slots);
  return strategy_[op].reduce > 1 ? all.subspan(num_parts) : all;
}

void BlockGraph::mark_ends() {
  marks_ = {num_slots(),
            num_transfers(),
            static_cast<uint32_t>(rows_.size()),
            static_cast<uint32_t>(local_deps_.size()),
            num_shards(),
            static_cast<uint32_t>(ins_.size())};
}

Status BlockGraph::reset(Strategy strategy) {
  strategy_ = std::move(strategy);
  EDDY_CHECK(strategy_.size() == graph_.operators.size())
      << strategy_.size() << " configurations for " << graph_.operators.size() << " operators";
  emitter_.clear_status();
  tasks_.clear();
  num_predecessors_.clear();
  transfers_.clear();
  rows_.clear();
  local_deps_.clear();
  shards_.clear();
  ins_.clear();
  labels_.clear();
  transfer_labels_.clear();
  in_counts_.clear();
  num_dead_ = 0;
  std::fill(loads_.begin(), loads_.end(), 0);
  for (uint32_t op = 0; op < strategy_.size(); ++op) {
    emit(parts_block(op), true);
    for (uint32_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      emit(input_block(op, input), true);
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    emit(ring_block(group), true);
  }
  forget();
  return status();
}

bool BlockGraph::wants_rebuild() const { return num_dead_ > (num_slots() + num_transfers()) / 2; }

void BlockGraph::emit(uint32_t index, bool adds_load) {
  if (!status().is_ok()) return;
  const BlockName& name = names_[index];
  Block& block = blocks_[index];
  block = {.first = num_slots(),
           .first_transfer = num_transfers(),
           .first_row = static_cast<uint32_t>(rows_.size()),
           .first_shard = num_shards(),
           .first_in = static_cast<uint32_t>(ins_.size())};
  forward_.clear();
  backward_.clear();
  ring_deps_.clear();
  emit_tasks(name);
  if (!status().is_ok()) return;
  block.count = num_slots() - block.first;
  block.num_shards = num_shards() - block.first_shard;
  if (name.kind == Kind::kParts) join_parts(name.op);
  lay_out(index);
  count_ins(block, name);
  if (adds_load) add_load(block);
  note_first_rows(index);
  EDDY_CHECK(tasks_.size() < kMaxSlots && transfers_.size() < kMaxSlots &&
             shards_.size() < kMaxSlots)
      << "more than 2^31 tasks";
  EDDY_CHECK(local_deps_.size() < kNoSlot && rows_.size() < kNoSlot)
      << "more than 2^32 - 2 dependencies";
}

void BlockGraph::emit_tasks(const BlockName& name) {
  Sink sink{*this};
  switch (name.kind) {
    case Kind::kParts:
      return emitter_.emit_parts(name.op, strategy_[name.op], sink);
    case Kind::kInput:
      return emitter_.emit_input(name.op, name.input, strategy_, sink);
    case Kind::kRings:
      count_ring_rows(name.op);
      return emitter_.emit_sync(name.op, strategy_, sink);
  }
}

// Where the rows of each operator of the group begin; how many there are.
uint32_t BlockGraph::count_ring_rows(uint32_t group) {
  uint32_t count = 0;
  for (const uint32_t op : emitter_.weight_groups()[group]) {
    ring_rows_[op] = count;
    count += static_cast<uint32_t>(strategy_[op].devices.size());
  }
  return count;
}

// Sets which rows follow the operator's parts and sums.
void BlockGraph::join_parts(uint32_t op) {
  const PartSlots& slots = emitter_.slots()[op];
  const bool is_summed = strategy_[op].reduce > 1;
  const auto join = [this](std::span<const uint32_t> tasks, uint32_t list) {
    for (uint32_t row = 0; row < tasks.size(); ++row) {
      tasks_[tasks[row]].list = list;
      tasks_[tasks[row]].row = row;
    }
  };
  const size_t num_parts = strategy_[op].devices.size();
  EDDY_DCHECK(slots.forward.size() >= num_parts) << "operator " << op << " lacks parts";
  EDDY_DCHECK(!graph_.is_training || slots.backward.size() == slots.forward.size())
      << "operator " << op << " has no twin of each part";
  const std::span<const uint32_t> forward(slots.forward);
  join(forward.first(num_parts), list_of(op, is_summed ? kToSums : kForward));
  join(forward.subspan(num_parts), list_of(op, kForward));
  if (!graph_.is_training) return;
  const std::span<const uint32_t> backward(slots.backward);
  join(backward.first(num_parts), list_of(op, kBackward));
  join(backward.subspan(num_parts), list_of(op, kFromSums));
}

// Of the rings, now that the hops are known.
void BlockGraph::connect_shards() {
  for (const LocalDep& local_dep : ring_deps_) {
    const RingShard& shard = shards_[local_dep.to];
    if (shard.num_parts > 1) {
      forward_.local_deps.push_back({local_dep.row, kShard | local_dep.to});
    } else {
      forward_.local_deps.push_back({local_dep.row, shard.out});
      forward_.local_deps.push_back({local_dep.row, shard.in});
    }
  }
}

// The rows, with what was emitted.
void BlockGraph::lay_out(uint32_t index) {
  const BlockName& name = names_[index];
  Block& block = blocks_[index];
  const OperatorConfig* const config = name.kind == Kind::kRings ? nullptr : &strategy_[name.op];
  switch (name.kind) {
    case Kind::kParts:
      block.num_forward = static_cast<uint32_t>(config->devices.size());
      block.num_backward = block.num_forward / static_cast<uint32_t>(config->reduce);
      if (config->reduce == 1) block.num_forward = block.num_backward = 0;
      break;
    case Kind::kInput: {
      if (!emitter_.is_distinct_input(name.op, name.input)) break;
      const uint32_t producer = graph_.operators[name.op].inputs[name.input].producer;
      block.num_forward =
          static_cast<uint32_t>(tiles(producer, emitter_.slots()[producer].forward).size());
      block.num_backward = static_cast<uint32_t>(config->devices.size());
      break;
    }
    case Kind::kRings:
      if (graph_.is_training) block.num_forward = count_ring_rows(name.op);
      connect_shards();
      break;
  }
  if (!graph_.is_training) block.num_backward = 0;
  rows_.resize(rows_.size() + block.num_forward + block.num_backward);
  lay_out(forward_, false, rows_.data() + block.first_row, block.num_forward);
  lay_out(backward_, true, rows_.data() + block.first_row + block.num_forward, block.num_backward);
  block.num_transfers = num_transfers() - block.first_transfer;
}

// Transfers come by ascending rank, or by descending.
void BlockGraph::lay_out(const Direction& direction, bool is_reversed, BlockRow* rows,
                         uint32_t num_rows) {
  EDDY_DCHECK(!keeps_labels_ || direction.labels.size() == direction.transfers.size())
      << direction.labels.size() << " labels";
  EDDY_DCHECK(std::ranges::all_of(direction.transfers, [&](const BlockTransfer& transfer) {
    return transfer.row < num_rows;
  })) << "a transfer starts from no row";
  for (const BlockTransfer& transfer : direction.transfers) ++rows[transfer.row].num_transfers;
  for (const LocalDep& local_dep : direction.local_deps) ++rows[local_dep.row].num_local_deps;
  auto first_transfer = num_transfers();
  auto first_local_dep = static_cast<uint32_t>(local_deps_.size());
  for (uint32_t row = 0; row < num_rows; ++row) {
    rows[row].first_transfer = first_transfer;
    rows[row].local_dep = first_local_dep;
    first_transfer += rows[row].num_transfers;
    if (rows[row].num_local_deps > 1) first_local_dep += rows[row].num_local_deps;
    rows[row].num_transfers = 0;
  }
  transfers_.resize(first_transfer);
  local_deps_.resize(first_local_dep);
  if (keeps_labels_) transfer_labels_.resize(first_transfer);
  const size_t count = direction.transfers.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = is_reversed ? count - 1 - i : i;
    BlockRow& row = rows[direction.transfers[at].row];
    const uint32_t place = row.first_transfer + row.num_transfers++;
    transfers_[place] = direction.transfers[at];
    if (keeps_labels_) transfer_labels_[place] = direction.labels[at];
  }
  for (const LocalDep& local_dep : direction.local_deps) {
    BlockRow& row = rows[local_dep.row];
    (row.num_local_deps == 1 ? row.local_dep : local_deps_[row.local_dep++]) = local_dep.to;
  }
  for (uint32_t row = 0; row < num_rows; ++row) {
    if (rows[row].num_local_deps > 1) rows[row].local_dep -= rows[row].num_local_deps;
  }
}

// Moves what was counted for the block's own tasks and its neighbours' to where it belongs.
void BlockGraph::count_ins(Block& block, const BlockName& name) {
  num_predecessors_.resize(tasks_.size());
  for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
    num_predecessors_[slot] = std::exchange(in_counts_[slot], 0);
  }
  if (name.kind != Kind::kInput) return;
  const auto count = [this](std::span<const uint32_t> slots) {
    for (const uint32_t slot : slots) {
      const uint32_t num = std::exchange(in_counts_[slot], 0);
      if (num == 0) continue;
      num_predecessors_[slot] += num;
      ins_.push_back({slot, num});
    }
  };
  count(emitter_.slots()[name.op].forward);
  count(emitter_.slots()[graph_.operators[name.op].inputs[name.input].producer].backward);
  block.num_in = static_cast<uint32_t>(ins_.size()) - block.first_in;
}

void BlockGraph::add_load(const Block& block) {
  for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
    peak_ = std::max(peak_, loads_[tasks_[slot].device] += tasks_[slot].exe_time);
  }
  const BlockTransfer* transfer = transfers_.data() + block.first_transfer;
  for (const BlockTransfer* const last = transfer + block.num_transfers; transfer != last;
       ++transfer) {
    peak_ = std::max(peak_, loads_[transfer->device] += transfer->exe_time);
  }
}

void BlockGraph::note_first_rows(uint32_t index) {
  const Block& block = blocks_[index];
  const BlockName& name = names_[index];
  if (name.kind != Kind::kRings) {
    const Places& places = places_[index];
    if (places.forward != kNoSlot) row_bases_[places.forward] = block.first_row;
    if (places.backward != kNoSlot) {
      row_bases_[places.backward] = block.first_row + block.num_forward;
    }
    return;
  }
  if (!graph_.is_training) return;
  uint32_t row = block.first_row;
  for (const uint32_t op : emitter_.weight_groups()[name.op]) {
    EDDY_DCHECK(ring_places_[op] != kNoSlot) << "operator " << op << " has no rings";
    row_bases_[ring_places_[op]] = row;
    row += static_cast<uint32_t>(strategy_[op].devices.size());
  }
}

}  // namespace eddy
