#include "tools/check/step_digests.h"

#include <algorithm>
#include <utility>

#include "runtime/execute/run_state.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

uint64_t digest_slot(const Slot& slot) {
  if (slot.kind == ValueKind::kNone) return digest(Tensor());
  if (slot.kind == ValueKind::kTensor) return digest(slot.view);
  std::vector<Tensor> elements;
  for (const SequenceElement* element : slot.elements.in_order()) {
    elements.push_back(Tensor::borrow(element->view()));
  }
  return digest(Tensor::sequence(slot.sequence_element, std::move(elements)));
}

// Leaves them in `numbers`, outermost first.
void find_iterations_around(RunState& state, NodeId node, std::vector<int64_t>& numbers) {
  const Graph& graph = state.graph();
  numbers.clear();
  for (RegionId at = graph.node(node).region; !graph.region(at).owner.is_none();) {
    const NodeId owner = graph.region(at).owner;
    if (graph.node(owner).kind == NodeKind::kWhile) {
      numbers.push_back(state.iteration(owner, node));
    }
    node = owner;
    at = graph.node(owner).region;
  }
  std::reverse(numbers.begin(), numbers.end());
}

// Equal for equal executions in whatever order; for others by a chance in 2^64.
uint64_t sum_of(const std::vector<NodeExecution>& executions) {
  uint64_t sum = 0;
  for (const NodeExecution& execution : executions) {
    uint64_t one = mix(execution.node.index(), execution.digest);
    for (int64_t iteration : execution.iterations) one = mix(one, static_cast<uint64_t>(iteration));
    sum += one;
  }
  return sum;
}

bool is_earlier_step(const NodeExecution* a, const NodeExecution* b) {
  return a->node != b->node ? a->node < b->node : a->iterations < b->iterations;
}

std::vector<const NodeExecution*> sorted(const std::vector<NodeExecution>& executions) {
  std::vector<const NodeExecution*> order;
  for (const NodeExecution& execution : executions) order.push_back(&execution);
  std::sort(order.begin(), order.end(), is_earlier_step);
  return order;
}

}  // namespace

Status StepDigests::before(RunState& state, const ::eddy::Step& step) {
  if (step.kind != StepKind::kTest) return Status::ok();
  std::lock_guard lock(mutex_);
  find_iterations_around(state, step.node, scratch_);
  scratch_.push_back(state.loop(step.node).iteration());
  Iterations here(std::span<const int64_t>{scratch_});
  const auto [last, is_first] = tested_.try_emplace(step.node, here);
  if (!is_first && std::exchange(last->second, here) == here) {
    tested_twice_ = state.iteration_path(step.node);
  }
  return Status::ok();
}

void StepDigests::after(RunState& state, const ::eddy::Step& step, int32_t decision) {
  if (step.kind != StepKind::kExec || decision != 1) return;
  const std::vector<ValueId>& outputs = state.graph().node(step.node).outputs;
  uint64_t digest = outputs.size();  // as combine_digests
  for (ValueId output : outputs) digest = mix(digest, digest_slot(state.slot(output)));
  std::lock_guard lock(mutex_);
  find_iterations_around(state, step.node, scratch_);
  executions_.push_back({step.node, Iterations(std::span<const int64_t>{scratch_}), digest});
}

void StepDigests::clear() {
  std::lock_guard lock(mutex_);
  executions_.clear();
  tested_.clear();
  tested_twice_.clear();
}

std::string StepDigests::difference(const Graph& graph, const OracleResult& expected) const {
  const bool is_same = executions_.size() == expected.executions.size() &&
                       sum_of(executions_) == sum_of(expected.executions);
  if (is_same) return tested_twice_.empty() ? "" : tested_twice_ + " was tested twice";
  const auto found = sorted(executions_);
  const auto should = sorted(expected.executions);
  const auto name = [&](const NodeExecution& step) {
    return execution_path(graph, step.node, step.iterations.span());
  };
  const NodeExecution* wrong = nullptr;  // the first in the oracle's order
  const char* how = "";
  const auto note = [&](const NodeExecution* step, const char* text) {
    if (wrong != nullptr && wrong < step) return;
    wrong = step;
    how = text;
  };
  std::string extra;
  auto f = found.begin();
  for (const NodeExecution* step : should) {
    for (; f != found.end() && is_earlier_step(*f, step); ++f) {
      if (extra.empty()) extra = name(**f);
    }
    if (f == found.end() || is_earlier_step(step, *f)) {
      note(step, " did not run");
    } else if ((*f++)->digest != step->digest) {
      note(step, " made another value than it should");
    }
  }
  if (wrong != nullptr) return name(*wrong) + how;
  if (extra.empty() && f != found.end()) extra = name(**f);
  return extra.empty() ? std::string() : extra + " ran though it should not have";
}

}  // namespace eddy::check
