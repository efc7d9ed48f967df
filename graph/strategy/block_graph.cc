#include "graph/strategy/block_graph.h"

#include <algorithm>

namespace eddy {

struct BlockGraph::Sink {
  BlockGraph& graph;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel& label) {
    const uint32_t slot = graph.num_slots();
    graph.tasks_.push_back({spec.exe_time, spec.device, spec.rank, 0, 0, 0, false});
    if (graph.keeps_labels_) graph.labels_.push_back(label);
    return slot;
  }
  void dep(uint32_t from, uint32_t to) { graph.edges_.push_back({from, to}); }
  void tie(uint32_t from, uint32_t to) { dep(from, to); }
};

BlockGraph::BlockGraph(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph),
      emitter_(graph, topology),
      readers_(graph.operators.size()),
      loads_(topology.num_simulated()),
      is_relinked_(graph.operators.size()) {
  uint32_t num_blocks = 0;
  for (uint32_t op = 0; op < graph.operators.size(); ++op) {
    first_block_.push_back(num_blocks);
    const auto num_inputs = static_cast<uint32_t>(graph.operators[op].inputs.size());
    num_blocks += num_inputs + 1;
    for (uint32_t input = 0; input < num_inputs; ++input) {
      if (!emitter_.is_distinct_input(op, input)) continue;
      readers_[graph.operators[op].inputs[input].producer].push_back({Kind::kInput, op, input});
    }
  }
  first_block_.push_back(num_blocks);
  blocks_.resize(num_blocks + emitter_.weight_groups().size());
  is_found_.resize(blocks_.size());
  is_changed_.resize(blocks_.size());
}

uint32_t BlockGraph::index_of(const BlockName& name) const {
  switch (name.kind) {
    case Kind::kParts:
      return parts_block(name.op);
    case Kind::kInput:
      return first_block_[name.op] + name.input;
    case Kind::kRings:
      return first_block_.back() + name.op;
  }
  EDDY_CHECK(false) << "no such kind of block";
}

void BlockGraph::mark_ends() {
  marks_ = {num_slots(), static_cast<uint32_t>(successors_.size()),
            static_cast<uint32_t>(outs_.size()), static_cast<uint32_t>(ins_.size())};
}

Status BlockGraph::reset(Strategy strategy) {
  strategy_ = std::move(strategy);
  emitter_.clear_status();
  tasks_.clear();
  num_predecessors_.clear();
  successors_.clear();
  outs_.clear();
  ins_.clear();
  labels_.clear();
  cursors_.clear();
  num_dead_ = 0;
  std::fill(loads_.begin(), loads_.end(), 0);
  for (uint32_t op = 0; op < strategy_.size(); ++op) {
    emit({Kind::kParts, op});
    for (uint32_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      emit({Kind::kInput, op, input});
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    emit({Kind::kRings, group});
  }
  relinked_.clear();
  for (uint32_t op = 0; op < strategy_.size(); ++op) relinked_.push_back(op);
  if (status().is_ok()) relink();
  forget();
  rebuilt_successors_ = successors_.size();
  return status();
}

bool BlockGraph::wants_rebuild() const {
  return num_dead_ > num_slots() / 2 || successors_.size() > 3 * rebuilt_successors_;
}

void BlockGraph::emit(const BlockName& name) {
  Block& block = blocks_[index_of(name)];
  block = {.first = num_slots()};
  edges_.clear();
  Sink sink{*this};
  switch (name.kind) {
    case Kind::kParts:
      emitter_.emit_parts(name.op, strategy_[name.op], sink);
      break;
    case Kind::kInput:
      emitter_.emit_input(name.op, name.input, strategy_, sink);
      break;
    case Kind::kRings:
      emitter_.emit_sync(name.op, strategy_, sink);
      break;
  }
  block.count = num_slots() - block.first;
  num_predecessors_.resize(tasks_.size());
  cursors_.resize(tasks_.size(), kNoSlot);
  if (status().is_ok()) lay_out(block, name.kind == Kind::kParts);
}

// The block's dependencies: those that leave its own tasks are in rows, but for parts, which other
// blocks follow, too.
void BlockGraph::lay_out(Block& block, bool has_parts) {
  const auto is_own = [&block](uint32_t slot) { return slot - block.first < block.count; };
  block.first_out = static_cast<uint32_t>(outs_.size());
  block.first_in = static_cast<uint32_t>(ins_.size());
  for (const Edge& edge : edges_) {
    ++num_predecessors_[edge.to];
    if (!is_own(edge.to)) ins_.push_back(edge.to);
    if (has_parts || !is_own(edge.from)) {
      outs_.push_back(edge);
    } else {
      ++tasks_[edge.from].num_successors;
    }
  }
  block.num_out = static_cast<uint32_t>(outs_.size()) - block.first_out;
  block.num_in = static_cast<uint32_t>(ins_.size()) - block.first_in;
  EDDY_CHECK(tasks_.size() < kMaxSlots) << "more than 2^31 tasks";
  EDDY_CHECK(successors_.size() + edges_.size() < kNoSlot) << "more than 2^32 - 2 dependencies";
  auto end = static_cast<uint32_t>(successors_.size());
  for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
    BlockTask& task = tasks_[slot];
    end += task.num_successors;
    task.first_successor = end;
    task.waits_alone = !has_parts && num_predecessors_[slot] == 1;
    peak_ = std::max(peak_, loads_[task.device] += task.exe_time);
  }
  successors_.resize(end);
  if (!has_parts) lay_out_rows(block);
}

