#include "graph/schedule/streams/chain_placement.h"

#include <utility>
#include <vector>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/base/check.h"
#include "graph/schedule/streams/slots.h"
#include "graph/schedule/streams/stream_memory.h"
#include "graph/schedule/streams/stream_sets.h"

namespace eddy {
namespace {

constexpr uint32_t kNoStream = StreamSets::kNoStream;
constexpr size_t kFewStreams = 64;  // of a device: tested one by one

class ChainPlacer {
 public:
  // Without successors, chains follow the ranks.
  ChainPlacer(const Dag& dag, std::span<const uint32_t> order, const StreamOptions& options,
              std::span<const uint32_t> successor_of_slot);
  StreamAssignment run();

 private:
  void compute_ranks(std::span<const uint32_t> order);
  void visit(uint32_t node);
  uint32_t choose_stream(uint32_t slot, StreamSets::Set recyclable);
  uint32_t find_recyclable(uint32_t slot, StreamSets::Set recyclable);
  template <typename Accept>
  uint32_t find_first(uint32_t device, StreamSets::Set recyclable, Accept accept);
  uint32_t new_stream(uint32_t device);
  void assign(uint32_t slot, uint32_t stream);
  uint32_t extension(uint32_t slot, uint32_t stream) const;
  uint32_t best_child(uint32_t node, uint32_t stream) const;
  bool is_better(uint32_t candidate, uint32_t best, uint32_t stream) const;
  double cost(uint32_t node) const { return options_.costs.empty() ? 1.0 : options_.costs[node]; }

