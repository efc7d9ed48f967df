#include "graph/compile/plan_layout.h"

#include <algorithm>
#include <map>

namespace eddy {
namespace {

constexpr double kLetterWidth = 6.3;
constexpr double kNodeHeight = 20;
constexpr double kNodeGap = 10;
constexpr double kArrowGap = 26;  // leaves room for an arrow
constexpr size_t kMinLetters = 4;
constexpr size_t kMaxLetters = 16;
constexpr double kMinWidth = 160;
constexpr double kEntryAndExitWidth = 52;  // of both labels side by side

// A loop or branch: its title, then its regions below each other.
void size_control_node(const DrawnNode& node, double max_width, NodeLayout& layout) {
  const double title_width =
      static_cast<double>(node.name.size() + node.kind.size() + 3) * kLetterWidth;
  double width = std::min(title_width + 2 * kPadding, max_width);
  double y = kTitleHeight;
  for (const DrawnRegion& inner : node.regions) {
    RegionLayout region = lay_out_plan(inner, std::max(kMinWidth, max_width - 2 * kPadding));
    region.x = kPadding;
    region.y = y;
    y += region.height + kPadding;
    width = std::max(width, region.width + 2 * kPadding);
    layout.regions.push_back(std::move(region));
  }
  layout.width = width;
  layout.height = y;
}

void size_node(const DrawnNode& node, double max_width, NodeLayout& layout) {
  if (!node.regions.empty()) return size_control_node(node, max_width, layout);
  const size_t letters = std::clamp(node.name.size(), kMinLetters, kMaxLetters);
  layout.width = static_cast<double>(letters) * kLetterWidth + 10;
  layout.height = kNodeHeight;
}

// For "s17", and for a device's name behind it.
double lane_label_width(const DrawnRegion& region) {
  size_t letters = 0;
  for (const DrawnNode& node : region.nodes) {
    for (const std::string& device : node.devices) letters = std::max(letters, device.size() + 1);
  }
  return 26 + static_cast<double>(std::min(letters, kMaxLetters)) * kLetterWidth;
}

uint32_t num_lanes(const DrawnRegion& region) {
  uint32_t count = 0;
  for (const DrawnNode& node : region.nodes) {
    for (const uint32_t stream : node.streams) count = std::max(count, stream + 1);
  }
  return count;
}

// Nodes get x and band in issue order: behind their lane's last node and behind what they wait
// for. One that would stick out starts the next band.
void place_in_bands(const DrawnRegion& region, double max_width, RegionLayout& layout) {
  std::vector<double> lane_end(num_lanes(region), layout.lane_label_width);
  uint32_t band = 0;
  bool is_band_empty = true;
  size_t next_wait = 0;
  for (uint32_t i = 0; i < region.nodes.size(); ++i) {
    NodeLayout& node = layout.nodes[i];
    double x = layout.lane_label_width;
    for (const uint32_t stream : region.nodes[i].streams) {
      x = std::max(x, lane_end[stream] + kNodeGap);
    }
    for (; next_wait < region.waits.size() && region.waits[next_wait].to == i; ++next_wait) {
      const NodeLayout& from = layout.nodes[region.waits[next_wait].from];
      const double after = from.band == band ? from.x + from.width : layout.lane_label_width;
      x = std::max(x, after + kArrowGap);
    }
    if (x + node.width > max_width && !is_band_empty) {
      ++band;
      std::fill(lane_end.begin(), lane_end.end(), layout.lane_label_width);
      x = layout.lane_label_width + kArrowGap;
    }
    is_band_empty = false;
    node.x = x;
    node.band = band;
    for (const uint32_t stream : region.nodes[i].streams) lane_end[stream] = x + node.width;
    layout.width = std::max(layout.width, x + node.width + kPadding);
  }
}

// Lanes get heights from their tallest node, band by band.
void place_lanes(const DrawnRegion& region, RegionLayout& layout) {
  const uint32_t num_bands = layout.nodes.empty() ? 0 : layout.nodes.back().band + 1;
  layout.bands.resize(num_bands);
  double y = kTitleHeight;
  size_t first = 0;
  for (uint32_t b = 0; b < num_bands; ++b) {
    std::map<uint32_t, double> heights;
    std::map<uint32_t, std::string> devices;
    size_t end = first;
    for (; end < layout.nodes.size() && layout.nodes[end].band == b; ++end) {
      const DrawnNode& node = region.nodes[end];
      for (size_t s = 0; s < node.streams.size(); ++s) {
        double& height = heights[node.streams[s]];
        height = std::max(height, layout.nodes[end].height);
        if (!node.devices.empty()) devices[node.streams[s]] = node.devices[s];
      }
    }
    BandLayout& band = layout.bands[b];
    band.top = y;
    std::map<uint32_t, double> centers;
    for (const auto& [stream, height] : heights) {
      centers[stream] = y + kLaneGap / 2 + height / 2;
      band.lanes.push_back({stream, centers[stream], height, devices[stream]});
      y += height + kLaneGap;
    }
    for (; first < end; ++first) {
      for (const uint32_t stream : region.nodes[first].streams) {
        layout.nodes[first].centers.push_back(centers[stream]);
      }
    }
    band.height = y - band.top;
    y += kLaneGap / 2;
  }
  layout.height = y + kPadding;
}

// On which lane of its band a node stands first.
size_t lane_of(const RegionLayout& layout, const NodeLayout& node) {
  const std::vector<LaneLayout>& lanes = layout.bands[node.band].lanes;
  const auto found = std::ranges::lower_bound(lanes, node.centers[0], {}, &LaneLayout::center);
  return static_cast<size_t>(found - lanes.begin());
}

void choose_arrows(const DrawnRegion& region, RegionLayout& layout) {
  for (const DrawnWait& wait : region.waits) {
    const NodeLayout& from = layout.nodes[wait.from];
    const NodeLayout& to = layout.nodes[wait.to];
    bool is_arrow = from.band == to.band;
    if (is_arrow && layout.bands[from.band].lanes.size() > kManyLanes) {
      const size_t a = lane_of(layout, from);
      const size_t b = lane_of(layout, to);
      is_arrow = std::max(a, b) - std::min(a, b) <= kNearLanes;
    }
    layout.is_arrow.push_back(is_arrow);
  }
}

}  // namespace

RegionLayout lay_out_plan(const DrawnRegion& region, double max_width) {
  RegionLayout layout;
  layout.width = static_cast<double>(region.name.size()) * kLetterWidth + 2 * kPadding;
  layout.width = std::max(layout.width, 40.0);
  layout.nodes.resize(region.nodes.size());
  layout.lane_label_width = lane_label_width(region);
  const double node_width =
      std::max(kMinWidth, max_width - layout.lane_label_width - kArrowGap - kPadding);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    size_node(region.nodes[i], node_width, layout.nodes[i]);
  }
  for (const uint32_t node : region.entry_waits) {
    if (!std::ranges::count(region.exit_waits, node)) continue;
    layout.nodes[node].width = std::max(layout.nodes[node].width, kEntryAndExitWidth);
  }
  place_in_bands(region, max_width, layout);
  place_lanes(region, layout);
  choose_arrows(region, layout);
  return layout;
}

}  // namespace eddy
