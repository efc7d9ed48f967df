#include "tools/command/plan_memory_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "graph/schedule/plan/value_text.h"
#include "tools/command/counted.h"

namespace eddy {
namespace {

struct Totals {
  uint64_t constant_bytes = 0;
  uint64_t fixed_bytes = 0;  // of values of known shape, none sharing memory
  uint64_t num_fixed = 0;
  uint64_t num_dynamic = 0;  // values with a shape known when they are made
};

Totals add_up(const Graph& graph) {
  Totals totals;
  for (uint32_t i = 0; i < graph.num_constants(); ++i) {
    totals.constant_bytes += graph.constant(ConstantId(i)).view().size_bytes();
  }
  for (uint32_t i = 0; i < graph.num_values(); ++i) {
    const ValueInfo& value = graph.value(ValueId(i));
    if (value.origin == ValueOrigin::kConstant) continue;
    const std::optional<int64_t> count = value.type.is_tensor() && value.type.tensor.is_ranked
                                             ? value.type.tensor.dims.count()
                                             : std::nullopt;
    if (!count) {
      ++totals.num_dynamic;
      continue;
    }
    ++totals.num_fixed;
    totals.fixed_bytes +=
        static_cast<uint64_t>(*count) * element_size_bytes(value.type.tensor.element);
  }
  return totals;
}

bool is_outside(const ValueMemory& value) {
  return value.reason == NoBlock::kConstant || value.reason == NoBlock::kGraphInput ||
         value.reason == NoBlock::kLoopCounter;
}

// The input that the value is written over; none: no input's block.
ValueId overwritten(const Graph& graph, const MemoryPlan& memory, ValueId id) {
  const ValueInfo& value = graph.value(id);
  const ValueMemory* const own = memory.block_or_null(id);
  if (own == nullptr || value.origin != ValueOrigin::kNodeOutput || value.index != 0) return {};
  const Node& maker = graph.node(value.producer);
  if (maker.kind != NodeKind::kExec) return {};
  for (size_t i = 0; i < std::min<size_t>(maker.inputs.size(), 64); ++i) {
    const ValueId input = maker.inputs[i];
    if (input.is_none() || (maker.op->in_place_inputs >> i & 1) == 0) continue;
    // It is read while the value is written, so nothing else would stand there.
    const ValueMemory* const block = memory.block_or_null(input);
    if (block == nullptr || block->arena != own->arena) continue;
    if (block->offsets_bytes == own->offsets_bytes) return input;
  }
  return {};
}

constexpr size_t kLineWidth = 100;

// Text about values, in order of regions: the line's beginning and end, and the values: on one line
// where they fit, else one below the other.
class Groups {
 public:
  explicit Groups(const Graph& graph) : graph_(graph) {}

  void add(ValueId value, const std::string& what, const std::string& why, std::string text) {
    groups_[{graph_.value(value).region, what, why}].push_back(std::move(text));
  }
  void append_to(std::vector<std::string>& lines) const {
    for (const auto& [key, texts] : groups_) {
      const auto& [region, what, why] = key;
      const std::string head = what + " in " + region_text(graph_, region);
      const std::string each = why.empty() ? "" : "each " + why;
      const std::string line =
          fmt::format("{}: {}{}{}", head, fmt::join(texts, ", "), each.empty() ? "" : "; ", each);
      if (texts.size() == 1 || line.size() <= kLineWidth) {
        lines.push_back(line);
        continue;
      }
      lines.push_back(fmt::format("{}{}{}:", head, each.empty() ? "" : ", ", each));
      for (const std::string& text : texts) lines.push_back("  " + text);
    }
  }

