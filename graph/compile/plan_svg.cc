#include "graph/compile/plan_svg.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/xml_text.h"
#include "graph/compile/plan_layout.h"

namespace eddy {
namespace {

constexpr double kPageWidth = 1500;
constexpr double kMargin = 16;
constexpr double kLegendHeight = 14;
constexpr double kIntoGap = 7;     // between two nodes
constexpr double kNear = 30;       // too near for an arrow to go along anything
constexpr double kTurnWidth = 16;  // a little more than the gap between two nodes
constexpr const char* kFills[] = {"#cfe3f7", "#fde2c4", "#d5efcf", "#f6d0d0",
                                  "#e4d6f2", "#f2ecc0", "#cdeeee", "#e5e5e5"};

// At most as many letters as fit; the end of a name is more specific than its beginning.
std::string shortened(const std::string& text, double width) {
  const auto letters = static_cast<size_t>(std::max(1.0, (width - 8) / 6.2));
  if (text.size() <= letters) return text;
  size_t begin = text.size() - letters + 1;
  // Not in the middle of a UTF-8 letter.
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return "…" + text.substr(begin);
}

bool has_next_waits(const DrawnRegion& region) {
  return !region.next_waits.empty() || std::ranges::any_of(region.nodes, [](const DrawnNode& node) {
    return std::ranges::any_of(node.regions, has_next_waits);
  });
}

class SvgWriter {
 public:
  explicit SvgWriter(const DrawnMeetings& meetings) : meetings_(meetings) {}

  std::string write(const DrawnRegion& root, const RegionLayout& layout, const std::string& title) {
    const double width =
        std::max({layout.width, 420.0, static_cast<double>(title.size()) * 7.3}) + 2 * kMargin;
    const double top = kMargin + kTitleHeight + (has_next_waits(root) ? kLegendHeight : 0);
    const double height = top + layout.height + kMargin;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"monospace\" font-size=\"10\">\n"
        "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#c22\"/></marker>"
        "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"{2}\" y=\"{3}\" font-size=\"12\">{4}</text>\n",
        width, height, kMargin, kMargin + 6, xml_text(title));
    if (has_next_waits(root)) {
      text_ += fmt::format(
          "<text x=\"{}\" y=\"{}\" fill=\"#22c\">e1↷ recorded for the next iteration, ↷e1 "
          "waits for the last one's</text>\n",
          kMargin, kMargin + kTitleHeight + 6);
    }
    add_region(root, layout, kMargin, top);
    for (const auto& [meets, places] : places_) add_meeting(meets, places);
    return text_ + "</svg>\n";
  }

 private:
  // Where nodes begin on each lane of each band, from left to right.
  using Lanes = std::map<std::pair<uint32_t, double>, std::vector<double>>;