// A transfer or a hop leads to one task.
void BlockGraph::lay_out_rows(const Block& block) {
  for (const Edge& edge : edges_) {
    if (edge.from - block.first >= block.count) continue;
    BlockTask& task = tasks_[edge.from];
    successors_[--task.first_successor] = edge.to;
    task.num_alone = task.num_successors == 1 && tasks_[edge.to].waits_alone ? 1 : 0;
  }
}

// The parts first, since the others read where they are; transfers last, since they are many.
void BlockGraph::find_blocks(std::span<const uint32_t> ops) {
  names_.clear();
  const auto find = [this](const BlockName& name) {
    if (!is_found_[index_of(name)]) names_.push_back(name);
    is_found_[index_of(name)] = true;
  };
  for (const uint32_t op : ops) find({Kind::kParts, op});
  for (const uint32_t op : ops) {
    const Operator& changed = graph_.operators[op];
    if (changed.weight_elements > 0) find({Kind::kRings, changed.weight_group});
  }
  for (const uint32_t op : ops) {
    const auto num_inputs = static_cast<uint32_t>(graph_.operators[op].inputs.size());
    for (uint32_t input = 0; input < num_inputs; ++input) find({Kind::kInput, op, input});
    for (const BlockName& reader : readers_[op]) find(reader);
  }
  for (const BlockName& name : names_) is_found_[index_of(name)] = false;
}

// The block's tasks are dead from here on: nothing leads to them once their neighbours' parts are
// relinked.
void BlockGraph::remove(uint32_t index) {
  Block& block = blocks_[index];
  if (!is_changed_[index]) {
    is_changed_[index] = true;
    changed_.push_back(index);
    originals_.push_back(block);
  }
  for (const uint32_t to : ins(block)) --num_predecessors_[to];
  for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
    loads_[tasks_[slot].device] -= tasks_[slot].exe_time;
  }
  num_dead_ += block.count;
  block = {};
}

// False as soon as a device is busy for too long.
bool BlockGraph::emit_blocks(double limit) {
  peak_ = *std::max_element(loads_.begin(), loads_.end());
  for (const BlockName& name : names_) {
    if (peak_ * (1 - kLoadRounding) > limit) return false;
    emit(name);
    if (!status().is_ok()) return true;
  }
  return peak_ * (1 - kLoadRounding) <= limit;
}

bool BlockGraph::change(std::span<const uint32_t> ops, const OperatorConfig& config, double limit) {
  if (changed_.empty()) {
    saved_loads_ = loads_;
    saved_num_dead_ = num_dead_;
  }
  find_blocks(ops);
  for (const BlockName& name : names_) remove(index_of(name));
  for (const uint32_t op : ops) {
    saved_slots_.emplace_back(op, emitter_.slots()[op]);
    saved_configs_.emplace_back(op, std::exchange(strategy_[op], config));
  }
  if (!emit_blocks(limit)) return false;
  if (!status().is_ok()) return true;
  find_neighbours(ops);
  relink();
  return true;
}

// Operators whose parts lead into a block that was replaced.
void BlockGraph::find_neighbours(std::span<const uint32_t> ops) {
  relinked_.clear();
  const auto find = [this](uint32_t op) {
    if (!is_relinked_[op]) relinked_.push_back(op);
    is_relinked_[op] = true;
  };
  for (const uint32_t op : ops) {
    find(op);
    const Operator& changed = graph_.operators[op];
    for (const OperatorInput& input : changed.inputs) find(input.producer);
    for (const BlockName& reader : readers_[op]) find(reader.op);
    if (changed.weight_elements == 0 || !graph_.is_training) continue;
    for (const uint32_t other : emitter_.weight_groups()[changed.weight_group]) find(other);
  }
  for (const uint32_t op : relinked_) is_relinked_[op] = false;
}

// Blocks into which the operator's parts may lead.
void BlockGraph::find_adjacent(uint32_t op) {
  const auto find = [this](uint32_t index) {
    if (!is_found_[index]) adjacent_.push_back(index);
    is_found_[index] = true;
  };
  for (uint32_t index = first_block_[op]; index < first_block_[op + 1]; ++index) find(index);
  for (const BlockName& reader : readers_[op]) find(index_of(reader));
  const Operator& relinked = graph_.operators[op];
  if (relinked.weight_elements > 0) find(first_block_.back() + relinked.weight_group);
}

