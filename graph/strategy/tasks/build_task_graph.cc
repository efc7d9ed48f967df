#include "graph/strategy/tasks/build_task_graph.h"

#include "graph/base/check.h"

namespace eddy {
namespace {

struct ArraySink {
  std::vector<TaskSpec<double>>& specs;
  std::vector<Edge>& edges;
  std::vector<TaskLabel>* labels_or_null;

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel& label) {
    const auto slot = static_cast<uint32_t>(specs.size());
    specs.push_back(spec);
    if (labels_or_null != nullptr) labels_or_null->push_back(label);
    return slot;
  }
  void dep(uint32_t from, uint32_t to) { edges.push_back({from, to}); }
  void local_dep(uint32_t from, uint32_t to, const TaskLabel&) { dep(from, to); }
  void transfer(const TaskSpec<double>& spec, const TaskLabel& label, uint32_t from, uint32_t to) {
    const uint32_t slot = task(spec, label);
    dep(from, slot);
    dep(slot, to);
  }
  void ring_hop(const WeightSlice& slice, size_t h, uint32_t hop,
                const std::vector<PartSlots>& slots) {
    for (const size_t end : {h, (h + 1) % slice.shards.size()}) {
      for (const PartOfOperator& part : slice.shards[end].parts) {
        dep(slots[part.op].backward[part.part], hop);
      }
    }
  }
};

}  // namespace

template <typename Sink>
Status TaskGraphBuilder::emit_all(const Strategy& strategy, Sink& sink) {
  EDDY_CHECK(strategy.size() == graph_.operators.size())
      << strategy.size() << " configurations for " << graph_.operators.size() << " operators";
  emitter_.clear_status();
  for (uint32_t op = 0; op < strategy.size(); ++op) {
    emitter_.emit_parts(op, strategy[op], sink);
    for (size_t input = 0; input < graph_.operators[op].inputs.size(); ++input) {
      emitter_.emit_input(op, input, strategy, sink);
    }
  }
  for (uint32_t group = 0; group < emitter_.weight_groups().size(); ++group) {
    emitter_.emit_sync(group, strategy, sink);
  }
  return emitter_.status();
}

Status TaskGraphBuilder::build(const Strategy& strategy, TaskGraph<double>& tasks) {
  specs_.clear();
  edges_.clear();
  ArraySink sink{specs_, edges_, nullptr};
  EDDY_RETURN_IF_ERROR(emit_all(strategy, sink));
  tasks.assign(specs_, edges_);
  return Status::ok();
}

Status TaskGraphBuilder::build(const Strategy& strategy, TaskGraph<double>& tasks,
                               std::vector<TaskLabel>& labels) {
  specs_.clear();
  edges_.clear();
  labels.clear();
  ArraySink sink{specs_, edges_, &labels};
  EDDY_RETURN_IF_ERROR(emit_all(strategy, sink));
  tasks.assign(specs_, edges_);
  return Status::ok();
}

}  // namespace eddy
