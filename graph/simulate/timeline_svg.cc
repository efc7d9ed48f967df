#include "graph/simulate/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/xml_text.h"

namespace eddy {
namespace {

constexpr double kPlotWidth = 1180;
constexpr double kMargin = 16;
constexpr double kLaneHeight = 26;
constexpr double kBoxHeight = 20;
constexpr double kHeadHeight = 58;
constexpr double kAxisHeight = 26;
constexpr double kLetterWidth = 6.1;
constexpr double kNarrow = 0.8;  // pixels
constexpr size_t kMaxLanes = 200;

// As many letters as fit; nothing where not even three do.
std::string fitting(const std::string& text, double width) {
  const auto letters = static_cast<size_t>(std::max(0.0, (width - 4) / kLetterWidth));
  if (text.size() <= letters) return text;
  if (letters < 3) return "";
  size_t end = letters - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

struct Lane {
  std::string name;
  std::vector<uint32_t> slots;
  bool is_link = true;
  double busy = 0;
};

template <TimeValue Time>
class TimelineSvg {
 public:
  TimelineSvg(const TimelineView<Time>& view, const std::string& title)
      : view_(view), title_(title) {}

  std::string write() {
    collect_lanes();
    is_critical_.resize(view_.graph.num_slots());
    if (!view_.is_plan) {
      for (const uint32_t slot : critical_path(view_.graph, view_.timeline)) {
        is_critical_[slot] = true;
      }
    }
    const double lanes_height = kLaneHeight * static_cast<double>(lanes_.size());
    const double width = 2 * kMargin + label_width_ + kPlotWidth;
    const double height = kHeadHeight + lanes_height + kAxisHeight + kMargin;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"monospace\" font-size=\"10\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    add_head();
    add_axis(lanes_height);
    for (const auto& frame : view_.frames) add_frame(frame);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      add_lane(lanes_[i], kHeadHeight + kLaneHeight * static_cast<double>(i));
    }
    for (const auto& arrow : view_.arrows) add_arrow(arrow);
    return text_ + "</svg>\n";
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void collect_lanes() {
    std::vector<Lane> lanes(view_.graph.num_devices());
    for (const uint32_t slot : view_.timeline.order) {
      const auto& task = view_.graph.task(slot);
      Lane& lane = lanes[task.device];
      if (lane.slots.empty()) lane.name = view_.device_name(task.device);
      lane.slots.push_back(slot);
      lane.is_link &= view_.is_communication(slot);
      lane.busy += static_cast<double>(task.exe_time);
    }
    std::erase_if(lanes, [](const Lane& lane) { return lane.slots.empty(); });
    if (lanes.size() > kMaxLanes) {
      num_hidden_ = lanes.size() - kMaxLanes;
      std::ranges::stable_sort(lanes, std::greater<>(), &Lane::busy);
      lanes.resize(kMaxLanes);
    }
    std::stable_partition(lanes.begin(), lanes.end(),
                          [](const Lane& lane) { return !lane.is_link; });
    for (const Lane& lane : lanes) {
      const double name_width = static_cast<double>(lane.name.size()) * kLetterWidth + 62;
      label_width_ = std::clamp(name_width, label_width_, 260.0);
    }
    lanes_ = std::move(lanes);
    row_of_device_.assign(view_.graph.num_devices(), kHidden);
    for (uint32_t row = 0; row < lanes_.size(); ++row) {
      row_of_device_[view_.graph.task(lanes_[row].slots[0]).device] = row;
    }
  }

  double x_of(Time time) const {
    const auto makespan = static_cast<double>(view_.timeline.makespan);
    const double part = makespan > 0 ? static_cast<double>(time) / makespan : 0;
    return kMargin + label_width_ + part * kPlotWidth;
  }

  void add_head() {
    const uint32_t count = view_.graph.num_tasks();
    add("<text x=\"{}\" y=\"22\" font-size=\"13\">{}: makespan {}, {} task{}{}</text>\n", kMargin,
        xml_text(title_), view_.timeline.makespan, count, count == 1 ? "" : "s",
        num_hidden_ == 0 ? "" : fmt::format("; {} lanes less busy are not drawn", num_hidden_));
    const double y = 34;
    add_box(kMargin, y, 26, "#cfe3f7", false);
    add("<text x=\"{}\" y=\"{}\">task</text>\n", kMargin + 32, y + 10);
    if (view_.is_plan) {
      add("<path d=\"M{},{} h20\" stroke=\"#d11\"/>\n<text x=\"{}\" y=\"{}\">wait</text>\n",
          kMargin + 84, y + 7, kMargin + 112, y + 10);
      add("<rect x=\"{}\" y=\"{}\" width=\"26\" height=\"14\" fill=\"none\" stroke=\"#4a7\"/>\n"
          "<text x=\"{}\" y=\"{}\">loop or branch</text>\n",
          kMargin + 156, y, kMargin + 188, y + 10);
      return;
    }
    add_box(kMargin + 80, y, 26, "#fcd9a8", false);
    add("<text x=\"{}\" y=\"{}\">communication</text>\n", kMargin + 112, y + 10);
    add_box(kMargin + 212, y, 26, "#ffffff", true);
    add("<text x=\"{}\" y=\"{}\">on the critical path</text>\n", kMargin + 244, y + 10);
  }

  void add_box(double x, double y, double width, const char* fill, bool is_critical) {
    add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"14\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\"{}\"/>\n",
        x, y, width, fill, is_critical ? "#d11" : "#89a", is_critical ? 1.6 : 0.5);
  }

  // Ticks at 1, 2 or 5 times a power of ten, about eight of them.
  void add_axis(double lanes_height) {
    const auto makespan = static_cast<double>(view_.timeline.makespan);
    if (makespan <= 0) return;
    const double rough = makespan / 8;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = (rough <= power       ? 1
                         : rough <= 2 * power ? 2
                         : rough <= 5 * power ? 5
                                              : 10) *
                        power;
    if (!(step > 0) || !std::isfinite(step)) return;
    for (int i = 0; i * step <= makespan; ++i) {
      const double x = kMargin + label_width_ + i * step / makespan * kPlotWidth;
      add("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#e3e3e3\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\" fill=\"#555\" text-anchor=\"middle\">{4:.6g}</text>\n",
          x, kHeadHeight, kHeadHeight + lanes_height, kHeadHeight + lanes_height + 14, i * step);
    }
  }

  double top_of(uint32_t row) const { return kHeadHeight + kLaneHeight * row; }

  // Around the lanes between its first and its last, as far as they are drawn.
  void add_frame(const typename TimelineView<Time>::Frame& frame) {
    EDDY_CHECK(frame.first_device <= frame.last_device && frame.last_device < row_of_device_.size())
        << "'" << frame.label << "' holds devices " << frame.first_device << " to "
        << frame.last_device;
    uint32_t first = kHidden;
    uint32_t last = 0;
    for (uint32_t device = frame.first_device; device <= frame.last_device; ++device) {
      if (row_of_device_[device] == kHidden) continue;
      first = std::min(first, row_of_device_[device]);
      last = std::max(last, row_of_device_[device]);
    }
    if (first == kHidden) return;
    const double x = x_of(frame.start);
    add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"#4a7\" "
        "fill-opacity=\"0.06\" stroke=\"#4a7\" stroke-width=\"0.8\"><title>{}</title></rect>\n",
        x, top_of(first) + 0.5, std::max(x_of(frame.end) - x, kNarrow),
        kLaneHeight * (last - first + 1) - 1, xml_text(frame.label));
  }