// How many dependencies leave each part of relinked_, in cursors_ and num_alone. Blocks come in
// the order of their ranks.
void BlockGraph::count_links() {
  adjacent_.clear();
  for (const uint32_t op : relinked_) {
    find_adjacent(op);
    const Block& parts = blocks_[parts_block(op)];
    for (uint32_t slot = parts.first; slot < parts.first + parts.count; ++slot) {
      BlockTask& task = tasks_[slot];
      if (slot < marks_.tasks) {
        saved_links_.push_back({slot, task.first_successor, task.num_successors, task.num_alone});
      }
      cursors_[slot] = task.num_alone = 0;
    }
  }
  std::ranges::sort(adjacent_);
  for (const uint32_t index : adjacent_) {
    is_found_[index] = false;
    for (const Edge& edge : outs(blocks_[index])) {
      if (cursors_[edge.from] == kNoSlot) continue;
      ++cursors_[edge.from];
      tasks_[edge.from].num_alone += tasks_[edge.to].waits_alone ? 1 : 0;
    }
  }
}

// Lays out what leaves the parts of relinked_: those that wait alone, then the others. Blocks give
// what follows a forward part by ascending rank, and what follows a backward part by descending.
void BlockGraph::relink() {
  count_links();
  const uint32_t first_backward = emitter_.first_backward_rank();
  auto end = static_cast<uint32_t>(successors_.size());
  for (const uint32_t op : relinked_) {
    const Block& parts = blocks_[parts_block(op)];
    for (uint32_t slot = parts.first; slot < parts.first + parts.count; ++slot) {
      BlockTask& task = tasks_[slot];
      task.num_successors = cursors_[slot];
      cursors_[slot] = end + task.num_alone;
      // The place of the next of those that wait alone, until all are there.
      task.first_successor = task.rank < first_backward ? end : end + task.num_alone;
      end += task.num_successors;
    }
  }
  successors_.resize(end);
  for (const uint32_t index : adjacent_) {
    for (const Edge& edge : outs(blocks_[index])) {
      uint32_t& cursor = cursors_[edge.from];
      if (cursor == kNoSlot) continue;
      BlockTask& task = tasks_[edge.from];
      if (!tasks_[edge.to].waits_alone) {
        successors_[cursor++] = edge.to;
      } else if (task.rank < first_backward) {
        successors_[task.first_successor++] = edge.to;
      } else {
        successors_[--task.first_successor] = edge.to;
      }
    }
  }
  for (const uint32_t op : relinked_) {
    const Block& parts = blocks_[parts_block(op)];
    for (uint32_t slot = parts.first; slot < parts.first + parts.count; ++slot) {
      BlockTask& task = tasks_[slot];
      if (task.rank < first_backward) task.first_successor -= task.num_alone;
      cursors_[slot] = kNoSlot;
      EDDY_DCHECK(is_sorted_alone(task)) << "ranks of a block are not as it was emitted";
    }
  }
}

bool BlockGraph::is_sorted_alone(const BlockTask& task) const {
  const auto first = successors_.begin() + task.first_successor;
  return std::is_sorted(first, first + task.num_alone,
                        [this](uint32_t a, uint32_t b) { return tasks_[a].rank < tasks_[b].rank; });
}

void BlockGraph::commit() {
  EDDY_DCHECK(status().is_ok()) << "commit() after an error";
  forget();
}

void BlockGraph::rollback() {
  for (size_t i = changed_.size(); i-- > 0;) {
    for (const uint32_t to : ins(blocks_[changed_[i]])) --num_predecessors_[to];
    blocks_[changed_[i]] = originals_[i];
  }
  for (const Block& original : originals_) {
    for (const uint32_t to : ins(original)) ++num_predecessors_[to];
  }
  for (size_t i = saved_links_.size(); i-- > 0;) {
    const Links& links = saved_links_[i];
    tasks_[links.slot].first_successor = links.first_successor;
    tasks_[links.slot].num_successors = links.num_successors;
    tasks_[links.slot].num_alone = links.num_alone;
  }
  for (size_t i = saved_slots_.size(); i-- > 0;) {
    emitter_.slots()[saved_slots_[i].first] = std::move(saved_slots_[i].second);
    strategy_[saved_configs_[i].first] = std::move(saved_configs_[i].second);
  }
  tasks_.resize(marks_.tasks);
  num_predecessors_.resize(marks_.tasks);
  cursors_.resize(marks_.tasks);
  if (keeps_labels_) labels_.resize(marks_.tasks);
  successors_.resize(marks_.successors);
  outs_.resize(marks_.outs);
  ins_.resize(marks_.ins);
  if (!changed_.empty()) {
    loads_.swap(saved_loads_);
    num_dead_ = saved_num_dead_;
  }
  emitter_.clear_status();
  forget();
}

void BlockGraph::forget() {
  for (const uint32_t index : changed_) is_changed_[index] = false;
  changed_.clear();
  originals_.clear();
  saved_links_.clear();
  saved_configs_.clear();
  saved_slots_.clear();
  mark_ends();
}

}  // namespace eddy
