#include "graph/simulate/strategy_simulation.h"

namespace eddy {

struct StrategySimulation::FirstSink {
  std::vector<TaskSpec<double>>& specs;
  std::vector<Edge>& edges;
  std::vector<TaskLabel>* labels_or_null;
  Block& block;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel& label) {
    const auto slot = static_cast<uint32_t>(specs.size());
    specs.push_back(spec);
    block.tasks.push_back(slot);
    if (labels_or_null != nullptr) labels_or_null->push_back(label);
    return slot;
  }
  void dep(uint32_t from, uint32_t to) { edges.push_back({from, to}); }
  void tie(uint32_t from, uint32_t to) {
    edges.push_back({from, to});
    block.ties.push_back({from, to});
  }
};

struct StrategySimulation::DeltaSink {
  DeltaSimulation<double>& delta;
  std::vector<TaskLabel>* labels_or_null;
  Block& block;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel& label) {
    const uint32_t slot = delta.add_task(spec);
    block.tasks.push_back(slot);
    if (labels_or_null != nullptr) {
      if (slot >= labels_or_null->size()) labels_or_null->resize(slot + 1);
      (*labels_or_null)[slot] = label;
    }
    return slot;
  }
  void dep(uint32_t from, uint32_t to) { delta.add_dep(from, to); }
  void tie(uint32_t from, uint32_t to) {
    delta.add_dep(from, to);
    block.ties.push_back({from, to});
  }
};

StrategySimulation::StrategySimulation(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph), emitter_(graph, topology), readers_(graph.operators.size()) {
  uint32_t num_blocks = 0;
  for (uint32_t op = 0; op < graph.operators.size(); ++op) {
    first_block_.push_back(num_blocks);
    const auto num_inputs = static_cast<uint32_t>(graph.operators[op].inputs.size());
    num_blocks += num_inputs + 1;
    for (uint32_t input = 0; input < num_inputs; ++input) {
      if (!emitter_.is_distinct_input(op, input)) continue;
      readers_[graph.operators[op].inputs[input].producer].push_back({op, input});
    }
  }
  first_group_ = num_blocks;
  blocks_.resize(num_blocks + emitter_.weight_groups().size());
  is_found_.resize(blocks_.size());
}

