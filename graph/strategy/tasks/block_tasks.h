// BlockTasks: a BlockGraph, as EventLoop takes it, and the times of its tasks while that goes on.
//
// take() starts a task, notifies all that wait for it of its end, and puts those that wait
// for nothing else into the calendar, and its transfers, as one entry: kFollowers + the task.
// take_run() does the same for transfers that follow one another over one link. All of it is
// pointers, which stay in registers whatever is stored through them.
//
// Rejection: a device's bound, what it has done, idled and still has to do, grows only where it
// idles; as soon as one is above the limit, taking returns false.
//
// Contract: what is released or taken waits in this timeline; nothing is taken twice. Threads:
// none. Cost: O(1) a dependency.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "graph/base/check.h"
#include "graph/simulate/event_loop.h"
#include "graph/strategy/tasks/block_graph.h"

namespace eddy {

struct BlockTasks {
  // 16 bytes: what a task is until it is taken, and when it runs afterwards.
  struct Task {
    double ready;
    union {
      uint32_t num_predecessors;  // not yet taken
      double start;
    };
  };
  static_assert(sizeof(Task) == 16);
  struct Shard {
    double ready;
    uint32_t num_parts;  // not yet taken
  };
  struct Device {
    double end;    // of what it has done
    double bound;  // that, and what it still has to do
  };

  static constexpr uint32_t kFollowers = BlockGraph::kMaxSlots;
  static constexpr uint32_t kTransfer = BlockGraph::kMaxSlots;
  static constexpr uint32_t kShard = BlockGraph::kShard;

  const BlockTask* const tasks;
  const BlockTransfer* const transfers;
  const BlockRow* const rows;
  const uint32_t* const local_deps;
  const RowList* const lists;
  const uint32_t* const row_bases;
  const RingShard* const ring_shards;
  Task* const state;
  double* const transfer_starts;
  Shard* const shards;
  Device* const devices;
  const uint32_t num_devices;
  const ReadyCalendar::Buckets buckets;
  const double limit;

  static constexpr bool is_group(uint32_t entry) { return entry >= kFollowers; }
  void put_task(uint32_t slot, double ready) const {
    buckets.put(slot, slot, ready);
    __builtin_prefetch(tasks + slot);
  }
  void put_followers(uint32_t slot, double end) const { buckets.put(kFollowers | slot, slot, end); }
  uint32_t next_of(uint32_t entry) const { return buckets.next[entry & ~kFollowers]; }

  double end_of(uint32_t slot) const { return state[slot].start + tasks[slot].exe_time; }
  ReadyKey entry_key(uint32_t entry) const {
    if (!is_group(entry)) return task_key(entry);
    return ready_key(time_key(end_of(entry & ~kFollowers)), 0, entry);
  }
  double next_verdict(double instant) const {
    return eddy::next_verdict<Device>({devices, num_devices}, instant, limit);
  }

  // What the task of a slot waits for has ended then.
  void release(uint32_t slot, double end) const {
    Task& task = state[slot];
    EDDY_DCHECK(task.num_predecessors > 0) << "slot " << slot << " waits for nobody";
    const double ready = std::max(task.ready, end);
    task.ready = ready;
    if (--task.num_predecessors == 0) put_task(slot, ready);
  }
  // release(slot, ready) for each task that waits by a local dependency for what has ended then.
  template <typename Release>
  [[gnu::always_inline]] void end_local_dep(uint32_t to, double end, const Release& release) const {
    if (to < kShard) [[likely]]
      return release(to, end);
    Shard& shard = shards[to - kShard];
    EDDY_DCHECK(shard.num_parts > 0) << "shard " << to - kShard << " has all its parts";
    shard.ready = std::max(shard.ready, end);
    if (--shard.num_parts != 0) return;
    release(ring_shards[to - kShard].out, shard.ready);
    release(ring_shards[to - kShard].in, shard.ready);
  }

  // First where to look for the rows, then what is found there.
  void look_ahead(uint32_t entry) const {
    const BlockTask& task = tasks[entry & ~kFollowers];
    const RowList& list = lists[task.list];
    if (list.first == list.last) return;
    __builtin_prefetch(rows + row_bases[list.first] + task.row);
    __builtin_prefetch(rows + row_bases[list.last - 1] + task.row);
  }
  void look(uint32_t entry) const {
    const BlockTask& task = tasks[entry & ~kFollowers];
    const RowList& list = lists[task.list];
    if (list.first == list.last) return;
    const BlockRow& row = rows[row_bases[list.first] + task.row];
    if (row.num_local_deps == 1 && row.local_dep < kShard)
      __builtin_prefetch(state + row.local_dep);
    if (row.num_transfers > 0) __builtin_prefetch(transfers + row.first_transfer);
  }

  // visit(row) for the rows that follow a task.
  template <typename Visit>
  [[gnu::always_inline]] void for_each_row(const BlockTask& task, const Visit& visit) const {
    const RowList& list = lists[task.list];
    for (uint32_t place = list.first; place < list.last; ++place) {
      visit(rows[row_bases[place] + task.row]);
    }
  }

