// TaskEmitter: the tasks and dependencies of an operator graph under a strategy, block by block.
//
// A block is what one operator, one input of one operator, or one group of weights contributes:
//
//   emit_parts(op)         parts; for a cut reduction also the partial sums' transfers and sums
//   emit_input(op, input)  transfers from the producer's tiles to this operator's parts, or mere
//                          dependencies where both are on one device
//   emit_sync(group)       rings that sum the gradients of each slice of the group's weights
//
// In training each block emits its backward half at once: every task but the rings has a twin, and
// every dependency and transfer is reversed. A ring over k devices moves 2 (k-1)/k of the slice
// over each of its hops; a hop waits for the backward parts at its two ends.
//
// Tasks go to a sink, with which the same code builds and edits graphs. It has the methods
//   uint32_t task(spec, label)              a part, a sum, a hop; gives the slot
//   void dep(from, to)                      `from` is of this block; one `to` for each at most
//   void local_dep(from, to, label)         two parts or sums on one device, or one and the first
//                                           hop of a route; the label says which
//   void transfer(spec, label, from, to)    a transfer over one link, with both dependencies
//   void ring_hop(slice, h, hop, slots)     `hop` waits for the backward parts of shard h of the
//                                           slice and of the shard after it
//
// A block has ranks of its own, whatever was emitted before (README.md). Errors (kept in status(),
// the first one; later calls do nothing): a part whose time cannot be found, no route between two
// devices that must talk, a block with too many tasks. Threads: none. Cost: O(tasks emitted).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/simulate/task_graph.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/overlaps.h"
#include "graph/strategy/operators/part_cost.h"
#include "graph/strategy/operators/weight_slices.h"
#include "graph/strategy/tasks/task_label.h"

namespace eddy {

// Slots of one operator's tasks: its parts, then its sums.
struct PartSlots {
  std::vector<uint32_t> forward;
  std::vector<uint32_t> backward;  // training only
};

class TaskEmitter {
 public:
  // Borrows both.
  TaskEmitter(const OperatorGraph& graph, const Topology& topology);

  const Status& status() const { return status_; }
  void clear_status() { status_ = Status::ok(); }
  // The first failure stays.
  void fail(Status status) {
    if (status_.is_ok()) status_ = std::move(status);
  }
  const PartCost& costs() const { return costs_; }

  // By operator. emit_input() reads those of both ends.
  std::vector<PartSlots>& slots() { return slots_; }
  const std::vector<PartSlots>& slots() const { return slots_; }

  template <typename Sink>
  void emit_parts(uint32_t op, const OperatorConfig& config, Sink& sink);
  template <typename Sink>
  void emit_input(uint32_t op, size_t input, const Strategy& strategy, Sink& sink);
  template <typename Sink>
  void emit_sync(uint32_t group, const Strategy& strategy, Sink& sink);

  const std::vector<std::vector<uint32_t>>& weight_groups() const { return groups_; }
  // False where an input before this one reads the same tensor alike.
  bool is_distinct_input(uint32_t op, size_t input) const;

 private:
  // Of one block: ranks count up from `forward` and down from `backward`.
  struct Ranks {
    uint32_t forward = 0;
    uint32_t backward = 0;
    uint32_t left = 0;
    uint32_t transfers_left = 0;  // between parts, on one device too
  };
  struct End {
    uint32_t forward = 0;  // slots
    uint32_t backward = 0;
    uint32_t device = 0;
  };

  struct Route {
    uint32_t from = 0;  // slots and devices
    uint32_t from_device = 0;
    uint32_t to = 0;
    uint32_t to_device = 0;
  };

  Ranks ranks_of(uint32_t block) const;
  bool take_rank(Ranks& ranks);
  End tile_end(uint32_t op, const OperatorConfig& config, uint32_t tile) const;
  void fail_too_many();
  void fail_route(uint32_t from, uint32_t to, uint32_t op);
  // The label's direction and links are set in place: a copy would wait for the stores before it.
  template <typename Sink>
  void emit_transfer(const End& from, const End& to, int64_t size_bytes, TaskLabel& label,
                     Ranks& ranks, Sink& sink);
  template <typename Sink>
  void emit_route(const Route& route, int64_t size_bytes, TaskLabel& label, Ranks& ranks,
                  Sink& sink);
  template <typename Sink>
  void emit_sums(uint32_t op, const OperatorConfig& config, const PartCost::Work& work,
                 Ranks& ranks, Sink& sink);
  template <typename Sink>
  void emit_ring(uint32_t group, uint32_t slice_number, const WeightSlice& slice, Ranks& ranks,
                 Sink& sink);

  // A block is one operator's parts, one input's transfers or one group's sums: a file of some
  // kilobytes may ask for more tasks than memory holds.
  static constexpr uint64_t kMaxTasksPerBlock = uint64_t{1} << 22;

