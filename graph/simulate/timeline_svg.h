// A timeline as a picture: a lane for each device, time from left to right.
//
// Lanes that only carry communication come after the others. Communication is orange, other tasks
// are blue, tasks on the critical path have a red frame. Names
// stand where they fit; name and times of every task are in its tooltip. Tasks too narrow to see
// are drawn together as one grey box that shows their number. At most 200 lanes are drawn, the
// busiest; the title then has their number.
//
// The same timeline gives the same bytes. Threads: pure. Cost: O(tasks + edges).
#pragma once

#include <string>

#include "graph/simulate/timeline_report.h"

namespace eddy {

template <TimeValue Time>
std::string timeline_svg(const TimelineView<Time>& view, const std::string& title);

}  // namespace eddy
