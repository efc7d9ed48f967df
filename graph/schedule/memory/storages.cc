#include "graph/schedule/memory/storages.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"

namespace eddy {
namespace {

constexpr size_t kMaxNames = 64;

// Why a value that an exec node writes can't have a block, as far as its type determines it.
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
  explicit Finder(const Graph& graph) : graph_(graph), tree_(graph), lost_(graph.num_values()) {
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
    if (node.kind == NodeKind::kWhile && info.index >= LoopView(graph_, node).num_forwarded()) {
      return refuse(id, NoBlock::kScanRows);
    }
    if (node.kind != NodeKind::kExec) return share(id);
    if (node.op->is_value_op) return refuse(id, NoBlock::kMadeByKernel);
    if (!viewed(graph_, id).is_none()) return share(id);
    Storage storage;
    storage.value = id;
    storage.reason = reason_of_type(info.type, storage.size_bytes);
    result_.values[id.index()].size_bytes = storage.size_bytes;
    if (storage.reason != NoBlock::kHasBlock) return refuse(id, storage.reason);
    result_.values[id.index()].place = MemoryPlace::kBlock;
    EDDY_CHECK(storage.size_bytes > 0) << "value " << id.index() << " has a block of no bytes";
    result_.of_value[id.index()] = {static_cast<uint32_t>(result_.all.size())};
    result_.all.push_back(std::move(storage));
  }

  void connect_names() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      for (const AliasSource& source : alias_sources(graph_, ValueId(v))) {
        result_.names_of[source.value.index()].push_back(ValueId(v));
      }
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
    EDDY_DCHECK(std::ranges::is_sorted(result_.of_value[to.index()])) << "storages are ascending";
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
      } else if (node.op->may_append && !node.inputs.empty() && !is_static_node(graph_, node)) {
        give_up(node.inputs[0], NoBlock::kKeptByReader);
      }
    }
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      for (const ValueId to : result_.names_of[v]) {
        if (lost_[to.index()]) give_up(ValueId(v), NoBlock::kManyHolders);
      }
    }
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
    if (!is_carried(graph_, name)) return;
    const NodeId owner = graph_.region(info.region).owner;
    if (!tree_.is_inside(writer(storage).region, owner)) return;
    storage.is_carried = true;
    storage.holders.push_back(name);
    storage.home = tree_.common(storage.home, graph_.node(owner).region);
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
  const RegionTree tree_;
  std::vector<bool> lost_;
  Storages result_;
};

}  // namespace

Storages find_storages(const Graph& graph) { return Finder(graph).run(); }

}  // namespace eddy
