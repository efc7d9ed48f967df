#include "graph/simulate/load_meter.h"

#include <algorithm>
#include <utility>

namespace eddy {
namespace {

constexpr double kRounding = 1e-6;
// Additions and subtractions after which the loads are added up anew.
constexpr uint32_t kMaxKept = 1000;

void insert_once(std::vector<uint32_t>& numbers, uint32_t number) {
  if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
    numbers.push_back(number);
  }
}

}  // namespace

struct LoadMeter::Sink {
  std::vector<double>& load;
  double sign;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel&) {
    load[spec.device] += sign * spec.exe_time;
    return 0;
  }
  void dep(uint32_t, uint32_t) {}
  void tie(uint32_t, uint32_t) {}
};

LoadMeter::LoadMeter(const OperatorGraph& graph, const Topology& topology)
    : graph_(graph),
      emitter_(graph, topology),
      readers_(graph.operators.size()),
      load_(topology.num_simulated()) {
  for (uint32_t op = 0; op < graph.operators.size(); ++op) {
    for (const OperatorInput& input : graph.operators[op].inputs) {
      insert_once(readers_[input.producer], op);
    }
  }
}

void LoadMeter::reset(const Strategy& strategy) {
  strategy_ = strategy;
  num_kept_ = 0;
  emitter_.clear_status();
  std::fill(load_.begin(), load_.end(), 0);
  Sink sink{load_, 1};
  for (uint32_t op = 0; op < strategy_.size(); ++op) {
    emitter_.emit_parts(op, strategy_[op], sink);
    for (size_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      emitter_.emit_input(op, input, strategy_, sink);
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    emitter_.emit_sync(group, strategy_, sink);
  }
}

void LoadMeter::add_blocks(double sign) {
  Sink sink{tried_, sign};
  for (const uint32_t op : ops_) emitter_.emit_parts(op, strategy_[op], sink);
  for (const uint32_t op : touched_) {
    const std::vector<OperatorInput>& inputs = graph_.operators[op].inputs;
    const bool is_changed = std::find(ops_.begin(), ops_.end(), op) != ops_.end();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_changed || std::find(ops_.begin(), ops_.end(), inputs[i].producer) != ops_.end()) {
        emitter_.emit_input(op, i, strategy_, sink);
      }
    }
  }
  for (const uint32_t group : groups_) emitter_.emit_sync(group, strategy_, sink);
}

double LoadMeter::try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config) {
  ops_ = ops;
  config_ = config;
  touched_.clear();
  groups_.clear();
  for (const uint32_t op : ops) {
    insert_once(touched_, op);
    for (const uint32_t reader : readers_[op]) insert_once(touched_, reader);
    if (graph_.operators[op].weight_elements > 0) {
      insert_once(groups_, graph_.operators[op].weight_group);
    }
  }
  tried_ = load_;
  add_blocks(-1);
  std::vector<OperatorConfig> old;
  for (const uint32_t op : ops) old.push_back(std::exchange(strategy_[op], config));
  add_blocks(1);
  for (size_t i = 0; i < ops.size(); ++i) strategy_[ops[i]] = std::move(old[i]);
  if (!emitter_.status().is_ok()) {
    emitter_.clear_status();
    return 0;
  }
  return *std::max_element(tried_.begin(), tried_.end()) * (1 - kRounding);
}

void LoadMeter::keep() {
  for (const uint32_t op : ops_) strategy_[op] = config_;
  load_.swap(tried_);
  if (++num_kept_ == kMaxKept) reset(Strategy(strategy_));
}

}  // namespace eddy
