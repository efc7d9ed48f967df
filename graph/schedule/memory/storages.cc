#include "graph/schedule/memory/storages.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/memory/name_lives.h"

namespace eddy {
namespace {

// Why a value of that type can't have a block.
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
  Finder(const Graph& graph, const NodeOrder& order, bool hands_on)
      : graph_(graph),
        tree_(graph),
        roots_(find_roots(graph)),
        lives_(graph, order, roots_),
        is_planned_(graph.num_values(), false),
        reasons_(graph.num_values(), NoBlock::kHasBlock),
        sizes_(graph.num_values(), 0),
        edges_of_(graph.num_values()) {
    for (uint32_t v = 0; v < graph.num_values(); ++v) judge(ValueId(v));
    if (hands_on) connect();
    for (uint32_t v = 0; v < graph.num_values(); ++v) {
      if (!hands_on && is_handed(ValueId(v))) drop(ValueId(v), NoBlock::kHandedOn);
      check_further_name(ValueId(v));
    }
    drop_what_is_kept(hands_on);
    settle();
  }

  Storages find() {
    NameClasses classes;
    for (bool is_settled = false; !is_settled;) {
      classes = coalesce(graph_, lives_, edges_, is_planned_);
      is_settled = !drop_large_copies(classes);
    }
    return make(classes);
  }

 private:
  // --- which names are planned ---

  bool is_handed(ValueId root) const {
    const ValueInfo& info = graph_.value(root);
    if (info.origin == ValueOrigin::kParameter) return true;
    return info.origin == ValueOrigin::kNodeOutput &&
           graph_.node(info.producer).kind != NodeKind::kExec;
  }

  // A root by what makes it.
  void judge(ValueId id) {
    if (roots_[id.index()] != id) return;
    const ValueInfo& info = graph_.value(id);
    NoBlock& reason = reasons_[id.index()];
    if (info.origin == ValueOrigin::kConstant) {
      reason = NoBlock::kConstant;
    } else if (info.origin == ValueOrigin::kParameter && info.region == Graph::kRoot) {
      reason = NoBlock::kGraphInput;
    } else if (is_iteration(graph_, id)) {
      reason = NoBlock::kLoopCounter;
    } else if (info.origin == ValueOrigin::kNodeOutput) {
      reason = judge_output(info);
    }
    if (reason == NoBlock::kHasBlock) reason = reason_of_type(info.type, sizes_[id.index()]);
    is_planned_[id.index()] = reason == NoBlock::kHasBlock;
  }
  NoBlock judge_output(const ValueInfo& info) const {
    const Node& node = graph_.node(info.producer);
    const bool is_stacked =
        node.kind == NodeKind::kWhile && info.index >= LoopView(graph_, node).num_forwarded();
    if (is_stacked) return NoBlock::kScanRows;
    const bool is_own = node.kind == NodeKind::kExec && node.op->is_value_op;
    return is_own ? NoBlock::kMadeByKernel : NoBlock::kHasBlock;
  }

