#include "graph/strategy/operators/topology.h"

#include <algorithm>
#include <cmath>

namespace eddy {
namespace {

bool is_rate(double rate) { return std::isfinite(rate) && rate > 0; }
bool is_time(double time) { return std::isfinite(time) && time >= 0; }

std::string pair_name(const LinkSpec& link) { return "link " + link.from + ">" + link.to; }

}  // namespace

uint32_t Topology::find(std::string_view name) const {
  const auto found = node_of_name_.find(std::string(name));
  return found == node_of_name_.end() ? UINT32_MAX : found->second;
}

uint32_t Topology::channel(const std::string& name) {
  const auto [place, is_new] =
      channel_of_name_.try_emplace(name, static_cast<uint32_t>(channels_.size()));
  if (is_new) channels_.push_back(name);
  return num_nodes() + place->second;
}

Status Topology::add_nodes(std::vector<DeviceSpec> devices) {
  if (devices.size() > kMaxTopologyNodes) {
    return invalid_argument("topology: " + std::to_string(devices.size()) +
                            " devices are more than the " + std::to_string(kMaxTopologyNodes) +
                            " accepted");
  }
  for (DeviceSpec& device : devices) {
    const std::string where = "device '" + device.name + "'";
    if (device.name.empty()) return invalid_argument("topology: a device has an empty name");
    if (device.name.find('>') != std::string::npos) {
      return invalid_argument("topology: " + where +
                              " has a '>' in its name, so a link's channel, link:FROM>TO, might be "
                              "taken for another one; rename it");
    }
    if (!is_time(device.flops) || !is_time(device.memory_rate) || !is_time(device.launch) ||
        device.memory_bytes < 0) {
      return invalid_argument(where + ": rates, times and sizes must be finite numbers >= 0");
    }
    const auto number = static_cast<uint32_t>(nodes_.size());
    if (!node_of_name_.emplace(device.name, number).second) {
      return invalid_argument("topology: " + where + " is listed twice");
    }
    if (!device.is_switch) devices_.push_back(number);
    nodes_.push_back(std::move(device));
  }
  if (devices_.empty()) return invalid_argument("topology: lists no device");
  return Status::ok();
}

Status Topology::add_links(const TopologySpec& spec) {
  const size_t count = nodes_.size();
  std::vector<bool> is_joined(count * count);
  for (const LinkSpec& given : spec.links) {
    const uint32_t from = find(given.from);
    const uint32_t to = find(given.to);
    for (const auto& [node, name] : {std::pair(from, given.from), std::pair(to, given.to)}) {
      if (node == UINT32_MAX) {
        return invalid_argument(pair_name(given) + ": the topology has no device '" + name + "'");
      }
    }
    if (from == to) return invalid_argument(pair_name(given) + ": joins a device to itself");
    if (!is_rate(given.bandwidth)) {
      return invalid_argument(pair_name(given) + ": the bandwidth must be a number > 0");
    }
    if (!is_time(given.latency)) {
      return invalid_argument(pair_name(given) + ": the latency must be a number >= 0");
    }
    if (is_joined[from * count + to]) {
      return invalid_argument(pair_name(given) + ": is given twice");
    }
    is_joined[from * count + to] = true;
    const std::string name =
        given.channel.empty() ? "link:" + given.from + ">" + given.to : given.channel;
    if (node_of_name_.contains(name)) {
      return invalid_argument(pair_name(given) + ": its channel '" + name + "' names a device");
    }
    links_.push_back({from, to, given.bandwidth, given.latency, channel(name)});
  }
  if (spec.default_bandwidth == 0) return Status::ok();
  if (!is_rate(spec.default_bandwidth) || !is_time(spec.default_latency)) {
    return invalid_argument("topology: the default bandwidth must be > 0, the latency >= 0");
  }
  for (uint32_t from : devices_) {
    for (uint32_t to : devices_) {
      if (from == to || is_joined[from * count + to]) continue;
      const std::string name = "link:" + nodes_[from].name + ">" + nodes_[to].name;
      links_.push_back({from, to, spec.default_bandwidth, spec.default_latency, channel(name)});
    }
  }
  return Status::ok();
}

// A breadth-first search towards each node, against the links.
void Topology::find_routes() {
  const size_t count = nodes_.size();
  std::vector<std::vector<uint32_t>> arriving(count);
  for (uint32_t i = 0; i < links_.size(); ++i) arriving[links_[i].to].push_back(i);
  next_link_.assign(count * count, UINT32_MAX);
  std::vector<uint32_t> reached;
  for (uint32_t to = 0; to < count; ++to) {
    reached.assign(1, to);
    for (size_t next = 0; next < reached.size() && reached.size() < count; ++next) {
      for (uint32_t i : arriving[reached[next]]) {
        const uint32_t from = links_[i].from;
        if (from == to || next_link_[from * count + to] != UINT32_MAX) continue;
        next_link_[from * count + to] = i;
        reached.push_back(from);
      }
    }
  }
}

Result<Topology> Topology::create(TopologySpec spec) {
  Topology topology;
  EDDY_RETURN_IF_ERROR(topology.add_nodes(std::move(spec.devices)));
  EDDY_RETURN_IF_ERROR(topology.add_links(spec));
  topology.find_routes();
  return topology;
}

}  // namespace eddy