 private:
  const Graph& graph_;
  std::map<std::tuple<RegionId, std::string, std::string>, std::vector<std::string>> groups_;
};

Json arena_json(const MemoryArena& arena) {
  return {{"device", arena.device},
          {"size_bytes", arena.size_bytes},
          {"lower_bound_bytes", arena.lower_bound_bytes},
          {"blocks", arena.num_blocks}};
}

Json value_json(const Graph& graph, const MemoryPlan& memory, ValueId id) {
  EDDY_CHECK(id.index() < memory.values.size() && id.index() < graph.num_values())
      << "value " << id.index() << " was not planned";
  const ValueMemory& value = memory.values[id.index()];
  Json json = {{"value", value_text(graph, id)},
               {"region", region_text(graph, graph.value(id).region)}};
  switch (value.place) {
    case MemoryPlace::kShared:
      json["shares"] = true;
      break;
    case MemoryPlace::kNone:
      json["no_block"] = reason_text(value.reason);
      break;
    case MemoryPlace::kBlock: {
      EDDY_CHECK(value.arena < memory.arenas.size()) << "arena " << value.arena;
      json["arena"] = value.arena;
      json["size_bytes"] = value.size_bytes;
      json["offsets_bytes"] = value.offsets_bytes;
      const ValueId under = overwritten(graph, memory, id);
      if (!under.is_none()) json["in_place_of"] = value_text(graph, under);
      break;
    }
  }
  return json;
}

}  // namespace

std::vector<std::string> memory_lines(const Graph& graph, const Plan& plan) {
  std::vector<std::string> lines;
  const MemoryPlan& memory = plan.memory;
  for (const MemoryArena& arena : memory.arenas) {
    const double ratio =
        arena.lower_bound_bytes == 0
            ? 1
            : static_cast<double>(arena.size_bytes) / static_cast<double>(arena.lower_bound_bytes);
    lines.push_back(fmt::format(
        "arena{}{}: peak {} for {}; lower bound {}, ratio {:.3f}",
        arena.device.empty() ? "" : " of ", arena.device, counted(arena.size_bytes, "byte"),
        counted(arena.num_blocks, "block"), counted(arena.lower_bound_bytes, "byte"), ratio));
  }
  Groups groups(graph);
  for (uint32_t v = 0; v < memory.values.size(); ++v) {
    const ValueMemory& value = memory.values[v];
    const ValueId id(v);
    const std::string text = value_text(graph, id);
    if (is_outside(value)) continue;
    if (value.place == MemoryPlace::kShared) {
      groups.add(id, "passed on", "", text);
    } else if (value.place == MemoryPlace::kBlock) {
      const ValueId under = overwritten(graph, memory, id);
      if (!under.is_none())
        groups.add(id, "in place", "", text + " over " + value_text(graph, under));
    } else if (value.reason == NoBlock::kChangingShape) {
      groups.add(id, "pooled", std::string(reason_text(value.reason)), text);
    } else {
      groups.add(id, "no block", std::string(reason_text(value.reason)), text);
    }
  }
  groups.append_to(lines);
  return lines;
}

Json memory_json(const Graph& graph, const Plan& plan) {
  const Totals totals = add_up(graph);
  Json arenas = Json::array();
  for (const MemoryArena& arena : plan.memory.arenas) arenas.push_back(arena_json(arena));
  Json values = Json::array();
  for (uint32_t v = 0; v < plan.memory.values.size(); ++v) {
    if (!is_outside(plan.memory.values[v])) {
      values.push_back(value_json(graph, plan.memory, ValueId(v)));
    }
  }
  return {{"constant_bytes", totals.constant_bytes},
          {"fixed_bytes", totals.fixed_bytes},
          {"fixed_values", totals.num_fixed},
          {"dynamic_values", totals.num_dynamic},
          {"arenas", std::move(arenas)},
          {"values", std::move(values)}};
}

std::string memory_totals(const Graph& graph) {
  const Totals totals = add_up(graph);
  return fmt::format("memory: constants {}; {} of known shape {}; {} of changing shape",
                     counted(totals.constant_bytes, "byte"), counted(totals.num_fixed, "value"),
                     counted(totals.fixed_bytes, "byte"), counted(totals.num_dynamic, "value"));
}

}  // namespace eddy
