#include "graph/simulate/load_meter.h"

#include <algorithm>
#include <utility>

namespace eddy {
namespace {

constexpr double kRounding = 1e-6;
// Additions and subtractions after which the loads are added up anew.
constexpr uint32_t kMaxKept = 1000;

}  // namespace

struct LoadMeter::Sink {
  std::vector<double>& sums;
  BlockLoads& loads;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel&) {
    if (spec.exe_time == 0) return 0;
    if (sums[spec.device] == 0) loads.push_back({spec.device});
    sums[spec.device] += spec.exe_time;
    return 0;
  }
  void dep(uint32_t, uint32_t) {}
  void tie(uint32_t, uint32_t) {}
};

LoadMeter::LoadMeter(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph),
      emitter_(graph, topology),
      readers_(graph.operators.size()),
      load_(topology.num_simulated()),
      sums_(topology.num_simulated()) {
  uint32_t num_blocks = 0;
  for (uint32_t op = 0; op < graph.operators.size(); ++op) {
    first_block_.push_back(num_blocks);
    const auto num_inputs = static_cast<uint32_t>(graph.operators[op].inputs.size());
    num_blocks += num_inputs + 1;
    for (uint32_t input = 0; input < num_inputs; ++input) {
      readers_[graph.operators[op].inputs[input].producer].push_back({Kind::kInput, op, input});
    }
  }
  first_block_.push_back(num_blocks);
  block_loads_.resize(num_blocks + emitter_.weight_groups().size());
  is_found_.resize(block_loads_.size());
}

uint32_t LoadMeter::index_of(const Block& block) const {
  switch (block.kind) {
    case Kind::kParts:
      return first_block_[block.op + 1] - 1;
    case Kind::kRings:
      return first_block_.back() + block.op;
    case Kind::kInput:
      return first_block_[block.op] + block.input;
  }
  EDDY_CHECK(false) << "no such kind of block";
}

// Adds what the block puts on each device to tried_.
void LoadMeter::emit(const Block& block, BlockLoads& loads) {
  loads.clear();
  Sink sink{sums_, loads};
  switch (block.kind) {
    case Kind::kParts:
      emitter_.emit_parts(block.op, strategy_[block.op], sink);
      break;
    case Kind::kRings:
      emitter_.emit_sync(block.op, strategy_, sink);
      break;
    case Kind::kInput:
      emitter_.emit_input(block.op, block.input, strategy_, sink);
      break;
  }
  for (Load& load : loads) {
    load.time = std::exchange(sums_[load.device], 0);
    tried_[load.device] += load.time;
    peak_ = std::max(peak_, tried_[load.device]);
  }
}

void LoadMeter::reset(const Strategy& strategy) {
  strategy_ = strategy;
  num_kept_ = 0;
  emitter_.clear_status();
  tried_.assign(load_.size(), 0);
  const auto emit_block = [this](const Block& block) {
    emit(block, block_loads_[index_of(block)]);
  };
  for (uint32_t op = 0; op < strategy_.size(); ++op) {
    emit_block({Kind::kParts, op});
    for (uint32_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      emit_block({Kind::kInput, op, input});
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    emit_block({Kind::kRings, group});
  }
  load_ = tried_;
}

// Those that change, each once; the parts first, since the others read where they are.
void LoadMeter::find_blocks(const std::vector<uint32_t>& ops) {
  blocks_.clear();
  const auto find = [this](const Block& block) {
    const uint32_t index = index_of(block);
    if (!is_found_[index]) blocks_.push_back(block);
    is_found_[index] = true;
  };
  for (const uint32_t op : ops) find({Kind::kParts, op});
  for (const uint32_t op : ops) {
    const Operator& changed = graph_.operators[op];
    if (changed.weight_elements > 0) find({Kind::kRings, changed.weight_group});
  }
  for (const uint32_t op : ops) {
    const auto num_inputs = static_cast<uint32_t>(graph_.operators[op].inputs.size());
    for (uint32_t input = 0; input < num_inputs; ++input) find({Kind::kInput, op, input});
    for (const Block& reader : readers_[op]) find(reader);
  }
  for (const Block& block : blocks_) is_found_[index_of(block)] = false;
}

// False as soon as the bound is above.
bool LoadMeter::emit_blocks(double threshold) {
  if (new_loads_.size() < blocks_.size()) new_loads_.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size() && emitter_.status().is_ok(); ++i) {
    if (peak_ * (1 - kRounding) > threshold) return false;
    emit(blocks_[i], new_loads_[i]);
  }
  return true;
}

// Brings in the changed configurations, or takes them out again.
void LoadMeter::swap_changed() {
  for (size_t i = 0; i < ops_.size(); ++i) {
    std::swap(strategy_[ops_[i]], other_configs_[i]);
    std::swap(emitter_.slots()[ops_[i]], other_slots_[i]);
  }
}

double LoadMeter::try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config,
                             double threshold) {
  ops_ = ops;
  other_configs_.assign(ops.size(), config);
  other_slots_.resize(ops.size());
  find_blocks(ops);
  tried_ = load_;
  for (const Block& block : blocks_) {
    for (const Load& load : block_loads_[index_of(block)]) tried_[load.device] -= load.time;
  }
  peak_ = *std::max_element(tried_.begin(), tried_.end());
  swap_changed();
  const bool is_complete = emit_blocks(threshold);
  swap_changed();
  if (is_complete && !emitter_.status().is_ok()) {
    emitter_.clear_status();
    return 0;
  }
  return peak_ * (1 - kRounding);
}

void LoadMeter::keep() {
  swap_changed();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    block_loads_[index_of(blocks_[i])].swap(new_loads_[i]);
  }
  load_.swap(tried_);
  if (++num_kept_ == kMaxKept) reset(Strategy(strategy_));
}

}  // namespace eddy
