// Topology: devices, the directed links between them, and the routes that transfers take.
//
// A compute device runs the parts of operators; a switch only passes transfers on. Every link is
// one-way and is served by a channel, a FIFO that carries one transfer at a time; a link has a
// channel of its own, "link:FROM>TO", unless several links name the same channel (one network
// card between nodes, say). A transfer of n bytes over a link takes latency + n / bandwidth.
//
// A route is the way with the fewest links, first found in the order the links are given; where
// there is a direct link it is the direct one. Hops are taken one after the other (store and
// forward).
//
// Units: whatever the file's times are in: bandwidth is bytes per unit of time. Rates of devices
// are per the same unit; 0 says that they are not known.
//
// Simulated devices are numbered: compute devices and switches 0..num_nodes()-1, as listed, then
// channels.
//
// Errors (invalid argument): two nodes of one name; a name with '>' in it, which could make two
// channels one; a link that names no node or joins a node to itself; a bandwidth that is not
// positive; a latency that is negative; two links for one pair; no device at all; more nodes or
// links than limits. A missing route is no error here: next_link() says so.
// Threads: const access from any. Cost: routes are found once, O(nodes * links) at worst; a
// look-up is O(1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {

struct DeviceSpec {
  std::string name;
  double flops = 0;          // floating-point operations per unit of time
  double memory_rate = 0;    // bytes per unit of time
  double launch = 0;         // time that each task costs beside its work
  int64_t memory_bytes = 0;  // capacity; 0: no limit
  bool is_switch = false;
};

struct LinkSpec {
  std::string from;
  std::string to;
  double bandwidth = 0;
  double latency = 0;
  std::string channel = {};  // empty: one of its own
};

struct Link {
  uint32_t from = 0;
  uint32_t to = 0;
  double bandwidth = 0;
  double latency = 0;
  uint32_t channel = 0;  // a simulated device

  double time(int64_t size_bytes) const {
    EDDY_DCHECK(size_bytes >= 0 && bandwidth > 0) << size_bytes << " bytes at " << bandwidth;
    return latency + static_cast<double>(size_bytes) / bandwidth;
  }
};

struct TopologySpec {
  std::vector<DeviceSpec> devices;
  std::vector<LinkSpec> links;
  // Above 0: every pair of devices that no link joins has one of this bandwidth and latency.
  double default_bandwidth = 0;
  double default_latency = 0;
};

inline constexpr size_t kMaxTopologyNodes = 1024;

class Topology {
 public:
  static Result<Topology> create(TopologySpec spec);

  // Devices and switches.
  uint32_t num_nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  const DeviceSpec& node(uint32_t i) const {
    EDDY_DCHECK(i < nodes_.size()) << "node " << i << " of " << nodes_.size();
    return nodes_[i];
  }
  // Nodes that compute, in the order given.
  const std::vector<uint32_t>& devices() const { return devices_; }
  // The node's number, or UINT32_MAX.
  uint32_t find(std::string_view name) const;

  // Nodes and channels.
  uint32_t num_simulated() const { return num_nodes() + static_cast<uint32_t>(channels_.size()); }
  // "gpu0", or "link:gpu0>gpu1".
  const std::string& simulated_name(uint32_t i) const {
    EDDY_DCHECK(i < num_simulated()) << "device " << i << " of " << num_simulated();
    return i < num_nodes() ? nodes_[i].name : channels_[i - num_nodes()];
  }

  const std::vector<Link>& links() const { return links_; }
  const Link& link(uint32_t i) const {
    EDDY_DCHECK(i < links_.size()) << "link " << i << " of " << links_.size();
    return links_[i];
  }
  // The first link of the route to another node; UINT32_MAX where there is no way. The next one
  // is next_link(link(...).to, to), and so on until `to` is reached.
  uint32_t next_link(uint32_t from, uint32_t to) const {
    EDDY_DCHECK(from < nodes_.size() && to < nodes_.size()) << from << " to " << to;
    return next_link_[static_cast<size_t>(from) * nodes_.size() + to];
  }

 private:
  Topology() = default;
  Status add_nodes(std::vector<DeviceSpec> devices);
  Status add_links(const TopologySpec& spec);
  uint32_t channel(const std::string& name);
  void find_routes();

  std::vector<DeviceSpec> nodes_;
  std::vector<uint32_t> devices_;
  std::unordered_map<std::string, uint32_t> node_of_name_;
  std::vector<std::string> channels_;
  std::unordered_map<std::string, uint32_t> channel_of_name_;
  std::vector<Link> links_;
  std::vector<uint32_t> next_link_;  // by from * num_nodes + to
};

}  // namespace eddy