  void add_region(const DrawnRegion& region, const RegionLayout& layout, double x, double y) {
    EDDY_CHECK(layout.nodes.size() == region.nodes.size() &&
               layout.is_arrow.size() == region.waits.size())
        << "the layout is of another region than " << region.name;
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#fafafa\" "
        "stroke=\"#bbb\" rx=\"3\"/>\n<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#555\">{}</text>\n",
        x, y, layout.width, layout.height, x + kPadding, y + 11,
        xml_text(shortened(region.name, layout.width)));
    for (const BandLayout& band : layout.bands) add_lanes(band, layout, x, y);
    for (const NodeLayout& node : layout.nodes) add_joint(node, x, y);
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      add_node(region.nodes[i], layout.nodes[i], x, y);
    }
    // Over the nodes: where the box of a loop lies between, an arrow behind it would seem to end.
    const Lanes lanes = lanes_of(layout);
    for (size_t w = 0; w < region.waits.size(); ++w) {
      if (layout.is_arrow[w]) add_arrow(region.waits[w], layout, lanes, x, y);
    }
    add_events(region, layout, x, y);
    add_boundary_waits(region, layout, x, y);
    add_next_waits(region, layout, x, y);
  }

  void add_lanes(const BandLayout& band, const RegionLayout& layout, double x, double y) {
    const bool has_many = band.lanes.size() > kManyLanes;
    for (size_t i = 0; i < band.lanes.size(); ++i) {
      const LaneLayout& lane = band.lanes[i];
      // Every fifth line darker: the eye loses one among many.
      const bool is_dark = has_many && i % 5 == 0;
      text_ += fmt::format(
          "<path d=\"M{:.1f},{:.1f} H{:.1f}\" stroke=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#999\">s{}{}</text>\n",
          x + layout.lane_label_width, y + lane.center, x + layout.width - 2,
          is_dark ? "#aaa" : "#ddd", x + 4, y + lane.center + 3.5, lane.stream,
          xml_text(shortened(lane.device.empty() ? "" : " " + lane.device,
                             layout.lane_label_width - 18)));
    }
  }

  // Between the parts of a joint launch, behind what stands on the lanes between them.
  void add_joint(const NodeLayout& node, double x, double y) {
    if (node.centers.size() < 2) return;
    const auto [first, last] = std::ranges::minmax(node.centers);
    text_ += fmt::format("<path d=\"M{:.1f},{:.1f} V{:.1f}\" stroke=\"#567\"/>\n",
                         x + node.x + node.width / 2, y + first, y + last);
  }

  void add_node(const DrawnNode& node, const NodeLayout& layout, double x, double y) {
    EDDY_CHECK(!node.streams.empty() && layout.centers.size() == node.streams.size() &&
               layout.regions.size() == node.regions.size())
        << node.name << " is laid out for " << layout.centers.size() << " streams";
    for (size_t s = 0; s < node.streams.size(); ++s) {
      const double left = x + layout.x;
      const double top = y + layout.centers[s] - layout.height / 2;
      const bool is_control = !node.regions.empty();
      const auto meets = meetings_.find(&node);
      if (s == 0 && meets != meetings_.end()) {
        places_[meets->second].emplace_back(left + layout.width / 2, y + layout.centers[s]);
      }
      text_ += fmt::format(
          "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"{}\" stroke=\"#567\" rx=\"3\"/>",
          xml_text(fmt::format("{} {}, stream {}, rank {}{}{}", node.kind, node.name,
                               node.streams[s], node.rank, node.note.empty() ? "" : ", ",
                               node.note)),
          left, top, layout.width, layout.height, kFills[node.streams[0] % std::size(kFills)]);
      const std::string label = is_control ? node.kind + " " + node.name : node.name;
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}{}</text></g>\n", left + 5,
                           is_control ? top + 11 : top + layout.height / 2 + 3.5,
                           is_control ? " font-weight=\"bold\"" : "",
                           xml_text(shortened(label, layout.width)),
                           note_text(node.note, layout.width, label.size()));
      for (size_t r = 0; s == 0 && r < node.regions.size(); ++r) {
        add_region(node.regions[r], layout.regions[r], left + layout.regions[r].x,
                   top + layout.regions[r].y);
      }
    }
  }

  // From each node to the next below or beside it.
  void add_meeting(const std::string& meets, const std::vector<std::pair<double, double>>& places) {
    if (places.size() < 2) return;
    std::string way;
    for (const auto& [x, y] : places) {
      way += fmt::format("{}{:.1f},{:.1f}", way.empty() ? "M" : " L", x, y);
    }
    text_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"#282\" stroke-width=\"1.5\" "
        "stroke-dasharray=\"4,2\"><title>{}</title></path>\n",
        way, xml_text(meets));
  }

  // How a loop is driven, behind its name where there is room.
  static std::string note_text(const std::string& note, double width, size_t letters) {
    if (note.empty() || shortened(std::string(letters + 2, '-') + note, width).front() != '-') {
      return "";
    }
    return fmt::format("<tspan font-weight=\"normal\" fill=\"#555\">, {}</tspan>", xml_text(note));
  }

  void add_arrow(const DrawnWait& wait, const RegionLayout& layout, const Lanes& lanes, double x,
                 double y) {
    const NodeLayout& from = layout.nodes[wait.from];
    const NodeLayout& to = layout.nodes[wait.to];
    const double x0 = x + from.x + from.width;
    const double y0 = y + from.centers[0];
    const double x1 = x + to.x;
    const double y1 = y + to.centers[0];
    // Along its own lane as far as that is empty, else beside it, so that it climbs in the gap
    // before the node that waits and not across what stands between.
    const bool is_near = x1 - x0 <= kNear;
    const bool is_straight = is_near || is_empty(lanes, from, to);
    const double beside = is_straight ? y0 : y + beside_lane(layout, from, to);
    const double begin = is_straight ? x0 : x0 + kTurnWidth / 2;
    const double turn = is_near ? x0 : std::max(begin, x1 - kTurnWidth);
    const double bend = std::max(12.0, (x1 - turn) / 2);
    const std::string aside = is_straight
                                  ? ""
                                  : fmt::format(" C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}",
                                                x0 + kIntoGap, y0, x0, beside, begin, beside);
    text_ += fmt::format(
        "<path d=\"M{:.1f},{:.1f}{} H{:.1f} C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" "
        "fill=\"none\" stroke=\"#c22\" marker-end=\"url(#a)\"><title>event {}</title></path>\n",
        x0, y0, aside, turn, turn + bend, beside, x1 - bend, y1, x1, y1, wait.event);
  }

  // The place in the gap between the lane of `from` and the next one on the way to `to`.
  static double beside_lane(const RegionLayout& layout, const NodeLayout& from,
                            const NodeLayout& to) {
    const std::vector<LaneLayout>& lanes = layout.bands[from.band].lanes;
    const double center = from.centers[0];
    const auto lane = std::ranges::lower_bound(lanes, center, {}, &LaneLayout::center);
    EDDY_CHECK(lane != lanes.end()) << "a node stands on no lane of its band";
    const double away = (lane->height + kLaneGap) / 2;
    return to.centers[0] > center ? center + away : center - away;
  }

  static Lanes lanes_of(const RegionLayout& layout) {
    Lanes lanes;
    for (const NodeLayout& node : layout.nodes) {
      for (const double center : node.centers) lanes[{node.band, center}].push_back(node.x);
    }
    for (auto& [lane, begins] : lanes) std::ranges::sort(begins);
    return lanes;
  }

  // Whether no node stands on the lane of `from` between it and `to`.
  static bool is_empty(const Lanes& lanes, const NodeLayout& from, const NodeLayout& to) {
    const std::vector<double>& begins = lanes.at({from.band, from.centers[0]});
    const auto next = std::ranges::upper_bound(begins, from.x);
    return next == begins.end() || *next >= to.x;
  }

  // The events that no arrow shows: above the right corner of the node that records, and above the
  // left one of those that wait, as many as there is room for.
  void add_events(const DrawnRegion& region, const RegionLayout& layout, double x, double y) {
    std::map<uint32_t, uint32_t> recorded;
    std::map<uint32_t, std::vector<uint32_t>> awaited;  // waits
    for (uint32_t w = 0; w < region.waits.size(); ++w) {
      const DrawnWait& wait = region.waits[w];
      if (layout.is_arrow[w]) continue;
      recorded[wait.from] = wait.event;
      awaited[wait.to].push_back(w);
    }
    for (const auto& [node, event] : recorded) {
      const NodeLayout& at = layout.nodes[node];
      add_event(x + at.x + at.width + kIntoGap, y + at.centers[0] - at.height / 2 - 1, "end",
                fmt::format("e{}▸", event), "recorded by " + region.nodes[node].name);
    }
    for (const auto& [node, waits] : awaited) {
      const NodeLayout& at = layout.nodes[node];
      const auto own = recorded.find(node);
      const size_t taken = own == recorded.end() ? 0 : std::to_string(own->second).size() + 2;
      const double room = at.width + kIntoGap - static_cast<double>(taken) * kEventLetter;
      add_event(x + at.x, y + at.centers[0] - at.height / 2 - 1, "start",
                events_text(region, waits, room), waits_text(region, waits));
    }
  }

  // "▸e3▸e7", or "▸e3+4" where more would stick out.
  static std::string events_text(const DrawnRegion& region, const std::vector<uint32_t>& waits,
                                 double width) {
    std::string text;
    size_t letters = 0;
    for (size_t i = 0; i < waits.size(); ++i) {
      const std::string next = std::to_string(region.waits[waits[i]].event);
      letters += next.size() + 2;
      const bool is_last = i + 1 == waits.size();
      const size_t room = letters + (is_last ? 0 : 3);
      if (i > 0 && static_cast<double>(room) * kEventLetter > width) {
        return text + fmt::format("+{}", waits.size() - i);
      }
      text += "▸e" + next;
    }
    return text;
  }
  static std::string waits_text(const DrawnRegion& region, const std::vector<uint32_t>& waits) {
    std::string text = "waits for";
    for (size_t i = 0; i < waits.size(); ++i) {
      const DrawnWait& wait = region.waits[waits[i]];
      text +=
          fmt::format("{} e{} of {}", i == 0 ? "" : ",", wait.event, region.nodes[wait.from].name);
    }
    return text;
  }

  // Nodes that nothing comes before on their stream, nor any event, and those that nothing follows:
  // where others have their events.
  void add_boundary_waits(const DrawnRegion& region, const RegionLayout& layout, double x,
                          double y) {
    for (const uint32_t node : region.entry_waits) {
      const NodeLayout& at = layout.nodes[node];
      add_event(x + at.x, y + at.centers[0] - at.height / 2 - 1, "start", "▸entry",
                region.nodes[node].name + " waits for the region's entry");
    }
    for (const uint32_t node : region.exit_waits) {
      const NodeLayout& at = layout.nodes[node];
      add_event(x + at.x + at.width, y + at.centers[0] - at.height / 2 - 1, "end", "exit▸",
                "the region's exit waits for " + region.nodes[node].name);
    }
  }

  // Below the right corner of the node that records for the next iteration, and below the left one
  // of the node that waits there; what waits between the iterations has no node.
  void add_next_waits(const DrawnRegion& region, const RegionLayout& layout, double x, double y) {
    for (const DrawnNextWait& wait : region.next_waits) {
      const NodeLayout& from = layout.nodes[wait.from];
      add_next_wait(x + from.x + from.width, y + from.centers[0] + from.height / 2 + 7, "end",
                    fmt::format("e{}↷", wait.event), wait.text);
      if (wait.to == DrawnNextWait::kTurn) continue;
      const NodeLayout& to = layout.nodes[wait.to];
      add_next_wait(x + to.x, y + to.centers[0] + to.height / 2 + 7, "start",
                    fmt::format("↷e{}", wait.event), wait.text);
    }
  }
  void add_next_wait(double x, double y, const char* anchor, const std::string& label,
                     const std::string& title) {
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#22c\" font-size=\"7\" "
        "text-anchor=\"{}\">{}<title>{}</title></text>\n",
        x, y, anchor, label, xml_text(title));
  }

  void add_event(double x, double y, const char* anchor, const std::string& text,
                 const std::string& title) {
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#c22\" font-size=\"7\" "
        "text-anchor=\"{}\">{}<title>{}</title></text>\n",
        x, y, anchor, text, xml_text(title));
  }

  std::string text_;
  const DrawnMeetings& meetings_;
  std::map<std::string, std::vector<std::pair<double, double>>> places_;  // by what nodes do
};

}  // namespace

std::string plan_svg(const DrawnRegion& root, const std::string& title,
                     const DrawnMeetings& meetings) {
  return SvgWriter(meetings).write(root, lay_out_plan(root, kPageWidth), title);
}

}  // namespace eddy
