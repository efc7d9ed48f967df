// What an assignment remembers of each stream while it runs: the commands it has run, and, under
// a cap, when it is estimated to be free. Internal to chain_placement.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

// Which commands a stream has run. Without commands it returns false for everything, at no cost.
class CommandMemory {
 public:
  // commands[v]: the command of node v, small integers.
  explicit CommandMemory(std::span<const uint32_t> commands) : commands_(commands) {
    uint32_t highest = 0;
    for (uint32_t command : commands) highest = std::max(highest, command);
    num_streams_with_.resize(highest + size_t{1});
  }

  void note(uint32_t stream, uint32_t node) {
    if (commands_.empty()) return;
    if (seen_.insert(key(stream, node)).second) ++num_streams_with_[commands_[node]];
  }
  bool has_run(uint32_t stream, uint32_t node) const {
    return !commands_.empty() && seen_.contains(key(stream, node));
  }
  // Whether any stream has run the node's command.
  bool is_known(uint32_t node) const {
    return !commands_.empty() && num_streams_with_[commands_[node]] != 0;
  }

 private:
  uint64_t key(uint32_t stream, uint32_t node) const {
    EDDY_DCHECK(node < commands_.size()) << "node " << node << " has no command";
    return uint64_t{stream} << 32 | commands_[node];
  }

  std::span<const uint32_t> commands_;
  std::unordered_set<uint64_t> seen_;
  std::vector<uint32_t> num_streams_with_;
};

// When each stream is estimated to be free. Streams are numbered as they are added.
class FreeTimes {
 public:
  explicit FreeTimes(uint32_t num_devices) : by_time_(num_devices) {}

  void add_stream(uint32_t device) {
    EDDY_DCHECK(device < by_time_.size()) << "device " << device << " of " << by_time_.size();
    by_time_[device].insert({0.0, static_cast<uint32_t>(free_at_.size())});
    device_.push_back(device);
    free_at_.push_back(0.0);
  }
  void extend(uint32_t stream, double earliest_start, double cost) {
    auto& streams = by_time_[device_[stream]];
    EDDY_DCHECK(streams.contains({free_at_[stream], stream})) << "stream " << stream << " is lost";
    streams.erase({free_at_[stream], stream});
    free_at_[stream] = std::max(free_at_[stream], earliest_start) + cost;
    streams.insert({free_at_[stream], stream});
  }
  size_t num_streams(uint32_t device) const { return by_time_[device].size(); }
  uint32_t first_free(uint32_t device) const {
    EDDY_DCHECK(!by_time_[device].empty()) << "device " << device << " has no stream";
    return by_time_[device].begin()->second;
  }

 private:
  std::vector<std::set<std::pair<double, uint32_t>>> by_time_;  // for each device: (time, stream)
  std::vector<uint32_t> device_;
  std::vector<double> free_at_;
};

}  // namespace eddy