  void add_arrow(const typename TimelineView<Time>::Arrow& arrow) {
    EDDY_CHECK(view_.graph.is_live(arrow.from) && view_.graph.is_live(arrow.to))
        << "'" << arrow.label << "' leads from " << arrow.from << " to " << arrow.to;
    const uint32_t from = row_of_device_[view_.graph.task(arrow.from).device];
    const uint32_t to = row_of_device_[view_.graph.task(arrow.to).device];
    if (from == kHidden || to == kHidden) return;
    const double x = x_of(view_.timeline.tasks[arrow.to].start);
    const double y = top_of(to) + kLaneHeight / 2;
    add("<path d=\"M{:.2f},{:.1f} L{:.2f},{:.1f} m-4,{} l4,{} l-4,{}\" fill=\"none\" "
        "stroke=\"#d11\" stroke-width=\"0.8\"><title>{}</title></path>\n",
        x_of(view_.timeline.tasks[arrow.from].end), top_of(from) + kLaneHeight / 2, x, y, -2.5, 2.5,
        2.5, xml_text(arrow.label));
  }

  void add_lane(const Lane& lane, double y) {
    const auto makespan = static_cast<double>(view_.timeline.makespan);
    add("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#777\" text-anchor=\"end\">{:.0f} %</text>\n",
        kMargin, y + kLaneHeight, kMargin + label_width_ + kPlotWidth, y + kLaneHeight, kMargin,
        y + 17, xml_text(fitting(lane.name, label_width_ - 40)), kMargin + label_width_ - 8, y + 17,
        makespan > 0 ? 100 * lane.busy / makespan : 0.0);
    size_t begin = 0;
    while (begin < lane.slots.size()) {
      const size_t end = narrow_run(lane, begin);
      if (end - begin > 1) {
        add_run(lane, begin, end, y + (kLaneHeight - kBoxHeight) / 2);
      } else {
        add_task(lane.slots[begin], y + (kLaneHeight - kBoxHeight) / 2);
      }
      begin = std::max(end, begin + 1);
    }
  }

