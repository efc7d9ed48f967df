#include "graph/schedule/storages.h"

#include <algorithm>

namespace eddy {
namespace {

constexpr size_t kMaxNames = 64;

bool is_fixed_tensor(const ValueType& type) { return type.is_tensor() && type.tensor.is_static(); }

// Why a value that an exec node writes can't have a block, as far as its type tells.
NoBlock reason_of_type(const ValueType& type, uint64_t& size_bytes) {
  if (!type.is_tensor()) return NoBlock::kNotATensor;
  if (type.tensor.element == ElementType::kString) return NoBlock::kStrings;
  if (!type.tensor.is_static()) return NoBlock::kChangingShape;
  const std::optional<int64_t> count = type.tensor.dims.count();
  if (!count ||
      __builtin_mul_overflow(static_cast<uint64_t>(*count), element_size_bytes(type.tensor.element),
                             &size_bytes) ||
      size_bytes > (uint64_t{1} << 48)) {
    return NoBlock::kChangingShape;  // fails when it is made
  }
  return size_bytes == 0 ? NoBlock::kEmpty : NoBlock::kHasBlock;
}

class Finder {
 public:
  Finder(const Graph& graph, const RegionTree& tree)
      : graph_(graph), tree_(tree), lost_(graph.num_values()) {
    result_.names_of.resize(graph.num_values());
    result_.of_value.resize(graph.num_values());
    result_.values.resize(graph.num_values());
  }

  Storages run() {
    make_storages();
    connect_names();
    follow_names();
    give_up();
    find_homes();
    add_accesses();
    return std::move(result_);
  }

 private:
  void refuse(ValueId value, NoBlock reason) { result_.values[value.index()].reason = reason; }
  void share(ValueId value) { result_.values[value.index()].place = MemoryPlace::kShared; }

  void make_storages() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueId id(v);
      const ValueInfo& info = graph_.value(id);
      switch (info.origin) {
        case ValueOrigin::kConstant:
          refuse(id, NoBlock::kConstant);
          break;
        case ValueOrigin::kParameter:
          if (graph_.region(info.region).owner.is_none()) {
            refuse(id, NoBlock::kGraphInput);
          } else if (info.index == 0) {
            refuse(id, NoBlock::kLoopCounter);
          } else {
            share(id);
          }
          break;
        case ValueOrigin::kNodeOutput:
          make_output(id, info);
          break;
      }
    }
  }

  void make_output(ValueId id, const ValueInfo& info) {
    const Node& node = graph_.node(info.producer);
    if (node.kind == NodeKind::kWhile &&
        info.index + node.num_scan_outputs >= node.outputs.size()) {
      return refuse(id, NoBlock::kScanRows);
    }
    if (node.kind != NodeKind::kExec) return share(id);
    if (node.op->is_value_op) return refuse(id, NoBlock::kMadeByKernel);
    if (node.op->is_view && info.index == 0) return share(id);
    Storage storage;
    storage.value = id;
    storage.reason = reason_of_type(info.type, storage.size_bytes);
    result_.values[id.index()].size_bytes = storage.size_bytes;
    if (storage.reason != NoBlock::kHasBlock) return refuse(id, storage.reason);
    result_.values[id.index()].place = MemoryPlace::kBlock;
    result_.of_value[id.index()] = {static_cast<uint32_t>(result_.all.size())};
    result_.all.push_back(std::move(storage));
  }

  // `to` may be the memory of `from`.
  void name(ValueId from, ValueId to) { result_.names_of[from.index()].push_back(to); }