  const OperatorGraph& graph_;
  const Topology& topology_;
  PartCost costs_;
  std::vector<PartSlots> slots_;
  std::vector<std::vector<uint32_t>> groups_;
  std::vector<uint32_t> first_block_;  // by operator; its inputs, then itself
  uint32_t num_blocks_ = 0;
  uint32_t ranks_per_block_ = 0;
  Overlaps overlaps_;
  Status status_;
};

inline TaskEmitter::Ranks TaskEmitter::ranks_of(uint32_t block) const {
  EDDY_DCHECK(block < num_blocks_) << "block " << block << " of " << num_blocks_;
  return {.forward = block * ranks_per_block_,
          .backward = (2 * num_blocks_ - block) * ranks_per_block_ - 1,
          .left = ranks_per_block_,
          .transfers_left = ranks_per_block_};
}

inline bool TaskEmitter::take_rank(Ranks& ranks) {
  if (ranks.left == 0) [[unlikely]] {
    fail_too_many();
    return false;
  }
  --ranks.left;
  return true;
}

inline TaskEmitter::End TaskEmitter::tile_end(uint32_t op, const OperatorConfig& config,
                                              uint32_t tile) const {
  const PartSlots& slots = slots_[op];
  const size_t at = config.reduce > 1 ? config.devices.size() + tile : tile;
  EDDY_DCHECK(at < slots.forward.size()) << "tile " << tile << " of operator " << op;
  EDDY_DCHECK(!graph_.is_training || slots.backward.size() == slots.forward.size())
      << "operator " << op << " has no twin of each part";
  return {slots.forward[at], graph_.is_training ? slots.backward[at] : 0,
          config.devices[tile * static_cast<size_t>(config.reduce)]};
}

template <typename Sink>
void TaskEmitter::emit_parts(uint32_t op, const OperatorConfig& config, Sink& sink) {
  auto work = costs_.work(op, config);
  if (!work.is_ok()) fail(work.take_status());
  if (!status_.is_ok()) return;
  Ranks ranks =
      ranks_of(first_block_[op] + static_cast<uint32_t>(graph_.operators[op].inputs.size()));
  PartSlots& slots = slots_[op];
  slots.forward.clear();
  slots.backward.clear();
  // What runs at about the same time stands together.
  for (uint32_t part = 0; part < config.devices.size(); ++part) {
    if (!take_rank(ranks)) return;
    const uint32_t device = config.devices[part];
    slots.forward.push_back(
        sink.task({costs_.time(*work, device), device, ranks.forward++}, {.op = op, .part = part}));
  }
  for (uint32_t part = 0; part < config.devices.size() && graph_.is_training; ++part) {
    const uint32_t device = config.devices[part];
    const double time = costs_.time(*work, device) * work->backward_factor;
    slots.backward.push_back(
        sink.task({time, device, ranks.backward--}, {.is_backward = true, .op = op, .part = part}));
    sink.dep(slots.forward[part], slots.backward[part]);
  }
  if (config.reduce > 1) emit_sums(op, config, *work, ranks, sink);
}

template <typename Sink>
void TaskEmitter::emit_sums(uint32_t op, const OperatorConfig& config, const PartCost::Work& work,
                            Ranks& ranks, Sink& sink) {
  PartSlots& slots = slots_[op];
  const auto reduce = static_cast<uint32_t>(config.reduce);
  const auto parts = static_cast<uint32_t>(config.devices.size());
  EDDY_DCHECK(reduce > 1 && parts % reduce == 0) << parts << " parts, " << reduce << " a sum";
  const Dims tile = tile_of(graph_.operators[op], config);
  const int64_t size_bytes = *tile.count() * graph_.bytes_per_element;
  for (uint32_t t = 0; t < parts / reduce; ++t) {
    if (!take_rank(ranks)) return;
    const uint32_t device = config.devices[t * reduce];
    TaskLabel label{.kind = TaskKind::kSum, .op = op, .part = t};
    // Sums come after their partial tiles' transfers: the ranks between are theirs.
    End to{.device = device};
    to.forward =
        sink.task({costs_.sum_time(work, device), device, ranks.forward + ranks.left}, label);
    slots.forward.push_back(to.forward);
    if (graph_.is_training) {
      label.is_backward = true;
      to.backward = sink.task({0, device, ranks.backward - ranks.left}, label);
      slots.backward.push_back(to.backward);
    }
    for (uint32_t r = 0; r < reduce; ++r) {
      const uint32_t part = t * reduce + r;
      const End from{slots.forward[part], graph_.is_training ? slots.backward[part] : 0,
                     config.devices[part]};
      TaskLabel partial{.kind = TaskKind::kPartial, .op = op, .part = part, .to_part = t};
      emit_transfer(from, to, size_bytes, partial, ranks, sink);
    }
  }
}

template <typename Sink>
[[gnu::always_inline]] inline void TaskEmitter::emit_transfer(const End& from, const End& to,
                                                              int64_t size_bytes, TaskLabel& label,
                                                              Ranks& ranks, Sink& sink) {
  if (ranks.transfers_left == 0) [[unlikely]]
    return fail_too_many();
  --ranks.transfers_left;
  label.is_backward = false;
  if (from.device == to.device) {
    sink.local_dep(from.forward, to.forward, label);
  } else {
    emit_route({from.forward, from.device, to.forward, to.device}, size_bytes, label, ranks, sink);
  }
  if (!graph_.is_training) return;
  label.is_backward = true;
  if (from.device == to.device) {
    sink.local_dep(to.backward, from.backward, label);
  } else {
    emit_route({to.backward, to.device, from.backward, from.device}, size_bytes, label, ranks,
               sink);
  }
}

template <typename Sink>
[[gnu::always_inline]] inline void TaskEmitter::emit_route(const Route& route, int64_t size_bytes,
                                                           TaskLabel& label, Ranks& ranks,
                                                           Sink& sink) {
  uint32_t last = route.from;
  label.has_hops = false;
  for (uint32_t at = route.from_device; at != route.to_device;) {
    label.link = topology_.next_link(at, route.to_device);
    if (label.link == UINT32_MAX) return fail_route(route.from_device, route.to_device, label.op);
    if (!label.is_backward && !take_rank(ranks)) return;
    const Link& link = topology_.link(label.link);
    label.has_hops |= link.to != route.to_device;
    const TaskSpec<double> spec{link.time(size_bytes), link.channel,
                                label.is_backward ? ranks.backward-- : ranks.forward++};
    if (!label.has_hops) return sink.transfer(spec, label, route.from, route.to);
    const uint32_t slot = sink.task(spec, label);
    if (at == route.from_device) {
      sink.local_dep(last, slot, label);
    } else {
      sink.dep(last, slot);
    }
    last = slot;
    at = link.to;
  }
  sink.dep(last, route.to);
}

template <typename Sink>
void TaskEmitter::emit_input(uint32_t op, size_t input, const Strategy& strategy, Sink& sink) {
  if (!status_.is_ok() || !is_distinct_input(op, input)) return;
  const Operator& consumer = graph_.operators[op];
  const uint32_t producer_index = consumer.inputs[input].producer;
  const Operator& producer = graph_.operators[producer_index];
  const OperatorConfig& from_config = strategy[producer_index];
  const OperatorConfig& to_config = strategy[op];
  overlaps_.set(producer, from_config, consumer, to_config, input);
  Ranks ranks = ranks_of(first_block_[op] + static_cast<uint32_t>(input));
  if (overlaps_.has_more_pairs_than(ranks.transfers_left)) return fail_too_many();
  TaskLabel label{.kind = TaskKind::kTransfer,
                  .is_summed = from_config.reduce > 1,
                  .op = producer_index,
                  .to_op = op};
  for (size_t i = 0; i < input; ++i) {
    if (consumer.inputs[i].producer == producer_index) label.input = static_cast<uint16_t>(input);
  }
  const PartSlots& slots = slots_[op];
  overlaps_.for_each([&](uint32_t part, uint32_t tile, int64_t elements) {
    const End from = tile_end(producer_index, from_config, tile);
    const End to{slots.forward[part], graph_.is_training ? slots.backward[part] : 0,
                 to_config.devices[part]};
    label.part = tile;
    label.to_part = part;
    emit_transfer(from, to, elements * graph_.bytes_per_element, label, ranks, sink);
  });
}

template <typename Sink>
void TaskEmitter::emit_sync(uint32_t group, const Strategy& strategy, Sink& sink) {
  if (!status_.is_ok() || !graph_.is_training || groups_[group].empty()) return;
  Ranks ranks = ranks_of(0);
  ranks.forward = (2 * num_blocks_ + group) * ranks_per_block_;
  uint32_t number = 0;
  for (const WeightSlice& slice : weight_slices(graph_, strategy, groups_[group])) {
    emit_ring(group, number++, slice, ranks, sink);
  }
}

template <typename Sink>
void TaskEmitter::emit_ring(uint32_t group, uint32_t slice_number, const WeightSlice& slice,
                            Ranks& ranks, Sink& sink) {
  const size_t count = slice.shards.size();
  if (count < 2) return;
  const double laps = 2 * static_cast<double>(count - 1);
  const double size_bytes = static_cast<double>(slice.elements * graph_.bytes_per_element) * laps /
                            static_cast<double>(count);
  for (size_t h = 0; h < count; ++h) {
    const SliceShard& from = slice.shards[h];
    const SliceShard& to = slice.shards[(h + 1) % count];
    TaskLabel label{.kind = TaskKind::kSync,
                    .op = groups_[group][0],
                    .part = slice_number,
                    .to_part = static_cast<uint32_t>(h)};
    uint32_t last = kNoSlot;
    for (uint32_t at = from.device; at != to.device;) {
      label.link = topology_.next_link(at, to.device);
      if (label.link == UINT32_MAX) return fail_route(from.device, to.device, label.op);
      if (!take_rank(ranks)) return;
      const Link& link = topology_.link(label.link);
      const double time = link.latency * laps + size_bytes / link.bandwidth;
      const uint32_t slot = sink.task({time, link.channel, ranks.forward++}, label);
      if (last == kNoSlot) {
        sink.ring_hop(slice, h, slot, slots_);
      } else {
        sink.dep(last, slot);
      }
      last = slot;
      at = link.to;
    }
  }
}

}  // namespace eddy
