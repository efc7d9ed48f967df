// Where everything of a drawn plan goes: boxes in pixels, relative to their region's corner.
//
// x is rank: in issue order each rank is a column, and all nodes of a column begin at one x, but
// for those on one lane, which a cap may put there. The box of a loop or branch may span the
// columns to its right, as far as what stands there is not ordered behind it; ranks by cost are
// often all different, so their columns begin in order of rank but may overlap. What the page has
// no room for goes on in bands, one below the other.
//
// A wait is an arrow where that can be followed: within a band, and where the band has many lanes
// only to a lane nearby. Every other wait is its event's name at both ends.
//
// Threads: pure. Cost: O(nodes + waits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
  double height = 0;   // of its tallest node
  std::string device;  // of a plan for several
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
  double lane_label_width = 0;
  std::vector<bool> is_arrow;  // as DrawnRegion::waits
};

inline constexpr double kTitleHeight = 16;  // of a control node, and of each of its regions
inline constexpr double kPadding = 6;
inline constexpr double kLaneGap = 12;    // between two lanes of a band
inline constexpr size_t kManyLanes = 20;  // of a band, for arrows
inline constexpr size_t kNearLanes = 5;
inline constexpr double kEventLetter = 4.3;  // width of one in an event's name

RegionLayout lay_out_plan(const DrawnRegion& region, double max_width);

}  // namespace eddy
