// A timeline for its readers: as JSON, as text for people, and its critical path.
//
// Text: one line of totals, and one line for each device that does something: how much of the
// makespan it is busy, and its tasks where they are few.
// JSON: {"makespan": x, "times": {name: [start, end], ...}}; integers as integers, doubles with as
// many digits as tell them apart.
//
// Threads: pure. Cost: O(tasks + edges + size of the text).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"

namespace eddy {

// A timeline and what its numbers stand for. Borrows everything.
template <TimeValue Time>
struct TimelineView {
  const TaskGraph<Time>& graph;  // with predecessors
  const Timeline<Time>& timeline;
  std::span<const uint32_t> slots;  // in the order of the output
  std::function<std::string(uint32_t slot)> task_name;
  std::function<std::string(uint32_t device)> device_name;
  std::function<bool(uint32_t slot)> is_communication;

  // For pictures of plans, whose tasks have no edges, so no critical path: frames stand around what
  // these devices do meanwhile (outer ones first), arrows from a slot's end to another's start.
  struct Frame {
    Time start;
    Time end;
    uint32_t first_device;
    uint32_t last_device;
    std::string label;
  };
  struct Arrow {
    uint32_t from;
    uint32_t to;
    std::string label;
  };
  bool is_plan = false;
  std::vector<Frame> frames = {};
  std::vector<Arrow> arrows = {};
};

template <TimeValue Time>
void append_timeline_json(const TimelineView<Time>& view, std::string& json);

// Lines that end in newlines. `title`: "edit 3 (set_exe)".
template <TimeValue Time>
std::string timeline_text(const TimelineView<Time>& view, const std::string& title);

// The tasks that made the makespan, from the first to the one that ends last: each starts when
// the one before it ends, as its dependency where there is such a one, else on the same device.
template <TimeValue Time>
std::vector<uint32_t> critical_path(const TaskGraph<Time>& graph, const Timeline<Time>& timeline);

}  // namespace eddy
