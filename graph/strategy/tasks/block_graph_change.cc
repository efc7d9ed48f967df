// The transaction of a BlockGraph: which blocks a change replaces, and what commit() and rollback()
// do. How a block is made is in block_graph.cc.
#include <algorithm>
#include <limits>
#include <utility>

#include "graph/base/check.h"
#include "graph/strategy/tasks/block_graph.h"
#include "graph/strategy/tasks/load_sink.h"

namespace eddy {

// The parts first, since the others read where they are; transfers last, since they are many.
void BlockGraph::find_blocks(std::span<const uint32_t> ops) {
  found_.clear();
  const auto find = [this](uint32_t index) {
    if (!is_found_[index]) found_.push_back(index);
    is_found_[index] = true;
  };
  for (const uint32_t op : ops) find(parts_block(op));
  for (const uint32_t op : ops) {
    const Operator& changed = graph_.operators[op];
    if (changed.weight_elements > 0) find(ring_block(changed.weight_group));
  }
  for (const uint32_t op : ops) {
    const auto num_inputs = static_cast<uint32_t>(graph_.operators[op].inputs.size());
    for (uint32_t input = 0; input < num_inputs; ++input) find(input_block(op, input));
    for (const uint32_t reader : readers_[op]) find(reader);
  }
  for (const uint32_t index : found_) is_found_[index] = false;
}

// The block is dead from here on: no place leads to it once its successor is noted.
void BlockGraph::remove(uint32_t index) {
  Block& block = blocks_[index];
  if (!is_changed_[index]) {
    is_changed_[index] = true;
    changed_.push_back(index);
    originals_.push_back(block);
  }
  for (const Incoming& in : ins(block)) {
    EDDY_DCHECK(num_predecessors_[in.slot] >= in.count) << "slot " << in.slot;
    num_predecessors_[in.slot] -= in.count;
  }
  for (uint32_t slot = block.first; slot < block.first + block.count; ++slot) {
    loads_[tasks_[slot].device] -= tasks_[slot].exe_time;
  }
  const BlockTransfer* transfer = transfers_.data() + block.first_transfer;
  for (const BlockTransfer* const last = transfer + block.num_transfers; transfer != last;
       ++transfer) {
    loads_[transfer->device] -= transfer->exe_time;
  }
  num_dead_ += block.count + block.num_transfers;
  EDDY_DCHECK(num_dead_ <= num_slots() + num_transfers()) << num_dead_ << " tasks are dead";
  block = {};
}

// False as soon as a device is busy for too long. Transfers are many: with a limit they are counted
// before they are emitted.
bool BlockGraph::emit_blocks(double limit) {
  const bool is_limited = limit < std::numeric_limits<double>::max();
  peak_ = *std::max_element(loads_.begin(), loads_.end());
  const auto is_input = [this](uint32_t index) { return names_[index].kind == Kind::kInput; };
  const auto first_input = std::find_if(found_.begin(), found_.end(), is_input);
  for (auto index = found_.begin(); index != first_input; ++index) {
    emit(*index, true);
    if (!status().is_ok()) return true;
    if (!is_within(limit)) return false;
  }
  for (auto index = first_input; is_limited && index != found_.end(); ++index) {
    const LoadSink sink{loads_, peak_};
    emitter_.emit_input(names_[*index].op, names_[*index].input, strategy_, sink);
    if (!status().is_ok()) return true;
    if (!is_within(limit)) return false;
  }
  for (auto index = first_input; index != found_.end(); ++index) emit(*index, !is_limited);
  return true;
}

bool BlockGraph::change(std::span<const uint32_t> ops, const OperatorConfig& config, double limit) {
  if (changed_.empty()) {
    saved_loads_ = loads_;
    saved_num_dead_ = num_dead_;
  }
  find_blocks(ops);
  for (const uint32_t index : found_) remove(index);
  for (const uint32_t op : ops) {
    saved_slots_.emplace_back(op, emitter_.slots()[op]);
    saved_configs_.emplace_back(op, std::exchange(strategy_[op], config));
  }
  return emit_blocks(limit);
}

void BlockGraph::commit() {
  EDDY_DCHECK(status().is_ok()) << "commit() after an error";
  forget();
}

void BlockGraph::rollback() {
  EDDY_CHECK(changed_.size() == originals_.size() && saved_slots_.size() == saved_configs_.size())
      << changed_.size() << " blocks have changed";
  for (size_t i = saved_slots_.size(); i-- > 0;) {
    emitter_.slots()[saved_slots_[i].first] = std::move(saved_slots_[i].second);
    strategy_[saved_configs_[i].first] = std::move(saved_configs_[i].second);
  }
  for (size_t i = changed_.size(); i-- > 0;) {
    for (const Incoming& in : ins(blocks_[changed_[i]])) num_predecessors_[in.slot] -= in.count;
    blocks_[changed_[i]] = originals_[i];
  }
  for (size_t i = 0; i < changed_.size(); ++i) {
    for (const Incoming& in : ins(originals_[i])) num_predecessors_[in.slot] += in.count;
    note_first_rows(changed_[i]);
  }
  EDDY_CHECK(marks_.tasks <= tasks_.size() && marks_.transfers <= transfers_.size() &&
             marks_.rows <= rows_.size())
      << "the transaction began behind its end";
  tasks_.resize(marks_.tasks);
  num_predecessors_.resize(marks_.tasks);
  in_counts_.resize(marks_.tasks);
  transfers_.resize(marks_.transfers);
  if (keeps_labels_) {
    labels_.resize(marks_.tasks);
    transfer_labels_.resize(marks_.transfers);
  }
  rows_.resize(marks_.rows);
  local_deps_.resize(marks_.local_deps);
  shards_.resize(marks_.shards);
  ins_.resize(marks_.ins);
  if (!changed_.empty()) {
    loads_.swap(saved_loads_);
    num_dead_ = saved_num_dead_;
  }
  if (!status().is_ok()) std::fill(in_counts_.begin(), in_counts_.end(), 0);
  emitter_.clear_status();
  forget();
}

void BlockGraph::forget() {
  for (const uint32_t index : changed_) is_changed_[index] = false;
  changed_.clear();
  originals_.clear();
  saved_configs_.clear();
  saved_slots_.clear();
  mark_ends();
}

}  // namespace eddy
