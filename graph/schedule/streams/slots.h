// Slots: one place to fill for each (node, device) pair of a DAG.
//
// Slot v < num_nodes is node v on its first device; the slots after that are the entries of
// StreamOptions::further_devices. Graphs on one device thus have slots equal to nodes.
// Internal to the stream assignments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/schedule/streams/stream_options.h"

namespace eddy {

class Slots {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  Slots(uint32_t num_nodes, const StreamOptions& options)
      : num_nodes_(num_nodes), devices_(options.devices), further_(options.further_devices) {
    EDDY_CHECK(devices_.empty() || devices_.size() == num_nodes) << "one device for each node";
    EDDY_CHECK(std::is_sorted(further_.begin(), further_.end())) << "further devices are sorted";
  }

  uint32_t size() const { return num_nodes_ + static_cast<uint32_t>(further_.size()); }
  uint32_t node(uint32_t slot) const {
    EDDY_DCHECK(slot < size()) << "slot " << slot << " of " << size();
    return slot < num_nodes_ ? slot : further_[slot - num_nodes_].node;
  }
  uint32_t device(uint32_t slot) const {
    EDDY_DCHECK(slot < size()) << "slot " << slot << " of " << size();
    if (slot >= num_nodes_) return further_[slot - num_nodes_].device;
    return devices_.empty() ? 0 : devices_[slot];
  }

  // The node's slot on that device, or kNoSlot.
  uint32_t find(uint32_t node, uint32_t device) const {
    EDDY_DCHECK(node < num_nodes_) << "node " << node << " of " << num_nodes_;
    if (this->device(node) == device) return node;
    if (further_.empty()) return kNoSlot;
    const NodeDevice wanted{node, device};
    const auto place = std::lower_bound(further_.begin(), further_.end(), wanted);
    if (place == further_.end() || *place != wanted) return kNoSlot;
    return num_nodes_ + static_cast<uint32_t>(place - further_.begin());
  }

  // Calls visit(slot) for each slot of the node.
  template <typename Visit>
  void for_each_of(uint32_t node, Visit visit) const {
    visit(node);
    if (further_.empty()) return;
    const auto first = std::lower_bound(further_.begin(), further_.end(), NodeDevice{node, 0});
    for (auto it = first; it != further_.end() && it->node == node; ++it) {
      visit(num_nodes_ + static_cast<uint32_t>(it - further_.begin()));
    }
  }

  uint32_t num_devices() const {
    uint32_t highest = 0;
    for (uint32_t device : devices_) highest = std::max(highest, device);
    for (const NodeDevice& more : further_) highest = std::max(highest, more.device);
    return highest + 1;
  }

  // Splits the stream of each slot into the form of a StreamAssignment.
  StreamAssignment assignment(std::vector<uint32_t> stream_of_slot,
                              std::vector<uint32_t> device_of_stream) const {
    StreamAssignment result;
    EDDY_CHECK(stream_of_slot.size() == size()) << "one stream for each slot";
    EDDY_DCHECK(std::ranges::all_of(stream_of_slot, [&](uint32_t stream) {
      return stream < device_of_stream.size();
    })) << "a slot is on no stream";
    for (uint32_t slot = num_nodes_; slot < size(); ++slot) {
      result.further.push_back({node(slot), stream_of_slot[slot]});
    }
    std::sort(result.further.begin(), result.further.end());
    stream_of_slot.resize(num_nodes_);
    result.stream_of_node = std::move(stream_of_slot);
    result.num_streams = static_cast<uint32_t>(device_of_stream.size());
    result.device_of_stream = std::move(device_of_stream);
    return result;
  }

 private:
  uint32_t num_nodes_;
  std::span<const uint32_t> devices_;
  std::span<const NodeDevice> further_;
};

}  // namespace eddy
