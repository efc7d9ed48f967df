#include "graph/simulate/timeline_report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {
namespace {

constexpr size_t kTasksShown = 16;    // of one device
constexpr size_t kDevicesShown = 40;  // the busiest

// "1 task", "2 tasks".
std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void append_quoted(std::string_view text, std::string& json) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  json += '"';
}

template <TimeValue Time>
struct Lane {
  uint32_t device = 0;
  std::vector<uint32_t> slots;
  double busy = 0;
};

// The devices that have tasks, by number; tasks in the order in which they run.
template <TimeValue Time>
std::vector<Lane<Time>> lanes_of(const TimelineView<Time>& view) {
  std::vector<Lane<Time>> lanes(view.graph.num_devices());
  for (const uint32_t slot : view.timeline.order) {
    Lane<Time>& lane = lanes[view.graph.task(slot).device];
    lane.device = view.graph.task(slot).device;
    lane.slots.push_back(slot);
    lane.busy += static_cast<double>(view.graph.task(slot).exe_time);
  }
  std::erase_if(lanes, [](const Lane<Time>& lane) { return lane.slots.empty(); });
  return lanes;
}

template <TimeValue Time>
std::string lane_text(const TimelineView<Time>& view, const Lane<Time>& lane, size_t name_width) {
  const auto makespan = static_cast<double>(view.timeline.makespan);
  std::string text = fmt::format(
      "  {:<{}}  {:3.0f} % busy, {}", one_line(view.device_name(lane.device)), name_width,
      makespan > 0 ? 100 * lane.busy / makespan : 0.0, counted(lane.slots.size(), "task"));
  if (lane.slots.size() > kTasksShown) return text + "\n";
  text += ':';
  for (const uint32_t slot : lane.slots) {
    const TaskTimes<Time>& times = view.timeline.tasks[slot];
    text += fmt::format("  {} {}-{}", one_line(view.task_name(slot)), times.start, times.end);
  }
  return text + "\n";
}

}  // namespace

template <TimeValue Time>
void append_timeline_json(const TimelineView<Time>& view, std::string& json) {
  const auto out = std::back_inserter(json);
  fmt::format_to(out, "{{\"makespan\":{},\"times\":{{", view.timeline.makespan);
  bool is_first = true;
  for (const uint32_t slot : view.slots) {
    EDDY_DCHECK(slot < view.timeline.tasks.size()) << "slot " << slot << " has no times";
    const TaskTimes<Time>& times = view.timeline.tasks[slot];
    if (!is_first) json += ',';
    is_first = false;
    append_quoted(view.task_name(slot), json);
    fmt::format_to(out, ":[{},{}]", times.start, times.end);
  }
  json += "}}";
}

template <TimeValue Time>
std::string timeline_text(const TimelineView<Time>& view, const std::string& title) {
  std::vector<Lane<Time>> lanes = lanes_of(view);
  std::string text =
      fmt::format("{}: makespan {}, {} on {}\n", title, view.timeline.makespan,
                  counted(view.graph.num_tasks(), "task"), counted(lanes.size(), "device"));
  const size_t num_hidden = lanes.size() > kDevicesShown ? lanes.size() - kDevicesShown : 0;
  if (num_hidden > 0) {
    std::ranges::stable_sort(lanes, std::greater<>(), &Lane<Time>::busy);
    lanes.resize(kDevicesShown);
  }
  size_t name_width = 0;
  for (const Lane<Time>& lane : lanes) {
    name_width = std::max(name_width, view.device_name(lane.device).size());
  }
  for (const Lane<Time>& lane : lanes) text += lane_text(view, lane, name_width);
  if (num_hidden > 0) text += fmt::format("  and {} less busy\n", counted(num_hidden, "device"));
  return text;
}

template <TimeValue Time>
std::vector<uint32_t> critical_path(const TaskGraph<Time>& graph, const Timeline<Time>& timeline) {
  EDDY_CHECK(timeline.order.size() == graph.num_tasks() &&
             timeline.tasks.size() == graph.num_slots())
      << "the timeline is of another graph";
  std::vector<uint32_t> before(graph.num_slots(), kNoSlot);  // on the same device
  std::vector<uint32_t> last(graph.num_devices(), kNoSlot);
  uint32_t slot = kNoSlot;
  for (const uint32_t next : timeline.order) {
    uint32_t& last_there = last[graph.task(next).device];
    before[next] = last_there;
    last_there = next;
    if (slot == kNoSlot && timeline.tasks[next].end == timeline.makespan) slot = next;
  }
  std::vector<uint32_t> path;
  while (slot != kNoSlot) {
    path.push_back(slot);
    EDDY_DCHECK(path.size() <= graph.num_tasks()) << "slot " << slot << " makes a circle";
    const TaskTimes<Time>& own = timeline.tasks[slot];
    const auto released = std::ranges::find_if(graph.predecessors(slot), [&](uint32_t from) {
      return timeline.tasks[from].end == own.start;
    });
    const bool is_released = released != graph.predecessors(slot).end();
    slot = is_released ? *released : own.start > own.ready ? before[slot] : kNoSlot;
  }
  std::ranges::reverse(path);
  return path;
}

template void append_timeline_json(const TimelineView<int64_t>&, std::string&);
template void append_timeline_json(const TimelineView<double>&, std::string&);
template std::string timeline_text(const TimelineView<int64_t>&, const std::string&);
template std::string timeline_text(const TimelineView<double>&, const std::string&);
template std::vector<uint32_t> critical_path(const TaskGraph<int64_t>&, const Timeline<int64_t>&);
template std::vector<uint32_t> critical_path(const TaskGraph<double>&, const Timeline<double>&);

}  // namespace eddy
