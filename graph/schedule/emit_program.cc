#include "graph/schedule/emit_program.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/base/check.h"
#include "graph/schedule/boundary_waits.h"

namespace eddy {
namespace {

using Op = Program::Op;

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

class Emitter {
 public:
  Emitter(const Graph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {}

  Program run() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) add_name(ValueId(v));
    name_retained();
    for (const MemoryArena& arena : schedule_.memory.arenas) {
      result_.arena_sizes_bytes.push_back(arena.size_bytes);
    }
    result_.results = names(graph_.outputs());
    for (uint32_t s = 0; s < schedule_.stream_devices.size(); ++s) {
      if (schedule_.stream_devices[s] != 0) result_.asynchronous_streams.push_back(s);
    }
    result_.blocks.resize(graph_.num_regions());
    emit_block(0, Op::kEnd, 0);
    number_turns();
    EDDY_CHECK(result_.memory.size() == result_.block_of_name.size()) << "each name has a block";
    EDDY_DCHECK(std::ranges::none_of(result_.blocks, [](const auto& b) { return b.steps.empty(); }))
        << "a region has no step";
    return std::move(result_);
  }

 private:
  void add_name(ValueId id) {
    result_.block_of_name.push_back(graph_.value(id).region.index());
    Program::Memory& memory = result_.memory.emplace_back();
    const ValueMemory* block = schedule_.memory.block_or_null(id);
    if (block == nullptr) return;
    memory = {block->arena, block->size_bytes, block->offsets_bytes};
  }
  // Loops have their numbers once they are emitted.
  void number_turns() {
    std::map<uint32_t, uint32_t> numbers;  // by node
    for (uint32_t l = 0; l < result_.loops.size(); ++l) numbers[result_.loops[l].node] = l;
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueMemory* const block = schedule_.memory.block_or_null(ValueId(v));
      if (block == nullptr || block->loop.is_none()) continue;
      EDDY_DCHECK(block->offsets_bytes.size() == 2) << "value " << v << " alternates in one place";
      result_.memory[v].loop = numbers.at(block->loop.index());
    }
    for (const auto& [where, name] : retained_) result_.memory[name] = result_.memory[where[2]];
  }