  // release(slot, ready) for each task that waits for this one, which ends then, but for its
  // transfers; whether there are any.
  template <typename Release>
  [[gnu::always_inline]] bool release_all(const BlockTask& task, double end,
                                          const Release& release) const {
    if (task.next != kNoSlot) release(task.next, end);
    uint32_t num_transfers = 0;
    for_each_row(task, [&](const BlockRow& row) {
      num_transfers |= row.num_transfers;
      for (const uint32_t to : row.local_deps(local_deps)) end_local_dep(to, end, release);
    });
    return num_transfers != 0;
  }

  // The device does something that is ready then; when it begins. Sets is_within to false when the
  // makespan is certainly above the limit.
  template <bool kIsBounded>
  [[gnu::always_inline]] double occupy(Device& device, double ready, double exe_time,
                                       bool& is_within) const {
    const double start = std::max(ready, device.end);
    if constexpr (kIsBounded) {
      device.bound += start - device.end;
      is_within &= device.bound <= limit;
    }
    device.end = start + exe_time;
    return start;
  }

  template <bool kIsBounded>
  [[gnu::always_inline]] bool take(uint32_t slot) const {
    EDDY_DCHECK(state[slot].num_predecessors == 0) << "slot " << slot << " is taken too early";
    EDDY_DCHECK(tasks[slot].device < num_devices) << "slot " << slot << " is on no device";
    const BlockTask& task = tasks[slot];
    Task& own = state[slot];
    bool is_within = true;
    const double start =
        occupy<kIsBounded>(devices[task.device], own.ready, task.exe_time, is_within);
    const double end = start + task.exe_time;
    own.start = start;
    if (!is_within) return false;
    const auto release_then = [this](uint32_t to, double ready) { release(to, ready); };
    if (release_all(task, end, release_then)) put_followers(slot, end);
    return true;
  }
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_transfer(uint32_t number, double ready) const {
    EDDY_DCHECK(transfers[number].device < num_devices) << "transfer " << number;
    const BlockTransfer& transfer = transfers[number];
    bool is_within = true;
    const double start =
        occupy<kIsBounded>(devices[transfer.device], ready, transfer.exe_time, is_within);
    transfer_starts[number] = start;
    release(transfer.to, start + transfer.exe_time);
    return is_within;
  }
  // From `transfer` on, all over one link; they come one after the other. Ends with one that ends
  // when it was ready.
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_run(const BlockTransfer*& transfer, const BlockTransfer* last,
                                       double ready) const {
    const uint32_t device = transfer->device;
    bool is_within = true;
    double start = occupy<kIsBounded>(devices[device], ready, 0, is_within);
    do {
      const double end = start + transfer->exe_time;
      transfer_starts[transfer - transfers] = start;
      release(transfer->to, end);
      start = end;
      ++transfer;
    } while (start > ready && transfer != last && transfer->device == device);
    devices[device].end = start;
    return is_within;
  }
  template <bool kIsBounded>
  bool take_entry(uint32_t entry, ReadyQueue& queue) const {
    return is_group(entry) ? take_followers<kIsBounded>(entry & ~kFollowers, queue)
                           : take<kIsBounded>(entry);
  }
  // The transfers that wait for the task, where nothing else is ready with them.
  template <bool kIsBounded>
  bool take_followers(uint32_t slot, ReadyQueue& queue) const {
    const BlockTask& task = tasks[slot];
    const double ready = end_of(slot);
    const RowList& list = lists[task.list];
    for (uint32_t place = list.first; place < list.last; ++place) {
      const BlockRow& row = rows[row_bases[place] + task.row];
      const BlockTransfer* transfer = transfers + row.first_transfer;
      const BlockTransfer* const last = transfer + row.num_transfers;
      while (transfer != last) {
        if (!take_run<kIsBounded>(transfer, last, ready)) return false;
        if (devices[transfer[-1].device].end > ready) [[likely]]
          continue;
        // One without length may have released something that comes before the others.
        const uint32_t rank = transfer[-1].rank;
        for_each_key(kFollowers | slot, [&](ReadyKey key) {
          if (static_cast<uint32_t>(key >> 32) > rank) queue.put(key);
        });
        return true;
      }
    }
    return true;
  }
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_key(ReadyKey key) const {
    const uint32_t slot = slot_of(key);
    return slot < kTransfer
               ? take<kIsBounded>(slot)
               : take_transfer<kIsBounded>(slot & ~kTransfer,
                                           std::bit_cast<double>(static_cast<uint64_t>(key >> 64)));
  }

  ReadyKey task_key(uint32_t slot) const {
    return ready_key(time_key(state[slot].ready), tasks[slot].rank, slot);
  }
  // visit(key) for the tasks and transfers of an entry.
  template <typename Visit>
  void for_each_key(uint32_t entry, const Visit& visit) const {
    if (entry < kFollowers) return visit(task_key(entry));
    const uint64_t ready = time_key(end_of(entry & ~kFollowers));
    for_each_row(tasks[entry & ~kFollowers], [&](const BlockRow& row) {
      for (uint32_t i = row.first_transfer; i < row.first_transfer + row.num_transfers; ++i) {
        visit(ready_key(ready, transfers[i].rank, kTransfer | i));
      }
    });
  }
};

}  // namespace eddy