  void connect() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueId to(v);
      if (roots_[v] != to || !is_handed(to)) continue;
      const RegionId inside = graph_.value(to).region;
      const NodeId owner = graph_.value(to).origin == ValueOrigin::kParameter
                               ? tree_.owner(inside)
                               : graph_.value(to).producer;
      for (const AliasSource& source : alias_sources(graph_, to)) {
        const ValueId from = roots_[source.value.index()];
        if (from == to) continue;
        const auto edge = static_cast<uint32_t>(edges_.size());
        edges_.push_back({to, from, source.kind, tree_.depth(graph_.node(owner).region)});
        edges_of_[to.index()].push_back(edge);
        edges_of_[from.index()].push_back(edge);
        if (is_static_pair(graph_, to, source.value)) continue;
        drop(to, NoBlock::kChangingShape);
      }
    }
  }

  // Views and forwarded names stand where their roots do.
  void check_further_name(ValueId id) {
    const ValueId root = roots_[id.index()];
    if (root == id || !is_planned_[root.index()]) return;
    uint64_t size_bytes = 0;
    const NoBlock reason = reason_of_type(graph_.value(id).type, size_bytes);
    if (reason != NoBlock::kHasBlock || size_bytes != sizes_[root.index()]) {
      drop(root, NoBlock::kHandedOn);
    }
  }

  void drop_what_is_kept(bool hands_on) {
    const auto keep = [&](ValueId value, NoBlock reason) {
      if (!value.is_none()) drop(roots_[value.index()], reason);
    };
    for (const ValueId value : graph_.outputs()) keep(value, NoBlock::kLeavesGraph);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      if (node.kind != NodeKind::kExec) {
        for (size_t i = 1; !hands_on && i < node.inputs.size(); ++i) {
          keep(node.inputs[i], NoBlock::kHandedOn);
        }
      } else if (node.op->is_value_op) {
        for (const ValueId value : node.inputs) keep(value, NoBlock::kKeptByReader);
      } else if (node.op->may_append && !node.inputs.empty() && !is_static_node(graph_, node)) {
        keep(node.inputs[0], NoBlock::kKeptByReader);
      }
    }
    for (uint32_t r = 1; !hands_on && r < graph_.num_regions(); ++r) {
      const Region& region = graph_.region(RegionId(r));
      for (size_t k = 0; k < region.results.size(); ++k) {
        if (is_handed_on(RegionId(r), k)) keep(region.results[k], NoBlock::kHandedOn);
      }
    }
  }
  // Neither a predicate nor a row.
  bool is_handed_on(RegionId region, size_t k) const {
    switch (role(graph_, region)) {
      case RegionRole::kBefore:
        return k > 0;
      case RegionRole::kAfter:
        return k < LoopView(graph_, tree_.owner(region)).num_carried();
      default:
        return true;
    }
  }

  void drop(ValueId root, NoBlock reason) {
    if (!is_planned_[root.index()]) return;
    is_planned_[root.index()] = false;
    reasons_[root.index()] = reason;
    dropped_.push_back(root);
  }
  // What is handed on to a name that references move is moved by references, too; what is handed to
  // a planned name is copied where it may be.
  void settle() {
    if (!is_checked_) {
      is_checked_ = true;
      for (const NameEdge& edge : edges_) check(edge);
    }
    while (!dropped_.empty()) {
      const ValueId root = dropped_.back();
      dropped_.pop_back();
      for (const uint32_t edge : edges_of_[root.index()]) check(edges_[edge]);
    }
  }
  void check(const NameEdge& edge) {
    if (is_planned_[edge.from.index()] && !is_planned_[edge.to.index()]) {
      const NoBlock why = reasons_[edge.to.index()];
      const bool is_told = why == NoBlock::kLeavesGraph || why == NoBlock::kKeptByReader;
      drop(edge.from, is_told ? why : NoBlock::kHandedOn);
    } else if (is_planned_[edge.to.index()] && !is_planned_[edge.from.index()]) {
      const bool is_repeated = edge.kind == AliasKind::kNext || edge.kind == AliasKind::kLeft;
      const bool is_large = sizes_[edge.to.index()] > kMaxCopiedBytes;
      if (is_repeated || (is_large && !is_overwritten(edge.to))) drop(edge.to, NoBlock::kHandedOn);
    }
  }
  // A carried parameter whose next value one node makes where the parameter stands, from less than
  // half as much beside it: elsewhere each iteration would copy it. What reads as much as it writes
  // takes the same time anywhere.
  bool is_overwritten(ValueId root) const {
    const ValueInfo& info = graph_.value(root);
    if (info.origin != ValueOrigin::kParameter || info.index == 0) return false;
    const Node& owner = graph_.node(tree_.owner(info.region));
    if (owner.kind != NodeKind::kWhile || role(graph_, info.region) != RegionRole::kBefore) {
      return false;
    }
    const LoopView loop(graph_, owner);
    const ValueInfo& next = graph_.value(roots_[loop.next()[info.index - 1].index()]);
    if (next.origin != ValueOrigin::kNodeOutput || next.index != 0) return false;
    const Node& writer = graph_.node(next.producer);
    if (writer.kind != NodeKind::kExec) return false;
    bool is_rewritten = false;
    uint64_t bytes_beside = 0;  // where types tell
    for (size_t i = 0; i < writer.inputs.size(); ++i) {
      const ValueId input = writer.inputs[i];
      if (input.is_none()) continue;
      const bool is_allowed = i < 64 && (writer.op->in_place_inputs >> i & 1) != 0;
      const bool is_it = roots_[input.index()] == root;
      is_rewritten |= is_allowed && is_it;
      const ValueType& type = graph_.value(input).type;
      if (is_it || !type.is_static_tensor()) continue;
      bytes_beside += static_cast<uint64_t>(type.tensor.dims.count().value_or(0)) *
                      element_size_bytes(type.tensor.element);
    }
    return is_rewritten && writer.inputs.size() > 1 && 2 * bytes_beside < sizes_[root.index()];
  }

  bool drop_large_copies(const NameClasses& classes) {
    for (const NameEdge& edge : edges_) {
      const bool are_planned = is_planned_[edge.to.index()] && is_planned_[edge.from.index()];
      if (!are_planned || sizes_[edge.to.index()] <= kMaxCopiedBytes) continue;
      if (classes.is_copy(edge)) drop(edge.to, NoBlock::kHandedOn);
    }
    const bool has_dropped = !dropped_.empty();
    settle();
    return has_dropped;
  }

  // --- storages of what is planned ---

  Storages make(const NameClasses& classes) {
    result_ = {};
    result_.of_value.resize(graph_.num_values(), Storages::kNone);
    result_.turns.resize(graph_.num_values(), Turn::kFirst);
    result_.values.resize(graph_.num_values());
    std::vector<uint32_t> number(classes.all.size(), Storages::kNone);
    for (uint32_t c = 0; c < classes.all.size(); ++c) {
      if (classes.all[c].names.empty()) continue;
      number[c] = static_cast<uint32_t>(result_.all.size());
      result_.all.push_back(storage_of(classes.all[c]));
    }
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueId root = roots_[v];
      ValueMemory& memory = result_.values[v];
      memory.reason = root == ValueId(v) ? reasons_[v] : NoBlock::kHasBlock;
      if (root != ValueId(v) || is_handed(root)) {
        const bool is_outside = root == ValueId(v) && (memory.reason == NoBlock::kGraphInput ||
                                                       memory.reason == NoBlock::kLoopCounter ||
                                                       memory.reason == NoBlock::kScanRows);
        if (!is_outside) {
          memory.place = MemoryPlace::kShared;
          memory.reason = NoBlock::kHasBlock;
        }
      }
      memory.size_bytes = sizes_[root.index()];
      if (!is_planned_[root.index()]) continue;
      if (root == ValueId(v)) memory.place = MemoryPlace::kBlock;
      result_.of_value[v] = number[classes.of_root[root.index()]];
      EDDY_CHECK(result_.of_value[v] != Storages::kNone) << "value " << v << " has no storage";
      result_.turns[v] = classes.turns[root.index()];
      Storage& storage = result_.all[result_.of_value[v]];
      storage.home = tree_.common(storage.home, graph_.value(ValueId(v)).region);
    }
    add_accesses();
    return std::move(result_);
  }
  Storage storage_of(const NameClasses::Class& names) const {
    Storage storage;
    storage.loop = names.loop;
    storage.names = names.names;
    storage.size_bytes = sizes_[names.names[0].index()];
    EDDY_CHECK(storage.size_bytes > 0) << "value " << names.names[0].index() << " has no bytes";
    EDDY_DCHECK(std::ranges::all_of(names.names, [&](ValueId name) {
      return sizes_[name.index()] == storage.size_bytes;
    })) << "names of several sizes have one address";
    storage.home = graph_.value(names.names[0]).region;
    storage.begins_with_its_writer = begins_with_writer(names.names);
    for (const ValueId name : names.names) {
      if (!is_carried(graph_, name)) continue;
      storage.is_carried = true;
      const NodeId loop = tree_.owner(graph_.value(name).region);
      storage.home = tree_.common(storage.home, graph_.node(loop).region);
    }
    return storage;
  }

  bool begins_with_writer(const std::vector<ValueId>& names) const {
    ValueId writer;
    for (const ValueId name : names) {
      if (is_carried(graph_, name) || (!is_handed(name) && !writer.is_none())) return false;
      if (!is_handed(name)) writer = name;
    }
    return !writer.is_none() && std::ranges::none_of(names, [&](ValueId name) {
      return name != writer && lives_.ends_before(name, writer);
    });
  }

  void touch(ValueId value, const Access& access) {
    if (value.is_none()) return;
    const uint32_t storage = result_.of_value[value.index()];
    if (storage != Storages::kNone) result_.all[storage].accesses.push_back(access);
  }
  void add_accesses() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      for (const ValueId value : node.inputs) touch(value, {node.region, NodeId(n), false});
      for (const ValueId value : node.outputs) {
        const bool is_written = roots_[value.index()] == value;
        touch(value, {node.region, NodeId(n), is_written});
      }
      if (node.kind != NodeKind::kWhile) continue;
      for (const ValueId value : LoopView(graph_, node).carried()) {
        touch(value, {node.region, NodeId(n), true});
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      for (const ValueId value : graph_.region(RegionId(r)).results) {
        touch(value, {RegionId(r), NodeId(), false});
      }
    }
  }

  const Graph& graph_;
  const RegionTree tree_;
  const std::vector<ValueId> roots_;
  const NameLives lives_;
  std::vector<bool> is_planned_;  // by ValueId, of roots; likewise the next two
  std::vector<NoBlock> reasons_;
  std::vector<uint64_t> sizes_;
  std::vector<NameEdge> edges_;
  std::vector<std::vector<uint32_t>> edges_of_;  // by ValueId
  std::vector<ValueId> dropped_;                 // whose edges are still to be checked
  bool is_checked_ = false;
  Storages result_;
};

}  // namespace

Storages find_storages(const Graph& graph, const NodeOrder& order, bool hands_on) {
  return Finder(graph, order, hands_on).find();
}

}  // namespace eddy
