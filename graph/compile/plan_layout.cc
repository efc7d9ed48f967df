#include "graph/compile/plan_layout.h"

#include <algorithm>
#include <map>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr double kLetterWidth = 6.3;
constexpr double kNodeHeight = 20;
constexpr double kNodeGap = 10;
constexpr double kStep = 8;       // at least from one column to the next
constexpr double kArrowGap = 26;  // leaves room for an arrow
constexpr size_t kMinLetters = 4;
constexpr size_t kMaxLetters = 16;
constexpr double kMinWidth = 160;
constexpr double kLabelGap = 5;  // between two labels above one node

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

// Gives nodes x and band, in issue order and so by falling rank: a column for each rank.
class ColumnPlacer {
 public:
  ColumnPlacer(const DrawnRegion& region, double max_width, RegionLayout& layout)
      : region_(region),
        max_width_(max_width),
        layout_(layout),
        first_wait_(region.nodes.size() + 1) {
    for (const DrawnWait& wait : region.waits) {
      EDDY_CHECK(wait.to < region.nodes.size() && wait.from < region.nodes.size())
          << "a wait of node " << wait.to << " for node " << wait.from;
      ++first_wait_[wait.to + size_t{1}];
    }
    for (size_t i = 0; i < region.nodes.size(); ++i) first_wait_[i + 1] += first_wait_[i];
  }

  void run() {
    begin_band(0);
    const std::vector<DrawnNode>& nodes = region_.nodes;
    for (size_t first = 0, end = 0; first < nodes.size(); first = end) {
      while (end < nodes.size() && nodes[end].rank == nodes[first].rank) ++end;
      place_column(first, end);
    }
    for (const NodeLayout& node : layout_.nodes) {
      layout_.width = std::max(layout_.width, node.x + node.width + kPadding);
    }
  }

 private:
  void begin_band(uint32_t band) {
    band_ = band;
    is_band_empty_ = true;
    lane_end_.assign(num_lanes(region_), layout_.lane_label_width);
  }

  // A column that would stick out begins the next band, and one that is wider than the page the
  // band after it.
  void place_column(size_t first, size_t end) {
    EDDY_DCHECK(first < end && end <= region_.nodes.size()) << "column " << first << " to " << end;
    while (first < end) {
      const bool is_first = is_band_empty_;
      const size_t next = place_until_full(first, end);
      if (next == end) return;
      begin_band(band_ + 1);
      if (is_first) first = next;
    }
  }

  // All at one x, but for those that stand behind another of them. Returns the first without room.
  size_t place_until_full(size_t first, size_t end) {
    const bool has_waits = first_wait_[end] > first_wait_[first];
    double column =
        std::max(column_begin_ + kStep, column_end_ + (has_waits ? kArrowGap : kNodeGap));
    if (is_band_empty_) column = 0;
    for (size_t i = first; i < end; ++i) column = std::max(column, behind_all_before(i, first));
    column_begin_ = column;
    column_end_ = 0;
    for (size_t i = first; i < end; ++i) {
      NodeLayout& node = layout_.nodes[i];
      node.x = std::max(column, behind_all_before(i, i));
      if (node.x + node.width > max_width_ && !is_band_empty_) return i;
      is_band_empty_ = false;
      node.band = band_;
      const double right = node.x + node.width;
      for (const uint32_t stream : region_.nodes[i].streams) lane_end_[stream] = right;
      // Others may stand above and below the box of a loop or branch.
      const bool is_spanned = region_.is_ranked_by_costs || !node.regions.empty();
      column_begin_ = std::max(column_begin_, node.x);
      if (!is_spanned) column_end_ = std::max(column_end_, right);
    }
    return end;
  }

  // Behind its lanes' last nodes and behind what it waits for, of those before `limit`.
  double behind_all_before(size_t i, size_t limit) const {
    double x = layout_.lane_label_width;
    for (const uint32_t stream : region_.nodes[i].streams) {
      x = std::max(x, lane_end_[stream] + kNodeGap);
    }
    for (size_t w = first_wait_[i]; w < first_wait_[i + 1]; ++w) {
      if (region_.waits[w].from >= limit) continue;
      const NodeLayout& from = layout_.nodes[region_.waits[w].from];
      const double after = from.band == band_ ? from.x + from.width : layout_.lane_label_width;
      x = std::max(x, after + kArrowGap);
    }
    return x;
  }

