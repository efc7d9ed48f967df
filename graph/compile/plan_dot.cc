#include "graph/compile/plan_dot.h"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr const char* kColours[] = {"#cfe3f7", "#fde2c4", "#d5efcf", "#f6d0d0",
                                    "#e4d6f2", "#f2ecc0", "#cdeeee", "#e5e5e5"};

std::string dot_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

class DotWriter {
 public:
  std::string write(const DrawnRegion& root) {
    text_ =
        "digraph plan {\n  compound=true; rankdir=LR;\n"
        "  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10];\n";
    add_region(root, "n");
    return text_ + "}\n";
  }

 private:
  void add_region(const DrawnRegion& region, const std::string& prefix) {
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      add_node(region.nodes[i], fmt::format("{}_{}", prefix, i));
    }
    const size_t num_nodes = region.nodes.size();
    for (const auto& [from, to] : region.edges) {
      EDDY_CHECK(from < num_nodes && to < num_nodes) << "an edge from " << from << " to " << to;
    }
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> events;
    for (const DrawnWait& wait : region.waits) events[{wait.from, wait.to}] = wait.event;
    for (const auto& edge : region.edges) {
      const auto found = events.find(edge);
      add_edge(prefix, edge,
               found == events.end()
                   ? ""
                   : fmt::format(" [color=red, fontcolor=red, label=\"e{}\"]", found->second));
      if (found != events.end()) events.erase(found);
    }
    for (const auto& [edge, event] : events) {
      add_edge(prefix, edge,
               fmt::format(" [color=red, style=dashed, fontcolor=red, label=\"e{}\"]", event));
    }
    add_boundary_waits(region, prefix);
    add_next_waits(region, prefix);
  }

  void add_boundary_waits(const DrawnRegion& region, const std::string& prefix) {
    const auto add = [&](const char* place, const std::vector<uint32_t>& nodes, bool is_from) {
      if (nodes.empty()) return;
      text_ +=
          fmt::format("  {0}_{1} [label=\"{1}\", shape=plaintext, style=\"\"];\n", prefix, place);
      for (const uint32_t node : nodes) {
        const std::string other = std::to_string(node);
        text_ += fmt::format("  {0}_{1} -> {0}_{2} [color=red, style=dashed];\n", prefix,
                             is_from ? place : other, is_from ? other : place);
      }
    };
    add("entry", region.entry_waits, true);
    add("exit", region.exit_waits, false);
  }

  void add_next_waits(const DrawnRegion& region, const std::string& prefix) {
    if (region.next_waits.empty()) return;
    text_ +=
        fmt::format("  {}_next [label=\"next iteration\", shape=plaintext, style=\"\"];\n", prefix);
    for (const DrawnNextWait& wait : region.next_waits) {
      const bool is_turn = wait.to == DrawnNextWait::kTurn;
      text_ += fmt::format(
          "  {0}_{1} -> {0}_{2} [color=blue, style=dashed, fontcolor=blue, label=\"e{3}\", "
          "tooltip={4}, constraint=false];\n",
          prefix, wait.from, is_turn ? "next" : std::to_string(wait.to), wait.event,
          dot_string(wait.text));
    }
  }

  void add_node(const DrawnNode& node, const std::string& id) {
    EDDY_CHECK(!node.streams.empty()) << node.name << " is on no stream";
    text_ += fmt::format(
        "  {} [label={}, fillcolor=\"{}\"];\n", id,
        dot_string(fmt::format(
            "{} {}{} s{}{}", node.kind, node.name, node.note.empty() ? "" : " (" + node.note + ")",
            fmt::join(node.streams, "+"), node.devices.empty() ? "" : " on " + device_text(node))),
        kColours[node.streams[0] % std::size(kColours)]);
    for (size_t r = 0; r < node.regions.size(); ++r) {
      const std::string inner = fmt::format("{}_r{}", id, r);
      text_ += fmt::format("  subgraph cluster_{} {{\n  label={};\n", inner,
                           dot_string(node.name + " / " + node.regions[r].name));
      add_region(node.regions[r], inner);
      text_ += "  }\n";
      if (!node.regions[r].nodes.empty()) {
        text_ += fmt::format("  {} -> {}_0 [lhead=cluster_{}, style=dotted];\n", id, inner, inner);
      }
    }
  }

  void add_edge(const std::string& prefix, const std::pair<uint32_t, uint32_t>& edge,
                const std::string& style) {
    text_ += fmt::format("  {0}_{1} -> {0}_{2}{3};\n", prefix, edge.first, edge.second, style);
  }

  std::string text_;
};

}  // namespace

std::string plan_dot(const DrawnRegion& root) { return DotWriter().write(root); }

}  // namespace eddy