  double width_of(uint32_t slot) const {
    const TaskTimes<Time>& times = view_.timeline.tasks[slot];
    return x_of(times.end) - x_of(times.start);
  }

  // The end of the tasks from `begin` on that are too narrow to see and close to each other.
  size_t narrow_run(const Lane& lane, size_t begin) const {
    size_t end = begin;
    double last = 0;
    while (end < lane.slots.size() && width_of(lane.slots[end]) < kNarrow) {
      const double x = x_of(view_.timeline.tasks[lane.slots[end]].start);
      if (end > begin && x - last > kNarrow) break;
      last = x_of(view_.timeline.tasks[lane.slots[end]].end);
      ++end;
    }
    return end;
  }

  void add_run(const Lane& lane, size_t begin, size_t end, double y) {
    const TaskTimes<Time>& first = view_.timeline.tasks[lane.slots[begin]];
    const TaskTimes<Time>& last = view_.timeline.tasks[lane.slots[end - 1]];
    const bool is_critical = std::any_of(lane.slots.begin() + static_cast<ptrdiff_t>(begin),
                                         lane.slots.begin() + static_cast<ptrdiff_t>(end),
                                         [this](uint32_t slot) { return is_critical_[slot]; });
    const std::string about = fmt::format("{} tasks, {} to {}", end - begin, first.start, last.end);
    add_rect(x_of(first.start), y, x_of(last.end) - x_of(first.start),
             lane.is_link ? "#e8c999" : "#b8c4d0", is_critical, about,
             fmt::format("{} tasks", end - begin));
  }

  void add_task(uint32_t slot, double y) {
    const TaskTimes<Time>& times = view_.timeline.tasks[slot];
    const std::string name = view_.task_name(slot);
    add_rect(x_of(times.start), y, width_of(slot),
             view_.is_communication(slot) ? "#fcd9a8" : "#cfe3f7", is_critical_[slot],
             fmt::format("{}: {} to {}", name, times.start, times.end), name);
  }

  void add_rect(double x, double y, double width, const char* fill, bool is_critical,
                const std::string& about, const std::string& name) {
    // The frame of a narrow box would hide its fill.
    const double frame = is_critical ? std::min(1.6, 0.4 + width / 4) : width < 3 ? 0.1 : 0.5;
    add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\"{:.1f}\"><title>{}</title></rect>\n",
        x, y, std::max(width, kNarrow), kBoxHeight, fill, is_critical ? "#d11" : "#89a", frame,
        xml_text(about));
    const std::string label = fitting(name, width);
    if (label.empty()) return;
    add("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
        "pointer-events=\"none\">{}</text>\n",
        x + width / 2, y + 14, xml_text(label));
  }

  const TimelineView<Time>& view_;
  const std::string& title_;
  std::vector<Lane> lanes_;
  static constexpr uint32_t kHidden = UINT32_MAX;
  std::vector<uint32_t> row_of_device_;
  std::vector<bool> is_critical_;
  size_t num_hidden_ = 0;
  double label_width_ = 60;
  std::string text_;
};

}  // namespace

template <TimeValue Time>
std::string timeline_svg(const TimelineView<Time>& view, const std::string& title) {
  return TimelineSvg<Time>(view, title).write();
}

template std::string timeline_svg(const TimelineView<int64_t>&, const std::string&);
template std::string timeline_svg(const TimelineView<double>&, const std::string&);

}  // namespace eddy