  void connect_names() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind == NodeKind::kWhile) {
        connect_loop(node);
      } else if (node.kind == NodeKind::kCaseOf) {
        for (size_t k = 0; k < node.outputs.size(); ++k) {
          for (const RegionId r : node.regions) name(graph_.region(r).results[k], node.outputs[k]);
          if (node.inputs.size() > 1) name(node.inputs[k + 1], node.outputs[k]);
        }
      } else if (node.op->is_view && !node.inputs.empty() && !node.inputs[0].is_none()) {
        name(node.inputs[0], node.outputs[0]);
      }
    }
  }

  void connect_loop(const Node& node) {
    const Region& before = graph_.region(node.regions[0]);
    const Region& after = graph_.region(node.regions[1]);
    for (size_t k = 1; k < before.parameters.size(); ++k) {
      name(node.inputs[k], before.parameters[k]);
      name(after.results[k - 1], before.parameters[k]);
    }
    for (size_t k = 1; k < before.results.size(); ++k) {
      name(before.results[k], after.parameters[k]);
      name(before.results[k], node.outputs[k - 1]);
    }
  }

  void follow_names() {
    std::vector<ValueId> changed;
    std::vector<bool> is_waiting(graph_.num_values(), false);
    const auto visit_later = [&](ValueId value) {
      if (is_waiting[value.index()]) return;
      is_waiting[value.index()] = true;
      changed.push_back(value);
    };
    for (const Storage& storage : result_.all) visit_later(storage.value);
    for (size_t i = 0; i < changed.size(); ++i) {
      const ValueId from = changed[i];
      is_waiting[from.index()] = false;
      for (const ValueId to : result_.names_of[from.index()]) {
        if (pass_on(from, to)) visit_later(to);
      }
    }
  }

  // True when `to` has learnt something.
  bool pass_on(ValueId from, ValueId to) {
    if (lost_[to.index()]) return false;
    std::vector<uint32_t>& known = result_.of_value[to.index()];
    std::vector<uint32_t> merged;
    const auto& more = result_.of_value[from.index()];
    std::set_union(known.begin(), known.end(), more.begin(), more.end(),
                   std::back_inserter(merged));
    const bool is_lost = lost_[from.index()] || merged.size() > kMaxNames;
    if (merged.size() == known.size() && !is_lost) return false;
    if (is_lost) {
      // All that comes here, now or later, is given up.
      lost_[to.index()] = true;
      merged.clear();
    }
    known = std::move(merged);
    return true;
  }

  void give_up(ValueId value, NoBlock reason) {
    if (value.is_none()) return;
    for (const uint32_t s : result_.of_value[value.index()]) {
      Storage& storage = result_.all[s];
      if (storage.reason == NoBlock::kHasBlock) storage.reason = reason;
    }
  }

  void give_up() {
    for (const ValueId value : graph_.outputs()) give_up(value, NoBlock::kLeavesGraph);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      if (node.op->is_value_op) {
        for (const ValueId value : node.inputs) give_up(value, NoBlock::kKeptByReader);
      } else if (node.op->may_append && !node.inputs.empty() && !is_fixed(node)) {
        give_up(node.inputs[0], NoBlock::kKeptByReader);
      }
    }
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      for (const ValueId to : result_.names_of[v]) {
        if (lost_[to.index()]) give_up(ValueId(v), NoBlock::kManyHolders);
      }
    }
  }

  bool is_fixed(const Node& node) const {
    const auto is_open = [&](ValueId value) {
      return !value.is_none() && !is_fixed_tensor(graph_.value(value).type);
    };
    return std::none_of(node.inputs.begin(), node.inputs.end(), is_open) &&
           std::none_of(node.outputs.begin(), node.outputs.end(), is_open);
  }

  const Node& writer(const Storage& storage) const {
    return graph_.node(graph_.value(storage.value).producer);
  }

  void find_homes() {
    for (Storage& storage : result_.all) storage.home = writer(storage).region;
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      for (const uint32_t s : result_.of_value[v]) extend_home(result_.all[s], ValueId(v));
    }
    for (Storage& storage : result_.all) {
      if (storage.reason == NoBlock::kHasBlock && storage.holders.size() > kMaxHolders) {
        storage.reason = NoBlock::kManyHolders;
      }
      if (storage.reason == NoBlock::kHasBlock) continue;
      refuse(storage.value, storage.reason);
      result_.values[storage.value.index()].place = MemoryPlace::kNone;
    }
  }

  void extend_home(Storage& storage, ValueId name) {
    const ValueInfo& info = graph_.value(name);
    storage.home = tree_.common(storage.home, info.region);
    if (info.origin != ValueOrigin::kParameter) return;
    const NodeId owner = graph_.region(info.region).owner;
    const Node& loop = graph_.node(owner);
    const bool is_carried = loop.kind == NodeKind::kWhile && info.region == loop.regions[0];
    const RegionId inside = writer(storage).region;
    const bool is_around =
        tree_.is_within(inside, loop.regions[0]) || tree_.is_within(inside, loop.regions[1]);
    if (!is_carried || !is_around) return;
    storage.is_carried = true;
    storage.holders.push_back(name);
    storage.home = tree_.common(storage.home, loop.region);
  }

  void touch(ValueId value, const Access& access) {
    if (value.is_none()) return;
    for (const uint32_t s : result_.of_value[value.index()]) {
      if (result_.all[s].reason == NoBlock::kHasBlock) result_.all[s].accesses.push_back(access);
    }
  }

  void add_accesses() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      for (const ValueId value : node.inputs) touch(value, {node.region, NodeId(n), false});
      // Passing a value on counts as a read: its new name is set by the node.
      for (const ValueId value : node.outputs) touch(value, {node.region, NodeId(n), false});
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      for (const ValueId value : graph_.region(RegionId(r)).results) {
        touch(value, {RegionId(r), NodeId(), false});
      }
    }
    for (Storage& storage : result_.all) {
      if (storage.reason != NoBlock::kHasBlock) continue;
      const NodeId producer = graph_.value(storage.value).producer;
      storage.accesses.push_back({graph_.node(producer).region, producer, true});
    }
  }

  const Graph& graph_;
  const RegionTree& tree_;
  std::vector<bool> lost_;
  Storages result_;
};

}  // namespace

Storages find_storages(const Graph& graph, const RegionTree& tree) {
  return Finder(graph, tree).run();
}

}  // namespace eddy
