// Where everything of a drawn plan goes: boxes in pixels, relative to their region's corner.
//
// Threads: pure. Cost: O(nodes + waits).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/compile/plan_drawing.h"

namespace eddy {

struct RegionLayout;

struct NodeLayout {
  double x = 0;
  double width = 0;
  double height = 0;
  uint32_t band = 0;
  std::vector<double> centers;        // y of the middle, on each of the node's streams
  std::vector<RegionLayout> regions;  // relative to the node's own corner
};

struct LaneLayout {
  uint32_t stream = 0;
  double center = 0;
};

struct BandLayout {
  double top = 0;
  double height = 0;
  std::vector<LaneLayout> lanes;  // those with a node in this band
};

struct RegionLayout {
  double x = 0;  // within the node that owns it
  double y = 0;
  double width = 0;
  double height = 0;
  std::vector<NodeLayout> nodes;  // as DrawnRegion::nodes
  std::vector<BandLayout> bands;
};

inline constexpr double kTitleHeight = 16;  // of a control node, and of each of its regions
inline constexpr double kLaneLabelWidth = 26;
inline constexpr double kPadding = 6;

RegionLayout lay_out_plan(const DrawnRegion& region, double max_width);

}  // namespace eddy