  const Dag& dag_;
  const StreamOptions& options_;
  std::span<const uint32_t> order_;
  std::span<const uint32_t> successor_of_slot_;
  Slots slots_;
  std::vector<uint32_t> position_;
  std::vector<uint32_t> unit_rank_;
  std::vector<double> cost_rank_;       // empty: by unit rank
  std::vector<double> earliest_start_;  // empty: no cap
  std::vector<uint32_t> stream_of_slot_;
  std::vector<uint32_t> device_of_stream_;
  std::vector<std::vector<uint32_t>> streams_of_device_;
  std::vector<uint32_t> slots_left_;  // without a stream, by device
  std::vector<uint32_t> tail_;        // the last node of each stream in issue order
  std::vector<StreamSets::Set> recyclable_after_;
  StreamSets sets_;
  CommandMemory commands_;
  FreeTimes free_times_;
  bool is_cap_reached_ = false;  // some node had no recyclable stream and got no new one
};

ChainPlacer::ChainPlacer(const Dag& dag, std::span<const uint32_t> order,
                         const StreamOptions& options, std::span<const uint32_t> successor_of_slot)
    : dag_(dag),
      options_(options),
      order_(order),
      successor_of_slot_(successor_of_slot),
      slots_(dag.num_nodes(), options),
      position_(position_of(order)),
      stream_of_slot_(slots_.size(), kNoStream),
      streams_of_device_(slots_.num_devices()),
      slots_left_(slots_.num_devices(), 0),
      recyclable_after_(dag.num_nodes(), StreamSets::kEmpty),
      commands_(options.commands),
      free_times_(options.max_streams == 0 ? 0 : slots_.num_devices()) {
  compute_ranks(order);
  EDDY_CHECK(successor_of_slot.empty() || successor_of_slot.size() == slots_.size())
      << "one successor for each slot";
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) ++slots_left_[slots_.device(slot)];
}

void ChainPlacer::compute_ranks(std::span<const uint32_t> order) {
  if (options_.costs.empty()) {
    unit_rank_ = unit_ranks(dag_, order);
  } else {
    cost_rank_ = cost_ranks(dag_, order, options_.costs);
  }
  if (options_.max_streams == 0) return;
  const std::vector<double> units(options_.costs.empty() ? dag_.num_nodes() : 0, 1.0);
  earliest_start_ = cost_depths(dag_, order, options_.costs.empty() ? units : options_.costs);
}

StreamAssignment ChainPlacer::run() {
  for (uint32_t node : order_) visit(node);
  EDDY_DCHECK(std::ranges::find(stream_of_slot_, kNoStream) == stream_of_slot_.end())
      << "a node has no stream";
  StreamAssignment result =
      slots_.assignment(std::move(stream_of_slot_), std::move(device_of_stream_));
  if (is_cap_reached_) result.fewest = FewestStreams::kCapped;
  return result;
}

void ChainPlacer::visit(uint32_t node) {
  StreamSets::Set recyclable = StreamSets::kEmpty;
  for (uint32_t parent : dag_.parents(node)) {
    recyclable = sets_.unite(recyclable, recyclable_after_[parent]);
  }
  slots_.for_each_of(node, [&](uint32_t slot) {
    if (stream_of_slot_[slot] != kNoStream) return;
    const uint32_t stream = choose_stream(slot, recyclable);
    for (uint32_t next = slot; next != Slots::kNoSlot;) {
      assign(next, stream);
      next = extension(next, stream);
    }
  });
  slots_.for_each_of(node, [&](uint32_t slot) {
    const uint32_t stream = stream_of_slot_[slot];
    if (tail_[stream] != node || slots_left_[device_of_stream_[stream]] == 0) return;
    recyclable = sets_.unite(recyclable, sets_.single(stream));
  });
  recyclable_after_[node] = recyclable;
}

uint32_t ChainPlacer::choose_stream(uint32_t slot, StreamSets::Set recyclable) {
  const uint32_t recycled = find_recyclable(slot, recyclable);
  if (recycled != kNoStream) return recycled;
  const uint32_t device = slots_.device(slot);
  const bool is_capped = options_.max_streams != 0;
  if (is_capped && free_times_.num_streams(device) >= options_.max_streams) {
    is_cap_reached_ = true;
    return free_times_.first_free(device);
  }
  return new_stream(device);
}

uint32_t ChainPlacer::find_recyclable(uint32_t slot, StreamSets::Set recyclable) {
  const uint32_t node = slots_.node(slot);
  if (commands_.is_known(node)) {
    const uint32_t stream = find_first(slots_.device(slot), recyclable,
                                       [&](uint32_t s) { return commands_.has_run(s, node); });
    if (stream != kNoStream) return stream;
  }
  return find_first(slots_.device(slot), recyclable, [](uint32_t) { return true; });
}

// Searches the device's streams alone: the set may hold many streams of other devices.
template <typename Accept>
uint32_t ChainPlacer::find_first(uint32_t device, StreamSets::Set recyclable, Accept accept) {
  const std::vector<uint32_t>& streams = streams_of_device_[device];
  if (streams.size() > kFewStreams) {
    return sets_.find_first(
        recyclable, [&](uint32_t s) { return device_of_stream_[s] == device && accept(s); });
  }
  for (const uint32_t stream : streams) {
    if (accept(stream) && sets_.contains(recyclable, stream)) return stream;
  }
  return kNoStream;
}

uint32_t ChainPlacer::new_stream(uint32_t device) {
  device_of_stream_.push_back(device);
  streams_of_device_[device].push_back(static_cast<uint32_t>(tail_.size()));
  tail_.push_back(UINT32_MAX);
  if (options_.max_streams != 0) free_times_.add_stream(device);
  return static_cast<uint32_t>(device_of_stream_.size()) - 1;
}

void ChainPlacer::assign(uint32_t slot, uint32_t stream) {
  const uint32_t node = slots_.node(slot);
  EDDY_DCHECK(stream_of_slot_[slot] == kNoStream) << "slot " << slot << " has two streams";
  EDDY_DCHECK(device_of_stream_[stream] == slots_.device(slot)) << "stream of another device";
  stream_of_slot_[slot] = stream;
  const uint32_t device = slots_.device(slot);
  if (--slots_left_[device] == 0) {
    // No node will recycle them any more.
    for (const uint32_t each : streams_of_device_[device]) sets_.tail_changed(each);
  }
  commands_.note(stream, node);
  if (options_.max_streams != 0) free_times_.extend(stream, earliest_start_[node], cost(node));
  // Under a cap a node may be put before nodes that a chain has already claimed.
  if (tail_[stream] != UINT32_MAX && position_[tail_[stream]] > position_[node]) return;
  tail_[stream] = node;
  sets_.tail_changed(stream);
}

uint32_t ChainPlacer::extension(uint32_t slot, uint32_t stream) const {
  if (!successor_of_slot_.empty()) return successor_of_slot_[slot];
  return best_child(slots_.node(slot), stream);
}

uint32_t ChainPlacer::best_child(uint32_t node, uint32_t stream) const {
  uint32_t best = Slots::kNoSlot;
  for (uint32_t child : dag_.children(node)) {
    const uint32_t slot = slots_.find(child, device_of_stream_[stream]);
    if (slot == Slots::kNoSlot || stream_of_slot_[slot] != kNoStream) continue;
    if (best == Slots::kNoSlot || is_better(child, slots_.node(best), stream)) best = slot;
  }
  return best;
}

bool ChainPlacer::is_better(uint32_t candidate, uint32_t best, uint32_t stream) const {
  if (cost_rank_.empty()) {
    if (unit_rank_[candidate] != unit_rank_[best]) return unit_rank_[candidate] > unit_rank_[best];
  } else if (cost_rank_[candidate] != cost_rank_[best]) {
    return cost_rank_[candidate] > cost_rank_[best];
  }
  return commands_.has_run(stream, candidate) && !commands_.has_run(stream, best);
}

}  // namespace

StreamAssignment assign_by_rank(const Dag& dag, std::span<const uint32_t> issue_order,
                                const StreamOptions& options) {
  return ChainPlacer(dag, issue_order, options, {}).run();
}

StreamAssignment assign_chains(const Dag& dag, std::span<const uint32_t> issue_order,
                               const StreamOptions& options,
                               std::span<const uint32_t> successor_of_slot) {
  return ChainPlacer(dag, issue_order, options, successor_of_slot).run();
}

}  // namespace eddy
