#include "graph/compile/plan_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {
namespace {

std::string counted(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void append_region(const DrawnRegion& region, int depth, std::string& text);

bool contains(const std::vector<uint32_t>& nodes, uint32_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// What a node waits for and records, in words.
std::string sync_text(const DrawnRegion& region, uint32_t node, const std::vector<uint32_t>& waits,
                      uint32_t recorded) {
  std::string text = contains(region.entry_waits, node) ? "  waits for the entry" : "";
  for (const uint32_t i : waits) {
    const DrawnWait& wait = region.waits[i];
    text += fmt::format("{} e{} of {}", text.empty() ? "  waits for" : ",", wait.event,
                        one_line(region.nodes[wait.from].name));
  }
  if (recorded != UINT32_MAX) text += fmt::format("  records e{}", recorded);
  if (contains(region.exit_waits, node)) text += "  the exit waits for it";
  return text;
}

void append_nodes(const DrawnRegion& region, int depth, std::string& text) {
  std::vector<std::vector<uint32_t>> waits(region.nodes.size());
  std::vector<uint32_t> recorded(region.nodes.size(), UINT32_MAX);
  for (uint32_t i = 0; i < region.waits.size(); ++i) {
    EDDY_CHECK(region.waits[i].to < waits.size() && region.waits[i].from < waits.size())
        << region.name << " has no node " << region.waits[i].to;
    waits[region.waits[i].to].push_back(i);
    recorded[region.waits[i].from] = region.waits[i].event;
  }
  size_t stream_width = 1;
  size_t device_width = 0;
  size_t rank_width = 1;
  for (const DrawnNode& node : region.nodes) {
    stream_width = std::max(stream_width, fmt::format("{}", fmt::join(node.streams, "+")).size());
    device_width = std::max(device_width, device_text(node).size());
    rank_width = std::max(rank_width, node.rank.size());
  }
  for (uint32_t i = 0; i < region.nodes.size(); ++i) {
    const DrawnNode& node = region.nodes[i];
    const std::string device =
        device_width == 0 ? "" : fmt::format(" {:<{}}", device_text(node), device_width);
    text += fmt::format("{:{}}stream {:<{}}{}  rank {:>{}}  {} {}{}{}\n", "", 2 * depth,
                        fmt::format("{}", fmt::join(node.streams, "+")), stream_width, device,
                        node.rank, rank_width, one_line(node.kind), one_line(node.name),
                        sync_text(region, i, waits[i], recorded[i]),
                        node.note.empty() ? "" : "  (" + node.note + ")");
    for (const DrawnRegion& inner : node.regions) append_region(inner, depth + 1, text);
  }
}

void append_region(const DrawnRegion& region, int depth, std::string& text) {
  std::string where;  // of the waits that are between no two nodes of one run of the region
  const auto add_count = [&where](size_t count, const char* place) {
    if (count > 0) where += fmt::format("{}{} {}", where.empty() ? "" : ", ", count, place);
  };
  add_count(region.entry_waits.size(), "at the entry");
  add_count(region.exit_waits.size(), "at the exit");
  if (!where.empty()) where = " (" + where + ")";
  if (!region.next_waits.empty()) {
    where += fmt::format(" and {} between iterations", region.next_waits.size());
  }
  text += fmt::format("{:{}}{}: {} on {}, {}, {}{}{}\n", "", 2 * depth,
                      region.name.empty() ? "region" : one_line(region.name),
                      counted(region.nodes.size(), "node"), counted(region.num_streams, "stream"),
                      counted(region.num_records, "record"), counted(region.num_waits(), "wait"),
                      where, region.note.empty() ? "" : "; " + region.note);
  append_nodes(region, depth + 1, text);
  for (const DrawnNextWait& wait : region.next_waits) {
    text += fmt::format("{:{}}{}\n", "", 2 * depth + 2, wait.text);
  }
}

}  // namespace

std::string plan_text(const DrawnRegion& root) {
  std::string text;
  append_region(root, 0, text);
  return text;
}

}  // namespace eddy