  // Names for what streams retain.
  void name_retained() {
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      const RegionSchedule& region = schedule_.regions[r];
      for (const Program::Step& step : region.steps) {
        if (step.op != Op::kRetain) continue;
        EDDY_DCHECK(step.operand < region.retained.size()) << "retain " << step.operand;
        for (const ValueId value : region.retained[step.operand]) {
          const auto name = static_cast<uint32_t>(result_.memory.size());
          result_.block_of_name.push_back(r);
          result_.memory.emplace_back();
          retained_[{r, step.stream, value.index()}] = name;
        }
      }
    }
  }

  uint32_t retained_name(uint32_t region, uint32_t stream, ValueId value) const {
    const auto found = retained_.find({region, stream, value.index()});
    return found == retained_.end() ? Program::kNone : found->second;
  }

  // The block of a region and all in it; `end` and `operand`: its last step.
  void emit_block(uint32_t r, Op end, uint32_t operand) {
    const RegionSchedule& region = schedule_.regions[r];
    EDDY_DCHECK(result_.blocks[r].steps.empty()) << "region " << r << " is emitted twice";
    Program::Block block;
    for (uint32_t s = 0; s < region.num_streams; ++s) {
      block.streams.push_back(region.machine_stream(s));
    }
    // Events: the schedule's, then the entry, then the end of each further stream.
    const uint32_t entry = region.num_events;
    block.num_events = region.num_events + region.num_streams;
    block.first_machine_event = region.first_event;
    block.num_machine_events = region.num_machine_events();
    const auto add = [&](Op op, uint32_t stream, uint32_t its_operand) {
      block.steps.push_back({op, block.streams[stream], its_operand});
    };
    add(Op::kBegin, 0, 0);
    size_t next = 0;
    for (; is_first_wait(region, next); ++next) {
      add(Op::kWaitPrevious, 0, region.steps[next].operand);
    }
    const BoundaryWaits frame = boundary_waits(region);
    if (!frame.entry.empty()) add(Op::kRecord, 0, entry);
    for (const uint32_t stream : frame.entry) add(Op::kWait, stream, entry);
    for (; next < region.steps.size(); ++next) {
      const Program::Step& step = region.steps[next];
      if (step.op == Op::kRetain) {
        retain(r, step, block);
      } else if (step.op == Op::kLaunch) {
        emit_node(r, step, operand, block);
      } else {
        add(step.op, step.stream, step.operand);
      }
    }
    for (const uint32_t stream : frame.exit) {
      add(Op::kRecord, stream, entry + stream);
      add(Op::kWait, 0, entry + stream);
    }
    if (end == Op::kAdvance) push_rows_left(operand, region, block);
    add(end, 0, operand);
    result_.blocks[r] = std::move(block);
  }

  // Waits for the iteration before that hold up further streams, too, stand in front.
  static bool is_first_wait(const RegionSchedule& region, size_t at) {
    return at < region.held_up.size() && region.steps[at].op == Op::kWaitPrevious;
  }

  // A node, and behind it the rows that it makes. `owner`: the loop whose `after` it is in.
  void emit_node(uint32_t r, const Program::Step& step, uint32_t owner, Program::Block& block) {
    const RegionSchedule& region = schedule_.regions[r];
    const uint32_t stream = block.streams[step.stream];
    const NodeId id(step.operand);
    const Node& node = graph_.node(id);
    switch (node.kind) {
      case NodeKind::kExec:
        block.steps.push_back(exec(id, node, stream));
        if (region.is_pipelined) read_retained(r, step.stream, result_.launches.back());
        break;
      case NodeKind::kWhile:
        block.steps.push_back(loop(id, node, stream));
        break;
      case NodeKind::kCaseOf:
        block.steps.push_back(branch(id, node, stream));
        break;
    }
    if (!region.is_pipelined) return;
    EDDY_DCHECK(owner < result_.loops.size()) << "region " << r << " is in no loop";
    for (uint32_t k = 0; k < result_.loops[owner].rows.size(); ++k) {
      const ValueInfo& row = graph_.value(ValueId(result_.loops[owner].rows[k]));
      const bool is_its = row.origin == ValueOrigin::kNodeOutput && row.producer == id;
      if (is_its) push_row(owner, k, stream, block);
    }
  }

  void push_row(uint32_t loop, uint32_t k, uint32_t stream, Program::Block& block) {
    block.steps.push_back({Op::kPushRow, stream, static_cast<uint32_t>(result_.rows.size())});
    result_.rows.push_back({loop, k});
  }
  // Rows that no step of a pipelined `after` makes, and all rows of other loops.
  void push_rows_left(uint32_t loop, const RegionSchedule& region, Program::Block& block) {
    const uint32_t after = result_.loops[loop].after;
    for (uint32_t k = 0; k < result_.loops[loop].rows.size(); ++k) {
      const ValueInfo& row = graph_.value(ValueId(result_.loops[loop].rows[k]));
      const bool is_made_here =
          row.origin == ValueOrigin::kNodeOutput && row.region.index() == after;
      if (!region.is_pipelined || !is_made_here) push_row(loop, k, block.streams[0], block);
    }
  }

  void retain(uint32_t r, const Program::Step& step, Program::Block& block) {
    Program::Launch launch;
    launch.node = graph_.region(RegionId(r)).owner.index();
    for (const ValueId value : schedule_.regions[r].retained[step.operand]) {
      launch.aliases.push_back({retained_name(r, step.stream, value), value.index()});
      EDDY_CHECK(launch.aliases.back().to != Program::kNone)
          << "value " << value.index() << " is retained without a name";
    }
    block.steps.push_back(
        {Op::kRetain, block.streams[step.stream], static_cast<uint32_t>(result_.launches.size())});
    result_.launches.push_back(std::move(launch));
  }

  // The launch reads by its stream's own references.
  void read_retained(uint32_t region, uint32_t stream, Program::Launch& launch) const {
    const auto own = [&](uint32_t& name) {
      const uint32_t retained = retained_name(region, stream, ValueId(name));
      if (retained != Program::kNone) name = retained;
    };
    for (uint32_t& name : launch.reads) own(name);
    for (uint32_t& name : launch.escapes) own(name);
    for (Program::Alias& alias : launch.aliases) own(alias.from);
  }

  Program::Step exec(NodeId id, const Node& node, uint32_t stream) {
    Program::Launch launch;
    launch.node = id.index();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].is_none()) continue;
      if (i < 64 && (node.op->in_place_inputs >> i & 1) != 0 && launch.reads.size() < 64) {
        launch.overwritable |= uint64_t{1} << launch.reads.size();
      }
      launch.reads.push_back(node.inputs[i].index());
    }
    const bool is_view = node.op->is_view && !node.inputs.empty() && !node.inputs[0].is_none();
    if (is_view) launch.aliases.push_back({node.outputs[0].index(), node.inputs[0].index()});
    for (size_t k = is_view ? 1 : 0; k < node.outputs.size(); ++k) {
      launch.writes.push_back(node.outputs[k].index());
    }
    const bool may_grow = node.op->may_append && !node.inputs.empty() &&
                          !(is_fixed(graph_, node.inputs) && is_fixed(graph_, node.outputs));
    if (node.op->is_value_op) launch.escapes = launch.reads;
    if (may_grow && !node.inputs[0].is_none()) launch.escapes = {node.inputs[0].index()};
    result_.launches.push_back(std::move(launch));
    return {Op::kLaunch, stream, static_cast<uint32_t>(result_.launches.size()) - 1};
  }

  Program::Step loop(NodeId id, const Node& node, uint32_t stream) {
    const Region& before = graph_.region(node.regions[0]);
    const Region& after = graph_.region(node.regions[1]);
    Program::Loop loop;
    loop.node = id.index();
    loop.before = node.regions[0].index();
    loop.after = node.regions[1].index();
    if (!node.inputs[0].is_none()) loop.reads.push_back(node.inputs[0].index());
    loop.tested.push_back(before.results[0].index());
    loop.is_pipelined = schedule_.regions[loop.after].is_pipelined;
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
    const auto number = static_cast<uint32_t>(result_.loops.size());
    EDDY_CHECK(loop.rows.size() == loop.stacks.size()) << node.name << " stacks other rows";
    const uint32_t blocks[] = {loop.before, loop.after};
    result_.loops.push_back(std::move(loop));
    emit_block(blocks[0], Op::kTest, number);
    emit_block(blocks[1], Op::kAdvance, number);
    return {Op::kLoop, stream, number};
  }

  Program::Step branch(NodeId id, const Node& node, uint32_t stream) {
    Program::Case branch;
    branch.node = id.index();
    branch.reads.push_back(node.inputs[0].index());
    for (const RegionId region : node.regions) {
      branch.blocks.push_back(region.index());
      auto& results = branch.results.emplace_back();
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        results.push_back({node.outputs[k].index(), graph_.region(region).results[k].index()});
      }
    }
    branch.may_run_none = node.inputs.size() > 1;
    for (size_t k = 0; branch.may_run_none && k < node.outputs.size(); ++k) {
      branch.pass_through.push_back({node.outputs[k].index(), node.inputs[k + 1].index()});
    }
    const auto number = static_cast<uint32_t>(result_.cases.size());
    result_.cases.push_back(std::move(branch));
    for (const RegionId region : node.regions) emit_block(region.index(), Op::kEnd, number);
    return {Op::kCase, stream, number};
  }

  const Graph& graph_;
  const Schedule& schedule_;
  std::map<std::array<uint32_t, 3>, uint32_t> retained_;  // by region, its stream, value
  Program result_;
};

}  // namespace

Program emit_program(const Graph& graph, const Schedule& schedule) {
  EDDY_CHECK(schedule.regions.size() == graph.num_regions()) << "the schedule of another graph";
  return Emitter(graph, schedule).run();
}

}  // namespace eddy
