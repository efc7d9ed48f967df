#include "graph/schedule/nested_commands.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/schedule/frame_waits.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;

std::vector<uint32_t> names(std::span<const ValueId> values) {
  std::vector<uint32_t> result;
  for (const ValueId value : values) {
    if (!value.is_none()) result.push_back(value.index());
  }
  return result;
}

bool is_fixed(const Graph& graph, std::span<const ValueId> values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) {
    if (value.is_none()) return true;
    const ValueType& type = graph.value(value).type;
    return type.is_tensor() && type.tensor.is_static();
  });
}

class Writer {
 public:
  Writer(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {}

  NestedCommands run() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) add_name(ValueId(v));
    find_takes();
    for (const MemoryArena& arena : plan_.memory.arenas) {
      result_.arena_sizes_bytes.push_back(arena.size_bytes);
    }
    result_.results = names(graph_.outputs());
    for (uint32_t s = 0; s < plan_.stream_devices.size(); ++s) {
      if (plan_.stream_devices[s] != 0) result_.early_streams.push_back(s);
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      result_.regions.push_back(region(r));
    }
    return std::move(result_);
  }

 private:
  void add_name(ValueId id) {
    result_.region_of_name.push_back(graph_.value(id).region.index());
    NestedMemory& memory = result_.memory.emplace_back();
    const ValueMemory* block = plan_.memory.block_or_null(id);
    if (block == nullptr) return;
    memory = {block->arena, block->size_bytes, block->offsets_bytes, names(block->holders)};
  }

  // Names for what is taken, and who reads them.
  void find_takes() {
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      const RegionPlan& plan = plan_.regions[r];
      if (!plan.open) continue;
      for (const OpenEnd::Take& take : plan.open->takes) {
        for (const ValueId value : take.values) {
          const auto name = static_cast<uint32_t>(result_.memory.size());
          result_.region_of_name.push_back(r);
          result_.memory.emplace_back();
          name_of_take_[{r, take.stream, value.index()}] = name;
        }
      }
    }
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t taken_name(uint32_t region, uint32_t stream, ValueId value) const {
    const auto found = name_of_take_.find({region, stream, value.index()});
    return found == name_of_take_.end() ? kNone : found->second;
  }

  // What a stream takes before the node.
  void take(uint32_t r, NodeId before, std::vector<NestedCommand>& commands) {
    const RegionPlan& plan = plan_.regions[r];
    if (!plan.open) return;
    for (const OpenEnd::Take& take : plan.open->takes) {
      if (take.before != before) continue;
      const uint32_t stream = take.stream;
      NestedLaunch launch;
      launch.node = graph_.region(RegionId(r)).owner.index();
      for (const ValueId value : take.values) {
        launch.passes.push_back({taken_name(r, stream, value), value.index()});
      }
      result_.launches.push_back(std::move(launch));
      const auto id = static_cast<uint32_t>(result_.launches.size()) - 1;
      commands.push_back({Kind::kLaunch, plan.machine_stream(stream), id});
      if (take.event == OpenEnd::kNoEvent) continue;
      commands.push_back({Kind::kRecord, plan.machine_stream(stream), take.event});
    }
  }

  NestedRegion region(uint32_t r) {
    const RegionPlan& plan = plan_.regions[r];
    NestedRegion region;
    const auto stream = [&plan](uint32_t s) { return plan.streams.empty() ? s : plan.streams[s]; };
    // Events: the plan's, then the entry, then the end of each further stream.
    const uint32_t entry = plan.num_events;
    region.num_events = plan.num_events + plan.num_streams;
    region.first_machine_event = plan.first_event;
    region.num_machine_events = plan.num_machine_events();
    auto& commands = region.commands;
    commands.push_back({Kind::kEnter, stream(0), 0});
    wait_for_previous(plan, NodeId(), commands);
    const FrameWaits frame = frame_waits(plan);
    if (!frame.entry.empty()) commands.push_back({Kind::kRecord, stream(0), entry});
    for (const auto& wait : frame.entry) {
      commands.push_back({Kind::kWait, stream(wait.stream), entry});
    }
    for (const PlanCommand& command : plan.commands) {
      switch (command.kind) {
        case PlanCommand::Kind::kLaunch:
          wait_for_previous(plan, command.node, commands);
          take(r, command.node, commands);
          commands.push_back(node(command.node, stream(command.stream)));
          if (commands.back().kind == Kind::kLaunch && plan.open) {
            rename(r, command.stream, result_.launches[commands.back().id]);
          }
          break;
        case PlanCommand::Kind::kRecord:
          commands.push_back({Kind::kRecord, stream(command.stream), command.event});
          break;
        case PlanCommand::Kind::kWait:
          commands.push_back({Kind::kWait, stream(command.stream), command.event});
          break;
      }
    }
    for (uint32_t e : plan.open ? plan.open->end_waits : std::vector<uint32_t>()) {
      commands.push_back({Kind::kWait, stream(0), e});
    }
    for (const auto& wait : frame.exit) {
      commands.push_back({Kind::kRecord, stream(wait.stream), entry + wait.stream});
      commands.push_back({Kind::kWait, stream(0), entry + wait.stream});
    }
    commands.push_back({Kind::kExit, stream(0), 0});
    return region;
  }

  static void wait_for_previous(const RegionPlan& plan, NodeId before,
                                std::vector<NestedCommand>& commands) {
    if (!plan.open) return;
    for (const OpenEnd::PreviousWait& wait : plan.open->previous_waits) {
      if (wait.before != before) continue;
      commands.push_back({Kind::kWaitPrevious, plan.machine_stream(0), wait.event});
    }
  }

  // Reads by the stream's own references.
  void rename(uint32_t region, uint32_t stream, NestedLaunch& launch) const {
    const auto own = [&](uint32_t& name) {
      const uint32_t taken = taken_name(region, stream, ValueId(name));
      if (taken != kNone) name = taken;
    };
    for (uint32_t& name : launch.reads) own(name);
    for (uint32_t& name : launch.kept) own(name);
    for (NestedPass& pass : launch.passes) own(pass.from);
  }

  NestedCommand node(NodeId id, uint32_t stream) {
    const Node& node = graph_.node(id);
    switch (node.kind) {
      case NodeKind::kExec:
        return exec(id, node, stream);
      case NodeKind::kWhile:
        return loop(id, node, stream);
      case NodeKind::kCaseOf:
        return branch(id, node, stream);
    }
    return {};
  }

  NestedCommand exec(NodeId id, const Node& node, uint32_t stream) {
    NestedLaunch launch;
    launch.node = id.index();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].is_none()) continue;
      if (i < 64 && (node.op->in_place_inputs >> i & 1) != 0 && launch.reads.size() < 64) {
        launch.overwritable |= uint64_t{1} << launch.reads.size();
      }
      launch.reads.push_back(node.inputs[i].index());
    }
    const bool is_view = node.op->is_view && !node.inputs.empty() && !node.inputs[0].is_none();
    if (is_view) launch.passes.push_back({node.outputs[0].index(), node.inputs[0].index()});
    for (size_t k = is_view ? 1 : 0; k < node.outputs.size(); ++k) {
      launch.writes.push_back(node.outputs[k].index());
    }
    const bool may_grow = node.op->may_append && !node.inputs.empty() &&
                          !(is_fixed(graph_, node.inputs) && is_fixed(graph_, node.outputs));
    if (node.op->is_value_op) launch.kept = launch.reads;
    if (may_grow && !node.inputs[0].is_none()) launch.kept = {node.inputs[0].index()};
    result_.launches.push_back(std::move(launch));
    return {Kind::kLaunch, stream, static_cast<uint32_t>(result_.launches.size()) - 1};
  }

  NestedCommand loop(NodeId id, const Node& node, uint32_t stream) {
    const Region& before = graph_.region(node.regions[0]);
    const Region& after = graph_.region(node.regions[1]);
    NestedLoop loop;
    loop.node = id.index();
    loop.before = node.regions[0].index();
    loop.after = node.regions[1].index();
    if (!node.inputs[0].is_none()) loop.reads.push_back(node.inputs[0].index());
    loop.tested.push_back(before.results[0].index());
    loop.is_open = plan_.regions[loop.after].open.has_value();
    const size_t num_carried = before.parameters.size() - 1;
    for (size_t k = 0; k < num_carried; ++k) {
      const uint32_t parameter = before.parameters[k + 1].index();
      loop.enter.push_back({parameter, node.inputs[k + 1].index()});
      loop.advance.push_back({parameter, after.results[k].index()});
    }
    for (size_t k = 1; k < before.results.size(); ++k) {
      loop.forward.push_back({after.parameters[k].index(), before.results[k].index()});
      loop.leave.push_back({node.outputs[k - 1].index(), before.results[k].index()});
    }
    for (size_t k = num_carried; k < after.results.size(); ++k) {
      loop.rows.push_back(after.results[k].index());
    }
    for (size_t k = before.results.size() - 1; k < node.outputs.size(); ++k) {
      loop.stacks.push_back(node.outputs[k].index());
    }
    result_.loops.push_back(std::move(loop));
    return {Kind::kLoop, stream, static_cast<uint32_t>(result_.loops.size()) - 1};
  }

  NestedCommand branch(NodeId id, const Node& node, uint32_t stream) {
    NestedCase branch;
    branch.node = id.index();
    branch.reads.push_back(node.inputs[0].index());
    for (const RegionId region : node.regions) {
      branch.regions.push_back(region.index());
      auto& results = branch.results.emplace_back();
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        results.push_back({node.outputs[k].index(), graph_.region(region).results[k].index()});
      }
    }
    branch.may_run_none = node.inputs.size() > 1;
    for (size_t k = 0; branch.may_run_none && k < node.outputs.size(); ++k) {
      branch.pass_through.push_back({node.outputs[k].index(), node.inputs[k + 1].index()});
    }
    result_.cases.push_back(std::move(branch));
    return {Kind::kCase, stream, static_cast<uint32_t>(result_.cases.size()) - 1};
  }

  const Graph& graph_;
  const Plan& plan_;
  std::map<std::array<uint32_t, 3>, uint32_t> name_of_take_;  // by region, its stream, value
  NestedCommands result_;
};

}  // namespace

std::vector<ValueId> taken_names(const Plan& plan) {
  std::vector<ValueId> values;
  for (const RegionPlan& region : plan.regions) {
    if (!region.open) continue;
    for (const OpenEnd::Take& take : region.open->takes) {
      values.insert(values.end(), take.values.begin(), take.values.end());
    }
  }
  return values;
}

NestedCommands nested_commands(const Graph& graph, const Plan& plan) {
  return Writer(graph, plan).run();
}

}  // namespace eddy