  const DrawnRegion& region_;
  const double max_width_;
  RegionLayout& layout_;
  std::vector<size_t> first_wait_;  // by node
  std::vector<double> lane_end_;
  double column_begin_ = 0;
  double column_end_ = 0;
  uint32_t band_ = 0;
  bool is_band_empty_ = true;
};

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
        EDDY_DCHECK(node.devices.empty() || node.devices.size() == node.streams.size())
            << node.name << " has a device for some of its streams";
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
  EDDY_CHECK(first == layout.nodes.size()) << "node " << first << " is in no band";
  layout.height = y + kPadding;
}

// On which lane of its band a node stands first.
size_t lane_of(const RegionLayout& layout, const NodeLayout& node) {
  const std::vector<LaneLayout>& lanes = layout.bands[node.band].lanes;
  const auto found = std::ranges::lower_bound(lanes, node.centers[0], {}, &LaneLayout::center);
  EDDY_DCHECK(found != lanes.end()) << "a node stands below all lanes";
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

// Widens nodes that have a label at both corners: the entry or events that they wait for, and the
// exit or the event that they record. False: no label would be over another.
bool make_room_for_labels(const DrawnRegion& region, RegionLayout& layout) {
  struct Labels {
    size_t left = 0, right = 0;  // letters
    uint32_t num_waits = 0;
  };
  EDDY_CHECK(layout.is_arrow.size() == region.waits.size()) << "a wait is drawn or not";
  std::vector<Labels> labels(region.nodes.size());
  const bool has_events = std::ranges::count(layout.is_arrow, false) > 0;
  for (size_t w = 0; has_events && w < region.waits.size(); ++w) {
    const DrawnWait& wait = region.waits[w];
    const size_t letters = std::to_string(wait.event).size() + 2;  // "▸e7", "e7▸"
    labels[wait.from].right = letters;
    Labels& to = labels[wait.to];
    to.left = std::max(to.left, letters);
    ++to.num_waits;
  }
  for (Labels& each : labels) {  // "▸e7+3"
    if (each.num_waits > 1) each.left += 1 + std::to_string(each.num_waits - 1).size();
  }
  for (const uint32_t node : region.entry_waits) labels[node].left = 6;  // "▸entry"
  for (const uint32_t node : region.exit_waits) labels[node].right = 5;
  bool is_wider = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].left == 0 || labels[i].right == 0) continue;
    const auto letters = static_cast<double>(labels[i].left + labels[i].right);
    const double width = letters * kEventLetter + kLabelGap;
    is_wider |= width > layout.nodes[i].width;
    layout.nodes[i].width = std::max(layout.nodes[i].width, width);
  }
  return is_wider;
}

void place(const DrawnRegion& region, double max_width, RegionLayout& layout) {
  layout.width = static_cast<double>(region.name.size()) * kLetterWidth + 2 * kPadding;
  layout.width = std::max(layout.width, 40.0);
  for (NodeLayout& node : layout.nodes) node.centers.clear();
  layout.bands.clear();
  layout.is_arrow.clear();
  ColumnPlacer(region, max_width, layout).run();
  place_lanes(region, layout);
  choose_arrows(region, layout);
}

}  // namespace

RegionLayout lay_out_plan(const DrawnRegion& region, double max_width) {
  RegionLayout layout;
  layout.nodes.resize(region.nodes.size());
  layout.lane_label_width = lane_label_width(region);
  const double node_width =
      std::max(kMinWidth, max_width - layout.lane_label_width - kArrowGap - kPadding);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    size_node(region.nodes[i], node_width, layout.nodes[i]);
  }
  place(region, max_width, layout);
  // Which waits are no arrows is known now; wider nodes may make more of them.
  if (make_room_for_labels(region, layout)) place(region, max_width, layout);
  return layout;
}

}  // namespace eddy