Status StrategySimulation::reset(Strategy strategy) {
  forget();
  strategy_ = std::move(strategy);
  emitter_.clear_status();
  std::vector<TaskSpec<double>> specs;
  std::vector<Edge> edges;
  labels_.clear();
  const auto sink_of = [&](uint32_t block) {
    blocks_[block] = {};
    return FirstSink{specs, edges, keeps_labels_ ? &labels_ : nullptr, blocks_[block]};
  };
  for (uint32_t op = 0; op < strategy_.size(); ++op) {
    FirstSink parts = sink_of(parts_block(op));
    emitter_.emit_parts(op, strategy_[op], parts);
    for (uint32_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      FirstSink transfers = sink_of(input_block({op, input}));
      emitter_.emit_input(op, input, strategy_, transfers);
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    FirstSink rings = sink_of(first_group_ + group);
    emitter_.emit_sync(group, strategy_, rings);
  }
  EDDY_RETURN_IF_ERROR(emitter_.status());
  TaskGraph<double> tasks;
  tasks.assign(specs, edges);
  if (!delta_.reset(std::move(tasks)).is_done()) {
    return invalid_argument("the times of the operators add up to more than a number holds");
  }
  return Status::ok();
}

// The block's tasks go, the last one first, since lists look for it from their ends.
void StrategySimulation::clear(uint32_t block) {
  saved_blocks_.emplace_back(block, std::exchange(blocks_[block], {}));
  const Block& old = saved_blocks_.back().second;
  for (size_t i = old.ties.size(); i-- > 0;) delta_.remove_dep(old.ties[i].from, old.ties[i].to);
  for (size_t i = old.tasks.size(); i-- > 0;) delta_.remove_task(old.tasks[i]);
}

void StrategySimulation::fill_input(const Input& input) {
  DeltaSink sink{delta_, keeps_labels_ ? &labels_ : nullptr, blocks_[input_block(input)]};
  emitter_.emit_input(input.op, input.input, strategy_, sink);
}

void StrategySimulation::replace_parts(uint32_t op) {
  clear(parts_block(op));
  DeltaSink sink{delta_, keeps_labels_ ? &labels_ : nullptr, blocks_[parts_block(op)]};
  emitter_.emit_parts(op, strategy_[op], sink);
}

// As many parts as before: they keep their slots and ranks.
void StrategySimulation::update_parts(uint32_t op) {
  const OperatorConfig& config = strategy_[op];
  auto work = emitter_.costs().work(op, config);
  if (!work.is_ok()) return emitter_.fail(work.take_status());
  const PartSlots& slots = emitter_.slots()[op];
  for (uint32_t part = 0; part < config.devices.size(); ++part) {
    const double time = emitter_.costs().time(*work, config.devices[part]);
    delta_.set_exe_time(slots.forward[part], time);
    delta_.set_device(slots.forward[part], config.devices[part]);
    if (!graph_.is_training) continue;
    delta_.set_exe_time(slots.backward[part], time * work->backward_factor);
    delta_.set_device(slots.backward[part], config.devices[part]);
  }
}

// Inputs that read the operators or are read by them, and the rings of their weights, each once.
void StrategySimulation::find_blocks(std::span<const uint32_t> ops) {
  inputs_.clear();
  groups_.clear();
  const auto find_input = [this](const Input& input) {
    if (!is_found_[input_block(input)]) inputs_.push_back(input);
    is_found_[input_block(input)] = true;
  };
  for (const uint32_t op : ops) {
    const Operator& changed = graph_.operators[op];
    for (uint32_t input = 0; input < changed.inputs.size(); ++input) find_input({op, input});
    for (const Input& reader : readers_[op]) find_input(reader);
    if (changed.weight_elements == 0 || !graph_.is_training) continue;
    if (!is_found_[first_group_ + changed.weight_group]) groups_.push_back(changed.weight_group);
    is_found_[first_group_ + changed.weight_group] = true;
  }
  for (const Input& input : inputs_) is_found_[input_block(input)] = false;
  for (const uint32_t group : groups_) is_found_[first_group_ + group] = false;
}

void StrategySimulation::change_parts(uint32_t op, const OperatorConfig& config) {
  const bool keeps_parts = config.reduce == 1 && strategy_[op].reduce == 1 &&
                           config.devices.size() == strategy_[op].devices.size();
  saved_slots_.emplace_back(op, emitter_.slots()[op]);
  saved_configs_.emplace_back(op, std::exchange(strategy_[op], config));
  if (keeps_parts) {
    update_parts(op);
  } else {
    replace_parts(op);
  }
}

void StrategySimulation::change(std::span<const uint32_t> ops, const OperatorConfig& config) {
  find_blocks(ops);
  for (const uint32_t group : groups_) clear(first_group_ + group);
  for (const Input& input : inputs_) clear(input_block(input));
  for (const uint32_t op : ops) change_parts(op, config);
  for (const Input& input : inputs_) fill_input(input);
  for (const uint32_t group : groups_) {
    DeltaSink sink{delta_, keeps_labels_ ? &labels_ : nullptr, blocks_[first_group_ + group]};
    emitter_.emit_sync(group, strategy_, sink);
  }
}

Result<SimulationEnd> StrategySimulation::simulate(double threshold) {
  EDDY_RETURN_IF_ERROR(emitter_.status());
  const SimulationResult result = delta_.simulate({.threshold = threshold});
  if (result.end == SimulationEnd::kDone || result.end == SimulationEnd::kExceeds) {
    return result.end;
  }
  return invalid_argument("the times of the operators add up to more than a number holds");
}

void StrategySimulation::commit() {
  delta_.commit();
  forget();
}

void StrategySimulation::rollback() {
  delta_.rollback();
  for (size_t i = saved_blocks_.size(); i-- > 0;) {
    blocks_[saved_blocks_[i].first] = std::move(saved_blocks_[i].second);
  }
  for (size_t i = saved_slots_.size(); i-- > 0;) {
    emitter_.slots()[saved_slots_[i].first] = std::move(saved_slots_[i].second);
  }
  for (size_t i = saved_configs_.size(); i-- > 0;) {
    strategy_[saved_configs_[i].first] = std::move(saved_configs_[i].second);
  }
  emitter_.clear_status();
  forget();
}

void StrategySimulation::forget() {
  saved_blocks_.clear();
  saved_slots_.clear();
  saved_configs_.clear();
}

}  // namespace eddy
