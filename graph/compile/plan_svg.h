// A plan as a picture: one lane for each stream, over rank from left to right, arrows for waits,
// nested boxes for the regions of loops and branches.
//
// A node stands to the right of everything it is ordered after, and above or below the others of
// its rank (plan_layout.h). A region wider than the page is broken into bands, one below the other,
// each with the lanes it uses. A wait between two bands, or between lanes that are far apart in a
// band of many, is drawn as its event's name at both ends. The parts of a joint launch have one
// colour and a line between them; so have nodes that meet, a broken one. The whole name of each
// node is in its tooltip, and so is all that it waits for.
//
// The same plan gives the same bytes. Threads: pure. Cost: O(nodes + waits + size of the text).
#pragma once

#include <map>
#include <string>

#include "graph/compile/plan_drawing.h"

namespace eddy {

// Nodes with the same text, wherever they stand below the root, do one thing together.
using DrawnMeetings = std::map<const DrawnNode*, std::string>;

std::string plan_svg(const DrawnRegion& root, const std::string& title,
                     const DrawnMeetings& meetings = {});

}  // namespace eddy
