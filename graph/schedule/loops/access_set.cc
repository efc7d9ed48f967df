#include "graph/schedule/loops/access_set.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"

namespace eddy {

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  if (a.size() > b.size()) return meet(b, a);
  return std::any_of(a.begin(), a.end(), [&](uint32_t id) { return b.contains(id); });
}

AccessCollector::AccessCollector(const Graph& graph, const Schedule& plan)
    : graph_(graph), plan_(plan), block_(graph.num_values(), kNoBlock) {
  EDDY_DCHECK(plan.memory.values.size() == graph.num_values()) << "memory is not laid out";
  std::map<std::tuple<uint32_t, uint64_t, NodeId, std::vector<uint64_t>>, uint32_t> first;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueMemory* memory = plan.memory.block_or_null(ValueId(v));
    if (memory == nullptr) continue;
    const auto key =
        std::tuple(memory->arena, memory->size_bytes, memory->loop, memory->offsets_bytes);
    block_[v] = first.try_emplace(key, v).first->second;
  }
}

void AccessCollector::read(ValueId value, AccessSet& touched, bool is_taken) const {
  if (value.is_none()) return;
  read_bytes(value, touched);
  if (is_taken) return;
  touched.reads.insert(value.index());
  touched.reads.insert(resolve_forwarded(graph_, value).index());
}
void AccessCollector::read_bytes(ValueId value, AccessSet& touched) const {
  const uint32_t block = block_[value.index()];
  if (block != kNoBlock) touched.block_reads.insert(block);
}
void AccessCollector::define(ValueId value, AccessSet& touched) const {
  touched.defines.insert(resolve_forwarded(graph_, value).index());
}
void AccessCollector::write_bytes(ValueId value, AccessSet& touched) const {
  const uint32_t block = block_[value.index()];
  if (block != kNoBlock) touched.block_writes.insert(block);
}
void AccessCollector::copy(ValueId to, ValueId from, Program::Moment moment, NodeId loop,
                           AccessSet& touched) const {
  const ValueMemory* const place = plan_.memory.block_or_null(to);
  if (place == nullptr) return;
  const ValueMemory* const source = plan_.memory.block_or_null(from);
  if (source != nullptr && has_same_place(*place, *source, moment, loop)) return;
  read_bytes(from, touched);
  write_bytes(to, touched);
}

void AccessCollector::node(NodeId id, AccessSet& touched, const std::set<ValueId>& taken) const {
  const Node& node = graph_.node(id);
  // A loop's initial values are handed on: only a reader inside the loop touches their bytes.
  const size_t num_read = node.kind == NodeKind::kWhile ? 1 : node.inputs.size();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (i < num_read || value.is_none()) {
      read(value, touched, taken.contains(value));
    } else {
      hand_on(value, touched);
    }
  }
  for (const ValueId value : node.outputs) define(value, touched);
  copies(id, touched);
  for (const RegionId region : node.regions) this->region(region, touched);
}
// Where an exec node writes, and what a loop or case copies.
void AccessCollector::copies(NodeId id, AccessSet& touched) const {
  const Node& node = graph_.node(id);
  if (node.kind == NodeKind::kExec) {
    for (const ValueId value : node.outputs) {
      if (viewed(graph_, value).is_none()) write_bytes(value, touched);
    }
    return;
  }
  for (const ValueId output : node.outputs) {
    for (const AliasSource& source : alias_sources(graph_, output)) {
      copy(output, source.value, Program::Moment::kWithin, id, touched);
    }
  }
  if (node.kind != NodeKind::kWhile) return;
  advance(id, touched);
  const LoopView loop(graph_, node);
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    copy(loop.carried()[k], loop.initial()[k], Program::Moment::kEnter, id, touched);
  }
}
void AccessCollector::advance(NodeId id, AccessSet& touched) const {
  const LoopView loop(graph_, id);
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    copy(loop.carried()[k], loop.next()[k], Program::Moment::kAdvance, id, touched);
  }
}
void AccessCollector::region(RegionId id, AccessSet& touched) const {
  const Region& region = graph_.region(id);
  const RegionSchedule& plan = plan_.regions[id.index()];
  for (uint32_t s = 0; s < plan.num_streams; ++s) touched.streams.insert(plan.machine_stream(s));
  // Forwarding moves nothing: a forwarded parameter is a further name, maybe of a value around.
  for (const ValueId value : region.parameters) touched.defines.insert(value.index());
  for (const NodeId node : region.nodes) this->node(node, touched);
  for (size_t k = 0; k < region.results.size(); ++k) {
    if (is_result_read(id, k)) {
      read(region.results[k], touched);
    } else {
      hand_on(region.results[k], touched);
    }
  }
}

// A loop reads the predicate, and rows. Every other result of a region is handed on.
bool AccessCollector::is_result_read(RegionId region, size_t index) const {
  switch (role(graph_, region)) {
    case RegionRole::kRoot:
      return true;
    case RegionRole::kBefore:
      return index == 0;
    case RegionRole::kAfter:
      return index >= LoopView(graph_, graph_.region(region).owner).num_carried();
    case RegionRole::kBranch:
      return false;
  }
  return false;
}

void AccessCollector::hand_on(ValueId value, AccessSet& touched) const {
  touched.reads.insert({value.index(), resolve_forwarded(graph_, value).index()});
}

bool AccessCollector::blocks_meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b,
                                  NodeId loop) const {
  for (const uint32_t x : a) {
    for (const uint32_t y : b) {
      if (blocks_meet(*plan_.memory.block_or_null(ValueId(x)),
                      *plan_.memory.block_or_null(ValueId(y)), loop)) {
        return true;
      }
    }
  }
  return false;
}

bool AccessCollector::blocks_meet(const ValueMemory& a, const ValueMemory& b, NodeId loop) {
  if (a.arena != b.arena) return false;
  const bool are_in_step = !loop.is_none() && a.loop == loop && b.loop == loop;
  for (size_t i = 0; i < a.offsets_bytes.size(); ++i) {
    for (size_t j = 0; j < b.offsets_bytes.size(); ++j) {
      if (are_in_step && i == j) continue;  // one iteration apart
      const uint64_t x = a.offsets_bytes[i];
      const uint64_t y = b.offsets_bytes[j];
      if (x < y + b.size_bytes && y < x + a.size_bytes) return true;
    }
  }
  return false;
}

}  // namespace eddy
